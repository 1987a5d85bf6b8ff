/* Does the kernel let the programs of this site use io_uring?
 *
 *     launcher probe-io-uring    prints the error number of io_uring_setup(2), or 0 if it makes a ring
 */
#define _GNU_SOURCE
#include "probe.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define IO_URING_SETUP 425  /* on every machine */

int probe_io_uring(void)
{
	_Alignas(8) char parameters[120] = {0};  /* struct io_uring_params, which older headers do not have */
	long ring = syscall(IO_URING_SETUP, 1, parameters);
	int error = ring < 0 ? errno : 0;
	if (ring >= 0)
		close(ring);
	printf("%d\n", error);
	return 0;
}
