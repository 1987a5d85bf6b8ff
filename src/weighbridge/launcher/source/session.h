/* The pod's end of a session (features/kubernetes/session.py): the launcher's stream over connections that may break. */
#ifndef SESSION_H
#define SESSION_H

/* Makes the socket, and goes on as two processes. The child gives 0: it is the launcher, whose standard input and output
   are the session's. The parent never returns: it carries the stream between the child and whoever connects to the socket,
   the last one alone, and ends both where nobody has been connected for so many seconds, when it is told to by SIGTERM, or
   when the other end of the session ends it. -1 with errno: there is no such socket. */
int begin_session(const char *socket, int lease_s);

#endif
