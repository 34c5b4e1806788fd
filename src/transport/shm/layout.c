#include "transport/shm/layout.h"

#include <assert.h>

/* Far beyond any host; their products fit into 64 bits, and the sum is compared with BYTES_MAX. */
#define LANES_MAX 256u
#define PEERS_MAX 4096u
#define SLOTS_MAX (1u << 20)
#define SLOT_BYTES_MAX (1u << 30)
#define BOARD_BYTES_MAX (1u << 20)
#define BYTES_MAX (UINT64_C(1) << 46) /* half of what x86-64 gives a process */


static_assert(LAYOUT_RING * LAYOUT_DESCRIPTOR_BYTES % 4096 == 0, "rings are whole pages");

static uint64_t round_up(uint64_t value, uint64_t unit)
{
	return (value + unit - 1) / unit * unit;
}

static enum esp_status check(const struct segment_config *config, struct error *err)
{
	if (config->lanes == 0 || config->lanes > LANES_MAX)
		return error_set(err, ESP_EINVAL, "%u lanes: there must be 1 to %u", config->lanes, LANES_MAX);
	if (config->peers == 0 || config->peers > PEERS_MAX || config->self >= config->peers)
		return error_set(err, ESP_EINVAL, "number %u of %u ranks on this host: there must be 1 to %u", config->self,
		                 config->peers, PEERS_MAX);
	if (config->slots == 0 || config->slots > SLOTS_MAX || config->slot_bytes == 0 ||
	    config->slot_bytes > SLOT_BYTES_MAX)
		return error_set(err, ESP_EINVAL, "%u slots of %u bytes: there must be 1 to %u of 1 to %u", config->slots,
		                 config->slot_bytes, SLOTS_MAX, SLOT_BYTES_MAX);
	if (config->small_shm_bytes == 0 || config->small_shm_bytes > BOARD_BYTES_MAX || config->heap_bytes > BYTES_MAX)
		return error_set(err, ESP_EINVAL, "small_shm_bytes of %u, a heap of %llu: at most %u and %llu",
		                 config->small_shm_bytes, (unsigned long long)config->heap_bytes, BOARD_BYTES_MAX,
		                 (unsigned long long)BYTES_MAX);
	return ESP_OK;
}

static void place_lanes(struct layout *layout, const struct segment_config *config)
{
	uint64_t page = layout->page, peers = config->peers;

	layout->storing_at = layout->doze_at + (uint64_t)config->lanes * LAYOUT_LINE;
	layout->lanes_at = round_up(layout->storing_at + (uint64_t)config->lanes * LAYOUT_LINE, page);
	layout->replies_at = round_up(peers * LAYOUT_RING * LAYOUT_DESCRIPTOR_BYTES, page);
	layout->taken_at = round_up(layout->replies_at + peers * LAYOUT_RING * sizeof(uint64_t), page);
	layout->consumed_at = round_up(layout->taken_at + peers * LAYOUT_LINE, page);
	layout->revoked_at = layout->consumed_at + peers * LAYOUT_CHANNELS * sizeof(uint64_t);
	layout->lane_bytes = round_up(layout->revoked_at + peers * LAYOUT_CHANNELS * sizeof(uint32_t), page);
}

enum esp_status shm_layout_make(const struct segment_config *config, uint64_t page, struct layout *out,
                                struct error *err)
{
	struct layout layout = {.page = page, .peers = config->peers, .slots = config->slots};
	enum esp_status status = check(config, err);

	if (status != ESP_OK)
		return status;
	if (layout.slots < 2 * config->peers) /* one per peer is not held for long: shm_send.c */
		layout.slots = 2 * config->peers;
	layout.doze_at = page; /* the head has a page for itself */
	place_lanes(&layout, config);
	layout.cells_at = layout.lanes_at + config->lanes * layout.lane_bytes;
	layout.cell_bytes = round_up(config->small_shm_bytes, LAYOUT_LINE);
	layout.small_shm_bytes = round_up(2 * layout.cell_bytes, page);
	layout.slots_at = layout.cells_at + LAYOUT_CHANNELS * layout.small_shm_bytes;
	layout.slot_bytes = layout_slot_bytes(config->slot_bytes);
	layout.heap_at = round_up(layout_slot(&layout, config->lanes, 0), HUGE_PAGE);
	layout.heap_bytes = config->heap_bytes / page * page;
	layout.bytes = layout.heap_at + layout.heap_bytes;
	if (layout.bytes > BYTES_MAX)
		return error_set(err, ESP_EINVAL, "a segment of %llu bytes does not fit into an address space",
		                 (unsigned long long)layout.bytes);
	*out = layout;
	return ESP_OK;
}

/* Where slots lie apart, what is between them has no memory. */
uint64_t shm_layout_slot_cost(uint32_t message_bytes, uint64_t page)
{
	uint64_t apart = layout_slot_bytes(message_bytes);
	uint64_t pages = round_up((uint64_t)message_bytes + TRANSPORT_SHIFTS, page) + (apart % page ? page : 0);

	return apart < pages ? apart : pages;
}
