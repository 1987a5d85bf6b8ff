/* The processes that Weighbridge asks for: started, timed, ended, and what they printed. */
#ifndef PROCESSES_H
#define PROCESSES_H

#include "wire.h"

void start_process(struct frame *request);
void stop_process(struct frame *request);
void tell_printed(struct frame *request);

/* Takes up everybody who has ended, ours and orphans. What is left when no program runs any more is ended. */
void reap(void);

/* Kills what has outlived its grace or printed too much. Gives the milliseconds until this is to be done again, -1:
   there is nothing to watch. */
int watch(void);

/* True where the launcher has no children, however far below. */
int is_alone(void);

/* Stops every descendant of the launcher by SIGSTOP, or lets all go on, where no control group can be frozen. u32 1:
   stop. */
void pause_all(struct frame *request);

/* Ends every process of the site but the launcher itself. */
void end_all(void);

#endif
