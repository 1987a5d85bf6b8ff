/* Probes of the path between two sites: other things that this program can be, in either of them, as
   /proc/self/exe probe-... They print lines of words and end by themselves. */
#ifndef PROBE_H
#define PROBE_H

#include <netinet/in.h>

/* Becomes the probe that the words name. Gives its exit code, -1 where they name none. */
int probe(int count, char **words);

int probe_datagrams(int count, char **words);
int probe_connection(int count, char **words);
int probe_http(int count, char **words);
int probe_io_uring(void);

/* Tells why a probe ends without a result: what failed, and how. Gives its exit code. */
int no_result(const char *what);

/* An IPv4 address and a port, from their words. Gives 0, or -1. */
int place_of_words(const char *address, const char *port, struct sockaddr_in *place);

/* Seconds of a clock that only goes forward. */
double seconds(void);

#endif
