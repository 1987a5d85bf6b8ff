/* Appends records to a file until it is ended, and acknowledges each once it is as durable as was asked for.
 *
 *   weighbridge-powercut FILE HOW TOKEN ACKNOWLEDGED MICROSECONDS
 *
 * HOW is "fsync" (a write, then fsync), "O_DSYNC" (the file is opened so) or "write" (a write alone). A record has
 * 4096 bytes: 128 times the token (16 characters) and its number (16 hexadecimal digits), so that one of which a part
 * is missing or another's is seen to be torn. For each that is acknowledged a byte is appended to ACKNOWLEDGED, whose
 * size is therefore their number. Between two records it waits for that many microseconds.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RECORD 4096
#define PART 32
#define TOKEN 16

static void fail(const char *what)
{
    fprintf(stderr, "weighbridge-powercut: %s: %s\n", what, strerror(errno));
    exit(1);
}

static int opened(const char *path, int flags)
{
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | flags, 0644);
    if (file < 0)
        fail(path);
    return file;
}

static void append(int file, const char *data, size_t size, const char *path)
{
    ssize_t written = write(file, data, size);
    if (written >= 0 && (size_t)written != size)
        errno = ENOSPC;
    if (written != (ssize_t)size)
        fail(path);
}

/* The name of a new file is not durable before its folder is (fsync(2)). */
static void sync_folder(const char *path)
{
    char *copy = strdup(path);
    int folder = copy ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder < 0 || fsync(folder) != 0)
        fail("the folder of the file");
    close(folder);
    free(copy);
}

int main(int argc, char **argv)
{
    char *rest = "";
    unsigned long pause = argc == 6 ? strtoul(argv[5], &rest, 10) : 0;
    int by_fsync = argc == 6 && strcmp(argv[2], "fsync") == 0;
    int by_flag = argc == 6 && strcmp(argv[2], "O_DSYNC") == 0;
    int by_nothing = argc == 6 && strcmp(argv[2], "write") == 0;
    if (*rest != '\0' || by_fsync + by_flag + by_nothing != 1 || strlen(argv[3]) != TOKEN) {
        fprintf(stderr, "usage: weighbridge-powercut FILE fsync|O_DSYNC|write TOKEN ACKNOWLEDGED MICROSECONDS\n");
        return 2;
    }
    int acknowledged = opened(argv[4], 0), file = opened(argv[1], by_flag ? O_DSYNC : 0);
    if (!by_nothing)
        sync_folder(argv[1]);
    for (unsigned long long number = 0;; number++) {
        char record[RECORD + 1];
        for (int at = 0; at < RECORD; at += PART)
            snprintf(record + at, PART + 1, "%s%016llx", argv[3], number);
        append(file, record, RECORD, argv[1]);
        if (by_fsync && fsync(file) != 0)
            fail(argv[1]);
        append(acknowledged, "+", 1, argv[4]);
        usleep(pause);
    }
}
