#define _GNU_SOURCE
#include "processes.h"

#include "child.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PRINTED_LIMIT (64u << 20)  /* bytes of each of a process's outputs */
#define TOLD_LIMIT (256u << 10)    /* bytes of each that are told of a process that runs */
#define WATCH_MS 1000              /* so often is that limit looked at: a microsecond of CPU time each */
#define SOON_MS 20                 /* and so often at first, and while much is printed; twice as long each time else */
#define MUCH (1u << 20)            /* bytes between two looks */
#define PIDS (1 << 22)             /* beyond the highest number of a process (PID_MAX_LIMIT) */

enum { TOO_MUCH = 1, LEFT_RUNNING = 2, NOBODY_ELSE = 4 };  /* flags of a result */

struct process {
	struct process *next;
	uint32_t id;
	pid_t pid;
	int printed[2];                /* files in memory: standard output, standard error */
	int64_t began, ended;          /* nanoseconds */
	int status, stopping, flags;
	int64_t kill_at;               /* 0: is not to be killed */
	int64_t look_ms, bytes;        /* until the next look at what it printed, and how much that was */
	struct rusage used;
};

static struct process *all;

static int64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void forget(struct process *gone)
{
	for (struct process **at = &all; *at; at = &(*at)->next)
		if (*at == gone) {
			*at = gone->next;
			break;
		}
	close(gone->printed[0]);
	close(gone->printed[1]);
	free(gone);
}

static void send_result(struct process *done)
{
	uint64_t sizes[2];
	for (int each = 0; each < 2; each++) {
		struct stat file;
		sizes[each] = fstat(done->printed[each], &file) == 0 ? file.st_size : 0;
		if (sizes[each] > PRINTED_LIMIT) {
			sizes[each] = PRINTED_LIMIT;
			done->flags |= TOO_MUCH;
		}
	}
	if (is_alone())
		done->flags |= NOBODY_ELSE;
	const struct rusage *used = &done->used;
	struct body body = {.size = 0};
	put_u32(&body, done->status);
	put_u32(&body, done->flags);
	put_u64(&body, done->ended - done->began);
	put_u64(&body, used->ru_utime.tv_sec * UINT64_C(1000000) + used->ru_utime.tv_usec);
	put_u64(&body, used->ru_stime.tv_sec * UINT64_C(1000000) + used->ru_stime.tv_usec);
	put_u64(&body, (uint64_t)used->ru_maxrss << 10);
	put_u64(&body, used->ru_nvcsw);
	put_u64(&body, used->ru_nivcsw);
	put_u64(&body, used->ru_minflt);
	put_u64(&body, used->ru_majflt);
	put_u64(&body, sizes[0]);
	send_frame(RESULT, done->id, &body, done->printed, sizes, 2);
	forget(done);
}

static char **strings_of(struct frame *request, uint32_t count)
{
	char **strings = count < (1u << 20) ? calloc(count + 1, sizeof *strings) : NULL;
	for (uint32_t each = 0; strings && each < count; each++)
		strings[each] = (char *)take_string(request);
	return strings;
}

/* u32 user, group (all ones: the launcher's), number of arguments, of variables and of further groups; u32 each of these;
   then strings: folder, arguments, variables; then what the program reads. */
void start_process(struct frame *request)
{
	struct plan plan = {.user = take_u32(request)};
	plan.group = take_u32(request);
	uint32_t arguments = take_u32(request), variables = take_u32(request);
	plan.group_count = take_u32(request);
	plan.groups = take_u32s(request, plan.group_count);
	plan.folder = take_string(request);
	plan.argv = strings_of(request, arguments);
	plan.env = strings_of(request, variables);
	struct process *process = calloc(1, sizeof *process);
	int error = ENOMEM;
	if (plan.argv && plan.env && plan.groups && process) {
		process->id = request->id;
		process->printed[0] = file_in_memory("stdout", O_APPEND);
		process->printed[1] = file_in_memory("stderr", O_APPEND);
		plan.input = request->at ? input_of(request->at, request->end - request->at) : -1;
		if (request->at == NULL || arguments == 0)
			error = EINVAL;
		else if (plan.input < 0 || process->printed[0] < 0 || process->printed[1] < 0)
			error = errno;
		else {
			memcpy(plan.printed, process->printed, sizeof plan.printed);
			drop_rest(request);
			forget_peak();
			process->began = now();
			error = launch(&plan, &process->pid);
		}
		close(plan.input);
		process->next = all;
		all = process;
		if (error)
			forget(process);
	}
	free(plan.argv);
	free(plan.env);
	free(plan.groups);
	struct body body = {.size = 0};
	put_u32(&body, error);
	put_u32(&body, error ? 0 : process->pid);
	send_frame(BEGAN, request->id, &body, NULL, NULL, 0);
}

/* u32 signal, milliseconds of grace. The result is sent once the process has ended. */
void stop_process(struct frame *request)
{
	int number = take_u32(request);
	uint32_t grace_ms = take_u32(request);
	for (struct process *each = all; each; each = each->next) {
		if (each->id != request->id)
			continue;
		if (each->ended) {
			send_result(each);
		} else {
			each->stopping = 1;
			each->kill_at = now() + grace_ms * INT64_C(1000000);
			kill(-each->pid, number);
		}
		return;
	}
	struct body body = {.size = 0};
	put_u32(&body, ESRCH);
	send_frame(DONE, request->id, &body, NULL, NULL, 0);
}

/* What a process has printed so far: u32 error, u64 bytes of standard output, then the beginnings of both outputs. */
void tell_printed(struct frame *request)
{
	struct body body = {.size = 0};
	struct process *process = all;
	while (process && process->id != request->id)
		process = process->next;
	uint64_t sizes[2] = {0, 0};
	for (int each = 0; process && each < 2; each++) {
		struct stat file;
		sizes[each] = fstat(process->printed[each], &file) == 0 ? file.st_size : 0;
		if (sizes[each] > TOLD_LIMIT)
			sizes[each] = TOLD_LIMIT;
	}
	put_u32(&body, process ? 0 : ESRCH);
	put_u64(&body, sizes[0]);
	send_frame(DATA, request->id, &body, process ? process->printed : NULL, sizes, process ? 2 : 0);
}

static struct process *of_pid(pid_t pid)
{
	struct process *each = all;
	while (each && (each->ended || each->pid != pid))
		each = each->next;
	return each;
}

int is_alone(void)
{
	siginfo_t told;
	return waitid(P_ALL, 0, &told, WEXITED | WNOHANG | WNOWAIT) < 0 && errno == ECHILD;
}

/* What /proc/PID/stat says from the third field on (proc_pid_stat(5)); 0 where there is no such process. */
static const char *stat_of(pid_t pid, char *line, size_t size)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int file = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = file < 0 ? -1 : read(file, line, size - 1);
	if (file >= 0)
		close(file);
	if (got <= 0)
		return NULL;
	line[got] = 0;
	const char *after_name = strrchr(line, ')');
	return after_name ? after_name + 1 : NULL;
}

/* Calls it with each child of this process, ended ones too: by the kernel's list of them, or where it has none
   (CONFIG_PROC_CHILDREN, gVisor), by the parent of every process. */
static void each_child(void (*visit)(pid_t))
{
	char line[512];
	snprintf(line, sizeof line, "/proc/self/task/%d/children", getpid());
	FILE *children = fopen(line, "re");
	if (children) {
		for (int pid; fscanf(children, "%d", &pid) == 1;)
			visit(pid);
		fclose(children);
		return;
	}
	DIR *folder = opendir("/proc");
	if (folder == NULL)
		return;
	for (struct dirent *entry; (entry = readdir(folder));) {
		pid_t pid = atoi(entry->d_name);
		const char *stat = pid > 1 ? stat_of(pid, line, sizeof line) : NULL;
		int parent = 0;
		if (stat && sscanf(stat, " %*c %d", &parent) == 1 && parent == getpid())
			visit(pid);
	}
	closedir(folder);
}

static void kill_child(pid_t pid)
{
	kill(pid, SIGKILL);
}

#define PF_ENDS (0x4 | 0x400)  /* PF_EXITING; PF_SIGNALED, which a fatal signal sets before it */

/* Whether it is ending, or will as soon as it gets a CPU, since it has been sent SIGKILL. */
static int is_dying(pid_t pid)
{
	char line[1024];
	unsigned flags = 0;  /* the 9th field */
	unsigned long pending = 0;  /* the 31st */
	const char *stat = stat_of(pid, line, sizeof line);
	return stat && sscanf(stat, " %*c %*d %*d %*d %*d %*d %u"
			" %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %lu",
			&flags, &pending) == 2 && ((flags & PF_ENDS) || (pending & (1ul << (SIGKILL - 1))));
}

static int64_t patient_until;  /* for all children that are dying together */
static int still_there;        /* those that seem not to be */

/* A child that is none of the programs and has ended, by itself or killed by a script, was not left running. */
static void reap_if_ended(pid_t pid)
{
	const struct timespec pause = {0, 500000};
	if (of_pid(pid))
		return;
	pid_t gone;
	while ((gone = waitpid(pid, NULL, WNOHANG)) == 0 && is_dying(pid) && now() < patient_until)
		nanosleep(&pause, NULL);
	still_there += gone == 0;
}

/* Looks twice: one that has taken up its SIGKILL, but does not yet end, shows neither for some microseconds. */
static void reap_ended(void)
{
	const struct timespec pause = {0, 2000000};
	still_there = 0;
	each_child(reap_if_ended);
	if (still_there) {
		nanosleep(&pause, NULL);
		each_child(reap_if_ended);
	}
}

static int was_killed(int status)
{
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

/* Kills what descends from this process until nothing does, for five seconds at most: orphans are its children.
   How many orphans were killed. */
static int end_children(void)
{
	const struct timespec pause = {0, 500000};
	int killed = 0, status;
	for (int64_t begun = now(), dying = 1; now() < begun + INT64_C(5000000000); dying = 0) {
		for (pid_t gone; (gone = waitpid(-1, &status, WNOHANG)) > 0;) {
			struct process *process = of_pid(gone);
			if (process)
				process->ended = now();  /* its number may be somebody else's now */
			else
				killed += was_killed(status);
		}
		if (is_alone())
			break;
		if (!dying && getpid() == 1)  /* at first only what has been killed with its group may be left */
			kill(-1, SIGKILL);
		else if (!dying)
			each_child(kill_child);  /* orphans become its children as their parents end */
		nanosleep(&pause, NULL);
	}
	return killed;
}

/* Ends what programs that have ended left in sessions of their own, once none runs that it could be of: it would be
   in the way of the next trial. How many there were. */
static int end_left_behind(void)
{
	for (struct process *each = all; each; each = each->next)
		if (!each->ended)
			return 0;
	return end_children();
}

void reap(void)
{
	siginfo_t told;
	int ended = 0, left = 0, status;
	int64_t begun = now();
	while (memset(&told, 0, sizeof told), waitid(P_ALL, 0, &told, WEXITED | WNOHANG | WNOWAIT) == 0 && told.si_pid) {
		struct process *process = of_pid(told.si_pid);
		if (process == NULL) {
			if (waitpid(told.si_pid, &status, 0) > 0 && ended)
				left += was_killed(status);
			continue;
		}
		int64_t ended_at = now();
		patient_until = ended_at + INT64_C(200000000);  /* two periods of a quota of CPU time */
		reap_ended();  /* before anything is killed here */
		process->ended = ended_at;
		ended = 1;
		kill(-process->pid, SIGKILL);  /* what the leader left behind: its number is not free before it is reaped */
		wait4(process->pid, &process->status, 0, &process->used);
		struct body body = {.size = 0};
		put_u32(&body, process->status);
		send_frame(ENDED, process->id, &body, NULL, NULL, 0);
	}
	if (!ended)
		return;
	left += end_left_behind();
	for (struct process *each = all, *next; each; each = next) {
		next = each->next;
		if (left && each->ended >= begun)
			each->flags |= LEFT_RUNNING;
		if (each->ended && each->stopping)
			send_result(each);
	}
}

static int prints_too_much(struct process *process)
{
	struct stat file;
	int64_t bytes = 0, largest = 0;
	for (int each = 0; each < 2; each++)
		if (fstat(process->printed[each], &file) == 0) {
			bytes += file.st_size;
			largest = file.st_size > largest ? file.st_size : largest;
		}
	int64_t later = 2 * process->look_ms < WATCH_MS ? 2 * process->look_ms : WATCH_MS;
	process->look_ms = bytes - process->bytes > MUCH || later < SOON_MS ? SOON_MS : later;
	process->bytes = bytes;
	return largest > PRINTED_LIMIT;
}

int watch(void)
{
	int64_t soon = -1, time = now();
	for (struct process *each = all; each; each = each->next) {
		if (each->ended)
			continue;
		if (prints_too_much(each) || (each->kill_at && time >= each->kill_at)) {
			kill(-each->pid, SIGKILL);
			each->kill_at = 0;
		}
		int64_t left = each->kill_at ? (each->kill_at - time) / 1000000 + 1 : each->look_ms;
		left = left < each->look_ms ? left : each->look_ms;
		soon = soon < 0 || left < soon ? left : soon;
	}
	return soon;
}

/* Whether it is below this process. Who has been sent in from outside is not, nor who carries our stream; orphans of ours
   are our children. */
static int descends(pid_t pid)
{
	char line[1024];
	for (int parent = pid; parent > 1; pid = parent) {
		const char *stat = stat_of(pid, line, sizeof line);
		if (stat == NULL || sscanf(stat, " %*c %d", &parent) != 1)
			return 0;
		if (parent == getpid())
			return 1;
	}
	return 0;
}

/* How many of our descendants were sent it for the first time: `known` has one bit for each. */
static int signal_descendants(int number, uint8_t *known)
{
	int fresh = 0;
	DIR *folder = opendir("/proc");
	if (folder == NULL)
		return 0;
	for (struct dirent *entry; (entry = readdir(folder));) {
		pid_t pid = atoi(entry->d_name);
		if (pid <= 1 || pid >= PIDS || !descends(pid) || kill(pid, number) != 0)
			continue;
		fresh += !(known[pid / 8] & (1 << pid % 8));
		known[pid / 8] |= 1 << pid % 8;
	}
	closedir(folder);
	return fresh;
}

/* What is started while others are being stopped is stopped in the next round. */
void pause_all(struct frame *request)
{
	int number = take_u32(request) ? SIGSTOP : SIGCONT;
	uint8_t *known = calloc(PIDS / 8, 1);
	while (known && signal_descendants(number, known) > 0)
		;
	struct body body = {.size = 0};
	put_u32(&body, known ? 0 : ENOMEM);
	free(known);
	send_frame(DONE, request->id, &body, NULL, NULL, 0);
}

void end_all(void)
{
	for (struct process *each = all; each; each = each->next)
		if (!each->ended)
			kill(-each->pid, SIGKILL);
	end_children();
}
