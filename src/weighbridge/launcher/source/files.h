/* Files of the site, and the kernel's tables of who listens. */
#ifndef FILES_H
#define FILES_H

#include "wire.h"

void write_to(struct frame *request);
void read_from(struct frame *request);
void tell_listening(struct frame *request);

#endif
