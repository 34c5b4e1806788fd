#include "switch/server/impair.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define REORDER_NS (5 * NS_PER_MS)
#define HELD_MOST 65536u

struct impair_held {
	uint64_t due_ns, order;
	union trains_address from;
	uint32_t length;
	bool is_marked;
	uint8_t bytes[];
};

void switch_impair_init(struct impair *impair, const struct impair_config *config)
{
	*impair = (struct impair){.config = *config};
	rng_init(&impair->rng, config->seed);
}

void switch_impair_fini(struct impair *impair)
{
	for (uint32_t i = 0; i < impair->held_count; i++)
		free(impair->held[i]);
	free(impair->held);
	*impair = (struct impair){0};
}

bool switch_impair_is_active(const struct impair *impair)
{
	const struct impair_config *config = &impair->config;

	return config->loss > 0 || config->repeat > 0 || config->reorder > 0 || config->corrupt > 0 || config->delay_ns > 0;
}

static bool chance(struct impair *impair, double probability)
{
	return probability > 0 && rng_unit(&impair->rng) < probability;
}

bool switch_impair_loses(struct impair *impair)
{
	bool is_lost = chance(impair, impair->config.loss);

	impair->lost += is_lost;
	return is_lost;
}

/* ---- packets that are held back ---- */

static bool before(const struct impair_held *a, const struct impair_held *b)
{
	return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->order < b->order;
}

static void swap(struct impair *impair, uint32_t a, uint32_t b)
{
	struct impair_held *held = impair->held[a];

	impair->held[a] = impair->held[b];
	impair->held[b] = held;
}

/* False: there is no room. */
static bool push(struct impair *impair, struct impair_held *held)
{
	if (impair->held_count == impair->held_room) {
		uint32_t room = impair->held_room ? 2 * impair->held_room : 64;
		struct impair_held **more =
			room <= HELD_MOST ? realloc(impair->held, room * sizeof(struct impair_held *)) : NULL;
		if (!more)
			return false;
		impair->held = more;
		impair->held_room = room;
	}
	uint32_t at = impair->held_count++;
	impair->held[at] = held;
	for (; at > 0 && before(impair->held[at], impair->held[(at - 1) / 2]); at = (at - 1) / 2)
		swap(impair, at, (at - 1) / 2);
	return true;
}

static struct impair_held *pop(struct impair *impair)
{
	struct impair_held *first = impair->held[0];
	uint32_t least = 0;

	impair->held[0] = impair->held[--impair->held_count];
	for (uint32_t at = 0;; at = least) {
		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < impair->held_count; child++)
			if (before(impair->held[child], impair->held[least]))
				least = child;
		if (least == at)
			return first;
		swap(impair, at, least);
	}
}

static void hold(struct impair *impair, const struct trains_datagram *datagram, uint64_t due_ns)
{
	struct impair_held *held = malloc(sizeof(*held) + datagram->length);

	if (!held)
		return; /* it is lost */
	held->due_ns = due_ns;
	held->order = impair->order++;
	held->from = *datagram->from;
	held->length = datagram->length;
	held->is_marked = datagram->is_marked;
	memcpy(held->bytes, datagram->bytes, datagram->length);
	if (!push(impair, held))
		free(held);
}

uint64_t switch_impair_due_ns(const struct impair *impair)
{
	return impair->held_count > 0 ? impair->held[0]->due_ns : UINT64_MAX;
}

void switch_impair_release(struct impair *impair, uint64_t now_ns, switch_impair_pass_fn *pass, void *context)
{
	while (switch_impair_due_ns(impair) <= now_ns) {
		struct impair_held *held = pop(impair);
		pass(context, &(struct trains_datagram){.bytes = held->bytes, .length = held->length, .from = &held->from,
		                                     .is_marked = held->is_marked});
		free(held);
	}
}

/* ---- arrivals ---- */

static void spoil(struct impair *impair, const struct trains_datagram *datagram)
{
	uint64_t bit = rng_below(&impair->rng, 8 * (uint64_t)datagram->length);

	datagram->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	impair->corrupted++;
}

static uint64_t delay_of(struct impair *impair)
{
	uint64_t delay = impair->config.delay_ns;

	if (chance(impair, impair->config.reorder)) {
		impair->reordered++;
		delay += rng_below(&impair->rng, REORDER_NS);
	}
	return delay;
}

void switch_impair_arrival(struct impair *impair, const struct trains_datagram *datagram, uint64_t now_ns,
                           switch_impair_pass_fn *pass, void *context)
{
	uint32_t copies = chance(impair, impair->config.repeat) ? 2 : 1;

	if (switch_impair_loses(impair))
		return;
	impair->repeated += copies - 1;
	if (chance(impair, impair->config.corrupt))
		spoil(impair, datagram);
	/* A copy that passes at once is changed on its way: the other copies are made before. */
	for (uint32_t i = 1; i < copies; i++)
		hold(impair, datagram, now_ns + delay_of(impair));
	uint64_t delay = delay_of(impair);
	if (delay > 0)
		hold(impair, datagram, now_ns + delay);
	else
		pass(context, datagram);
}
