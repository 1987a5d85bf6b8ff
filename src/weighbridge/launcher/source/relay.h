/* Carries our stream to a socket of this host and back: a hypervisor's end of a machine's serial port, or the launcher of
 * a pod, which nothing but its own cluster's client reaches. */
#ifndef RELAY_H
#define RELAY_H

#include <sys/un.h>

/* Until either end closes. The socket may still have to be made. Gives an exit code. */
int relay(const char *path);

/* The address of a socket by its path. Gives 0, or -1 with errno where that is too long. */
int address_of(const char *path, struct sockaddr_un *address);

#endif
