#define _GNU_SOURCE
#include "chores.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
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

static int told(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return 126;
}

/* Becomes a program of the machine, in the namespaces of its first process: only a process of all its numbers sees that.
   The mounts come last, as our /proc is behind them. */
static int become_on_machine(char **argv)
{
	static const char *const kinds[] = {"cgroup", "ipc", "uts", "net", "mnt"};
	enum { KINDS = sizeof kinds / sizeof *kinds };
	int of[KINDS];
	for (int each = 0; each < KINDS; each++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/1/ns/%s", kinds[each]);
		of[each] = open(path, O_RDONLY | O_CLOEXEC);
		if (of[each] < 0 && errno != ENOENT)
			return told(path);
	}
	for (int each = 0; each < KINDS; each++)
		if (of[each] >= 0 && setns(of[each], 0) != 0)
			return told(kinds[each]);
	setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
	execvp(*argv, argv);
	int error = errno;
	told(*argv);
	return error == ENOENT ? 127 : 126;
}

#ifdef __x86_64__
enum { TICKS_MS = 50, READINGS = 50 };

struct reading {
	double ns;
	uint64_t ticks;
};

static double now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

/* Of several readings of both clocks the one between which the least time passed. */
static struct reading read_both(void)
{
	struct reading best = {0, 0};
	double shortest = 1e9;
	for (int each = 0; each < READINGS; each++) {
		double before = now_ns();
		uint64_t ticks = __builtin_ia32_rdtsc();
		double after = now_ns();
		if (after - before < shortest) {
			shortest = after - before;
			best = (struct reading){(before + after) / 2, ticks};
		}
	}
	return best;
}

static int print_ticks(void)
{
	struct timespec while_counting = {0, TICKS_MS * 1000000L};
	struct reading first = read_both();
	nanosleep(&while_counting, NULL);
	struct reading last = read_both();
	printf("%.0f\n", (last.ticks - first.ticks) * 1e6 / (last.ns - first.ns));
	return 0;
}
#endif

int chore(int count, char **words)
{
#ifdef __x86_64__
	if (count == 2 && strcmp(words[1], "ticks") == 0)
		return print_ticks();
#endif
	if (count > 2 && strcmp(words[1], "on-machine") == 0)
		return become_on_machine(words + 2);
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
