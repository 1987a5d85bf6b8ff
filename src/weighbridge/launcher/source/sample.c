#define _GNU_SOURCE
#include "sample.h"

#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILES 64
#define LARGEST_TEXT (1u << 18)        /* bytes of one text */
#define LARGEST_TOTAL (48u << 20)      /* bytes of all readings: then no more are taken */
#define WHOLE 2048                     /* the kernel gives a long table in parts of a page: what is shorter than this is all */
#define SLOW_NS INT64_C(950000000)     /* a little less than the second after which slow files are due */
#define NONE UINT32_MAX                /* in place of a text's length: it could not be read, or was not due */
#define SAME (UINT32_MAX - 1)          /* it is the text that was read before */

struct file {
	char *path;
	int fd, slow;
	uint32_t most;
	uint64_t mark;                 /* of the text that was read last; 0: none was */
};

static struct file files[FILES];
static int count;
static int readings = -1;              /* a file in memory: what a reader of the machine does not see in our own */
static int64_t begun, every, number, slow_at, used;
static uint64_t kept;
static uint8_t text[LARGEST_TEXT];

static int64_t clock_of(clockid_t which)
{
	struct timespec time;
	clock_gettime(which, &time);
	return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static void forget_all(void)
{
	for (int each = 0; each < count; each++) {
		if (files[each].fd >= 0)
			close(files[each].fd);
		free(files[each].path);
	}
	count = 0;
	if (readings >= 0)
		close(readings);
	readings = -1;
}

/* The bytes of an open file, which are in `text` then; -1 where it cannot be read. */
static ssize_t read_all(int fd, size_t most)
{
	size_t size = 0;
	while (size < most) {
		ssize_t got = pread(fd, text + size, most - size, size);
		if (got < 0)
			return -1;
		size += got;
		if (got == 0 || size < WHOLE)
			break;
	}
	return size;
}

/* It stays open, and is opened again where it cannot be read from its beginning a second time. */
static ssize_t read_file(struct file *file)
{
	ssize_t got = file->fd < 0 ? -1 : read_all(file->fd, file->most);
	if (got >= 0)
		return got;
	if (file->fd >= 0)
		close(file->fd);
	file->fd = open(file->path, O_RDONLY | O_CLOEXEC);
	return file->fd < 0 ? -1 : read_all(file->fd, file->most);
}

/* What each process of a group had from disks and wrote to them: "pid: N" and that process's io file, one after the
   other. Without the right to read one of them there is nothing: too little would be told. */
static ssize_t read_disks(const struct file *file)
{
	FILE *members = fopen(file->path, "re");
	size_t size = 0;
	ssize_t got = members ? 0 : -1;
	for (int pid; members && got >= 0 && fscanf(members, "%d", &pid) == 1;) {
		char path[64];
		snprintf(path, sizeof path, "/proc/%d/io", pid);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0) {
			got = errno == ENOENT || errno == ESRCH ? 0 : -1;
			continue;
		}
		int head = snprintf((char *)text + size, sizeof text - size, "pid: %d\n", pid);
		got = head < 0 || size + head >= sizeof text ? -1 : read(fd, text + size + head, sizeof text - size - head);
		if (got > 0)
			size += head + got;
		else if (got < 0 && errno == ESRCH)
			got = 0;
		close(fd);
	}
	if (members)
		fclose(members);
	return got < 0 ? -1 : (ssize_t)size;
}

static int is_disks(const char *path)
{
	const char *name = strrchr(path, '/');
	return name && strcmp(name, "/cgroup.procs") == 0;
}

/* FNV-1a, and never 0. */
static uint64_t mark_of(const uint8_t *bytes, size_t size)
{
	uint64_t mark = UINT64_C(14695981039346656037);
	for (size_t at = 0; at < size; at++)
		mark = (mark ^ bytes[at]) * UINT64_C(1099511628211);
	return mark ? mark : 1;
}

static void keep(const void *bytes, size_t size)
{
	ssize_t done = kept + size <= LARGEST_TOTAL ? write(readings, bytes, size) : -1;
	if (done == (ssize_t)size)
		kept += size;
	else
		kept = LARGEST_TOTAL;  /* a part of a reading is cut off by whoever reads them */
}

static void take(int all)
{
	int64_t start = clock_of(CLOCK_THREAD_CPUTIME_ID), now = clock_of(CLOCK_MONOTONIC) - begun;
	if (all || now >= slow_at) {
		slow_at = now + SLOW_NS;
		all = 1;
	}
	keep(&now, sizeof now);
	for (int each = 0; each < count; each++) {
		struct file *file = &files[each];
		ssize_t got = file->slow && !all ? -1 : is_disks(file->path) ? read_disks(file) : read_file(file);
		uint32_t length = got < 0 ? NONE : got;
		if (got >= 0) {
			uint64_t mark = mark_of(text, got);
			if (mark == file->mark)
				length = SAME;
			file->mark = mark;
		}
		keep(&length, sizeof length);
		if (length != NONE && length != SAME)
			keep(text, length);
	}
	used += clock_of(CLOCK_THREAD_CPUTIME_ID) - start;
}

static void answer(uint32_t id, int error)
{
	struct body body = {.size = 0};
	struct stat file;
	uint64_t size = error == 0 && readings >= 0 && fstat(readings, &file) == 0 ? file.st_size : 0;
	put_u32(&body, error);
	put_u32(&body, sysconf(_SC_CLK_TCK));
	put_u32(&body, sysconf(_SC_PAGESIZE));
	put_u64(&body, used / 1000);
	send_frame(DATA, id, &body, &readings, &size, size ? 1 : 0);
}

static int begin(struct frame *request, uint32_t milliseconds, uint32_t wanted)
{
	forget_all();
	if (wanted > FILES)
		return E2BIG;
	for (uint32_t each = 0; each < wanted; each++) {
		uint32_t most = take_u32(request);
		struct file *file = &files[count];
		*file = (struct file){.fd = -1, .most = most < LARGEST_TEXT ? most : LARGEST_TEXT};
		file->slow = take_u32(request);
		const char *path = take_string(request);
		file->path = request->at ? strdup(path) : NULL;
		if (file->path == NULL)
			return request->at ? ENOMEM : EINVAL;
		count++;
	}
	if ((readings = file_in_memory("readings", O_APPEND)) < 0)
		return errno;
	begun = clock_of(CLOCK_MONOTONIC);
	every = milliseconds * INT64_C(1000000);
	number = slow_at = used = 0;
	kept = 0;
	take(1);
	return 0;
}

/* u32 milliseconds between two readings, u32 number of files; for each u32 bytes that are enough of it, u32 whether it is
   read once a second only, path. 0 milliseconds: it was the last. The answer is u32 error, u32 clock ticks in a second,
   u32 bytes of a page, u64 microseconds of CPU time that reading took; behind it, at the end: each reading's i64
   nanoseconds since the first, and for each file u32 length, text. */
void sample(struct frame *request)
{
	uint32_t milliseconds = take_u32(request), wanted = take_u32(request);
	if (milliseconds) {
		int error = begin(request, milliseconds, wanted);
		struct body body = {.size = 0};
		if (error)
			forget_all();
		put_u32(&body, error);
		send_frame(DATA, request->id, &body, NULL, NULL, 0);
		return;
	}
	int error = readings < 0 ? ESRCH : 0;
	if (!error)
		take(1);
	answer(request->id, error);
	forget_all();
}

int sample_due(void)
{
	if (readings < 0)
		return -1;
	int64_t now = clock_of(CLOCK_MONOTONIC) - begun;
	if (now >= (number + 1) * every) {
		number = now / every;
		take(0);
		now = clock_of(CLOCK_MONOTONIC) - begun;
	}
	int64_t left = (number + 1) * every - now;
	return left > 0 ? (left + 999999) / 1000000 : 0;
}
