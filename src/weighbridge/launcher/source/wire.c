#define _GNU_SOURCE
#include "wire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are written as the machine has its numbers");

static uint8_t *held;          /* what has been read and not been given yet */
static size_t filled, room, given;

int tells_taken;

static const uint8_t *take(struct frame *frame, size_t size)
{
	const uint8_t *at = frame->at;
	if (at == NULL || (size_t)(frame->end - at) < size)
		return frame->at = NULL;
	frame->at += size;
	return at;
}

static void take_into(struct frame *frame, void *value, size_t size)
{
	const uint8_t *at = take(frame, size);
	if (at)
		memcpy(value, at, size);
}

uint32_t take_u32(struct frame *frame)
{
	uint32_t value = 0;
	take_into(frame, &value, sizeof value);
	return value;
}

uint16_t take_u16(struct frame *frame)
{
	uint16_t value = 0;
	take_into(frame, &value, sizeof value);
	return value;
}

uint32_t *take_u32s(struct frame *frame, size_t count)
{
	uint32_t *values = count < (1u << 16) ? calloc(count + 1, sizeof *values) : NULL;
	for (size_t each = 0; values && each < count; each++)
		values[each] = take_u32(frame);
	return values;
}

const char *take_string(struct frame *frame)
{
	const uint8_t *at = frame->at;
	const uint8_t *zero = at ? memchr(at, 0, frame->end - at) : NULL;
	if (zero == NULL) {
		frame->at = NULL;
		return "";
	}
	frame->at = zero + 1;
	return (const char *)at;
}

void drop_rest(struct frame *frame)
{
	uintptr_t page = sysconf(_SC_PAGESIZE), begin = ((uintptr_t)frame->at + page - 1) / page * page;
	uintptr_t end = (uintptr_t)frame->end / page * page;
	if (frame->at && end > begin)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

/* Reads what is there. False at the end of the stream. */
static int fill(size_t wanted)
{
	if (room < wanted) {
		held = realloc(held, wanted);
		if (held == NULL)
			return 0;
		room = wanted;
	}
	ssize_t got = read(STDIN_FILENO, held + filled, room - filled);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	filled += got;
	if (got > 0 && tells_taken) {
		struct body body = {.size = 0};
		put_u32(&body, got);
		send_frame(TAKEN, 0, &body, NULL, NULL, 0);
	}
	return got > 0;
}

int next_frame(struct frame *frame)
{
	if (given) {  /* the frame of the last call is done with */
		memmove(held, held + given, filled - given);
		filled -= given;
		given = 0;
		if (filled == 0 && room > 1 << 16) {  /* a big file came by: its memory is the site's again */
			free(held);
			held = NULL;
			room = 0;
		}
	}
	uint32_t size = 0;
	for (int filled_once = 0;; filled_once = 1) {
		size_t wanted = HEADER;
		if (filled >= HEADER) {
			memcpy(&size, held, sizeof size);
			if (size > LARGEST)
				return -1;
			wanted += size;
		}
		if (filled >= wanted)
			break;
		struct pollfd input = {STDIN_FILENO, POLLIN, 0};
		if (filled_once || poll(&input, 1, 0) <= 0)
			return 0;
		if (!fill(wanted > 1 << 12 ? wanted : 1 << 12))
			return -1;
	}
	memcpy(&frame->id, held + 4, sizeof frame->id);
	frame->kind = held[8];
	frame->at = held + HEADER;
	frame->end = frame->at + size;
	given = HEADER + size;
	return 1;
}

void put(struct body *body, const void *bytes, size_t size)
{
	if (size <= sizeof body->bytes - body->size) {
		memcpy(body->bytes + body->size, bytes, size);
		body->size += size;
	}
}

void put_u32(struct body *body, uint32_t value)
{
	put(body, &value, sizeof value);
}

void put_u64(struct body *body, uint64_t value)
{
	put(body, &value, sizeof value);
}

static void write_all(const void *bytes, size_t size)
{
	while (size > 0) {
		ssize_t done = write(STDOUT_FILENO, bytes, size);
		if (done < 0 && errno == EAGAIN) {
			struct pollfd output = {STDOUT_FILENO, POLLOUT, 0};
			poll(&output, 1, -1);
		} else if (done < 0 && errno != EINTR) {
			return;  /* nobody listens any more: reading tells so, too */
		} else if (done > 0) {
			bytes = (const uint8_t *)bytes + done;
			size -= done;
		}
	}
}

static void write_header(enum kind kind, uint32_t id, uint64_t size)
{
	uint8_t header[HEADER];
	uint32_t whole = size;
	memcpy(header, &whole, 4);
	memcpy(header + 4, &id, 4);
	header[8] = kind;
	write_all(header, HEADER);
}

/* What a file holds from its beginning on; zeros where it has become shorter meanwhile. */
static void write_file(int file, uint64_t size)
{
	uint8_t piece[1 << 14];
	for (uint64_t at = 0; at < size;) {
		size_t wanted = size - at < sizeof piece ? size - at : sizeof piece;
		ssize_t got = pread(file, piece, wanted, at);
		if (got <= 0) {
			memset(piece, 0, sizeof piece);
			got = wanted;
		}
		write_all(piece, got);
		at += got;
	}
}

void send_frame(enum kind kind, uint32_t id, const struct body *body, const int *files, const uint64_t *sizes, int count)
{
	uint64_t size = body->size;
	for (int each = 0; each < count; each++)
		size += sizes[each];
	write_header(kind, id, size);
	write_all(body->bytes, body->size);
	for (int each = 0; each < count; each++)
		write_file(files[each], sizes[each]);
}

void send_bytes(enum kind kind, uint32_t id, const struct body *body, const void *bytes, size_t size)
{
	write_header(kind, id, body->size + size);
	write_all(body->bytes, body->size);
	write_all(bytes, size);
}
