/* Ends of streams, as programs of their own, and the plainest ring in shared memory between two.

   ends fill BYTES      writes so many bytes to standard output
   ends drain           reads standard input: prints its bytes and the sum of its words
   ends ring BYTES      passes so many bytes from process to process by shared memory:
                        prints seconds, bytes and the sum of the words
   ends stamp COUNT     writes the time so often, each time when the stream has been idle
   ends stamps          reads these times: prints what each was late by, in nanoseconds

   Bytes come in pieces of PIECE, of which each has the words 0, 1, 2 and so on. */

#include <errno.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 256 << 10, WORDS = PIECE / 8, SLOTS = 16, IDLE_NS = 2000000 };

/* Semaphores count the slots that are free and those that are full. */
struct ring {
    sem_t free, full;
    uint64_t slots[SLOTS][WORDS];
};

static uint64_t piece[WORDS];

static void need(int holds, const char *what) {
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static int64_t now_ns(void) {
    struct timespec now;
    need(clock_gettime(CLOCK_MONOTONIC, &now) == 0, "clock");
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t sum_of(const uint64_t *words, size_t count) {
    uint64_t sum = 0;
    for (size_t at = 0; at < count; at++) sum += words[at];
    return sum;
}

static void write_all(const void *bytes, size_t left) {
    const char *from = bytes;
    while (left > 0) {
        ssize_t count = write(1, from, left);
        need(count > 0 || errno == EINTR, "write");
        if (count > 0) from += count, left -= (size_t)count;
    }
}

/* Bytes that were read: fewer than asked for at the end only. */
static size_t read_all(void *bytes, size_t asked) {
    size_t done = 0;
    while (done < asked) {
        ssize_t count = read(0, (char *)bytes + done, asked - done);
        need(count >= 0 || errno == EINTR, "read");
        if (count == 0) break;
        if (count > 0) done += (size_t)count;
    }
    return done;
}

static void fill(uint64_t bytes) {
    for (; bytes >= PIECE; bytes -= PIECE) write_all(piece, PIECE);
    write_all(piece, bytes);
}

static void drain(void) {
    static uint64_t room[WORDS];
    uint64_t bytes = 0, sum = 0;
    for (size_t count; (count = read_all(room, PIECE)) > 0; bytes += count)
        sum += sum_of(room, count / 8);
    printf("%llu %llu\n", (unsigned long long)bytes, (unsigned long long)sum);
}

static void await(sem_t *semaphore) {
    while (sem_wait(semaphore) != 0) need(errno == EINTR, "semaphore");
}

static void ring(uint64_t bytes) {
    uint64_t turns = bytes / PIECE, sum = 0;
    struct ring *ring = mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(ring != MAP_FAILED, "mmap");
    need(sem_init(&ring->free, 1, SLOTS) == 0 && sem_init(&ring->full, 1, 0) == 0, "semaphore");
    int64_t begun = now_ns();
    pid_t producer = fork();
    need(producer >= 0, "fork");
    for (uint64_t turn = 0; turn < turns; turn++) {
        uint64_t *slot = ring->slots[turn % SLOTS];
        await(producer == 0 ? &ring->free : &ring->full);
        if (producer == 0)
            memcpy(slot, piece, PIECE);
        else
            sum += sum_of(slot, WORDS);
        sem_post(producer == 0 ? &ring->full : &ring->free);
    }
    if (producer == 0) _exit(0);
    need(waitpid(producer, NULL, 0) == producer, "wait");
    printf("%.6f %llu %llu\n", (double)(now_ns() - begun) / 1e9,
           (unsigned long long)(turns * PIECE), (unsigned long long)sum);
}

static void stamp(uint64_t count) {
    struct timespec idle = {0, IDLE_NS};
    for (; count > 0; count--) {
        nanosleep(&idle, NULL);
        int64_t written = now_ns();
        write_all(&written, sizeof written);
    }
}

static void stamps(void) {
    for (int64_t written; read_all(&written, sizeof written) == sizeof written;)
        printf("%lld\n", (long long)(now_ns() - written));
}

int main(int count, char **words) {
    const char *what = count > 1 ? words[1] : "";
    uint64_t number = count > 2 ? strtoull(words[2], NULL, 10) : 0;
    for (size_t at = 0; at < WORDS; at++) piece[at] = at;
    if (strcmp(what, "fill") == 0) fill(number);
    else if (strcmp(what, "drain") == 0) drain();
    else if (strcmp(what, "ring") == 0) ring(number);
    else if (strcmp(what, "stamp") == 0) stamp(number);
    else if (strcmp(what, "stamps") == 0) stamps();
    else return fprintf(stderr, "usage: ends fill|drain|ring|stamp|stamps [NUMBER]\n"), 2;
    return 0;
}
