#define _GNU_SOURCE
#include "session.h"

#include "relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A record: the number of its first byte in the stream, how many bytes of the other way have been taken, its size or END,
 * and the CRC-32 of all of that and its bytes. The first on a connection is empty and says from where the other end has to
 * go on: what had not been taken is sent again. An empty one also says that we live. */
#define HEADER 24
#define PIECE (1u << 16)       /* bytes of a record at most */
#define END UINT32_MAX         /* in the place of a size: the stream has ended */
#define WINDOW (1u << 20)      /* bytes of each way that are kept until they are taken */
#define BEAT_MS 2000
#define SILENCE_MS 6000
#define LINGER_MS 1000         /* for who carries our last words, before everything here ends */

struct kept {
	uint8_t bytes[WINDOW];
	size_t size;
};

static struct kept out, in;    /* from the launcher, not acknowledged; to it, not taken yet */
static uint64_t out_at, sent, taken, told;  /* number of the first byte in `out`; of the next to send; of the next to take
					       into `in`, of which so many were acknowledged last */
static uint8_t coming[HEADER + PIECE], going[HEADER + PIECE];
static size_t come, gone_at, gone_size;
static int connection = -1, resumed, beat_due, end_due, ending, launcher_gone;
static int64_t heard_ms, said_ms, alone_since_ms;
static int launcher_status = -1;  /* once it has ended (wait(2)) */
static uint32_t table[256];

static int64_t now_ms(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000) + time.tv_nsec / 1000000;
}

static void make_table(void)
{
	for (uint32_t each = 0; each < 256; each++) {
		table[each] = each;
		for (int bit = 0; bit < 8; bit++)
			table[each] = table[each] & 1 ? 0xEDB88320u ^ table[each] >> 1 : table[each] >> 1;
	}
}

/* Of a record without its last field, which is the sum. */
static uint32_t sum_of(const uint8_t *record, size_t size)
{
	uint32_t sum = ~0u;
	for (size_t at = 0; at < HEADER + size; at++)
		if (at < HEADER - 4 || at >= HEADER)
			sum = table[(sum ^ record[at]) & 0xff] ^ sum >> 8;
	return ~sum;
}

static void drop(struct kept *from, size_t size)
{
	memmove(from->bytes, from->bytes + size, from->size - size);
	from->size -= size;
	if (from->size == 0 && size > PIECE)  /* its memory is the site's again */
		madvise(from->bytes, sizeof from->bytes, MADV_DONTNEED);
}

static uint64_t acknowledged(void)
{
	return taken - in.size;
}

static void disconnect(void)
{
	if (connection >= 0)
		close(connection);
	connection = -1;
	alone_since_ms = now_ms();
}

static void connect_to(int fresh)
{
	disconnect();
	connection = fresh;
	taken -= in.size;  /* it comes again */
	in.size = 0;
	come = gone_at = gone_size = resumed = end_due = 0;
	beat_due = 1;
	heard_ms = now_ms();
}

/* The next record to send, where one is due. */
static void compose(void)
{
	uint64_t unsent = resumed ? out_at + out.size - sent : 0, acknowledges = acknowledged();
	uint32_t size = unsent < PIECE ? unsent : PIECE, sum;
	int last = launcher_gone && resumed && unsent == 0 && !end_due;
	if (!size && !beat_due && !last && acknowledges - told < WINDOW / 4)
		return;
	size = beat_due ? 0 : size;
	memcpy(going, &sent, 8);
	memcpy(going + 8, &acknowledges, 8);
	memcpy(going + 16, &size, 4);
	memcpy(going + HEADER, out.bytes + (sent - out_at), size);
	if (last && !beat_due) {
		end_due = 1;
		memcpy(going + 16, &(uint32_t){END}, 4);
	}
	sum = sum_of(going, size);
	memcpy(going + 20, &sum, 4);
	gone_at = 0;
	gone_size = HEADER + size;
	sent += size;
	told = acknowledges;
	beat_due = 0;
	said_ms = now_ms();
}

static void send_what_is_due(void)
{
	for (;;) {
		if (gone_at == gone_size)
			compose();
		if (gone_at == gone_size)
			return;
		ssize_t done = send(connection, going + gone_at, gone_size - gone_at, MSG_NOSIGNAL);
		if (done < 0) {
			if (errno != EAGAIN && errno != EINTR)
				disconnect();
			return;
		}
		gone_at += done;
	}
}

/* Takes a whole record. False where it cannot be one of this session. */
static int take(const uint8_t *record, uint32_t size)
{
	uint64_t number, acknowledges;
	memcpy(&number, record, 8);
	memcpy(&acknowledges, record + 8, 8);
	if (acknowledges < out_at || acknowledges > out_at + out.size)
		return 0;
	drop(&out, acknowledges - out_at);
	out_at = acknowledges;
	if (!resumed || sent < out_at)
		sent = out_at;
	resumed = 1;
	if (size && (number != taken || size > WINDOW - in.size))
		return 0;
	memcpy(in.bytes + in.size, record + HEADER, size);
	in.size += size;
	taken += size;
	return 1;
}

/* False at the end of the connection, and where what comes is damaged. */
static int receive(void)
{
	ssize_t got = read(connection, coming + come, sizeof coming - come);
	if (got <= 0)
		return got < 0 && (errno == EAGAIN || errno == EINTR);
	heard_ms = now_ms();
	come += got;
	for (size_t at = 0;;) {
		uint32_t size = 0, sum = 0;
		const uint8_t *record = coming + at;
		if (come - at >= HEADER) {
			memcpy(&size, record + 16, 4);
			memcpy(&sum, record + 20, 4);
		}
		int last = size == END;
		size = last ? 0 : size;
		if (size > PIECE)
			return 0;
		if (come - at < HEADER + size) {
			memmove(coming, record, come - at);
			come -= at;
			return 1;
		}
		if (sum_of(record, size) != sum || !take(record, size))
			return 0;
		ending |= last;
		at += HEADER + size;
	}
}

static void exchange_with(int launcher, short events)
{
	if (events & POLLOUT) {
		ssize_t done = send(launcher, in.bytes, in.size, MSG_NOSIGNAL);
		if (done > 0)
			drop(&in, done);
		else if (done < 0 && errno != EAGAIN && errno != EINTR)
			drop(&in, in.size);
	}
	if (events & (POLLIN | POLLHUP)) {
		ssize_t got = read(launcher, out.bytes + out.size, sizeof out.bytes - out.size);
		if (got > 0)
			out.size += got;
		else if (out.size < sizeof out.bytes && (got == 0 || (errno != EAGAIN && errno != EINTR)))
			launcher_gone = 1;
	}
}

static int until(int64_t ms)
{
	int64_t left = ms - now_ms();
	return left < 0 ? 0 : left;
}

static int wait_ms(int lease_s)
{
	if (connection < 0)
		return until(alone_since_ms + lease_s * INT64_C(1000));
	int beat = until(said_ms + BEAT_MS), silence = until(heard_ms + SILENCE_MS);
	return beat < silence ? beat : silence;
}

/* Takes up who has ended: the launcher, and orphans of what others sent in here. */
static void reap_all(pid_t launcher)
{
	int status;
	for (pid_t gone; (gone = waitpid(-1, &status, WNOHANG)) > 0;)
		if (gone == launcher)
			launcher_status = status;
}

/* Has the end of the stream reach who carries it, and gives the launcher's exit code. */
static int finish(pid_t child)
{
	if (connection >= 0) {
		struct pollfd closed = {connection, POLLIN, 0};
		char rest[4096];
		shutdown(connection, SHUT_WR);
		for (int64_t last = now_ms() + LINGER_MS; poll(&closed, 1, until(last)) > 0;)
			if (read(connection, rest, sizeof rest) <= 0)
				break;
	}
	if (launcher_status < 0)
		waitpid(child, &launcher_status, 0);
	return WIFEXITED(launcher_status) ? WEXITSTATUS(launcher_status) : 1;
}

static int carry(int door, int launcher, pid_t child, int signals, int lease_s)
{
	alone_since_ms = now_ms();
	for (int closed = 0;;) {
		if (connection >= 0 && now_ms() - said_ms >= BEAT_MS)
			beat_due = 1;
		if (connection >= 0)
			send_what_is_due();
		if (launcher_gone && (connection < 0 || (end_due && gone_at == gone_size)))
			return finish(child);
		if (ending && in.size == 0 && !closed)
			closed = shutdown(launcher, SHUT_WR) == 0;
		struct pollfd events[] = {
			{door, POLLIN, 0}, {signals, POLLIN, 0},
			{connection, gone_at < gone_size ? POLLIN | POLLOUT : POLLIN, 0},
			{launcher_gone || (out.size == WINDOW && !in.size) ? -1 : launcher, (out.size < WINDOW ? POLLIN : 0) | (in.size ? POLLOUT : 0), 0},
		};
		if (poll(events, 4, ending && connection < 0 ? -1 : wait_ms(lease_s)) < 0 && errno != EINTR)
			return 1;
		struct signalfd_siginfo about;
		while (read(signals, &about, sizeof about) == sizeof about)
			ending |= about.ssi_signo == SIGTERM;
		reap_all(child);
		exchange_with(launcher, events[3].revents);
		if (connection >= 0 && (events[2].revents & (POLLIN | POLLHUP | POLLERR)) && !receive())
			disconnect();
		if (connection >= 0 && now_ms() - heard_ms >= SILENCE_MS)
			disconnect();
		if (events[0].revents) {
			int fresh = accept4(door, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
			if (fresh >= 0)
				connect_to(fresh);
		}
		if (connection < 0 && now_ms() - alone_since_ms >= lease_s * INT64_C(1000)) {
			ending = 1;
			in.size = 0;
		}
	}
}

static int door_at(const char *path)
{
	struct sockaddr_un address;
	int door = address_of(path, &address) != 0 ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (door < 0)
		return -1;
	unlink(path);
	if (bind(door, (struct sockaddr *)&address, sizeof address) != 0 || chmod(path, 0600) != 0 ||
	    listen(door, 4) != 0)
		return -1;
	return door;
}

int begin_session(const char *path, int lease_s)
{
	int ends[2], door = door_at(path);
	if (door < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
		return -1;
	pid_t child = fork();
	if (child < 0)
		return -1;
	if (child == 0) {
		close(door);
		close(ends[0]);
		if (dup2(ends[1], STDIN_FILENO) < 0 || dup2(ends[1], STDOUT_FILENO) < 0)
			return -1;
		close(ends[1]);
		return 0;
	}
	sigset_t told_by;
	sigemptyset(&told_by);
	sigaddset(&told_by, SIGTERM);
	sigaddset(&told_by, SIGCHLD);
	sigprocmask(SIG_SETMASK, &told_by, NULL);
	close(ends[1]);
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  /* as little of the site's memory as can be */
	make_table();
	int code = carry(door, ends[0], child, signalfd(-1, &told_by, SFD_CLOEXEC | SFD_NONBLOCK), lease_s);
	unlink(path);
	_exit(code);
}
