/* Frames: what goes over the one stream between Weighbridge and the launcher. Numbers are little-endian, unaligned. */
#ifndef WIRE_H
#define WIRE_H

#include <stddef.h>
#include <stdint.h>

enum kind {
	/* from Weighbridge */
	START = 'S', STOP = 'E', WRITE = 'W', READ = 'R', LISTENING = 'L', ALONE = 'Q', PRINTED = 'P', PAUSE = 'F',
	SAMPLE = 'M',
	/* to Weighbridge */
	HELLO = 'h', REFUSED = 'x', BEGAN = 'b', ENDED = 'e', RESULT = 'r', DONE = 'o', DATA = 'd', TAKEN = 't',
};

#define VERSION 9
#define HEADER 9               /* u32 size of the body, u32 id, u8 kind */
#define LARGEST (192u << 20)   /* bytes of a body */

struct frame {
	uint32_t id;
	uint8_t kind;
	const uint8_t *at, *end;   /* what of the body has not been taken yet */
};

/* What is taken from beyond the end of a body is zero or empty, and `at` is then NULL. */
uint32_t take_u32(struct frame *frame);
uint16_t take_u16(struct frame *frame);
const char *take_string(struct frame *frame);
uint32_t *take_u32s(struct frame *frame, size_t count);  /* to be freed; NULL: too many, or no memory */

/* Gives back the memory of what has not been taken of a frame: whole pages of it. */
void drop_rest(struct frame *frame);

/* Whether a frame tells how many bytes each read has taken: over a line without flow control, no more may be on the way
   than it holds. */
extern int tells_taken;

/* Gives 1 and the next whole frame, 0 where there is none yet, -1 at the end of the stream or where it is damaged.
   The frame is valid until the next call. */
int next_frame(struct frame *frame);

/* A body in the making. */
struct body {
	uint8_t bytes[256];
	size_t size;
};

void put(struct body *body, const void *bytes, size_t size);
void put_u32(struct body *body, uint32_t value);
void put_u64(struct body *body, uint64_t value);

/* Sends a frame with this body and what the files (-1: none) hold behind it, `sizes` bytes each. */
void send_frame(enum kind kind, uint32_t id, const struct body *body, const int *files, const uint64_t *sizes, int count);
void send_bytes(enum kind kind, uint32_t id, const struct body *body, const void *bytes, size_t size);

#endif
