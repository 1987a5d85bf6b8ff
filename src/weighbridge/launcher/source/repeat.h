/* Starts a program again and again and times it: another thing that this program can be, on a host or in a site. */
#ifndef REPEAT_H
#define REPEAT_H

/* Does what the words ask for, if the first is `repeat`. Gives its exit code, -1 where it is not. */
int repeat(int count, char **words);

#endif
