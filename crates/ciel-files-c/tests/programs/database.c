/* Makes a GDBM database of so many records, some of them deleted and stored again. */
#include <gdbm.h>
#include <stdio.h>
#include <stdlib.h>

static datum text(char *buffer, const char *form, int number)
{
    datum result;
    result.dsize = sprintf(buffer, form, number);
    result.dptr = buffer;
    return result;
}

int main(int count, char **words)
{
    char key[64], value[64];
    if (count != 3)
        return 2;
    GDBM_FILE database = gdbm_open(words[1], 0, GDBM_NEWDB, 0600, NULL);
    if (database == NULL)
        return 1;
    for (int number = 0; number < atoi(words[2]); number++) {
        datum name = text(key, "key %d", number);
        if (gdbm_store(database, name, text(value, "old %d", number), GDBM_INSERT) != 0)
            return 1;
        if (number % 3 == 0 && gdbm_delete(database, name) != 0)
            return 1;
        if (gdbm_store(database, name, text(value, "the value of %d", number), GDBM_REPLACE) != 0)
            return 1;
    }
    gdbm_close(database);
    return 0;
}
