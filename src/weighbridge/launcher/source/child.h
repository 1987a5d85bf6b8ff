/* A program that is about to be started, and how a child becomes it. */
#ifndef CHILD_H
#define CHILD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define NOBODY UINT32_MAX

struct plan {
	uint32_t user, group;          /* NOBODY: the launcher's */
	gid_t *groups;                 /* beside that one, where it is not the launcher's */
	size_t group_count;
	const char *folder;
	char **argv, **env;
	int input, printed[2];         /* files: what it reads, its standard output, its standard error */
};

/* A file in memory, with these flags of open(2); -1 with errno. */
int file_in_memory(const char *name, int flags);

/* A file with what the program is to read; -1 with errno. */
int input_of(const uint8_t *bytes, size_t size);

/* Has the kernel forget how much memory we have had: of a child, which begins in our memory, it tells the larger of ours
   and its own (getrusage(2)). Where it cannot, what we have had is the least that it tells. */
void forget_peak(void);

/* Starts it as the leader of a session. Gives 0, or the errno for which it could not become the program. */
int launch(const struct plan *plan, pid_t *pid);

#endif
