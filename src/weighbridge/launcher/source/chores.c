#define _GNU_SOURCE
#include "chores.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_FOLDERS = 64 };

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *place)
{
	(void)about, (void)kind, (void)place;
	if (remove(path) == 0 || errno == ENOENT)
		return 0;
	fprintf(stderr, "%s: %s\n", path, strerror(errno));
	return 1;
}

int chore(int count, char **words)
{
	if (count == 2 && strcmp(words[1], "sync") == 0) {
		sync();
		return 0;
	}
	if (count == 3 && strcmp(words[1], "open") == 0) {
		struct stat about;
		if (stat(words[2], &about) == 0 && chmod(words[2], (about.st_mode & 07777) | 0755) == 0)
			return 0;
		fprintf(stderr, "%s: %s\n", words[2], strerror(errno));
		return 1;
	}
	if (count != 3 || strcmp(words[1], "remove") != 0)
		return -1;
	if (nftw(words[2], remove_one, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0 || errno == ENOENT)
		return 0;
	return 1;
}
