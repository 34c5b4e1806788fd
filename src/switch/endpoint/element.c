#include "switch/endpoint/element.h"

#include <assert.h>
#include <string.h>

#include "math/math.h"

/* The contributors of a packet, within one group. */
static uint64_t claimed(const struct shape *shape, const struct atp_packet *packet, uint16_t group)
{
	if (packet->hop == 0)
		return group == packet->group ? packet->bitmap : 0;
	return packet->bitmap >> group & 1 ? atp_children(shape_group(shape, packet->owner, group).fan_in) : 0;
}

struct comparison {
	bool overlaps; /* some contributor is in both */
	bool misses;   /* some contributor that is held is not in the packet */
	bool has_new;
};

static struct comparison compare(const struct element *element, const struct shape *shape,
                                 const struct atp_packet *packet)
{
	struct comparison result = {false, false, false};

	for (uint16_t group = 0; group < shape_groups(shape); group++) {
		uint64_t held = element->held[group], here = claimed(shape, packet, group);
		result.overlaps |= (held & here) != 0;
		result.misses |= (held & ~here) != 0;
		result.has_new |= (here & ~held) != 0;
	}
	return result;
}

static bool is_empty(const struct element *element, const struct shape *shape)
{
	for (uint16_t group = 0; group < shape_groups(shape); group++)
		if (element->held[group])
			return false;
	return true;
}

static void join(struct element *element, const struct shape *shape, const struct atp_packet *packet)
{
	for (uint16_t group = 0; group < shape_groups(shape); group++)
		element->held[group] |= claimed(shape, packet, group);
}

enum element_event element_take(struct element *element, const struct shape *shape, const struct atp_packet *packet,
                                const void *words)
{
	assert(packet->type == ATP_GRADIENT && packet->bitmap != 0);
	struct comparison with = compare(element, shape, packet);
	bool is_first = is_empty(element, shape);

	if (with.overlaps && (with.misses || !with.has_new))
		return ELEMENT_OVERLAPS;
	join(element, shape, packet);
	if (is_first || with.overlaps)
		memcpy(element->words, words, 4 * (size_t)packet->words);
	else
		math_fold(ESP_U32, ESP_SUM)(element->words, element->words, words, packet->words);
	return with.overlaps ? ELEMENT_REPLACED : ELEMENT_ADDED;
}

bool element_is_complete(const struct element *element, const struct shape *shape, uint16_t owner)
{
	for (uint16_t group = 0; group < shape_groups(shape); group++) {
		uint8_t fan_in = shape_group(shape, owner, group).fan_in;
		if (fan_in && element->held[group] != atp_children(fan_in))
			return false;
	}
	return true;
}
