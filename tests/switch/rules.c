#include "rules.h"

#include <string.h>

static bool is_repeated(const struct rules_slot *slot, const struct rules_packet *packet)
{
	return step_fits(&slot->slot, &packet->packet) && (slot->slot.bitmap & packet->packet.bitmap) != 0;
}

/* ---- the product ---- */

static bool product_step(const struct step_limits *limits, struct rules_slot *slot, struct rules_packet *packet,
                         bool is_child, uint64_t now_ns)
{
	enum step_event event = step_run(limits, &slot->slot, &packet->packet, is_child, now_ns);
	step_run_words(event, slot->words, packet->words, packet->packet.words);
	return step_leaves(event);
}

static void product_take(struct element *element, const struct shape *shape, const struct rules_packet *packet)
{
	element_take(element, shape, &packet->packet, packet->words);
}

const struct rules rules_product = {"product", product_step, product_take, false, false, false};

/* ---- the paper (section 5.3 and figure 4, section 5.4) ---- */

static void add_words(uint32_t *to, const uint32_t *from)
{
	for (uint32_t i = 0; i < RULES_WORDS; i++)
		to[i] += from[i];
}

static void slot_add(struct rules_slot *slot, const struct rules_packet *packet)
{
	slot->slot.bitmap |= packet->packet.bitmap;
	slot->slot.tag += packet->packet.tag;
	add_words(slot->words, packet->words);
}

static void slot_leaves(const struct rules_slot *slot, struct rules_packet *packet)
{
	packet->packet.bitmap = slot->slot.bitmap;
	packet->packet.tag = slot->slot.tag;
	memcpy(packet->words, slot->words, sizeof(packet->words));
	step_raise(&packet->packet);
}

static bool paper_original(struct rules_slot *slot, struct rules_packet *packet)
{
	if (slot->slot.bitmap & packet->packet.bitmap)
		return false;
	slot_add(slot, packet);
	if (slot->slot.bitmap != atp_children(slot->slot.fan_in))
		return false;
	slot_leaves(slot, packet);
	return true;
}

/* Its bit is set: forwarded as it is, and the sum in the slot is lost. */
static bool paper_resend(struct rules_slot *slot, struct rules_packet *packet)
{
	if (!(slot->slot.bitmap & packet->packet.bitmap)) {
		slot_add(slot, packet);
		slot_leaves(slot, packet);
	}
	slot->slot.is_used = 0;
	return true;
}

static bool paper_step(const struct step_limits *limits, struct rules_slot *slot, struct rules_packet *packet,
                       bool is_child, uint64_t now_ns)
{
	bool is_hit = step_same_number(&slot->slot, &packet->packet);

	(void)limits;
	if (packet->packet.flags & ATP_BYPASS)
		return true;
	if (!is_child) { /* a resend at the second level is forwarded, and frees the slot */
		if (is_hit)
			slot->slot.is_used = 0;
		return true;
	}
	if (packet->packet.fan_in[packet->packet.hop] == 1) {
		step_raise(&packet->packet);
		return true;
	}
	if (slot->slot.is_used && !is_hit) {
		packet->packet.flags |= ATP_RESEND;
		return true;
	}
	if (!slot->slot.is_used) { /* a resend claims, too */
		step_claim(&slot->slot, &packet->packet, now_ns);
		memcpy(slot->words, packet->words, sizeof(slot->words));
		return false;
	}
	return packet->packet.flags & ATP_RESEND ? paper_resend(slot, packet) : paper_original(slot, packet);
}

static uint64_t claims(const struct shape *shape, const struct atp_packet *packet, uint16_t group)
{
	if (packet->hop == 0)
		return group == packet->group ? packet->bitmap : 0;
	return packet->bitmap >> group & 1 ? atp_children(shape_group(shape, packet->owner, group).fan_in) : 0;
}

struct sets {
	bool is_all, has_new, overlaps;
};

static struct sets sets_of(const struct element *element, const struct shape *shape, const struct atp_packet *packet)
{
	struct sets sets = {true, false, false};

	for (uint16_t group = 0; group < shape_groups(shape); group++) {
		uint64_t here = claims(shape, packet, group);
		sets.is_all &= here == atp_children(shape_group(shape, packet->owner, group).fan_in);
		sets.has_new |= (here & ~element->held[group]) != 0;
		sets.overlaps |= (here & element->held[group]) != 0;
	}
	return sets;
}

static void take(struct element *element, const struct shape *shape, const struct rules_packet *packet, bool replaces)
{
	if (replaces)
		memset(element->words, 0, sizeof(packet->words));
	add_words(element->words, packet->words);
	for (uint16_t group = 0; group < shape_groups(shape); group++)
		element->held[group] |= claims(shape, &packet->packet, group);
}

static void take_if_new(struct element *element, const struct shape *shape, const struct rules_packet *packet)
{
	struct sets sets = sets_of(element, shape, &packet->packet);
	if (sets.is_all || sets.has_new)
		take(element, shape, packet, sets.is_all);
}

static void take_if_disjoint(struct element *element, const struct shape *shape, const struct rules_packet *packet)
{
	struct sets sets = sets_of(element, shape, &packet->packet);
	if (sets.is_all || !sets.overlaps)
		take(element, shape, packet, sets.is_all);
}

const struct rules rules_paper = {"paper: partial sums added if a bit is new", paper_step, take_if_new,
                                  .knows_no_age = true};
const struct rules rules_paper_disjoint = {"paper: overlapping partial sums dropped", paper_step, take_if_disjoint,
                                           .knows_no_age = true};

/* ---- one rule less ---- */

static bool s1_step(const struct step_limits *limits, struct rules_slot *slot, struct rules_packet *packet,
                    bool is_child, uint64_t now_ns)
{
	if (!is_child && !(packet->packet.flags & ATP_BYPASS)) {
		packet->packet.bitmap = UINT64_C(1) << packet->packet.group;
		packet->packet.group = 0;
		packet->packet.fan_in[0] = 0;
		packet->packet.hop = 1;
	}
	return product_step(limits, slot, packet, true, now_ns);
}

static bool s4_step(const struct step_limits *limits, struct rules_slot *slot, struct rules_packet *packet,
                    bool is_child, uint64_t now_ns)
{
	bool is_mine = is_child && !(packet->packet.flags & (ATP_BYPASS | ATP_RESEND)) && is_repeated(slot, packet);
	if (is_mine)
		slot_add(slot, packet);
	return product_step(limits, slot, packet, is_child, now_ns);
}

static bool s5_step(const struct step_limits *limits, struct rules_slot *slot, struct rules_packet *packet,
                    bool is_child, uint64_t now_ns)
{
	bool is_mine = is_child && (packet->packet.flags & ATP_RESEND) && !(packet->packet.flags & ATP_BYPASS) &&
	    is_repeated(slot, packet);
	if (is_mine)
		slot_add(slot, packet);
	return product_step(limits, slot, packet, is_child, now_ns);
}

const struct rules rules_s1_off = {"S1 off", s1_step, product_take, false, false, false};
const struct rules rules_s3_off = {"S3 off", product_step, product_take, false, false, true};
const struct rules rules_s4_off = {"S4 off", s4_step, product_take, false, false, false};
const struct rules rules_s5_off = {"S5 off", s5_step, product_take, false, false, false};
const struct rules rules_o3_off = {"O3 off", product_step, take_if_new, false, false, false};
const struct rules rules_w2_off = {"W2 off", product_step, product_take, false, true, false};
const struct rules rules_i1_off = {"I1 off", product_step, product_take, true, false, false};
