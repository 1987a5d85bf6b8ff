#define _GNU_SOURCE
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int probe(int count, char **words)
{
	signal(SIGPIPE, SIG_IGN);  /* who has gone is told by what is written to it */
	if (count > 1 && strcmp(words[1], "probe-datagrams") == 0)
		return probe_datagrams(count, words);
	if (count > 1 && strcmp(words[1], "probe-connection") == 0)
		return probe_connection(count, words);
	if (count > 1 && strcmp(words[1], "probe-http") == 0)
		return probe_http(count, words);
	if (count > 1 && strcmp(words[1], "probe-io-uring") == 0)
		return probe_io_uring();
	return -1;
}

int no_result(const char *what)
{
	if (errno)
		fprintf(stderr, "%s: %s\n", what, strerror(errno));
	else
		fprintf(stderr, "%s\n", what);
	return 1;
}

int place_of_words(const char *address, const char *port, struct sockaddr_in *place)
{
	*place = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(atoi(port))};
	errno = 0;
	return inet_pton(AF_INET, address, &place->sin_addr) == 1 ? 0 : -1;
}

double seconds(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec + time.tv_nsec / 1e9;
}
