/*
 * switch_sum.c - the sums of a flow: their elements are offered in order, and results take their places.
 */
#include <assert.h>
#include <string.h>

#include "switch/worker/link_state.h"

/* ---- elements ---- */

/* Where an element of a sum is in its caller's memory. */
struct place {
	const uint32_t *in;
	uint32_t *out;
	uint16_t count;
};

static struct place place_of(const struct switch_flow *flow, const struct switch_sum *sum, uint32_t element)
{
	const struct switch_piece *piece = sum->pieces + sum->piece_count - 1;

	while (piece->first > element)
		piece--;
	uint64_t at = (uint64_t)(element - piece->first) * flow->words, left = piece->words - at;
	return (struct place){
		.in = (const uint32_t *)piece->in + at,
		.out = (uint32_t *)piece->out + at,
		.count = (uint16_t)(left < flow->words ? left : flow->words),
	};
}

/* Results are of the current generation. */
static struct switch_sum *sum_of(const struct switch_flow *flow, uint32_t sequence)
{
	struct switch_sum *sum = flow->first;

	while (sum && (sum->generation != flow->stream.current->number || sequence - sum->first >= sum->elements))
		sum = sum->next;
	return sum;
}

/* Sums may end in another order than they began, where the last elements of one are late. */
static void take_out(struct switch_flow *flow, struct switch_sum *sum)
{
	struct switch_sum **at = &flow->first, *before = NULL;

	while (*at != sum) {
		before = *at;
		at = &(*at)->next;
	}
	*at = sum->next;
	if (flow->last == sum)
		flow->last = before;
	if (flow->offering == sum)
		flow->offering = sum->next;
}

static void end_sum(struct switch_flow *flow, struct switch_sum *sum)
{
	for (uint32_t i = 0; i < sum->piece_count; i++)
		flow->summed_words += sum->pieces[i].words;
	flow->sums++;
	take_out(flow, sum);
	switch_link_end(flow->link, sum, ESP_OK);
	succession_busy(&flow->stream, flow->first != NULL, loop_now(&flow->link->loop));
}

void switch_sum_end_all(struct switch_flow *flow)
{
	while (flow->first) {
		struct switch_sum *sum = flow->first;
		take_out(flow, sum);
		switch_link_end(flow->link, sum, flow->failed);
	}
}

void switch_sum_append(struct switch_flow *flow, struct switch_sum *sum)
{
	sum->next = NULL;
	if (flow->last)
		flow->last->next = sum;
	else
		flow->first = sum;
	flow->last = sum;
	if (!flow->offering)
		flow->offering = sum;
}

/* The result of an element: it takes the place of the contribution, which is not needed any more. */
void switch_sum_receive(struct switch_flow *flow, uint32_t sequence, const void *words)
{
	struct switch_sum *sum = sum_of(flow, sequence);

	assert(sum && sum->missing > 0);
	struct place place = place_of(flow, sum, sequence - sum->first);
	memcpy(place.out, words, 4 * (size_t)place.count);
	if (--sum->missing == 0)
		end_sum(flow, sum);
}

void switch_sum_own_complete(struct switch_flow *flow, uint32_t sequence)
{
	const uint32_t *words = owner_sum(flow->stream.current->owner, sequence);

	assert(words);
	succession_own_complete(&flow->stream, sequence);
	switch_sum_receive(flow, sequence, words);
}

/* ---- offering ---- */

/* False: the owner has no room now. */
static bool offer_own(struct switch_flow *flow, const struct sender_element *element, const uint32_t *words)
{
	struct owner_part part = {.words = words, .call = element->call, .count = element->count, .kind = element->kind};
	struct generation *at = flow->stream.current;
	uint32_t expected = sender_end(at->sender), sequence;
	enum owner_event event = owner_own(at->owner, expected, &part);

	if (event == OWNER_FULL)
		return false;
	bool taken = sender_offer(at->sender, element, &sequence);
	assert(taken && sequence == expected);
	(void)taken;
	flow->offering->offered++;
	if (event == OWNER_COMPLETED)
		switch_sum_own_complete(flow, sequence);
	return true;
}

/* The next element; false: the window, or the owner, has no room. Elements go to owners in turn. */
static bool offer(struct switch_flow *flow)
{
	struct switch_sum *sum = flow->offering;

	if (!succession_reach(&flow->stream, sum->generation))
		return false;
	struct sender *sender = flow->stream.current->sender;
	uint32_t expected = sender_end(sender), sequence;
	assert(expected == sum->first + sum->offered);
	if (expected - sender_begin(sender) >= SWITCH_FLOW_WINDOW)
		return false;
	struct place place = place_of(flow, sum, sum->offered);
	struct sender_element element = {.words = place.in, .call = sum->call, .count = place.count,
	                                 .owner = (uint16_t)(expected % flow->members), .kind = (uint8_t)sum->kind};
	if (element.owner == flow->self)
		return offer_own(flow, &element, place.in);
	bool taken = sender_offer(sender, &element, &sequence);
	assert(taken && sequence == expected);
	(void)taken;
	sum->offered++;
	return true;
}

void switch_sum_offer_all(struct switch_flow *flow)
{
	while (flow->offering) {
		struct switch_sum *sum = flow->offering;
		bool goes_on = offer(flow);
		if (!goes_on)
			return;
		/* It may have ended by that, and be gone. */
		if (flow->offering == sum && sum->offered == sum->elements)
			flow->offering = sum->next;
	}
}
