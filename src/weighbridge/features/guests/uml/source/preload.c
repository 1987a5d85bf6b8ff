/* Preloaded into user-mode Linux, whose kernel traces the processes of its guest (ptrace(2)).
 *
 * If the kernel dies, its processes die, too: without this option they would stay, stopped.
 * A processor can have more registers than the kernel has room for (AMX): Linux before 6.13 writes those that it knows,
 * and the host refuses a write that is not of all (EFAULT). It is then completed. The others keep their initial value,
 * as no program of the guest gets the permission to use them.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

#define ROOM 65536
#define OLD_SETOPTIONS 21

static long (*libc_ptrace)(int, pid_t, void *, void *);
static char state[ROOM];
static size_t whole;  /* bytes of all registers; 0: a write of fewer was not refused yet */

static long write_all(pid_t pid, void *set, const struct iovec *given)
{
	if (whole == 0) {
		struct iovec all = {state, ROOM};
		if (libc_ptrace(PTRACE_GETREGSET, pid, set, &all) != 0)
			return -1;
		whole = all.iov_len;
	}
	if (given->iov_len > whole) {
		errno = EFAULT;
		return -1;
	}
	memcpy(state, given->iov_base, given->iov_len);
	memset(state + given->iov_len, 0, whole - given->iov_len);
	struct iovec completed = {state, whole};
	return libc_ptrace(PTRACE_SETREGSET, pid, set, &completed);
}

long ptrace(enum __ptrace_request request, ...)
{
	va_list rest;
	va_start(rest, request);
	pid_t pid = va_arg(rest, pid_t);
	void *address = va_arg(rest, void *), *data = va_arg(rest, void *);
	va_end(rest);
	if (libc_ptrace == NULL)
		libc_ptrace = (long (*)(int, pid_t, void *, void *))dlsym(RTLD_NEXT, "ptrace");
	if (request == PTRACE_SETOPTIONS || (int)request == OLD_SETOPTIONS)
		data = (void *)((uintptr_t)data | PTRACE_O_EXITKILL);
	if (request != PTRACE_SETREGSET || (uintptr_t)address != NT_X86_XSTATE)
		return libc_ptrace(request, pid, address, data);
	if (whole == 0) {
		long done = libc_ptrace(request, pid, address, data);
		if (done == 0 || errno != EFAULT)
			return done;
	}
	return write_all(pid, address, data);
}
