#include "tools/lab/shaper.h"

#define TRAIN_MAX 65536u
#define TRAIN_MIN 4096u
#define TRAINS 4u              /* in the bucket: with one, 100 Mbit/s become 70 */
#define QUEUE_MIN (128u << 10) /* several trains at any rate */
#define QUEUE_MAX (8u << 20)
#define BURST_MAX (8u << 20)

static uint64_t between(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

struct shaper lab_shaper_for(uint64_t rate, uint32_t mtu)
{
	uint64_t per_ms = rate / 8000;
	uint64_t frame = mtu + 64u;
	struct shaper shaper = {.rate = rate};
	shaper.train_bytes = (uint32_t)between(per_ms / 2, frame > TRAIN_MIN ? frame : TRAIN_MIN, TRAIN_MAX);
	uint64_t trains = (uint64_t)TRAINS * shaper.train_bytes;
	shaper.burst_bytes = (uint32_t)between(per_ms * 4 / 5, trains, BURST_MAX); /* 10 Gbit/s: 1 MB */
	/* ten milliseconds, as switches for such rates have */
	shaper.queue_bytes = (uint32_t)between(per_ms * 10, QUEUE_MIN > 2 * trains ? QUEUE_MIN : 2 * trains, QUEUE_MAX);
	return shaper;
}
