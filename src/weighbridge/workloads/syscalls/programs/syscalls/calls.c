/* Each goes by syscall(2) or by a thin function of libc: nothing is cached between two calls. */
#define _GNU_SOURCE
#include "calls.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAPPED (64 * 1024)
#define PAGE 4096

static char path[] = "/tmp/weighbridge-syscalls-XXXXXX";
static int zero, there[2], back[2];
static pid_t other;
static cpu_set_t allowed;

static void nothing(void)
{
}

/* In and out of the kernel, and nothing else. */
static void getppid_repeat(unsigned long count)
{
    while (count-- > 0)
        if (syscall(SYS_getppid) < 0)
            fail("getppid");
}

/* A file in memory, the same in every environment: a root file system's own cost is no cost of a system call. */
static void open_begin(void)
{
    int file = mkstemp(path);
    if (file < 0 || close(file) != 0)
        fail(path);
}

static void open_repeat(unsigned long count)
{
    while (count-- > 0) {
        int file = open(path, O_RDONLY | O_CLOEXEC);
        if (file < 0 || close(file) != 0)
            fail(path);
    }
}

static void open_end(void)
{
    if (unlink(path) != 0)
        fail(path);
}

static void read_begin(void)
{
    if ((zero = open("/dev/zero", O_RDONLY | O_CLOEXEC)) < 0)
        fail("/dev/zero");
}

static void read_repeat(unsigned long count)
{
    char byte;
    while (count-- > 0)
        if (read(zero, &byte, 1) != 1)
            fail("read of /dev/zero");
}

static void read_end(void)
{
    close(zero);
}

/* Map, touch every page, unmap: with its page faults, which second-level paging makes dearer. */
static void mmap_repeat(unsigned long count)
{
    while (count-- > 0) {
        volatile char *memory = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED)
            fail("mmap");
        for (int at = 0; at < MAPPED; at += PAGE)
            memory[at] = 1;
        if (munmap((void *)memory, MAPPED) != 0)
            fail("munmap");
    }
}

static void awaited(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child)
        fail("waitpid");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        errno = WIFEXITED(status) ? WEXITSTATUS(status) : ECHILD;
        fail("a child failed");
    }
}

static void fork_repeat(unsigned long count)
{
    while (count-- > 0) {
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0)
            _exit(0);
        awaited(child);
    }
}

/* This program again, which is static: no other file is opened and no library is loaded. */
static void exec_repeat(unsigned long count)
{
    while (count-- > 0) {
        pid_t child = fork();
        if (child < 0)
            fail("fork");
        if (child == 0) {
            char *arguments[] = {"weighbridge-syscalls", "leave", NULL}, *environment[] = {NULL};
            execve("/proc/self/exe", arguments, environment);
            _exit(errno);
        }
        awaited(child);
    }
}

/* Both processes are on one CPU, so that each answer takes a switch and no idle CPU has to be woken. */
static void pipe_begin(void)
{
    cpu_set_t one;
    int here = sched_getcpu();
    if (here < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        fail("sched_getaffinity");
    CPU_ZERO(&one);
    CPU_SET(here, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        fail("sched_setaffinity");
    if (pipe2(there, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0)
        fail("pipe");
    if ((other = fork()) < 0)
        fail("fork");
    if (other == 0) {
        char byte;
        close(there[1]);
        close(back[0]);
        while (read(there[0], &byte, 1) == 1)
            if (write(back[1], &byte, 1) != 1)
                break;
        _exit(0);
    }
    close(there[0]);
    close(back[1]);
    signal(SIGPIPE, SIG_IGN);
}

static void pipe_repeat(unsigned long count)
{
    char byte = 1;
    while (count-- > 0)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            fail("pipe");
}

static void pipe_end(void)
{
    close(there[1]);
    close(back[0]);
    awaited(other);
    if (sched_setaffinity(0, sizeof allowed, &allowed) != 0)
        fail("sched_setaffinity");
}

const struct call calls[] = {
    {"getppid", nothing, getppid_repeat, nothing},
    {"open_close", open_begin, open_repeat, open_end},
    {"read", read_begin, read_repeat, read_end},
    {"mmap", nothing, mmap_repeat, nothing},
    {"fork_exit", nothing, fork_repeat, nothing},
    {"fork_exec", nothing, exec_repeat, nothing},
    {"pipe", pipe_begin, pipe_repeat, pipe_end},
    {NULL, NULL, NULL, NULL},
};
