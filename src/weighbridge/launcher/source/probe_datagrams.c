/* Which is the largest UDP datagram that is not fragmented between two sites?
 *
 *     launcher probe-datagrams answer ADDRESS PORT SECONDS    answers each datagram with its length, in one as long
 *     launcher probe-datagrams ask    ADDRESS PORT SECONDS    prints "payload=BYTES from=OWN ADDRESS"
 *
 * Both ends send with "don't fragment" set (IP_PMTUDISC_DO: the kernel refuses what is larger than the path's MTU as
 * far as it knows it, and no router may split the rest), so what is answered in full length was in one piece on every
 * leg, both ways: also where a proxy receives and sends again.
 */
#define _GNU_SOURCE
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SMALL = 16, MOST = 65507, HEADERS = 20 + 8, TRIES = 3 };
static const char mark[4] = {'w', 'b', 'p', 'm'};

static int channel, known = MOST;
static uint32_t number;
static double patience = 0.5;
static uint8_t bytes[1 << 16];

/* With a number, and a length that is its own or the received one's. */
static int send_datagram(uint32_t numbered, int said, int length, const struct sockaddr_in *to)
{
	uint32_t in_order = htonl(numbered);
	uint16_t told = htons(said);
	memset(bytes, 0, length);
	memcpy(bytes, mark, sizeof mark);
	memcpy(bytes + 4, &in_order, sizeof in_order);
	memcpy(bytes + 8, &told, sizeof told);
	return sendto(channel, bytes, length, 0, (const struct sockaddr *)to, to ? sizeof *to : 0) == length;
}

/* Whether a datagram of this length is one of ours, and its number. */
static int is_ours(ssize_t length, uint32_t *numbered)
{
	if (length < SMALL || memcmp(bytes, mark, sizeof mark) != 0)
		return 0;
	memcpy(numbered, bytes + 4, sizeof *numbered);
	*numbered = ntohl(*numbered);
	return 1;
}

static int answer(const struct sockaddr_in *here)
{
	if (bind(channel, (const struct sockaddr *)here, sizeof *here) != 0)
		return no_result("bind");
	for (;;) {
		struct sockaddr_in from;
		socklen_t room = sizeof from;
		uint32_t asked;
		ssize_t length = recvfrom(channel, bytes, sizeof bytes, 0, (struct sockaddr *)&from, &room);
		if (is_ours(length, &asked) && !send_datagram(asked, length, length, &from))
			send_datagram(asked, length, SMALL, &from);  /* too large for the way back */
	}
}

/* Above this the kernel lets nothing out; routers that answer make it smaller. */
static int most(void)
{
	int mtu;
	socklen_t room = sizeof mtu;
	if (getsockopt(channel, IPPROTO_IP, IP_MTU, &mtu, &room) == 0 && mtu - HEADERS < known)
		known = mtu - HEADERS;
	return known;
}

/* The seconds until it was back; 0 where a datagram of this size is not in so many tries. */
static double arrives(int size, int tries)
{
	uint32_t first = number + 1, which;
	for (; tries > 0; tries--) {
		int error;
		socklen_t room = sizeof error;
		if (size > most())
			return 0;
		getsockopt(channel, SOL_SOCKET, SO_ERROR, &error, &room);  /* forget what was said of earlier ones */
		int sent = send_datagram(++number, size, size, NULL);
		double begun = seconds(), waited;
		while ((waited = seconds() - begun) < patience) {
			struct pollfd input = {sent ? channel : -1, POLLIN, 0};
			if (poll(&input, 1, (patience - waited) * 1000 + 1) < 1)
				break;
			ssize_t length = recv(channel, bytes, sizeof bytes, 0);
			if (length < 0 && size > most())
				break;
			if (is_ours(length, &which) && which >= first)
				return length == size ? seconds() - begun : 0;
		}
	}
	return 0;
}

static int ask(const struct sockaddr_in *there)
{
	if (connect(channel, (const struct sockaddr *)there, sizeof *there) != 0)
		return no_result("connect");
	double slowest = 0;
	errno = 0;
	if (!arrives(SMALL, 8)) {
		errno = 0;
		return no_result("no answer");
	}
	for (int each = 0; each < 5; each++) {
		double took = arrives(SMALL, TRIES);
		slowest = took > slowest ? took : slowest;
	}
	patience = 0.05 + 3 * slowest;
	int low = SMALL, high = most(), next = high;
	for (;;) {
		while (low < high) {  /* low arrives, nothing above high does */
			if (arrives(next, TRIES))
				low = next;
			else
				high = next - 1;
			high = most() < high ? most() : high;
			next = (low + high + 1) / 2;
		}
		if (low >= most() || !arrives(low + 1, 3 * TRIES))  /* or were they only lost? */
			break;
		low++;
		next = high = most();
	}
	struct sockaddr_in own;
	socklen_t room = sizeof own;
	if (getsockname(channel, (struct sockaddr *)&own, &room) != 0)
		return no_result("getsockname");
	printf("payload=%d from=%s\n", low < most() ? low : most(), inet_ntoa(own.sin_addr));
	return 0;
}

int probe_datagrams(int count, char **words)
{
	struct sockaddr_in there;
	int whole = IP_PMTUDISC_DO;
	if (count != 6 || place_of_words(words[3], words[4], &there) != 0)
		return no_result("no address");
	alarm(atoi(words[5]));  /* whatever happens, it ends */
	channel = socket(AF_INET, SOCK_DGRAM, 0);
	if (channel < 0 || setsockopt(channel, IPPROTO_IP, IP_MTU_DISCOVER, &whole, sizeof whole) != 0)
		return no_result("socket");
	return strcmp(words[2], "answer") == 0 ? answer(&there) : ask(&there);
}
