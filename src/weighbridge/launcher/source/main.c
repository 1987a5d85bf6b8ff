/* The first process of a site: starts the programs that Weighbridge asks for over its standard input and output.
 *
 *     launcher [--join FILE]... [--files NUMBER] [--user root|self] [--net] [--taken] [--root FOLDER --name NAME [--data FOLDER] [--layer FOLDER] [--hosts FILE] [--shm BYTES]]
 *     launcher [--join FILE]... [--files NUMBER] [--user root] [--layer FOLDER --name NAME] --exec PROGRAM [ARGUMENT]...
 *     launcher [--join FILE]... [--files NUMBER] [--user self] --sealed --name NAME [--data FILE] --exec PROGRAM [ARGUMENT]...
 *     launcher ... --root FOLDER --name NAME [...] [--settings TEXT] [--rules NUMBER] [--outside FOLDER] --exec PROGRAM [ARGUMENT]...
 *     launcher [--files NUMBER] [--lease SECONDS] --listen SOCKET
 *     launcher --connect SOCKET
 *     launcher repeat COUNT PROGRAM [ARGUMENT]...
 *
 * With --user it has a user namespace of its own, in which its user is root or has the same number as outside. What it
 * mounts it mounts before it starts a program, so that "self" can do so too and its programs have no capabilities.
 * It joins control groups, makes namespaces and enters a root folder where it is told to; in a container all of that
 * has been done. It needs nothing of the root folder. When its standard input ends, everything in the site ends.
 * With --taken it tells how much of its input it has read, over a line that loses what is sent too early.
 * With --exec it becomes another program instead, in these control groups, behind a layer over a folder of the machine
 * where one is asked for: one that brings up a site (a hypervisor, bwrap). If it also has a root folder, that program
 * starts us again as /run/weighbridge-launcher, and finds TEXT in /run/weighbridge-settings. FOLDER is then in memory, too.
 * With --sealed that program can write to nothing of the machine but FILE, sees no other process, and has a /dev/shm of its own.
 * With --listen its stream is a session (session.h) with who connects to the socket, again where the connection breaks;
 * where nobody does for --lease everything in the site ends. The first process of a pod carries it, and the launcher is the
 * second. With --connect it is no launcher, but carries a stream to what is behind a socket.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "chores.h"
#include "files.h"
#include "listeners.h"
#include "probe.h"
#include "processes.h"
#include "relay.h"
#include "repeat.h"
#include "sample.h"
#include "session.h"
#include "site.h"
#include "wire.h"

#define LEASE_S 120

static int refuse(const char *what)
{
	struct body body = {.size = 0};
	put_u32(&body, errno);
	send_bytes(REFUSED, 0, &body, what, strlen(what));
	return 1;
}

static void say_hello(void)
{
	struct rlimit files = {0, 0};
	getrlimit(RLIMIT_NOFILE, &files);
	struct body body = {.size = 0};
	put_u32(&body, VERSION);
	put_u32(&body, getpid());
	put_u64(&body, files.rlim_cur);
	send_frame(HELLO, 0, &body, NULL, NULL, 0);
}

/* As many open files as everywhere in the study, or as many as may be. */
static void limit_open_files(const char *text)
{
	struct rlimit wanted = {strtoull(text, NULL, 10), 0}, now;
	wanted.rlim_max = wanted.rlim_cur;
	if (wanted.rlim_cur == 0 || setrlimit(RLIMIT_NOFILE, &wanted) == 0 || getrlimit(RLIMIT_NOFILE, &now) != 0)
		return;
	now.rlim_cur = now.rlim_max;
	setrlimit(RLIMIT_NOFILE, &now);
}

static void tell_alone(struct frame *request)
{
	struct body body = {.size = 0};
	reap();
	put_u32(&body, is_alone());
	send_frame(DATA, request->id, &body, NULL, NULL, 0);
}

static void serve(struct frame *request, int signals)
{
	switch (request->kind) {
	case START: start_process(request); break;
	case STOP: stop_process(request); break;
	case WRITE: write_to(request); break;
	case READ: read_from(request); break;
	case LISTENING: tell_listening(request, signals); break;
	case ALONE: tell_alone(request); break;
	case PRINTED: tell_printed(request); break;
	case PAUSE: pause_all(request); break;
	case SAMPLE: sample(request); break;
	}
}

/* Until the stream ends, or somebody asks us to end. */
static void work(int signals)
{
	struct pollfd events[] = {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}};
	for (;;) {
		int there = 0;
		struct frame request;
		while ((there = next_frame(&request)) > 0)
			serve(&request, signals);
		if (there < 0)
			return;
		reap();
		int look = watch(), reading = sample_due();
		if (poll(events, 2, reading < 0 || (look >= 0 && look < reading) ? look : reading) < 0 && errno != EINTR)
			return;
		struct signalfd_siginfo told;
		if (events[1].revents && read(signals, &told, sizeof told) == sizeof told && told.ssi_signo == SIGTERM)
			return;
		events[1].revents = 0;
	}
}

static int has_word(int count, char **words, const char *word)
{
	for (int at = 1; at < count; at++)
		if (strcmp(words[at], word) == 0)
			return 1;
	return 0;
}

int main(int count, char **words)
{
	struct site site = {.source = "none"};
	sigset_t ours;
	int lease_s = LEASE_S;
	int probed = probe(count, words);
	if (probed >= 0)
		return probed;
	int done = chore(count, words);
	if (done >= 0)
		return done;
	int repeated = repeat(count, words);
	if (repeated >= 0)
		return repeated;
	for (int number = 1; number < SIGRTMAX; number++)
		signal(number, SIG_DFL);  /* what our user's shell is set to does not reach the programs */
	signal(SIGPIPE, SIG_IGN);
	umask(022);
	if (!has_word(count, words, "--listen"))  /* in a pod it stays the runtime's: only a privileged one may raise it */
		setpriority(PRIO_PROCESS, 0, 0);
	cpu_set_t all;
	memset(&all, 0xff, sizeof all);
	sched_setaffinity(0, sizeof all, &all);  /* those that its control group has */
	for (int at = 1; at < count; at++) {
		const char *word = words[at], *value = at + 1 < count ? words[at + 1] : "";
		if (strcmp(word, "--net") == 0) {
			site.own_network = 1;
			continue;
		}
		if (strcmp(word, "--sealed") == 0) {
			site.sealed = 1;
			continue;
		}
		if (strcmp(word, "--taken") == 0) {
			tells_taken = 1;
			continue;
		}
		if (strcmp(word, "--root") == 0) {
			site.root = value;
		} else if (strcmp(word, "--user") == 0) {
			site.own_user = strcmp(value, "self") == 0 ? SELF_INSIDE : ROOT_INSIDE;
		} else if (strcmp(word, "--data") == 0) {
			site.data = value;
		} else if (strcmp(word, "--layer") == 0) {
			site.layered = value;
		} else if (strcmp(word, "--hosts") == 0) {
			site.hosts = value;
		} else if (strcmp(word, "--shm") == 0) {
			site.shm = value;
		} else if (strcmp(word, "--name") == 0) {
			site.source = value;
		} else if (strcmp(word, "--settings") == 0) {
			site.settings = value;
		} else if (strcmp(word, "--rules") == 0) {
			site.rules = atoi(value);
		} else if (strcmp(word, "--outside") == 0) {
			site.outside = value;
		} else if (strcmp(word, "--files") == 0) {
			limit_open_files(value);
		} else if (strcmp(word, "--connect") == 0) {
			return relay(value);
		} else if (strcmp(word, "--listen") == 0) {
			if (begin_session(value, lease_s) != 0)
				return refuse(value);
		} else if (strcmp(word, "--lease") == 0) {
			lease_s = atoi(value);
		} else if (strcmp(word, "--exec") == 0) {
			site.launcher = site.root ? words[0] : NULL;
			const char *lacking = enter(&site);
			if (lacking)
				return refuse(lacking);
			signal(SIGPIPE, SIG_DFL);
			execvp(value, words + at + 1);
			return refuse(value);
		} else if (strcmp(word, "--join") != 0) {
			errno = EINVAL;
			return refuse(word);
		} else if (join_group(value) != 0) {
			return refuse(value);
		}
		at++;
	}
	const char *failed = enter(&site);
	if (failed)
		return refuse(failed);
	sigemptyset(&ours);
	sigaddset(&ours, SIGCHLD);
	sigaddset(&ours, SIGTERM);
	sigprocmask(SIG_SETMASK, &ours, NULL);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	mallopt(M_MMAP_THRESHOLD, 1 << 16);  /* what was large goes back to the system, however often it comes */
	int signals = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return refuse("signalfd");
	say_hello();
	work(signals);
	end_all();
	return 0;
}
