/* What the page says of threads: messages are a thread's own, strands nest and move on. */
#include <fcntl.h>
#include <pthread.h>

#include "check.h"

static int log_file;
static ciel_ordered_strand *moving;

static void write_text(const char *text)
{
    CHECK(ciel_ordered_write(log_file, text, strlen(text)) == (ssize_t)strlen(text));
}

static void *fails_otherwise(void *unused)
{
    FAILS(EINVAL, ciel_ordered_open("log", 7, O_RDWR, 0));
    CHECK(strstr(ciel_ordered_error(), "the file missing") == NULL);
    return unused;
}

static void *continues(void *unused)
{
    CHECK(ciel_ordered_enter(moving) == 0);
    write_text("moved ");
    CHECK(ciel_ordered_end(moving) == 0);
    return unused;
}

static void on_another_thread(void *(*run)(void *))
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

static void messages_belong_to_threads(void)
{
    FAILS(ENOENT, ciel_ordered_open("the file missing", CIEL_ORDERED_LOCAL, O_RDWR, 0));
    on_another_thread(fails_otherwise);
    CHECK(strstr(ciel_ordered_error(), "the file missing") != NULL);
}

static void strands_nest_within_a_thread_and_move_to_others(void)
{
    moving = ciel_ordered_fork();
    CHECK(ciel_ordered_enter(moving) == 0);
    write_text("begun ");
    ciel_ordered_strand *inner = ciel_ordered_fork();
    CHECK(ciel_ordered_enter(inner) == 0);
    write_text("inner ");
    FAILS(EPERM, ciel_ordered_leave(moving));
    CHECK(ciel_ordered_end(inner) == 0 && ciel_ordered_join(inner) == 0);
    CHECK(ciel_ordered_leave(moving) == 0);
    write_text("last ");
    on_another_thread(continues);
    CHECK(ciel_ordered_join(moving) == 0);
}

int main(void)
{
    log_file = ciel_ordered_open("log", CIEL_ORDERED_SERIAL_APPEND,
                                 O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(log_file >= 0);
    messages_belong_to_threads();
    strands_nest_within_a_thread_and_move_to_others();
    CHECK(ciel_ordered_close(log_file) == 0);
    CHECK(holds("log", "begun inner moved last "));
    return 0;
}
