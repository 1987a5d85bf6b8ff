/* Who listens in the site's network, by the kernel's tables: no server is disturbed by a probe. */
#ifndef LISTENERS_H
#define LISTENERS_H

#include "wire.h"

/* `signals` tells that a process has ended: whoever waits for its port is answered at once. */
void tell_listening(struct frame *request, int signals);

#endif
