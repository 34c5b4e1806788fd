/*
 * layout.h - where everything lies in a segment. Private to shm.
 *
 * Pure arithmetic on the configuration: ranks with the same configuration and the same size of a page get the same
 * places. Everything is an offset from the beginning of the segment. Areas begin at pages, and the heap at a large
 * page.
 *
 * Per lane and peer there is a ring of descriptors for that peer (ring.h), where answers to them may be stored, how
 * many descriptors of the peer's ring for us we have copied out, how far we have consumed what the peer sent on each
 * channel, and, for each channel, whether we have taken back what we offered to that peer. The latter words hardly ever
 * change, so those of all peers lie together: the arrays have a place for every channel number, and only pages that are
 * touched exist.
 */
#ifndef TRANSPORT_SHM_LAYOUT_H
#define TRANSPORT_SHM_LAYOUT_H

#include "transport/shm/segment.h"
#include "transport/transport.h"

/* memory comes in such pages too, which cost far fewer misses of address translation */
#define HUGE_PAGE (UINT64_C(2) << 20)
#define LAYOUT_CHANNELS 65536u
#define LAYOUT_LINE 64u              /* bytes that caches move at a time */
#define LAYOUT_RING 128u             /* descriptors                      */
#define LAYOUT_DESCRIPTOR_BYTES 32u
#define LAYOUT_SLOT_LARGE (128u << 10)

struct layout {
	uint64_t page;
	uint32_t peers;
	uint64_t doze_at;    /* a line per lane */
	uint64_t storing_at; /* a line per lane */

	uint64_t lanes_at, lane_bytes;
	uint64_t replies_at, taken_at, consumed_at, revoked_at; /* within a lane, whose rings come first */

	uint64_t cells_at, small_shm_bytes; /* per channel */
	uint64_t cell_bytes;

	uint64_t slots_at, slot_bytes; /* from one to the next */
	uint32_t slots;                /* per lane             */

	uint64_t heap_at, heap_bytes;
	uint64_t bytes;
};

/* ESP_EINVAL: nothing that fits into an address space. */
ESP_CHECKED enum esp_status shm_layout_make(const struct segment_config *config, uint64_t page, struct layout *out,
                                            struct error *err);

/*
 * From one slot to the next. Large ones lie a quarter of their size apart: the beginnings of slots of 256 KiB, each a
 * multiple of it, would fall on the same few sets of a cache, and messages that do not fill them (64 KiB of a
 * reduce-scatter) drive each other out. There is room for a message that is shifted (transport.h).
 */
static inline uint64_t layout_slot_bytes(uint64_t message_bytes)
{
	uint64_t apart = message_bytes >= LAYOUT_SLOT_LARGE ? message_bytes / 4 : TRANSPORT_SHIFTS;

	return (message_bytes + apart + LAYOUT_LINE - 1) / LAYOUT_LINE * LAYOUT_LINE;
}

/* Memory that a slot takes, with what lies around it. */
uint64_t shm_layout_slot_cost(uint32_t message_bytes, uint64_t page);

static inline uint64_t layout_doze(const struct layout *layout, uint32_t lane)
{
	return layout->doze_at + (uint64_t)lane * LAYOUT_LINE;
}

static inline uint64_t layout_storing(const struct layout *layout, uint32_t lane)
{
	return layout->storing_at + (uint64_t)lane * LAYOUT_LINE;
}

static inline uint64_t layout_lane(const struct layout *layout, uint32_t lane)
{
	return layout->lanes_at + lane * layout->lane_bytes;
}

static inline uint64_t layout_ring(const struct layout *layout, uint32_t lane, uint32_t peer)
{
	return layout_lane(layout, lane) + (uint64_t)peer * LAYOUT_RING * LAYOUT_DESCRIPTOR_BYTES;
}

static inline uint64_t layout_replies(const struct layout *layout, uint32_t lane, uint32_t peer)
{
	return layout_lane(layout, lane) + layout->replies_at + (uint64_t)peer * LAYOUT_RING * sizeof(uint64_t);
}

static inline uint64_t layout_taken(const struct layout *layout, uint32_t lane, uint32_t peer)
{
	return layout_lane(layout, lane) + layout->taken_at + (uint64_t)peer * LAYOUT_LINE;
}

static inline uint64_t layout_consumed(const struct layout *layout, uint32_t lane, uint32_t peer, uint16_t channel)
{
	return layout_lane(layout, lane) + layout->consumed_at +
	       ((uint64_t)peer * LAYOUT_CHANNELS + channel) * sizeof(uint64_t);
}

static inline uint64_t layout_revoked(const struct layout *layout, uint32_t lane, uint32_t peer, uint16_t channel)
{
	return layout_lane(layout, lane) + layout->revoked_at +
	       ((uint64_t)channel * layout->peers + peer) * sizeof(uint32_t);
}

static inline uint64_t layout_small(const struct layout *layout, uint16_t channel, uint32_t cell)
{
	return layout->cells_at + channel * layout->small_shm_bytes + cell * layout->cell_bytes;
}

static inline uint64_t layout_slot(const struct layout *layout, uint32_t lane, uint32_t slot)
{
	return layout->slots_at + ((uint64_t)lane * layout->slots + slot) * layout->slot_bytes;
}

/* Is it where a message in a slot of that lane may begin? */
static inline bool layout_is_slot(const struct layout *layout, uint32_t lane, uint64_t at)
{
	uint64_t first = layout_slot(layout, lane, 0);

	return at >= first && at - first < layout->slots * layout->slot_bytes &&
	       (at - first) % layout->slot_bytes < TRANSPORT_SHIFTS;
}

static inline bool layout_is_heap(const struct layout *layout, uint64_t at, uint64_t bytes)
{
	return at >= layout->heap_at && bytes <= layout->heap_bytes && at - layout->heap_at <= layout->heap_bytes - bytes;
}

#endif
