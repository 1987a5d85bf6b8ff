/* Runs the programs of a trial as fast as a program can: trial_cost.py compares Weighbridge with it.
 *
 *     floor ROOT PORT SIGNAL COUNT [SERVER_WORD]... CLIENT_WORD...
 *
 * COUNT words are the server's command; 0 means that there is no server. PORT is the TCP port on which the server
 * listens, and SIGNAL ends it. It prints two numbers of nanoseconds: for everything, and for the client alone.
 */
#define _GNU_SOURCE
#include "listeners.c"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static pid_t start(const char *root, char **argv)
{
	int input = open("/dev/null", O_RDONLY | O_CLOEXEC), output = memfd_create("output", MFD_CLOEXEC);
	pid_t pid = vfork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setsid();
		if (dup2(input, 0) == 0 && dup2(output, 1) == 1 && dup2(output, 2) == 2 && chroot(root) == 0 && chdir("/") == 0)
			execvp(*argv, argv);
		_exit(127);
	}
	close(input);
	close(output);
	return pid;
}

int main(int count, char **words)
{
	int status = 1, servers_words = count > 5 ? atoi(words[4]) : 0;
	if (count < 6 + servers_words)
		return 2;
	const char *root = words[1];
	char *server[servers_words + 1], **client = words + 5 + servers_words;
	memcpy(server, words + 5, servers_words * sizeof *server);
	server[servers_words] = NULL;
	const struct timespec pause = {0, 100000};
	int64_t begun = now();
	pid_t of_server = servers_words ? start(root, server) : 0;
	while (of_server && !listens(IPPROTO_TCP, atoi(words[2])))
		nanosleep(&pause, NULL);
	int64_t client_begun = now();
	waitpid(start(root, client), &status, 0);
	int64_t client_ended = now();
	if (of_server) {
		kill(of_server, atoi(words[3]));
		waitpid(of_server, NULL, 0);
	}
	printf("%lld %lld\n", (long long)(now() - begun), (long long)(client_ended - client_begun));
	return status != 0;
}
