/* What does a program of this machine say over HTTP?
 *
 *     launcher probe-http ADDRESS PORT PATH    prints the whole answer, its head too, if it comes within two seconds
 *
 * By HTTP/1.0, so that the answer ends with the connection. No name is looked up, and nothing is encrypted.
 */
#define _GNU_SOURCE
#include "probe.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define LARGEST (64 << 10)

int probe_http(int count, char **words)
{
	struct sockaddr_in there;
	char request[1024], piece[4096];
	const struct timeval patience = {.tv_sec = 2};
	if (count != 5 || place_of_words(words[2], words[3], &there) != 0)
		return no_result("probe-http ADDRESS PORT PATH");
	int size = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", words[4], words[2]);
	int stream = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(stream, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	setsockopt(stream, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
	if (size >= (int)sizeof request || connect(stream, (struct sockaddr *)&there, sizeof there) != 0)
		return no_result("connect");
	if (write(stream, request, size) != size)
		return no_result("write");
	ssize_t got = 0;
	for (size_t told = 0; told < LARGEST && (got = read(stream, piece, sizeof piece)) > 0; told += got)
		if (write(STDOUT_FILENO, piece, got) != got)
			return 1;
	return got < 0 ? no_result("read") : 0;
}
