/* How does a client reach a server?
 *
 *     launcher probe-connection listen  TRANSPORT ADDRESS PORT SECONDS BYTES    takes BYTES from one client
 *     launcher probe-connection connect TRANSPORT ADDRESS PORT SECONDS BYTES    sends them, after it has sought the
 *                                                                               smallest TTL that arrives
 * Each end prints lines of words:
 *
 *     namespace NUMBER                   of its network namespace
 *     own ADDRESS PORT / peer ADDRESS PORT    the two ends of the connection, as its own kernel has them
 *     mss BYTES                          of what it sends (TCP; tcp_info of linux/tcp.h)
 *     ttl NUMBER                         the smallest with which the server is reached (the connecting end)
 *     sent NUMBER / arrived NUMBER       the TTL that the connecting end gives what it sends, and what is left of it
 *     interface NAME DRIVER MTU BYTES OFFLOADS    each of the namespace, with what it carried meanwhile, both ways
 */
#define _GNU_SOURCE
#include "probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DATAGRAM = 1000, INTERFACES = 256, HOPS = 16 };
enum { SENT = 163 };  /* a TTL that nobody else begins with: a program in between sends packets of its own */
#define ENOUGH 0.3  /* seconds that an answer may take where only its hops are sought */

struct interface {
	char name[IFNAMSIZ];
	uint64_t carried;
};

static int tcp;
static struct sockaddr_in there;
static char piece[1 << 16];

static int new_socket(void)
{
	return socket(AF_INET, tcp ? SOCK_STREAM : SOCK_DGRAM, 0);
}

static int by_name(const void *one, const void *other)
{
	return strcmp(((const struct interface *)one)->name, ((const struct interface *)other)->name);
}

/* The interfaces of the network namespace by name, each with the bytes that it has carried so far. */
static int carried(struct interface *found)
{
	FILE *table = fopen("/proc/net/dev", "re");
	int count = 0;
	char line[512];
	while (table && count < INTERFACES && fgets(line, sizeof line, table)) {
		unsigned long long received, sent;
		if (sscanf(line, " %15[^: ]: %llu %*u %*u %*u %*u %*u %*u %*u %llu", found[count].name, &received, &sent) == 3)
			found[count++].carried = received + sent;
	}
	if (table)
		fclose(table);
	qsort(found, count, sizeof *found, by_name);
	return count;
}

/* Whether the driver of an interface answers (ethtool(8)). */
static int drives(int channel, const char *name, void *command)
{
	struct ifreq request = {.ifr_data = command};
	memcpy(request.ifr_name, name, IFNAMSIZ);
	return ioctl(channel, SIOCETHTOOL, &request) == 0;
}

/* Its driver, its MTU, what it carried, and which offloads are on. */
static void print_interface(int channel, const struct interface *one, uint64_t before)
{
	static const struct { const char *name; uint32_t command; } offloads[] = {
		{"gro", ETHTOOL_GGRO}, {"gso", ETHTOOL_GGSO}, {"tso", ETHTOOL_GTSO},
	};
	struct ifreq request = {0};
	struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
	memcpy(request.ifr_name, one->name, IFNAMSIZ);
	int mtu = ioctl(channel, SIOCGIFMTU, &request) == 0 ? request.ifr_mtu : 0;
	if (!drives(channel, one->name, &driver) || driver.driver[0] == 0 || strpbrk(driver.driver, " \t\n"))
		strcpy(driver.driver, "-");
	printf("interface %s %s %d %lld ", one->name, driver.driver, mtu, (long long)(one->carried - before));
	const char *between = "";
	for (size_t each = 0; each < sizeof offloads / sizeof *offloads; each++) {
		struct ethtool_value value = {.cmd = offloads[each].command};
		if (drives(channel, one->name, &value) && value.data) {
			printf("%s%s", between, offloads[each].name);
			between = ",";
		}
	}
	puts(*between ? "" : "-");
}

static void print_end(const char *which, const struct sockaddr_in *place)
{
	printf("%s %s %d\n", which, inet_ntoa(place->sin_addr), ntohs(place->sin_port));
}

/* The TTL among what was received with a packet; 0: is not there. */
static int ttl_of(struct msghdr *message)
{
	int ttl = 0;
	for (struct cmsghdr *each = CMSG_FIRSTHDR(message); each; each = CMSG_NXTHDR(message, each))
		if (each->cmsg_level == IPPROTO_IP && each->cmsg_type == IP_TTL)
			memcpy(&ttl, CMSG_DATA(each), sizeof ttl);
	return ttl;
}

/* The TTL of the packet that completed a connection (ip(7) has IP_PKTOPTIONS of a stream). */
static int ttl_of_connection(int channel)
{
	char options[256];
	socklen_t room = sizeof options;
	if (getsockopt(channel, IPPROTO_IP, IP_PKTOPTIONS, options, &room) != 0)
		return 0;
	return ttl_of(&(struct msghdr){.msg_control = options, .msg_controllen = room});
}

/* What there is to tell of a connection; ttl 0: is not known. */
static int describe(int channel, int ttl, int arrived, const struct interface *before, int count)
{
	static struct interface after[INTERFACES];
	int now = carried(after), any = new_socket();
	unsigned long namespace = 0;
	char link[64] = "";
	struct sockaddr_in place;
	socklen_t room = sizeof place;
	struct tcp_info info;
	if (readlink("/proc/self/ns/net", link, sizeof link - 1) > 0)
		sscanf(link, "net:[%lu", &namespace);
	printf("namespace %lu\n", namespace);
	if (getsockname(channel, (struct sockaddr *)&place, &room) == 0)
		print_end("own", &place);
	room = sizeof place;
	if (getpeername(channel, (struct sockaddr *)&place, &room) == 0)
		print_end("peer", &place);
	room = sizeof info;
	if (tcp && getsockopt(channel, IPPROTO_TCP, TCP_INFO, &info, &room) == 0)
		printf("mss %u\n", info.tcpi_snd_mss);
	if (ttl)
		printf("ttl %d\nsent %d\n", ttl, SENT);
	if (arrived)
		printf("arrived %d\n", arrived);
	for (int each = 0; each < now; each++) {
		const struct interface *was = bsearch(&after[each], before, count, sizeof *before, by_name);
		print_interface(any, &after[each], was ? was->carried : 0);
	}
	return 0;
}

static int waits_for(int channel, short what, double most)
{
	struct pollfd event = {channel, what, 0};
	struct timespec time = {most, (most - (int)most) * 1e9};
	return ppoll(&event, 1, &time, NULL) > 0;
}

/* Whether a connection attempt, or a datagram that is answered, gets there with this TTL. */
static int reached(int ttl)
{
	int channel = new_socket(), error = 0, found = 0;
	socklen_t room = sizeof error;
	char got;
	setsockopt(channel, IPPROTO_IP, IP_TTL, &ttl, sizeof ttl);
	fcntl(channel, F_SETFL, O_NONBLOCK);
	int refused = connect(channel, (struct sockaddr *)&there, sizeof there) == 0 ? 0 : errno;
	if (tcp && refused == EINPROGRESS && waits_for(channel, POLLOUT, ENOUGH))
		refused = getsockopt(channel, SOL_SOCKET, SO_ERROR, &error, &room) == 0 ? error : errno;
	if (tcp)
		found = refused == 0 || refused == ECONNREFUSED;  /* that came from there, too */
	else if (refused == 0 && send(channel, "?", 1, 0) == 1 && waits_for(channel, POLLIN, ENOUGH))
		found = recv(channel, &got, 1, 0) >= 0;
	close(channel);
	return found;
}

static int take(int64_t bytes)
{
	static struct interface before[INTERFACES];
	int channel = new_socket(), yes = 1, count = carried(before);
	int64_t got = 0;
	setsockopt(channel, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
	setsockopt(channel, IPPROTO_IP, IP_RECVTTL, &yes, sizeof yes);
	if (bind(channel, (struct sockaddr *)&there, sizeof there) != 0 || (tcp && listen(channel, 8) != 0))
		return no_result("bind");
	if (tcp) {
		for (int client = -1;; close(client)) {
			if ((client = accept(channel, NULL, NULL)) < 0)
				return no_result("accept");
			got = 0;
			/* it is this that tells: a proxy accepts whether or not the server is there */
			for (ssize_t part = write(client, "+", 1); part > 0; got += part > 0 ? part : 0)
				part = read(client, piece, sizeof piece);
			if (got >= bytes)  /* one that sends nothing was a try */
				return describe(client, 0, ttl_of_connection(client), before, count);
		}
	}
	int connected = 0, arrived = 0;
	while (got < bytes) {
		struct sockaddr_in from;
		char options[256];
		struct iovec data = {piece, sizeof piece};
		struct msghdr message = {
			.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &data, .msg_iovlen = 1,
			.msg_control = options, .msg_controllen = sizeof options,
		};
		ssize_t part = recvmsg(channel, &message, 0);
		socklen_t room = message.msg_namelen;
		if (part < 0)
			continue;
		if (part > 1)  /* one byte is a try */
			arrived = ttl_of(&message);
		got += part;
		if (part == 1)
			sendto(channel, "+", 1, 0, (struct sockaddr *)&from, room);
		if (part > 1 && !connected)
			connected = connect(channel, (struct sockaddr *)&from, room) == 0;
	}
	send(channel, "+", 1, 0);
	return describe(channel, 0, arrived, before, count);
}

/* Sends them, and gives whether somebody told that they are there. */
static int give(int channel, int64_t bytes)
{
	char answer;
	if (tcp) {
		if (read(channel, &answer, 1) != 1)
			return 0;
		for (int64_t left = bytes; left > 0;) {
			ssize_t done = write(channel, piece, left < (int64_t)sizeof piece ? left : (int64_t)sizeof piece);
			if (done < 0)
				return 0;
			left -= done;
		}
		shutdown(channel, SHUT_WR);
		return read(channel, &answer, 1) <= 0;  /* until the server has closed it */
	}
	for (int64_t sent = 0; sent < 4 * bytes; sent += DATAGRAM) {  /* some may be lost */
		send(channel, piece, DATAGRAM, 0);
		if (waits_for(channel, POLLIN, 0.0005) && recv(channel, &answer, 1, 0) >= 0)
			return 1;
	}
	return 0;
}

int probe_connection(int count, char **words)
{
	static struct interface before[INTERFACES];
	if (count != 8 || place_of_words(words[4], words[5], &there) != 0)
		return no_result("no address");
	alarm(atoi(words[6]));  /* whatever happens, it ends */
	tcp = strcmp(words[3], "tcp") == 0;
	int64_t bytes = atoll(words[7]);
	if (strcmp(words[2], "listen") == 0)
		return take(bytes);
	int ttl = 0, any = new_socket();
	if (any < 0)
		return no_result("socket");
	close(any);
	for (int hops = 1; ttl == 0 && hops <= HOPS; hops++)
		ttl = reached(hops) ? hops : 0;
	int interfaces = carried(before), channel = new_socket(), sent = SENT;
	setsockopt(channel, IPPROTO_IP, IP_TTL, &sent, sizeof sent);
	if (connect(channel, (struct sockaddr *)&there, sizeof there) != 0)
		return no_result("connect");
	errno = 0;
	return give(channel, bytes) ? describe(channel, ttl, 0, before, interfaces) : no_result("no answer");
}
