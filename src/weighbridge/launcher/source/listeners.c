#define _GNU_SOURCE
#include "listeners.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LISTEN 0x0A            /* of TCP; states are those of include/net/tcp_states.h */
#define UNCONNECTED 0x07       /* of UDP: bound to a port */
#define AGAIN_NS 500000        /* between two looks, which take 50 microseconds each */
#define OF_WAITED 16           /* and this part of the time that was waited already */

enum answer { NO, YES, UNKNOWN };

/* Looks through one part of an answer. Gives whether there is more, and -1 where the kernel cannot tell. */
static int look_through(const char *bytes, ssize_t size, unsigned port, enum answer *found)
{
	const struct nlmsghdr *each = (const struct nlmsghdr *)bytes;
	for (; NLMSG_OK(each, size); each = NLMSG_NEXT(each, size)) {
		const int *error = NLMSG_DATA(each);
		if (each->nlmsg_type == NLMSG_DONE)
			return each->nlmsg_len >= NLMSG_LENGTH(sizeof *error) && *error < 0 ? -1 : 0;
		if (each->nlmsg_type == NLMSG_ERROR)
			return -1;
		const struct inet_diag_msg *one = NLMSG_DATA(each);
		if (each->nlmsg_len >= NLMSG_LENGTH(sizeof *one) && ntohs(one->id.idiag_sport) == port)
			*found = YES;
	}
	return 1;
}

/* Asks for the sockets of one family in one state (sock_diag(7)). The kernel goes through those alone; for a table of
   /proc/net it goes through every bucket of all connections: two milliseconds where there is much memory. */
static enum answer asked(int kernel, int family, int protocol, unsigned port, unsigned state)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 wanted;
	} request = {
		.header = {.nlmsg_len = sizeof request, .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.wanted = {.sdiag_family = family, .sdiag_protocol = protocol, .idiag_states = 1u << state},
	};
	char bytes[1 << 14] __attribute__((aligned(8)));
	enum answer found = NO;
	if (send(kernel, &request, sizeof request, 0) != sizeof request)
		return UNKNOWN;
	for (;;) {
		ssize_t size = recv(kernel, bytes, sizeof bytes, MSG_TRUNC);
		int more = size <= 0 || size > (ssize_t)sizeof bytes ? -1 : look_through(bytes, size, port, &found);
		if (more <= 0)
			return more < 0 ? UNKNOWN : found;
	}
}

/* Whether a table of the network namespace (proc_pid_net(5)) has a local port in a state. */
static int has_port(const char *table, unsigned port, unsigned state)
{
	FILE *file = fopen(table, "re");
	char line[512];
	int found = 0;
	while (file && !found && fgets(line, sizeof line, file)) {
		unsigned local, is;
		if (sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%*x %x", &local, &is) == 2)
			found = local == port && is == state;
	}
	if (file)
		fclose(file);
	return found;
}

static int listens(unsigned protocol, unsigned port)
{
	int tcp = protocol == IPPROTO_TCP;
	unsigned state = tcp ? LISTEN : UNCONNECTED;
	int kernel = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	enum answer found = kernel < 0 ? UNKNOWN : asked(kernel, AF_INET, protocol, port, state);
	if (found == NO)
		found = asked(kernel, AF_INET6, protocol, port, state);
	if (kernel >= 0)
		close(kernel);
	if (found != UNKNOWN)
		return found == YES;
	return has_port(tcp ? "/proc/net/tcp" : "/proc/net/udp", port, state) ||
	       has_port(tcp ? "/proc/net/tcp6" : "/proc/net/udp6", port, state);
}

static int64_t now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Whether nothing else has come for us to do while we waited for a moment. */
static int undisturbed(int signals, int64_t pause_ns)
{
	struct pollfd events[] = {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}};
	struct timespec pause = {pause_ns / 1000000000, pause_ns % 1000000000};
	return ppoll(events, 2, &pause, NULL) == 0;
}

/* u32 milliseconds to wait until every port has a listener; then for each port its transport (u16: 6 is TCP, 17 is
   UDP) and number (u16). The answer is a byte for each, 1 or 0: at once where something else is to be done, too. */
void tell_listening(struct frame *request, int signals)
{
	int64_t wait_ns = take_u32(request) * INT64_C(1000000), began = now(), waited = 0;
	const uint8_t *ports = request->at;
	struct body body;
	int all;
	do {
		all = 1;
		body.size = 0;
		request->at = ports;
		while (request->at && request->at < request->end && body.size < sizeof body.bytes) {
			unsigned protocol = take_u16(request), port = take_u16(request);
			uint8_t there = listens(protocol, port);
			put(&body, &there, 1);
			all = all && there;
		}
		waited = now() - began;
	} while (!all && waited < wait_ns && undisturbed(signals, AGAIN_NS + waited / OF_WAITED));
	send_frame(DATA, request->id, &body, NULL, NULL, 0);
}
