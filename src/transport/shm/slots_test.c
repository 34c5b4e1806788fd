/*
 * slots_test.c - slots of all sizes: where they lie, what memory they have, and how many there are if it is short.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "transport/shm/slots.h"

#define SLOTS 12u
#define LANES 2u

static struct segment *open_segment(uint32_t slot_bytes)
{
	struct segment_config config = {
		.lanes = LANES,
		.peers = 3,
		.self = 1,
		.slot_bytes = slot_bytes,
		.slots = SLOTS,
		.small_shm_bytes = 64,
		.heap_bytes = 1u << 20,
	};
	struct segment *segment;
	struct error err;

	CHECK_MSG(shm_segment_open(&config, &segment, &err) == ESP_OK, "open: %s", err.text);
	return segment;
}

static uint64_t bytes_in_use(int fd)
{
	struct stat stat;

	CHECK(fstat(fd, &stat) == 0);
	return (uint64_t)stat.st_blocks * 512;
}

static uint32_t take_all(struct slots *slots, uint32_t *out)
{
	uint32_t count = 0;

	for (; shm_slots_available(slots); count++)
		out[count] = shm_slots_get(slots, 0, 0, (uint8_t)(count % 2 ? TRANSPORT_SHIFTS - 1 : count));
	CHECK(count <= SLOTS && shm_slots_left(slots) == 0);
	return count;
}

/* A message in one is no part of any other; all of them have memory for it, and nothing has more. */
static void have_memory(uint32_t slot_bytes)
{
	struct segment *segment = open_segment(slot_bytes);
	uint64_t page = segment->layout.page, before = bytes_in_use(segment->fd);
	struct slots slots[LANES];
	uint32_t taken[LANES][SLOTS];

	for (uint32_t lane = 0; lane < LANES; lane++) {
		CHECK(shm_slots_init(&slots[lane], segment, lane) == ESP_OK);
		CHECK(slots[lane].reserved > 0 &&
		      (slots[lane].reserved == 1 || (uint64_t)slots[lane].reserved * slot_bytes <= 1u << 20));
		CHECK_U64(take_all(&slots[lane], taken[lane]), SLOTS);
	}
	uint64_t reserved = bytes_in_use(segment->fd) - before;
	CHECK_MSG(reserved <= LANES * (SLOTS * shm_layout_slot_cost(slot_bytes, page) + 2 * page),
	          "%" PRIu64 " bytes for slots of %u", reserved, slot_bytes);
	for (uint32_t lane = 0; lane < LANES; lane++) {
		for (uint32_t i = 0; i < SLOTS; i++) {
			CHECK(layout_is_slot(&segment->layout, lane, slots_at(&slots[lane], taken[lane][i])));
			memset(segment_at(segment, slots_at(&slots[lane], taken[lane][i])), (int)(1 + lane * SLOTS + i),
			       slot_bytes);
		}
	}
	CHECK_U64(bytes_in_use(segment->fd) - before, reserved); /* none had to be found for what was written */
	for (uint32_t lane = 0; lane < LANES; lane++) {
		for (uint32_t i = 0; i < SLOTS; i++) {
			const uint8_t *data = segment_at(segment, slots_at(&slots[lane], taken[lane][i]));

			CHECK(data[0] == 1 + lane * SLOTS + i && memcmp(data, data + 1, slot_bytes - 1) == 0);
		}
		shm_slots_fini(&slots[lane]);
	}
	shm_segment_close(segment);
}

/* There is memory for the first few, which may be less than a step: those are used. */
static void memory_is_short(uint32_t slot_bytes, uint32_t count)
{
	struct segment *segment = open_segment(slot_bytes);
	uint32_t taken[SLOTS];
	int fd = segment->fd, small = memfd_create("small", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	uint64_t page = segment->layout.page;
	uint64_t bytes =
		count == 0
			? 0
			: (layout_slot(&segment->layout, 0, count - 1) + slot_bytes + TRANSPORT_SHIFTS + page - 1) / page * page;
	struct slots slots;

	CHECK(small >= 0 && ftruncate(small, (off_t)bytes) == 0 && fcntl(small, F_ADD_SEALS, F_SEAL_GROW) == 0);
	segment->fd = small; /* in which no more can be reserved */
	enum esp_status status = shm_slots_init(&slots, segment, 0);
	CHECK(status == (count > 0 ? ESP_OK : ESP_ENOMEM));
	if (count > 0)
		CHECK_U64(take_all(&slots, taken), count);
	segment->fd = fd;
	for (uint32_t i = 0; i < count; i++)
		shm_slots_put(&slots, taken[i]);
	if (count > 0) /* when none is taken, more is asked for again */
		CHECK_U64(take_all(&slots, taken), SLOTS);
	shm_slots_fini(&slots);
	close(small);
	shm_segment_close(segment);
}

int main(void)
{
	static const uint32_t sizes[] = {1,          1000,   4096,       64u << 10, (128u << 10) - 1,
	                                 128u << 10, 200001, 256u << 10, 3u << 20};

	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		have_memory(sizes[i]);
		for (uint32_t count = 0; sizes[i] >= 64u << 10 && count <= SLOTS; count++)
			memory_is_short(sizes[i], count);
	}
	return 0;
}
