/* Carries our stream to a socket of this host and back: a hypervisor's end of a machine's serial port, or the launcher of
 * a pod, which nothing but its own cluster's client reaches. */
#ifndef RELAY_H
#define RELAY_H

/* Until either end closes. The socket may still have to be made. Gives an exit code. */
int relay(const char *path);

/* The other end: makes the socket, waits `seconds` for one connection, which becomes our standard input and output, and
   removes the socket. Gives the process that connected, as its number is here (0: not known); -1 with errno where none
   came, or the socket cannot be made. */
int await_stream(const char *path, int seconds);

#endif
