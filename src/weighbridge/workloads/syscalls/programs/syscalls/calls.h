/* The kinds of calls that are counted, in the order in which they are measured. */
#pragma once

struct call {
    const char *name;
    void (*begin)(void);              /* not counted: opens what the calls need */
    void (*repeat)(unsigned long);    /* so many calls, one after the other */
    void (*end)(void);
};

extern const struct call calls[];     /* the last one has no name */

/* Say on standard error what could not be done, with errno's words, and exit. */
void fail(const char *what) __attribute__((noreturn));
