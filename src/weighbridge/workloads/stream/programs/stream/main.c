/* Memory bandwidth by the four kernels of STREAM (McCalpin): a variant of it, written anew for sizes that are asked for.
 *
 *   weighbridge-stream BYTES TIMES THREADS     (BYTES of each of the three arrays)
 *
 * Each kernel is run TIMES times, in turn; the first round is not counted. A run lasts from the first thread's begin to
 * the last thread's end. One JSON line a kernel: the bytes that one run moves, as STREAM counts them (no write-allocate
 * traffic), how many runs are counted, and the nanoseconds of the fastest and of all of them together.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define SCALAR 3.0
#define LARGEST (1ull << 40)
#define MOST_TIMES 10000
#define MOST_THREADS 1024

enum kernel { COPY, SCALE, ADD, TRIAD, KERNELS };

static const struct { const char *name; int arrays; } kernels[KERNELS] = {
    {"copy", 2}, {"scale", 2}, {"add", 3}, {"triad", 3},
};

static double *a, *b, *c;
static size_t length;
static int times, threads;
static pthread_barrier_t together;
static unsigned long long least[KERNELS], sum[KERNELS];
static struct { unsigned long long begin, end; } parts[MOST_THREADS];

static void fail(const char *what, int error)
{
    fprintf(stderr, "weighbridge-stream: %s: %s\n", what, strerror(error));
    exit(1);
}

static unsigned long long now(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return at.tv_sec * 1000000000ull + at.tv_nsec;
}

static void run(enum kernel kernel, size_t from, size_t to)
{
    double *restrict x = a, *restrict y = b, *restrict z = c;
    switch (kernel) {
    case COPY:
        for (size_t at = from; at < to; at++)
            z[at] = x[at];
        break;
    case SCALE:
        for (size_t at = from; at < to; at++)
            y[at] = SCALAR * z[at];
        break;
    case ADD:
        for (size_t at = from; at < to; at++)
            z[at] = x[at] + y[at];
        break;
    default:
        for (size_t at = from; at < to; at++)
            x[at] = y[at] + SCALAR * z[at];
    }
}

/* From the first begin to the last end. No single thread's clock will do: one that is scheduled late finds the others'
 * parts done before it looks at its clock. */
static unsigned long long span(void)
{
    unsigned long long begin = parts[0].begin, end = parts[0].end;
    for (int each = 1; each < threads; each++) {
        if (parts[each].begin < begin)
            begin = parts[each].begin;
        if (parts[each].end > end)
            end = parts[each].end;
    }
    return end - begin;
}

/* Each thread touches its own part first, and times it. The first thread reads all their times between two barriers:
 * none of the others can begin anew before it is at the next one, too. */
static void *work(void *number)
{
    size_t me = (size_t)number, from = length / threads * me;
    size_t to = me + 1 == (size_t)threads ? length : length / threads * (me + 1);
    for (size_t at = from; at < to; at++) {
        a[at] = 1.0;
        b[at] = 2.0;
        c[at] = 0.0;
    }
    for (int round = 0; round < times; round++) {
        for (int kernel = 0; kernel < KERNELS; kernel++) {
            pthread_barrier_wait(&together);
            parts[me].begin = now();
            run(kernel, from, to);
            parts[me].end = now();
            pthread_barrier_wait(&together);
            if (me != 0 || round == 0)
                continue;
            unsigned long long took = span();
            sum[kernel] += took;
            if (took < least[kernel])
                least[kernel] = took;
        }
    }
    return NULL;
}

/* What the kernels make of one element, as in STREAM's checkSTREAMresults. */
static void check(void)
{
    double x = 1.0, y = 2.0, z = 0.0;
    for (int round = 0; round < times; round++) {
        z = x;
        y = SCALAR * z;
        z = x + y;
        x = y + SCALAR * z;
    }
    for (size_t at = 0; at < length; at++) {
        if (fabs(a[at] / x - 1) < 1e-13 && fabs(b[at] / y - 1) < 1e-13 && fabs(c[at] / z - 1) < 1e-13)
            continue;
        fprintf(stderr, "weighbridge-stream: wrong results: element %zu is %g, %g, %g and not %g, %g, %g\n",
                at, a[at], b[at], c[at], x, y, z);
        exit(1);
    }
}

static unsigned long long number(const char *text, unsigned long long most)
{
    char *rest;
    errno = 0;
    unsigned long long value = strtoull(text, &rest, 10);
    return errno != 0 || *rest != '\0' || value > most ? 0 : value;
}

static double *array(void)
{
    void *memory = mmap(NULL, length * sizeof(double), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        fail("no memory for an array", errno);
    return memory;
}

int main(int argc, char **argv)
{
    unsigned long long bytes = argc == 4 ? number(argv[1], LARGEST) : 0;
    times = argc == 4 ? (int)number(argv[2], MOST_TIMES) : 0;
    threads = argc == 4 ? (int)number(argv[3], MOST_THREADS) : 0;
    length = bytes / sizeof(double);
    if (times < 2 || threads < 1 || length < (size_t)threads) {
        fprintf(stderr, "usage: weighbridge-stream BYTES TIMES THREADS (2 to %d times, 1 to %d threads)\n",
                MOST_TIMES, MOST_THREADS);
        return 2;
    }
    a = array();
    b = array();
    c = array();
    for (int kernel = 0; kernel < KERNELS; kernel++)
        least[kernel] = ULLONG_MAX;
    pthread_barrier_init(&together, NULL, threads);
    pthread_t others[MOST_THREADS];
    for (size_t me = 1; me < (size_t)threads; me++) {
        int error = pthread_create(&others[me], NULL, work, (void *)me);
        if (error != 0)
            fail("cannot start a thread", error);
    }
    work((void *)0);
    for (int me = 1; me < threads; me++)
        pthread_join(others[me], NULL);
    check();
    for (int kernel = 0; kernel < KERNELS; kernel++)
        printf("{\"kernel\": \"%s\", \"bytes\": %llu, \"runs\": %d, \"best_nanoseconds\": %llu, "
               "\"nanoseconds\": %llu}\n",
               kernels[kernel].name, (unsigned long long)kernels[kernel].arrays * length * sizeof(double), times - 1,
               least[kernel], sum[kernel]);
    if (fflush(stdout) != 0)
        fail("cannot write", errno);
    return 0;
}
