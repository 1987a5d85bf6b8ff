/* Files of the site. */
#ifndef FILES_H
#define FILES_H

#include "wire.h"

void write_to(struct frame *request);
void read_from(struct frame *request);

#endif
