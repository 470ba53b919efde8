/*
 * OpenMP tasks as strands: a binary tree whose leaves write their number.
 *
 * openmp THREADS OUTPUT [LEAVES]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include <ciel_ordered.h>

static void check(int holds, const char *act)
{
    if (!holds) {
        fprintf(stderr, "%s: %s\n", act, ciel_ordered_error());
        exit(1);
    }
}

static void walk(int output, int begin, int end)
{
    if (end - begin == 1) {
        char line[32];
        int length = snprintf(line, sizeof line, "leaf %d\n", begin);
        check(ciel_ordered_write(output, line, (size_t)length) == length, "write");
        return;
    }
    int middle = begin + (end - begin) / 2;
    ciel_ordered_strand *strand = ciel_ordered_fork();
    check(strand != NULL, "fork");
#pragma omp task firstprivate(output, begin, middle, strand)
    {
        check(ciel_ordered_enter(strand) == 0, "enter");
        walk(output, begin, middle);
        check(ciel_ordered_end(strand) == 0, "end");
    }
    walk(output, middle, end);
#pragma omp taskwait
    check(ciel_ordered_join(strand) == 0, "join");
}

int main(int count, char **words)
{
    int threads = count > 2 ? atoi(words[1]) : 0;
    int leaves = count > 3 ? atoi(words[3]) : 4096;
    if (threads < 1 || leaves < 1) {
        fprintf(stderr, "usage: openmp THREADS OUTPUT [LEAVES]\n");
        return 2;
    }
    int output = ciel_ordered_open(words[2], CIEL_ORDERED_SERIAL_APPEND,
                                   O_WRONLY | O_CREAT | O_TRUNC, 0666);
    check(output >= 0, "open");
#pragma omp parallel num_threads(threads)
#pragma omp master
    walk(output, 0, leaves);
    check(ciel_ordered_close(output) == 0, "close");
    return 0;
}
