#define _GNU_SOURCE
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Becomes the program: as execvp(3), by the PATH that it is given itself. Returns where it cannot. */
static void become(char *const argv[], char *const env[])
{
	if (strchr(argv[0], '/')) {
		execve(argv[0], argv, env);
		return;
	}
	const char *path = "";
	for (char *const *each = env; *each; each++)
		if (strncmp(*each, "PATH=", 5) == 0)
			path = *each + 5;
	int error = ENOENT;
	while (*path) {
		char file[4096];
		size_t folder = strcspn(path, ":");
		int size = snprintf(file, sizeof file, "%.*s/%s", (int)folder, path, argv[0]);
		if (size > 0 && (size_t)size < sizeof file) {
			execve(file, argv, env);
			if (errno != ENOENT && errno != ENOTDIR)
				error = errno;
		}
		path += folder + (path[folder] == ':');
	}
	errno = error;
}

/* In the child, which shares our memory until it has become the program: it changes nothing but `error`. */
static void run_child(const struct plan *plan, volatile int *error)
{
	sigset_t none;
	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	if (dup2(plan->input, 0) >= 0 && dup2(plan->printed[0], 1) >= 0 && dup2(plan->printed[1], 2) >= 0 &&
	    (plan->group == NOBODY || (setgroups(plan->group_count, plan->groups) == 0 && setresgid(plan->group, plan->group, plan->group) == 0)) &&
	    (plan->user == NOBODY || setresuid(plan->user, plan->user, plan->user) == 0) && chdir(plan->folder) == 0 &&
	    prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)  /* last: another user's process has none */
		become(plan->argv, plan->env);
	*error = errno ? errno : EINVAL;
	_exit(127);
}

int file_in_memory(const char *name, int flags)
{
	int file = memfd_create(name, MFD_CLOEXEC);
	if (file >= 0 && flags)
		fcntl(file, F_SETFL, flags);
	return file;
}

int input_of(const uint8_t *bytes, size_t size)
{
	int file = size ? file_in_memory("input", 0) : open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (file < 0)
		file = file_in_memory("input", 0);  /* a root folder without /dev */
	while (file >= 0 && size > 0) {
		ssize_t done = write(file, bytes, size);
		if (done <= 0) {
			close(file);
			return -1;
		}
		bytes += done;
		size -= done;
	}
	if (file >= 0)
		lseek(file, 0, SEEK_SET);
	return file;
}

void forget_peak(void)
{
	int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	ssize_t ignored = file < 0 ? 0 : write(file, "5", 1);  /* proc_pid_clear_refs(5) */
	(void)ignored;
	if (file >= 0)
		close(file);
}

int launch(const struct plan *plan, pid_t *started)
{
	volatile int error = 0;
	pid_t pid = vfork();
	if (pid == 0)
		run_child(plan, &error);
	if (pid < 0)
		return errno;
	if (error) {
		waitpid(pid, NULL, 0);
		return error;
	}
	*started = pid;
	return 0;
}
