#define _GNU_SOURCE
#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void answer(enum kind kind, uint32_t id, int error)
{
	struct body body = {.size = 0};
	put_u32(&body, error);
	send_frame(kind, id, &body, NULL, NULL, 0);
}

/* u32 mode, u32 1: behind what it has, path, contents. */
void write_to(struct frame *request)
{
	mode_t mode = take_u32(request);
	int how = take_u32(request) ? O_APPEND : O_TRUNC;
	const char *path = take_string(request);
	int file = request->at ? open(path, O_WRONLY | O_CREAT | how | O_CLOEXEC, mode) : -1;
	if (file < 0) {
		answer(DONE, request->id, request->at ? errno : EINVAL);
		return;
	}
	int error = fchmod(file, mode) == 0 ? 0 : errno;
	while (error == 0 && request->at < request->end) {
		ssize_t done = write(file, request->at, request->end - request->at);
		if (done > 0)
			request->at += done;
		else if (done == 0 || errno != EINTR)
			error = done == 0 ? ENOSPC : errno;
	}
	if (close(file) != 0 && error == 0)
		error = errno;
	answer(DONE, request->id, error);
}

/* Path. The answer is u32 error, then the contents: of a file of /proc too, whose size is not known beforehand. */
void read_from(struct frame *request)
{
	const char *path = take_string(request);
	int file = request->at ? open(path, O_RDONLY | O_CLOEXEC) : -1, error = request->at ? 0 : EINVAL;
	uint8_t *bytes = NULL;
	size_t size = 0, room = 0;
	if (file < 0 && error == 0)
		error = errno;
	while (error == 0) {
		if (size == room) {
			uint8_t *more = room < LARGEST / 4 ? realloc(bytes, room = room ? 2 * room : 1 << 13) : NULL;
			if (more == NULL) {
				error = EFBIG;
				break;
			}
			bytes = more;
		}
		ssize_t got = read(file, bytes + size, room - size);
		if (got == 0)
			break;
		if (got > 0)
			size += got;
		else if (errno != EINTR)
			error = errno;
	}
	if (file >= 0)
		close(file);
	if (error == EINVAL && bytes) {  /* a namespace's link has no contents but its text */
		ssize_t got = readlink(path, (char *)bytes, room);
		if (got > 0) {
			size = got;
			error = 0;
		}
	}
	struct body body = {.size = 0};
	put_u32(&body, error);
	send_bytes(DATA, request->id, &body, bytes, error ? 0 : size);
	free(bytes);
}
