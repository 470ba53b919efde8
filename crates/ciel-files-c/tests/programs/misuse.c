/* Misuse of each call: an errno and a message, and the program goes on. */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"

static int log_file;
static ciel_ordered_strand *shared;

static void files(void)
{
    char byte;
    FAILS(EFAULT, ciel_ordered_open(NULL, CIEL_ORDERED_LOCAL, O_RDWR, 0));
    FAILS(EINVAL, ciel_ordered_open("log", 7, O_RDWR, 0));
    FAILS(EINVAL, ciel_ordered_open("log", CIEL_ORDERED_SERIAL_APPEND, O_RDONLY, 0));
    FAILS(EINVAL, ciel_ordered_open("log", CIEL_ORDERED_LOCAL, O_RDWR | O_APPEND, 0));
    FAILS(ENOENT, ciel_ordered_open("none", CIEL_ORDERED_LOCAL, O_RDWR, 0));
    CHECK(strstr(ciel_ordered_error(), "none") != NULL);
    FAILS(EBUSY, ciel_ordered_open("log", CIEL_ORDERED_SERIAL_APPEND, O_WRONLY, 0));
    FAILS(EBADF, ciel_ordered_read(log_file, &byte, 1));
    FAILS(ESPIPE, ciel_ordered_lseek(log_file, 0, SEEK_SET));
    FAILS(EFAULT, ciel_ordered_write(log_file, NULL, 1));
    FAILS(EINVAL, ciel_ordered_write(log_file, &byte, (size_t)-1));
    CHECK(ciel_ordered_write(log_file, NULL, 0) == 0);
    FAILS(EBADF, ciel_ordered_write(-1, &byte, 1));
    FAILS(EBADF, ciel_ordered_read(1000, &byte, 1));
    FAILS(EBADF, ciel_ordered_lseek(99999999, 0, SEEK_SET));
    FAILS(EBADF, ciel_ordered_dup(12));
    FAILS(EBADF, ciel_ordered_dup2(log_file, -5));
    FAILS(EBADF, ciel_ordered_dup2(log_file, 65536));
    FAILS(EBADF, ciel_ordered_close(12));
}

static void *stranger(void *unused)
{
    FAILS(EPERM, ciel_ordered_write(log_file, "x", 1));
    FAILS(EPERM, ciel_ordered_close(log_file));
    FAILS(EBUSY, ciel_ordered_enter(shared));
    FAILS(EPERM, ciel_ordered_leave(shared));
    FAILS(EBUSY, ciel_ordered_end(shared));
    FAILS(EBUSY, ciel_ordered_join(shared));
    return unused;
}

static void on_another_thread(void *(*run)(void *))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void strands(void)
{
    FAILS(EINVAL, ciel_ordered_enter(NULL));
    FAILS(EINVAL, ciel_ordered_leave(NULL));
    FAILS(EINVAL, ciel_ordered_end(NULL));
    FAILS(EINVAL, ciel_ordered_join(NULL));
    FAILS(EINVAL, ciel_ordered_append(NULL));
    FAILS(EINVAL, ciel_ordered_here(NULL));
    FAILS(EINVAL, ciel_ordered_rewind(NULL));
    FAILS(EINVAL, ciel_ordered_release(NULL));
    CHECK(ciel_ordered_detached(NULL) == NULL && errno == EINVAL);
    shared = ciel_ordered_fork();
    CHECK(shared != NULL && ciel_ordered_enter(shared) == 0);
    on_another_thread(stranger);
    CHECK(ciel_ordered_write(log_file, "strand\n", 7) == 7);
    CHECK(ciel_ordered_end(shared) == 0);
    FAILS(EBUSY, ciel_ordered_enter(shared));
    FAILS(EBUSY, ciel_ordered_end(shared));
    CHECK(ciel_ordered_join(shared) == 0);
    FAILS(EPERM, ciel_ordered_append(ciel_ordered_fork()));
}

static void *forgetful(void *unused)
{
    CHECK(ciel_ordered_enter(shared) == 0);
    CHECK(ciel_ordered_write(log_file, "forgotten\n", 10) == 10);
    return unused;
}

static void thread_that_never_leaves(void)
{
    shared = ciel_ordered_fork();
    FAILS(EBUSY, ciel_ordered_close(log_file));
    on_another_thread(forgetful);
    CHECK(ciel_ordered_join(shared) == 0);
}

static void views(void)
{
    ciel_ordered_view view;
    FAILS(EINVAL, ciel_ordered_view_begin(NULL));
    FAILS(EINVAL, ciel_ordered_view_write(NULL, log_file, "x", 1));
    FAILS(EINVAL, ciel_ordered_view_end(NULL));
    ciel_ordered_identity(NULL);
    ciel_ordered_identity(&view);
    ciel_ordered_reduce(&view, NULL);
    FAILS(EBADF, ciel_ordered_view_write(&view, 12, "x", 1));
    CHECK(ciel_ordered_view_end(&view) == 0 && ciel_ordered_view_end(&view) == 0);
}

int main(void)
{
    log_file = ciel_ordered_open("log", CIEL_ORDERED_SERIAL_APPEND,
                                 O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(log_file == 0);
    files();
    strands();
    thread_that_never_leaves();
    views();
    CHECK(ciel_ordered_close(log_file) == 0);
    FAILS(EBADF, ciel_ordered_write(log_file, "x", 1));
    CHECK(holds("log", "strand\nforgotten\n"));
    return 0;
}
