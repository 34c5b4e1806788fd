#include "transport/shm/slots.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Memory that is reserved at a time: slots that are used at once in a small job, and no long pause. */
#define STEP_MOST 16u
#define STEP_BYTES (UINT64_C(1) << 20)

static uint32_t step_of(uint32_t slot_bytes)
{
	uint64_t step = STEP_BYTES / slot_bytes;

	return step == 0 ? 1 : step < STEP_MOST ? (uint32_t)step : STEP_MOST;
}

/* Gives memory to some more slots; what lies between them gets none. */
static bool grow(struct slots *slots)
{
	uint32_t left = slots->limit - slots->reserved, most = slots->step < left ? slots->step : left, count = 0;

	while (count < most &&
	       shm_segment_reserve(slots->segment,
	                           layout_slot(&slots->segment->layout, slots->lane, slots->reserved + count),
	                           (uint64_t)slots->segment->config.slot_bytes + TRANSPORT_SHIFTS))
		count++;
	if (count < most)
		slots->limit = slots->reserved + count;
	if (count == 0)
		return false;
	for (uint32_t i = slots->reserved + count; i-- > slots->reserved;) {
		slots->all[i].next = slots->free_first;
		slots->free_first = i;
	}
	slots->reserved += count;
	return true;
}

enum esp_status shm_slots_init(struct slots *slots, const struct segment *segment, uint32_t lane)
{
	uint32_t count = segment->layout.slots, rows = 16;

	while (rows < count)
		rows *= 2;
	*slots = (struct slots){
		.segment = segment,
		.lane = lane,
		.step = step_of(segment->config.slot_bytes),
		.limit = count,
		.free_first = SLOT_NONE,
		.all = calloc(count, sizeof(*slots->all)),
		.table = malloc(rows * sizeof(*slots->table)),
		.table_mask = rows - 1,
	};
	if (!slots->all || !slots->table)
		return ESP_ENOMEM;
	memset(slots->table, 0xff, rows * sizeof(*slots->table)); /* SLOT_NONE */
	return grow(slots) ? ESP_OK : ESP_ENOMEM;
}

void shm_slots_fini(struct slots *slots)
{
	free(slots->all);
	free(slots->table);
	*slots = (struct slots){0};
}

uint64_t slots_at(const struct slots *slots, uint32_t slot)
{
	return layout_slot(&slots->segment->layout, slots->lane, slot) + slots->all[slot].shift;
}

bool shm_slots_available(struct slots *slots)
{
	return slots->free_first != SLOT_NONE || grow(slots);
}

uint32_t shm_slots_left(const struct slots *slots)
{
	return slots->limit - slots->taken;
}

/* ---- contents ---- */

static uint32_t *row_of(struct slots *slots, uint16_t channel, uint64_t content)
{
	uint64_t key = (content ^ (uint64_t)channel << 48) * UINT64_C(0x9e3779b97f4a7c15);

	return &slots->table[key >> 32 & slots->table_mask];
}

static void table_remove(struct slots *slots, uint32_t slot)
{
	struct slot *gone = &slots->all[slot];
	uint32_t *at = row_of(slots, gone->channel, gone->content);

	while (*at != slot)
		at = &slots->all[*at].next;
	*at = gone->next;
	gone->content = 0;
}

uint32_t shm_slots_find(struct slots *slots, uint16_t channel, uint64_t content)
{
	if (content == 0)
		return SLOT_NONE;
	uint32_t at = *row_of(slots, channel, content);
	while (at != SLOT_NONE && (slots->all[at].content != content || slots->all[at].channel != channel))
		at = slots->all[at].next;
	if (at != SLOT_NONE)
		slots->all[at].users++;
	return at;
}

uint32_t shm_slots_get(struct slots *slots, uint16_t channel, uint64_t content, uint8_t shift)
{
	uint32_t at = slots->free_first;
	struct slot *slot = &slots->all[at];

	assert(at != SLOT_NONE);
	slots->free_first = slot->next;
	*slot = (struct slot){.content = content, .users = 1, .channel = channel, .shift = shift};
	if (content != 0) {
		uint32_t *row = row_of(slots, channel, content);

		slot->next = *row;
		*row = at;
	}
	slots->taken++;
	if (slots->taken > slots->taken_most)
		slots->taken_most = slots->taken;
	return at;
}

void shm_slots_put(struct slots *slots, uint32_t slot)
{
	struct slot *freed = &slots->all[slot];

	assert(freed->users > 0);
	if (--freed->users > 0)
		return;
	if (freed->content != 0)
		table_remove(slots, slot);
	freed->next = slots->free_first;
	slots->free_first = slot;
	slots->taken--;
	if (slots->taken == 0) /* if memory was short, it may not be any more */
		slots->limit = slots->segment->layout.slots;
}

void shm_slots_forget(struct slots *slots, uint16_t channel)
{
	for (uint32_t i = 0; slots->taken > 0 && i < slots->reserved; i++) {
		if (slots->all[i].content != 0 && slots->all[i].channel == channel)
			table_remove(slots, i);
	}
}
