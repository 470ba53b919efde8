/*
 * A host of threads: each fork starts a thread that runs as a strand of its own.
 *
 * pthreads THREADS OUTPUT [LINES]
 * Each thread writes LINES lines; the output is that of the loop without threads.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <ciel_ordered.h>

struct work {
    ciel_ordered_strand *strand;
    pthread_t thread;
    int output, number, lines, result;
};

static int fail(const char *act)
{
    fprintf(stderr, "%s: %s\n", act, ciel_ordered_error());
    return 1;
}

static int write_lines(const struct work *work)
{
    for (int line = 0; line < work->lines; line++) {
        char text[64];
        int length = snprintf(text, sizeof text, "thread %d line %d\n", work->number, line);
        if (ciel_ordered_write(work->output, text, (size_t)length) < 0)
            return -1;
    }
    return 0;
}

static void *run(void *argument)
{
    struct work *work = argument;
    /* The message of an error belongs to the thread in which it happened. */
    if (ciel_ordered_enter(work->strand) != 0 || write_lines(work) != 0)
        work->result = fail("write");
    if (ciel_ordered_end(work->strand) != 0)
        work->result = fail("end");
    return NULL;
}

int main(int count, char **words)
{
    int threads = count > 2 ? atoi(words[1]) : 0;
    if (threads < 1) {
        fprintf(stderr, "usage: pthreads THREADS OUTPUT [LINES]\n");
        return 2;
    }
    struct work *works = calloc((size_t)threads, sizeof *works);
    int output = ciel_ordered_open(words[2], CIEL_ORDERED_SERIAL_APPEND,
                                   O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (works == NULL || output < 0)
        return fail("open");
    for (int number = 0; number < threads; number++) {
        struct work *work = &works[number];
        work->strand = ciel_ordered_fork();
        work->output = output;
        work->number = number;
        work->lines = count > 3 ? atoi(words[3]) : 1000;
        if (work->strand == NULL || pthread_create(&work->thread, NULL, run, work) != 0)
            return fail("fork");
    }
    if (ciel_ordered_write(output, "end\n", 4) != 4)
        return fail("write");
    for (int number = 0; number < threads; number++) {
        pthread_join(works[number].thread, NULL);
        if (ciel_ordered_join(works[number].strand) != 0)
            return fail("join");
        if (works[number].result != 0)
            return 1;
    }
    free(works);
    return ciel_ordered_close(output) == 0 ? 0 : fail("close");
}
