/* What this program does at once and ends, where there is no other program for it: an image may have none. */
#ifndef CHORES_H
#define CHORES_H

/* Does what the words ask for: `remove FOLDER` (with all in it), `open FOLDER` (every user may go into it), `sync`
   (what is dirty in the kernel is written), `ticks` (prints how many kHz the processor's time stamp counter has, on
   x86), or `on-machine PROGRAM [ARGUMENT]...` (becomes one in the namespaces of the
   machine's first process). Gives its exit code, -1 where they ask for none of these. */
int chore(int count, char **words);

#endif
