/* Descriptors that other threads have used become other files, or none, at once for all. */
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static pthread_barrier_t turn;
static ciel_ordered_strand *strand;
static int descriptor;

/* Uses the descriptor in each of four rounds, between which the other thread changes it. */
static void *user(void *unused)
{
    CHECK(ciel_ordered_enter(strand) == 0);
    CHECK(ciel_ordered_write(descriptor, "user\n", 5) == 5);
    CHECK(ciel_ordered_leave(strand) == 0);
    pthread_barrier_wait(&turn);
    /* Closed. */
    pthread_barrier_wait(&turn);
    FAILS(EBADF, ciel_ordered_write(descriptor, "x", 1));
    pthread_barrier_wait(&turn);
    /* Another file. */
    pthread_barrier_wait(&turn);
    CHECK(ciel_ordered_write(descriptor, "to all\n", 7) == 7);
    pthread_barrier_wait(&turn);
    /* That one again, by dup2 of a third. */
    pthread_barrier_wait(&turn);
    CHECK(ciel_ordered_write(descriptor, "to third\n", 9) == 9);
    return unused;
}

static int open_append(const char *path)
{
    int opened = ciel_ordered_open(path, CIEL_ORDERED_SERIAL_APPEND, O_WRONLY | O_CREAT, 0666);
    CHECK(opened >= 0);
    return opened;
}

static int open_global(const char *path)
{
    int opened = ciel_ordered_open(path, CIEL_ORDERED_GLOBAL, O_RDWR | O_CREAT, 0666);
    CHECK(opened >= 0);
    return opened;
}

/* Its end is seen although a thread has used it that does nothing any more. */
static int reader_of_a_pipe(void)
{
    CHECK(mkfifo("pipe", 0600) == 0);
    int reader = open("pipe", O_RDONLY | O_NONBLOCK);
    CHECK(reader >= 0);
    CHECK(fcntl(reader, F_SETFL, 0) == 0);
    return reader;
}

static void expect(int reader, const char *text)
{
    char found[64];
    size_t length = 0;
    for (;;) {
        ssize_t count = read(reader, found + length, sizeof found - length);
        CHECK(count >= 0);
        if (count == 0)
            break;
        length += (size_t)count;
    }
    CHECK(length == strlen(text) && memcmp(found, text, length) == 0);
}

int main(void)
{
    pthread_t thread;
    int reader = reader_of_a_pipe();
    CHECK(pthread_barrier_init(&turn, NULL, 2) == 0);
    descriptor = open_append("pipe");
    strand = ciel_ordered_fork();
    CHECK(pthread_create(&thread, NULL, user, NULL) == 0);
    pthread_barrier_wait(&turn);
    CHECK(ciel_ordered_join(strand) == 0);
    CHECK(ciel_ordered_close(descriptor) == 0);
    expect(reader, "user\n");
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    CHECK(open_global("all") == descriptor);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    int third = open_global("third");
    CHECK(ciel_ordered_dup2(third, descriptor) == descriptor);
    pthread_barrier_wait(&turn);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(ciel_ordered_close(third) == 0 && ciel_ordered_close(descriptor) == 0);
    CHECK(holds("all", "to all\n") && holds("third", "to third\n"));
    return 0;
}
