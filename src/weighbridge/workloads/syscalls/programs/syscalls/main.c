/* How many times a second the kernel does each of some elementary things for a process: one JSON line for each.
 *
 *   weighbridge-syscalls MILLISECONDS     (for each kind)
 *   weighbridge-syscalls leave            (ends at once: what is measured as fork_exec starts this)
 *
 * The clock is read once a batch, of at least BATCH_NS: where reading it is a system call or traps into a hypervisor,
 * that is still nothing beside the batch. What a loop costs by itself is below a nanosecond a call natively.
 */
#include "calls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_NS 5000000ull
#define LONGEST_MS 3600000ul

void fail(const char *what)
{
    fprintf(stderr, "weighbridge-syscalls: %s: %s\n", what, strerror(errno));
    exit(1);
}

static unsigned long long now(void)
{
    struct timespec at;
    if (clock_gettime(CLOCK_MONOTONIC, &at) != 0)
        fail("clock_gettime");
    return at.tv_sec * 1000000000ull + at.tv_nsec;
}

/* Double the batch until it takes long enough each of three times: somebody else may have had the CPU in one of them.
 * This is the warm-up too, and is not counted. */
static unsigned long batch_of(const struct call *call)
{
    unsigned long batch = 1;
    for (int enough = 0; enough < 3;) {
        unsigned long long start = now();
        call->repeat(batch);
        if (now() - start >= BATCH_NS) {
            enough++;
        } else {
            enough = 0;
            batch *= 2;
        }
    }
    return batch;
}

static void measure(const struct call *call, unsigned long long wanted)
{
    call->begin();
    unsigned long batch = batch_of(call);
    unsigned long long count = 0, start = now(), end;
    do {
        call->repeat(batch);
        count += batch;
        end = now();
    } while (end - start < wanted);
    call->end();
    printf("{\"call\": \"%s\", \"count\": %llu, \"nanoseconds\": %llu}\n", call->name, count, end - start);
    if (fflush(stdout) != 0)
        fail("cannot write");
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "leave") == 0)
        return 0;
    char *rest = "";
    unsigned long milliseconds = argc == 2 ? strtoul(argv[1], &rest, 10) : 0;
    if (milliseconds == 0 || milliseconds > LONGEST_MS || *rest != '\0') {
        fprintf(stderr, "usage: weighbridge-syscalls MILLISECONDS (1 to %lu)\n", LONGEST_MS);
        return 2;
    }
    for (const struct call *call = calls; call->name != NULL; call++)
        measure(call, milliseconds * 1000000ull);
    return 0;
}
