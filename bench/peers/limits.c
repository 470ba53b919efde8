/* The work of the comparison as tasks of OpenMP: what one process of C can do.
 *
 * Usage: limits PROGRAM CORES [NUMBER...]; exits with 2 if it has no such program. Prints what
 * compare.py reads: the answer, the seconds that the work took, and the number of tasks.
 */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODULUS = 1000003 };

static void report(long answer, double seconds, long tasks)
{
    printf("{\"answer\": %ld, \"seconds\": %.9f, \"tasks\": %ld}\n", answer, seconds, tasks);
}

static void warm(void)
{
    #pragma omp parallel
    {
        #pragma omp barrier
    }
}

static void wide(long count)
{
    long *results = malloc((size_t)count * sizeof *results);
    long sum = 0;
    if (results == NULL)
        exit(1);
    double began = omp_get_wtime();
    #pragma omp parallel
    #pragma omp single
    for (long number = 0; number < count; number++) {
        #pragma omp task firstprivate(number) shared(results)
        results[number] = number;
    }
    for (long number = 0; number < count; number++)
        sum += results[number];
    report(sum, omp_get_wtime() - began, count);
    free(results);
}

/* The two cells of a step hold the numbers before it, and take turns. */
static void chain(long count)
{
    long cells[2] = {0, 1};
    double began = omp_get_wtime();
    #pragma omp parallel
    #pragma omp single
    for (long number = 0; number < count; number++) {
        long *before = &cells[number % 2], *last = &cells[1 - number % 2];
        #pragma omp task firstprivate(before, last) depend(inout: *before) depend(in: *last)
        *before = (*before + *last) % MODULUS;
    }
    report(cells[(count + 1) % 2], omp_get_wtime() - began, count);
}

static long fib(long number)
{
    long first, second;
    if (number < 2)
        return number;
    #pragma omp task shared(first) firstprivate(number)
    first = fib(number - 1);
    second = fib(number - 2);
    #pragma omp taskwait
    return first + second;
}

static long calls(long number)
{
    return number < 2 ? 1 : 1 + calls(number - 1) + calls(number - 2);
}

static void tree(long number)
{
    long answer = 0;
    double began = omp_get_wtime();
    #pragma omp parallel
    #pragma omp single
    answer = fib(number);
    double seconds = omp_get_wtime() - began;
    report(answer, seconds, calls(number));
}

static long spin(double seconds)
{
    double until = omp_get_wtime() + seconds;
    while (omp_get_wtime() < until) {
    }
    return 1;
}

static void rounds(long count, double seconds)
{
    long sum = 0;
    double began = omp_get_wtime();
    for (long round = 0; round < count; round++) {
        sum = 0;
        #pragma omp parallel reduction(+: sum)
        sum += spin(seconds);
    }
    report(sum, omp_get_wtime() - began, count);
}

int main(int count, char **words)
{
    if (count < 4)
        return 2;
    const char *program = words[1];
    long number = atol(words[3]);
    omp_set_num_threads(atoi(words[2]));
    warm();
    if (strcmp(program, "wide") == 0)
        wide(number);
    else if (strcmp(program, "chain") == 0)
        chain(number);
    else if (strcmp(program, "tree") == 0)
        tree(number);
    else if (strcmp(program, "rounds") == 0 && count > 4)
        rounds(number, atof(words[4]));
    else
        return 2;
    return 0;
}
