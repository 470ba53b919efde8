/* A host with hyperobjects: threads get views, which are reduced in several orders. */
#include <fcntl.h>
#include <pthread.h>

#include "check.h"

enum { VIEWS = 8 };

static int output;

struct piece {
    ciel_ordered_view view;
    int number;
};

/* Odd pieces write through the buffer of a view, too. */
static void *fill(void *argument)
{
    struct piece *piece = argument;
    int lines = piece->number % 2 == 0 ? 3 : 3000;
    for (int line = 0; line < lines; line++) {
        char text[64];
        int length = snprintf(text, sizeof text, "piece %d line %d\n", piece->number, line);
        CHECK(ciel_ordered_view_write(&piece->view, output, text, (size_t)length) == length);
    }
    return NULL;
}

/* Reduces begin..end into begin; the seed decides where the range is cut. */
static void reduce(struct piece *pieces, int begin, int end, unsigned *seed)
{
    if (end - begin < 2)
        return;
    *seed = *seed * 1103515245u + 12345u;
    int middle = begin + 1 + (int)(*seed / 65536u % (unsigned)(end - begin - 1));
    reduce(pieces, middle, end, seed);
    reduce(pieces, begin, middle, seed);
    ciel_ordered_reduce(&pieces[begin].view, &pieces[middle].view);
}

static void expect(void)
{
    static char expected[1 << 20];
    char *at = expected;
    for (int number = 0; number < VIEWS; number++)
        for (int line = 0; line < (number % 2 == 0 ? 3 : 3000); line++)
            at += sprintf(at, "piece %d line %d\n", number, line);
    strcpy(at, "end\n");
    CHECK(holds("log", expected));
}

static void round_of(unsigned seed)
{
    struct piece pieces[VIEWS + 1];
    pthread_t threads[VIEWS];
    output = ciel_ordered_open("log", CIEL_ORDERED_SERIAL_APPEND,
                               O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(output >= 0);
    CHECK(ciel_ordered_view_begin(&pieces[0].view) == 0);
    for (int number = 0; number <= VIEWS; number++) {
        pieces[number].number = number;
        if (number > 0)
            ciel_ordered_identity(&pieces[number].view);
        if (number < VIEWS)
            CHECK(pthread_create(&threads[number], NULL, fill, &pieces[number]) == 0);
    }
    for (int number = 0; number < VIEWS; number++)
        CHECK(pthread_join(threads[number], NULL) == 0);
    reduce(pieces, 0, VIEWS + 1, &seed);
    CHECK(ciel_ordered_view_end(&pieces[0].view) == 0);
    CHECK(ciel_ordered_write(output, "end\n", 4) == 4);
    CHECK(ciel_ordered_close(output) == 0);
    expect();
}

int main(void)
{
    for (unsigned seed = 0; seed < 10; seed++)
        round_of(seed);
    return 0;
}
