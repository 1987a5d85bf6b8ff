#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "relay.h"

#define LOOK_MS 20

/* Who has asked for us sends nothing before it was greeted: all that can happen here is that it goes. */
static int gone_within(int ms)
{
	struct pollfd input = {STDIN_FILENO, POLLIN, 0};
	return poll(&input, 1, ms) > 0;
}

static int connected(const char *path)
{
	struct sockaddr_un address;
	if (address_of(path, &address) != 0)
		return -1;
	int there = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	while (there >= 0 && connect(there, (struct sockaddr *)&address, sizeof address) != 0)
		if ((errno != ENOENT && errno != ECONNREFUSED) || gone_within(LOOK_MS))
			return -1;
	return there;
}

/* Gives 0 at the end of the stream. */
static int pass(int from, int to)
{
	char piece[65536];
	ssize_t size = read(from, piece, sizeof piece);
	for (ssize_t at = 0, sent; at < size; at += sent)
		if ((sent = write(to, piece + at, size - at)) < 0)
			return 0;
	return size > 0;
}

int address_of(const char *path, struct sockaddr_un *address)
{
	memset(address, 0, sizeof *address);
	if (strlen(path) >= sizeof address->sun_path) {
		errno = ENAMETOOLONG;
		return -1;
	}
	address->sun_family = AF_UNIX;
	strcpy(address->sun_path, path);
	return 0;
}

int relay(const char *path)
{
	int there = connected(path);
	if (there < 0) {
		fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	struct pollfd ends[] = {{STDIN_FILENO, POLLIN, 0}, {there, POLLIN, 0}};
	for (;;) {
		if (poll(ends, 2, -1) < 0 && errno != EINTR)
			return 1;
		if ((ends[0].revents && !pass(STDIN_FILENO, there)) || (ends[1].revents && !pass(there, STDOUT_FILENO)))
			return 0;
	}
}
