#include "switch/endpoint/succession.h"

#include <assert.h>
#include <string.h>

enum esp_status succession_open(struct succession *succession, const struct generation_config *config, uint32_t limit,
                                uint64_t now_ns, struct error *err)
{
	assert(limit >= 1 && limit <= SENDER_NUMBERS);
	*succession = (struct succession){.config = *config, .limit = limit};
	return generation_open(config, 0, now_ns, &succession->current, err);
}

/* ---- for people ---- */

static void add_counters(const struct generation *generation, struct sender_counters *sent,
                         struct owner_counters *owned)
{
	if (generation && generation->sender)
		sender_counters_add(sent, sender_counters(generation->sender));
	if (generation && generation->owner)
		owner_counters_add(owned, owner_counters(generation->owner));
}

struct sender_counters succession_sent(const struct succession *succession)
{
	struct sender_counters sent = succession->sent;
	struct owner_counters owned = {{0}, 0, 0, 0};

	add_counters(succession->former, &sent, &owned);
	add_counters(succession->current, &sent, &owned);
	add_counters(succession->next, &sent, &owned);
	return sent;
}

struct owner_counters succession_owned(const struct succession *succession)
{
	struct sender_counters sent = {0};
	struct owner_counters owned = succession->owned;

	add_counters(succession->former, &sent, &owned);
	add_counters(succession->current, &sent, &owned);
	add_counters(succession->next, &sent, &owned);
	return owned;
}

/* ---- life ---- */

static void close_one(struct succession *succession, struct generation **which)
{
	add_counters(*which, &succession->sent, &succession->owned);
	generation_close(*which);
	*which = NULL;
}

void succession_close(struct succession *succession)
{
	close_one(succession, &succession->former);
	close_one(succession, &succession->current);
	close_one(succession, &succession->next);
	explicit_bzero(succession->config.secret, sizeof(succession->config.secret));
}

/* ---- numbers ---- */

uint32_t succession_left(const struct succession *succession)
{
	return succession->limit - succession->numbered;
}

struct succession_number succession_number(struct succession *succession, uint32_t elements)
{
	assert(elements >= 1 && elements <= succession->limit);
	if (elements > succession_left(succession)) {
		succession->counting++;
		succession->numbered = 0;
	}
	struct succession_number first = {succession->counting, succession->numbered};
	succession->numbered += elements;
	return first;
}

bool succession_is_settled(const struct succession *succession)
{
	return succession->counting == succession->current->number;
}

/* ---- generations ---- */

enum esp_status succession_prepare(struct succession *succession, uint64_t now_ns, struct error *err)
{
	if (succession->next)
		return ESP_OK;
	enum esp_status status = generation_open(&succession->config, succession->current->number + 1, now_ns,
	                                         &succession->next, err);
	if (status == ESP_OK)
		membership_busy(&succession->next->membership, succession->current->membership.is_busy, now_ns);
	return status;
}

/* G2 */
static bool has_all_results(const struct generation *generation)
{
	return sender_begin(generation->sender) == sender_end(generation->sender);
}

bool succession_reach(struct succession *succession, uint32_t generation)
{
	uint32_t at = succession->current->number;

	/* Each generation has numbers, and they are offered in order. */
	assert(generation == at || generation == at + 1);
	if (generation == at)
		return true;
	if (!succession->next || !has_all_results(succession->current))
		return false;
	assert(!succession->former); /* G3: the current one has had results */
	succession->former = succession->current;
	succession->current = succession->next;
	succession->next = NULL;
	/* It says no hellos any more: its results go straight to members that ask. */
	owner_use_switch(succession->former->owner, false);
	return true;
}

bool succession_lacks(const struct succession *succession, uint32_t generation)
{
	return generation > succession->current->number && !succession->next && has_all_results(succession->current);
}

struct generation *succession_find(const struct succession *succession, uint64_t flow)
{
	struct generation *const all[] = {succession->current, succession->former, succession->next};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (all[i] && all[i]->flow == flow)
			return all[i];
	return NULL;
}

uint32_t succession_owners(const struct succession *succession)
{
	return (succession->former != NULL) + (succession->current != NULL) + (succession->next != NULL);
}

/* ---- packets ---- */

enum generation_event succession_packet(struct succession *succession, struct generation *at,
                                        const struct atp_packet *packet, const void *words, uint64_t now_ns)
{
	enum generation_event event = generation_packet(at, packet, words, now_ns);

	/* The former has all results, and the next one lacks the own parts. */
	assert(event == GENERATION_NOTHING || at == succession->current);
	if (at == succession->former)
		owner_use_switch(at->owner, false); /* a late welcome */
	if (event == GENERATION_RESULT)
		close_one(succession, &succession->former); /* G3 */
	return event;
}

void succession_own_complete(struct succession *succession, uint32_t sequence)
{
	sender_own_complete(succession->current->sender, sequence);
	close_one(succession, &succession->former); /* G3 */
}

void succession_busy(struct succession *succession, bool is_busy, uint64_t now_ns)
{
	membership_busy(&succession->current->membership, is_busy, now_ns);
	if (succession->next)
		membership_busy(&succession->next->membership, is_busy, now_ns);
}

bool succession_greet(struct succession *succession, uint64_t now_ns, struct endpoint_out *out)
{
	return generation_greet(succession->current, now_ns, out) ||
	       (succession->next && generation_greet(succession->next, now_ns, out));
}

bool succession_next(struct succession *succession, uint64_t now_ns, struct endpoint_out *out)
{
	return generation_next(succession->current, now_ns, out) ||
	       (succession->former && owner_next(succession->former->owner, out)) ||
	       (succession->next && generation_next(succession->next, now_ns, out));
}

uint64_t succession_wake_ns(const struct succession *succession)
{
	uint64_t wake = generation_wake_ns(succession->current);
	uint64_t next = succession->next ? generation_wake_ns(succession->next) : UINT64_MAX;

	return next < wake ? next : wake;
}
