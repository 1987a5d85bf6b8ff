/* Readings of the kernel's files at a steady rate, while a trial runs. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "wire.h"

/* Begins to read, the first time before it is answered; or reads for the last time and answers with all readings. */
void sample(struct frame *request);

/* Takes a reading if one is due. Milliseconds until the next; -1 while none is taken. */
int sample_due(void);

#endif
