/* A check that names its place and ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ciel_ordered.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: %s does not hold; errno %d, %s\n", __FILE__,      \
                    __LINE__, #condition, errno, ciel_ordered_error());               \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

/* The call fails with this errno. */
#define FAILS(number, call) CHECK((errno = 0, (intptr_t)(call) == -1) && errno == (number))

/* The file holds exactly this text. */
static inline int holds(const char *path, const char *text)
{
    static char found[1 << 20];
    FILE *file = fopen(path, "rb");
    size_t length = file == NULL ? 0 : fread(found, 1, sizeof found, file);
    if (file != NULL)
        fclose(file);
    return length == strlen(text) && memcmp(found, text, length) == 0;
}

#endif
