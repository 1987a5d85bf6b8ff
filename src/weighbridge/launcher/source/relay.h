/* Carries our stream to a socket of this host and back: a hypervisor's end of a machine's serial port. */
#ifndef RELAY_H
#define RELAY_H

/* Until either end closes. The socket may still have to be made. Gives an exit code. */
int relay(const char *path);

#endif
