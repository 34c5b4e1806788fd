#include "switch/endpoint/reach.h"

#include <assert.h>

#define FIRST_PAUSE_NS UINT64_C(50000000)
#define LAST_PAUSE_NS UINT64_C(3200000000)

static const uint32_t padding[ATP_WORDS_MAX];

static uint64_t others(const struct reach *reach)
{
	return reach->members == 0 ? 0 : atp_children((uint8_t)reach->members) & ~(UINT64_C(1) << reach->self);
}

void reach_init(struct reach *reach, const struct tag_keys *keys, uint64_t flow, uint16_t self, uint16_t members,
                uint16_t words, uint64_t now_ns)
{
	assert(members <= ATP_CHILDREN_MAX && (members == 0 || self < members) && words <= ATP_WORDS_MAX);
	*reach = (struct reach){.keys = keys, .flow = flow, .self = self, .members = members, .words = words,
	                        .round_ns = now_ns, .pause_ns = FIRST_PAUSE_NS};
}

static uint64_t missing(const struct reach *reach)
{
	return others(reach) & ~reach->answered;
}

bool reach_is_whole(const struct reach *reach)
{
	return missing(reach) == 0;
}

uint16_t reach_missing(const struct reach *reach)
{
	assert(!reach_is_whole(reach));
	return (uint16_t)__builtin_ctzll(missing(reach));
}

void reach_packet(struct reach *reach, const struct atp_packet *packet)
{
	if (packet->type != ATP_PROBE || packet->flow != reach->flow || packet->owner >= reach->members ||
	    packet->owner == reach->self || packet->sequence != reach->self ||
	    packet->tag != tag_of_probe(reach->keys, packet))
		return;
	if (packet->flags & ATP_DONE)
		reach->answered |= UINT64_C(1) << packet->owner;
	else
		reach->owed |= UINT64_C(1) << packet->owner;
}

static uint16_t take_lowest(uint64_t *members)
{
	uint16_t member = (uint16_t)__builtin_ctzll(*members);

	*members &= *members - 1;
	return member;
}

static void write_probe(const struct reach *reach, uint16_t to, bool is_answer, struct endpoint_out *out)
{
	*out = (struct endpoint_out){
		.header = {
			.type = ATP_PROBE, .flags = is_answer ? ATP_BYPASS | ATP_DONE : ATP_BYPASS, .owner = reach->self,
			.next = ATP_NO_NEXT, .sequence = to, .flow = reach->flow, .words = is_answer ? 0 : reach->words,
		},
		.words = padding,
		.to = ENDPOINT_TO_MEMBER,
		.member = to,
	};
	out->header.tag = tag_of_probe(reach->keys, &out->header);
}

bool reach_next(struct reach *reach, uint64_t now_ns, struct endpoint_out *out)
{
	if (reach->owed) {
		write_probe(reach, take_lowest(&reach->owed), true, out);
		return true;
	}
	reach->unsent &= missing(reach);
	if (!reach->unsent && !reach_is_whole(reach) && now_ns >= reach->round_ns) {
		reach->unsent = missing(reach);
		reach->round_ns = now_ns + reach->pause_ns;
		reach->pause_ns = 2 * reach->pause_ns < LAST_PAUSE_NS ? 2 * reach->pause_ns : LAST_PAUSE_NS;
	}
	if (!reach->unsent)
		return false;
	write_probe(reach, take_lowest(&reach->unsent), false, out);
	return true;
}

uint64_t reach_wake_ns(const struct reach *reach)
{
	if (reach->owed || (reach->unsent & missing(reach)))
		return 0;
	return reach_is_whole(reach) ? UINT64_MAX : reach->round_ns;
}
