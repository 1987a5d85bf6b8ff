/* How fast the C library's allocator hands out blocks and takes them back, from one thread or from several at once.
 *
 *   weighbridge-allocations MILLISECONDS THREADS LARGEST     (LARGEST: bytes of the largest block)
 *
 * Each thread holds HELD blocks, and again and again frees one of them and allocates another in its place: which one,
 * and how large, is pseudorandom, and the same in every run. The first and the last byte of each block are written.
 * One JSON line: how many blocks all threads allocated, and the nanoseconds from the first begin to the last end.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HELD 1024
#define BATCH 1024 /* blocks between two looks at the clock */
#define WARM_UP (10 * HELD)
#define LONGEST_MS 3600000ul
#define MOST_THREADS 256
#define LARGEST (1ul << 30)

static unsigned long long wanted;
static unsigned long largest;
static pthread_barrier_t together;
static struct part {
    volatile char *held[HELD];
    uint64_t random;
    unsigned long long count, begin, end;
} parts[MOST_THREADS];

static void fail(const char *what, int error)
{
    fprintf(stderr, "weighbridge-allocations: %s: %s\n", what, strerror(error));
    exit(1);
}

static unsigned long long now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000ull + at.tv_nsec;
}

/* Marsaglia's xorshift64, so that no function of libc has a part in it. */
static uint64_t next(struct part *me)
{
    me->random ^= me->random << 13;
    me->random ^= me->random >> 7;
    me->random ^= me->random << 17;
    return me->random;
}

static void replace(struct part *me, unsigned long count)
{
    while (count-- > 0) {
        uint64_t random = next(me);
        size_t at = random % HELD, size = 1 + (random >> 16) % largest;
        free((void *)me->held[at]);
        me->held[at] = malloc(size);
        if (me->held[at] == NULL)
            fail("malloc", errno);
        me->held[at][0] = me->held[at][size - 1] = 1;
    }
}

static void *work(void *number)
{
    struct part *me = &parts[(size_t)number];
    me->random = 88172645463325252ull + (size_t)number;
    replace(me, WARM_UP);
    pthread_barrier_wait(&together);
    me->begin = now();
    do {
        replace(me, BATCH);
        me->count += BATCH;
        me->end = now();
    } while (me->end - me->begin < wanted);
    return NULL;
}

static unsigned long number(const char *text, unsigned long most)
{
    char *rest;
    errno = 0;
    unsigned long value = strtoul(text, &rest, 10);
    return errno != 0 || *rest != '\0' || value > most ? 0 : value;
}

int main(int argc, char **argv)
{
    unsigned long milliseconds = argc == 4 ? number(argv[1], LONGEST_MS) : 0;
    size_t threads = argc == 4 ? number(argv[2], MOST_THREADS) : 0;
    largest = argc == 4 ? number(argv[3], LARGEST) : 0;
    if (milliseconds == 0 || threads == 0 || largest == 0) {
        fprintf(stderr, "usage: weighbridge-allocations MILLISECONDS THREADS LARGEST (1 to %lu, %d, %lu)\n",
                LONGEST_MS, MOST_THREADS, LARGEST);
        return 2;
    }
    wanted = milliseconds * 1000000ull;
    pthread_barrier_init(&together, NULL, threads);
    pthread_t others[MOST_THREADS];
    for (size_t me = 1; me < threads; me++) {
        int error = pthread_create(&others[me], NULL, work, (void *)me);
        if (error != 0)
            fail("cannot start a thread", error);
    }
    work((void *)0);
    for (size_t me = 1; me < threads; me++)
        pthread_join(others[me], NULL);
    unsigned long long count = 0, begin = parts[0].begin, end = parts[0].end;
    for (size_t me = 0; me < threads; me++) {
        count += parts[me].count;
        if (parts[me].begin < begin)
            begin = parts[me].begin;
        if (parts[me].end > end)
            end = parts[me].end;
    }
    printf("{\"threads\": %zu, \"allocations\": %llu, \"nanoseconds\": %llu}\n", threads, count, end - begin);
    if (fflush(stdout) != 0)
        fail("cannot write", errno);
    return 0;
}
