/* The modes, and descriptors that are one open file. */
#include <fcntl.h>
#include <unistd.h>

#include "check.h"

static void local_pointers_belong_to_strands(void)
{
    char text[4] = "";
    int file = ciel_ordered_open("text", CIEL_ORDERED_LOCAL, O_RDONLY, 0);
    CHECK(file >= 0 && ciel_ordered_lseek(file, 3, SEEK_SET) == 3);
    ciel_ordered_strand *strand = ciel_ordered_fork();
    CHECK(ciel_ordered_lseek(file, -1, SEEK_END) == 8);
    CHECK(ciel_ordered_enter(strand) == 0);
    CHECK(ciel_ordered_read(file, text, 3) == 3 && strcmp(text, "bbb") == 0);
    CHECK(ciel_ordered_leave(strand) == 0);
    CHECK(ciel_ordered_read(file, text, 3) == 1 && text[0] == 'c');
    CHECK(ciel_ordered_read(file, text, 3) == 0);
    FAILS(EBADF, ciel_ordered_write(file, "x", 1));
    CHECK(ciel_ordered_enter(strand) == 0);
    CHECK(ciel_ordered_lseek(file, 0, SEEK_CUR) == 6);
    CHECK(ciel_ordered_end(strand) == 0 && ciel_ordered_join(strand) == 0);
    FAILS(EINVAL, ciel_ordered_lseek(file, -1, SEEK_SET));
    FAILS(EINVAL, ciel_ordered_lseek(file, 0, 9));
    CHECK(ciel_ordered_close(file) == 0);
}

static void global_pointer_is_shared(void)
{
    char text[4] = "";
    int file = ciel_ordered_open("text", CIEL_ORDERED_GLOBAL, O_RDWR, 0);
    int other = ciel_ordered_dup(file);
    CHECK(ciel_ordered_read(file, text, 3) == 3 && strcmp(text, "aaa") == 0);
    CHECK(ciel_ordered_read(other, text, 3) == 3 && strcmp(text, "bbb") == 0);
    CHECK(ciel_ordered_close(file) == 0);
    CHECK(ciel_ordered_read(other, text, 3) == 3 && strcmp(text, "ccc") == 0);
    CHECK(ciel_ordered_close(other) == 0);
}

static void last_descriptor_closes(void)
{
    int file = ciel_ordered_open("log", CIEL_ORDERED_SERIAL_APPEND, O_WRONLY | O_CREAT, 0600);
    CHECK(ciel_ordered_dup2(file, 40) == 40 && ciel_ordered_dup2(40, 40) == 40);
    CHECK(ciel_ordered_write(file, "one\n", 4) == 4);
    CHECK(ciel_ordered_close(file) == 0);
    CHECK(ciel_ordered_write(40, "two\n", 4) == 4);
    int text = ciel_ordered_open("text", CIEL_ORDERED_GLOBAL, O_RDONLY, 0);
    CHECK(ciel_ordered_dup2(text, 40) == 40);
    CHECK(holds("log", "one\ntwo\n"));
    CHECK(ciel_ordered_close(40) == 0 && ciel_ordered_close(text) == 0);
}

static void changed_file_is_reported(void)
{
    int file = ciel_ordered_open("log", CIEL_ORDERED_SERIAL_APPEND, O_WRONLY, 0);
    CHECK(file >= 0 && truncate("log", 2) == 0);
    FAILS(ESTALE, ciel_ordered_close(file));
    FAILS(EBADF, ciel_ordered_close(file));
}

int main(void)
{
    FILE *text = fopen("text", "w");
    CHECK(text != NULL && fputs("aaabbbccc", text) >= 0 && fclose(text) == 0);
    local_pointers_belong_to_strands();
    global_pointer_is_shared();
    last_descriptor_closes();
    changed_file_is_reported();
    return 0;
}
