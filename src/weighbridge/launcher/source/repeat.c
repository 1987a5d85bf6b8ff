/* Starts a program again and again, one at a time, and prints how long each took: one line of nanoseconds for each.
 *
 *     launcher repeat COUNT PROGRAM [ARGUMENT]...
 *
 * A line has two numbers: from just before the program is started until the first byte of its output, and until it has
 * been waited for. The first start is not counted. The last line says how much CPU time this process itself used for
 * each start, without that of the program.
 *
 * No shell is involved, and PATH is searched only once. vfork(2) copies no page tables, so a start costs little more
 * than the kernel's own work for a new process: a pipe, and two readings of the clock.
 */
#define _GNU_SOURCE
#include "repeat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 100000ul

struct start {
	unsigned long long output, end;  /* nanoseconds */
};

static void fail(const char *what)
{
	fprintf(stderr, "repeat: %s: %s\n", what, strerror(errno));
	exit(1);
}

static unsigned long long now(void)
{
	struct timespec at;
	if (clock_gettime(CLOCK_MONOTONIC, &at) != 0)
		fail("clock_gettime");
	return at.tv_sec * 1000000000ull + at.tv_nsec;
}

/* The CPU time of this process alone, in nanoseconds. */
static unsigned long long used(void)
{
	struct rusage usage;
	if (getrusage(RUSAGE_SELF, &usage) != 0)
		fail("getrusage");
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ull +
		   (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ull;
}

/* The file of a program, as execvp(3) would find it. */
static const char *file_of(const char *name)
{
	static char file[4096];
	const char *path = getenv("PATH");
	if (strchr(name, '/') != NULL)
		return name;
	for (path = path != NULL ? path : ""; *path != '\0';) {
		int folder = strcspn(path, ":");
		int size = snprintf(file, sizeof file, "%.*s/%s", folder, path, name);
		if (folder > 0 && size > 0 && (size_t)size < sizeof file && access(file, X_OK) == 0)
			return file;
		path += folder + (path[folder] == ':');
	}
	errno = ENOENT;
	fail(name);
	return NULL;
}

static struct start start(const char *file, char **argv)
{
	extern char **environ;
	struct start took = {0, 0};
	int output[2], status;
	char piece[4096];
	unsigned long long begun = now();
	if (pipe2(output, O_CLOEXEC) != 0)
		fail("pipe2");
	volatile int error = 0;
	pid_t child = vfork();
	if (child < 0)
		fail("vfork");
	if (child == 0) {
		if (dup2(output[1], STDOUT_FILENO) >= 0)
			execve(file, argv, environ);
		error = errno;
		_exit(127);
	}
	close(output[1]);
	ssize_t size;
	while ((size = read(output[0], piece, sizeof piece)) > 0 || (size < 0 && errno == EINTR))
		if (size > 0 && took.output == 0)
			took.output = now() - begun;
	close(output[0]);
	if (waitpid(child, &status, 0) != child)
		fail("waitpid");
	took.end = now() - begun;
	if (error != 0) {
		errno = error;
		fail(file);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		fprintf(stderr, "repeat: %s %s %d\n", argv[0], WIFEXITED(status) ? "exited with code" : "ended by signal",
				WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
		exit(1);
	}
	if (took.output == 0) {
		fprintf(stderr, "repeat: %s printed nothing\n", argv[0]);
		exit(1);
	}
	return took;
}

int repeat(int count, char **words)
{
	if (count < 2 || strcmp(words[1], "repeat") != 0)
		return -1;
	char *rest = "";
	unsigned long number = count > 3 ? strtoul(words[2], &rest, 10) : 0;
	if (number == 0 || number > MOST || *rest != '\0') {
		fprintf(stderr, "usage: launcher repeat COUNT (1 to %lu) PROGRAM [ARGUMENT]...\n", MOST);
		return 2;
	}
	signal(SIGPIPE, SIG_DFL);  /* the programs inherit it */
	struct start *starts = malloc(number * sizeof *starts);
	if (starts == NULL)
		fail("malloc");
	char **argv = words + 3;
	const char *file = file_of(argv[0]);
	start(file, argv);
	unsigned long long before = used();
	for (unsigned long each = 0; each < number; each++)
		starts[each] = start(file, argv);
	unsigned long long own = used() - before;
	for (unsigned long each = 0; each < number; each++)
		printf("output %llu end %llu\n", starts[each].output, starts[each].end);
	printf("starts %lu own %llu\n", number, own / number);
	free(starts);
	if (fflush(stdout) != 0)
		fail("cannot write");
	return 0;
}
