/* A million strands, output beyond all buffers, all descriptors, a disk that becomes full. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define STRANDS 1000000
#define PIECE ((size_t)1 << 20)
#define DESCRIPTORS_MAX 65536

static int log_file;
static ciel_ordered_strand **strands;
static uint32_t count;

static int opened(const char *path)
{
    int file = ciel_ordered_open(path, CIEL_ORDERED_SERIAL_APPEND,
                                 O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(file >= 0);
    return file;
}

static void fork_all(uint32_t wanted)
{
    count = wanted;
    strands = malloc(count * sizeof *strands);
    CHECK(strands != NULL);
    for (uint32_t number = 0; number < count; ++number)
        CHECK((strands[number] = ciel_ordered_fork()) != NULL);
}

/* Two threads run the strands: those of even numbers, and those of odd ones. */
static void run_all(void *(*run)(void *))
{
    pthread_t threads[2];
    uint32_t first[2] = {0, 1};
    for (int number = 0; number < 2; ++number)
        CHECK(pthread_create(&threads[number], NULL, run, &first[number]) == 0);
    for (int number = 0; number < 2; ++number)
        CHECK(pthread_join(threads[number], NULL) == 0);
    free(strands);
}

static void *write_numbers(void *first)
{
    for (uint32_t number = *(uint32_t *)first; number < count; number += 2) {
        CHECK(ciel_ordered_enter(strands[number]) == 0);
        CHECK(ciel_ordered_write(log_file, &number, sizeof number) == sizeof number);
        /* Bytes that are none leave no trace. */
        CHECK(ciel_ordered_write(log_file, "", 0) == 0);
        CHECK(ciel_ordered_end(strands[number]) == 0);
        CHECK(ciel_ordered_join(strands[number]) == 0);
    }
    return NULL;
}

static void million_strands(void)
{
    log_file = opened("log");
    fork_all(STRANDS);
    run_all(write_numbers);
    CHECK(ciel_ordered_close(log_file) == 0);
    FILE *file = fopen("log", "rb");
    CHECK(file != NULL);
    uint32_t found;
    for (uint32_t number = 0; number < STRANDS; ++number)
        CHECK(fread(&found, sizeof found, 1, file) == 1 && found == number);
    CHECK(fread(&found, 1, 1, file) == 0 && fclose(file) == 0);
}

/* Each strand is a piece, in which each word tells its place; later ones are written first. */
static void fill(uint64_t *piece, uint64_t number)
{
    for (uint64_t word = 0; word < PIECE / sizeof *piece; ++word)
        piece[word] = number * PIECE + word;
}

static void *write_pieces(void *first)
{
    uint64_t *piece = malloc(PIECE);
    CHECK(piece != NULL);
    for (uint32_t turn = *(uint32_t *)first; turn < count; turn += 2) {
        uint32_t number = (turn ^ 3) < count ? turn ^ 3 : turn;
        fill(piece, number);
        CHECK(ciel_ordered_enter(strands[number]) == 0);
        CHECK(ciel_ordered_write(log_file, piece, PIECE) == (ssize_t)PIECE);
        CHECK(ciel_ordered_end(strands[number]) == 0);
        CHECK(ciel_ordered_join(strands[number]) == 0);
    }
    free(piece);
    return NULL;
}

static void large_output(uint64_t bytes)
{
    log_file = opened("log");
    fork_all((uint32_t)(bytes / PIECE / 4 * 4));
    run_all(write_pieces);
    CHECK(ciel_ordered_close(log_file) == 0);
    FILE *file = fopen("log", "rb");
    uint64_t *found = malloc(PIECE), *wanted = malloc(PIECE);
    CHECK(file != NULL && found != NULL && wanted != NULL);
    for (uint32_t number = 0; number < count; ++number) {
        fill(wanted, number);
        CHECK(fread(found, PIECE, 1, file) == 1 && memcmp(found, wanted, PIECE) == 0);
    }
    CHECK(fread(found, 1, 1, file) == 0 && fclose(file) == 0);
    free(found);
    free(wanted);
}

static void all_descriptors(void)
{
    log_file = opened("log");
    for (int number = log_file + 1; number < DESCRIPTORS_MAX; ++number)
        CHECK(ciel_ordered_dup(log_file) == number);
    FAILS(EMFILE, ciel_ordered_dup(log_file));
    FAILS(EMFILE, ciel_ordered_open("log", CIEL_ORDERED_GLOBAL, O_RDONLY, 0));
    CHECK(ciel_ordered_close(40) == 0 && ciel_ordered_close(30) == 0);
    CHECK(ciel_ordered_dup(log_file) == 30 && ciel_ordered_dup(log_file) == 40);
    for (int number = DESCRIPTORS_MAX; number-- > log_file;)
        CHECK(ciel_ordered_close(number) == 0);
}

/* The disk of this path has some pages. What follows the failure of a write fails alike. */
static void full_disk(const char *path)
{
    char line[16];
    struct stat held;
    unsigned number = 0;
    unsigned long valid;
    log_file = opened(path);
    ciel_ordered_strand *strand = ciel_ordered_fork();
    CHECK(ciel_ordered_enter(strand) == 0);
    do {
        snprintf(line, sizeof line, "%014u\n", number++);
    } while (ciel_ordered_write(log_file, line, 15) == 15);
    CHECK(errno == ENOSPC && number > 1000);
    FAILS(ENOSPC, ciel_ordered_write(log_file, line, 15));
    CHECK(ciel_ordered_end(strand) == 0 && ciel_ordered_join(strand) == 0);
    FAILS(ENOSPC, ciel_ordered_write(log_file, line, 15));
    const char *told = strstr(ciel_ordered_error(), "from byte ");
    CHECK(told != NULL && sscanf(told, "from byte %lu", &valid) == 1);
    FAILS(ENOSPC, ciel_ordered_close(log_file));
    FAILS(EBADF, ciel_ordered_close(log_file));
    CHECK(stat(path, &held) == 0 && (unsigned long)held.st_size == valid && valid > 0);
    FILE *file = fopen(path, "rb");
    char found[16], wanted[16];
    for (number = 0; (number + 1) * 15UL <= valid; ++number) {
        snprintf(wanted, sizeof wanted, "%014u\n", number);
        CHECK(fread(found, 15, 1, file) == 1 && memcmp(found, wanted, 15) == 0);
    }
    CHECK(fclose(file) == 0);
}

int main(int words, char **word)
{
    CHECK(words >= 2);
    if (strcmp(word[1], "strands") == 0)
        million_strands();
    else if (strcmp(word[1], "large") == 0)
        large_output(strtoull(word[2], NULL, 10));
    else if (strcmp(word[1], "descriptors") == 0)
        all_descriptors();
    else
        full_disk(word[1]);
    return 0;
}
