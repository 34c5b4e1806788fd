#include "switch/endpoint/sender_state.h"

#include <assert.h>
#include <stdlib.h>

#define BYES_TO_ALL 4u    /* of so many results that come again, one is answered through the switch */
#define OVERHEAD_BYTES (ATP_HEADER_BYTES + 28u) /* beside the words of a packet: IPv4, UDP and the header */

static const uint8_t number_moves[] = {
	[NUMBER_ACKNOWLEDGED] = 1u << NUMBER_OWN | 1u << NUMBER_UNSENT,
	[NUMBER_OWN] = 1u << NUMBER_ACKNOWLEDGED,
	[NUMBER_UNSENT] = 1u << NUMBER_SENT | 1u << NUMBER_BYPASSING,
	[NUMBER_SENT] = 1u << NUMBER_RESENT | 1u << NUMBER_BYPASSING | 1u << NUMBER_ACKNOWLEDGED,
	[NUMBER_RESENT] = 1u << NUMBER_BYPASSING | 1u << NUMBER_ACKNOWLEDGED,
	[NUMBER_BYPASSING] = 1u << NUMBER_BYPASSING | 1u << NUMBER_RETURNED | 1u << NUMBER_ACKNOWLEDGED,
	[NUMBER_RETURNED] = 1u << NUMBER_BYPASSING | 1u << NUMBER_ACKNOWLEDGED,
};

/* ---- life ---- */

enum esp_status sender_open(const struct sender_config *config, struct sender **out, struct error *err)
{
	struct sender *sender = calloc(1, sizeof(*sender));

	assert(config->window >= 1 && (config->window & (config->window - 1)) == 0 &&
	       config->self < shape_members(config->shape));
	if (sender) {
		sender->config = *config;
		sender->numbers = calloc(config->window, sizeof(*sender->numbers));
		sender->lineups = calloc(config->owners, sizeof(*sender->lineups));
	}
	if (!sender || !sender->numbers || !sender->lineups) {
		sender_close(sender);
		return error_set(err, ESP_ENOMEM, "no memory for a window of %u numbers", config->window);
	}
	for (uint32_t owner = 0; owner < config->owners; owner++)
		sender->lineups[owner] = (struct lineup){SENDER_NONE, SENDER_NONE, false};
	window_init(&sender->window, &config->congestion);
	patience_init(&sender->patience, config->rto_floor_ns, config->rto_cap_ns);
	sender->uses_switch = true;
	sender->due_ns = UINT64_MAX;
	*out = sender;
	return ESP_OK;
}

void sender_close(struct sender *sender)
{
	if (!sender)
		return;
	free(sender->numbers);
	free(sender->lineups);
	free(sender);
}

/* ---- numbers ---- */

void sender_number_enter(struct number *number, enum number_state to)
{
	assert(number_moves[number->state] & 1u << to);
	number->state = (uint8_t)to;
}

uint32_t sender_packet_bytes(const struct number *number)
{
	return OVERHEAD_BYTES + 4u * number->element.count;
}

void sender_skip_own(struct sender *sender)
{
	while (sender->next < sender->end && sender_number(sender, sender->next)->state != NUMBER_UNSENT)
		sender->next++;
}

bool sender_offer(struct sender *sender, const struct sender_element *element, uint32_t *out_sequence)
{
	bool is_own = element->owner == sender->config.self;

	assert(element->owner < sender->config.owners && sender->end < SENDER_NUMBERS && element->count >= 1 &&
	       (is_own || element->words));
	if (sender->end - sender->begin >= sender->config.window)
		return false;
	struct number *number = sender_number(sender, sender->end);
	sender_number_enter(number, is_own ? NUMBER_OWN : NUMBER_UNSENT);
	number->element = *element;
	number->attempts = number->higher = 0;
	number->is_overdue = false;
	*out_sequence = sender->end++;
	sender_skip_own(sender);
	return true;
}

static void advance(struct sender *sender)
{
	while (sender->begin < sender->end && sender_number(sender, sender->begin)->state == NUMBER_ACKNOWLEDGED)
		sender->begin++;
	if (sender->next < sender->begin)
		sender->next = sender->begin;
	sender_skip_own(sender);
}

void sender_own_complete(struct sender *sender, uint32_t sequence)
{
	assert(sequence >= sender->begin && sequence < sender->end);
	sender_number_enter(sender_number(sender, sequence), NUMBER_ACKNOWLEDGED);
	advance(sender);
}

/* ---- in flight, by owner ---- */

void sender_lineup_append(struct sender *sender, uint32_t sequence)
{
	struct number *number = sender_number(sender, sequence);
	struct lineup *lineup = &sender->lineups[number->element.owner];

	number->before = lineup->last;
	number->after = SENDER_NONE;
	if (lineup->last != SENDER_NONE)
		sender_number(sender, lineup->last)->after = sequence;
	else
		lineup->first = sequence;
	lineup->last = sequence;
}

static void lineup_remove(struct sender *sender, const struct number *number)
{
	struct lineup *lineup = &sender->lineups[number->element.owner];

	if (number->before != SENDER_NONE)
		sender_number(sender, number->before)->after = number->after;
	else
		lineup->first = number->after;
	if (number->after != SENDER_NONE)
		sender_number(sender, number->after)->before = number->before;
	else
		lineup->last = number->before;
}

/*
 * W1: each number by itself, with the results of its own owner: results of different owners have no order. A number
 * that was sent again is lost again if numbers come back that were sent after that.
 */
static void count_higher(struct sender *sender, uint16_t owner, uint32_t sequence, uint64_t sent_ns)
{
	uint32_t at = sender->lineups[owner].first;

	while (at != SENDER_NONE && at < sequence) {
		struct number *number = sender_number(sender, at);
		if ((number->state == NUMBER_SENT || number->sent_ns < sent_ns) && ++number->higher == SENDER_HIGHER_RESULTS)
			number->is_overdue = sender->has_overdue = true;
		at = number->after;
	}
}

/* ---- time ---- */

uint64_t sender_rto_ns(const struct sender *sender)
{
	return patience_rto_ns(&sender->patience);
}

/*
 * Only of numbers that every member sent once: else a member's time-out would lengthen those of all others, and theirs
 * its own.
 */
static void measure(struct sender *sender, const struct number *number, bool is_repaired, uint64_t now_ns)
{
	if (number->attempts == 1 && !is_repaired)
		patience_measure(&sender->patience, now_ns > number->sent_ns ? now_ns - number->sent_ns : 1);
	else
		patience_not_measured(&sender->patience);
}

void sender_expect(struct sender *sender, uint64_t round_trip_ns)
{
	patience_expect(&sender->patience, round_trip_ns);
}

/* ---- results ---- */

static bool is_contents(const struct sender_element *element, const struct atp_packet *packet)
{
	return element->call == packet->call && element->count == packet->words && element->owner == packet->owner &&
	    element->scale == packet->scale &&
	       element->kind == packet->kind;
}

static void want_bye(struct sender *sender, uint16_t owner)
{
	if (owner == sender->config.self || sender->lineups[owner].wants_bye)
		return;
	sender->lineups[owner].wants_bye = true;
	sender->byes++;
}

static void acknowledge(struct sender *sender, const struct atp_packet *packet, uint64_t now_ns)
{
	struct number *number = sender_number(sender, packet->sequence);
	bool was_used = sender->in_flight_bytes >= sender->window.bytes / 2;

	measure(sender, number, (packet->flags & ATP_RESEND) != 0, now_ns);
	window_result(&sender->window, packet->sequence, sender->next, sender_packet_bytes(number),
	              (packet->flags & ATP_MARK) != 0, was_used);
	sender->in_flight_bytes -= sender_packet_bytes(number);
	lineup_remove(sender, number);
	sender_number_enter(number, NUMBER_ACKNOWLEDGED);
	count_higher(sender, packet->owner, packet->sequence, number->sent_ns);
	patience_result(&sender->patience, now_ns);
	if (sender->has_waiting)
		sender->due_ns = 0;
	advance(sender);
}

static enum sender_event result_event(struct sender *sender, const struct atp_packet *packet, const void *words,
                                      uint64_t now_ns)
{
	if (packet->type != ATP_RESULT || packet->flow != sender->config.flow || packet->sequence >= sender->next ||
	    packet->words > sender->config.keys->words_max || packet->owner >= sender->config.owners ||
	    tag_of_result(sender->config.keys, packet, words) != packet->tag)
		return SENDER_REFUSED;
	if (packet->sequence < sender->begin || !sender_is_in_flight(sender_number(sender, packet->sequence)))
		return SENDER_REPEATED;
	if (!is_contents(&sender_number(sender, packet->sequence)->element, packet))
		return SENDER_REFUSED;
	acknowledge(sender, packet, now_ns);
	return SENDER_NEW;
}

enum sender_event sender_result(struct sender *sender, const struct atp_packet *packet, const void *words,
                                uint64_t now_ns)
{
	enum sender_event event = result_event(sender, packet, words, now_ns);

	sender->counters.results += event == SENDER_NEW;
	sender->counters.repeated += event == SENDER_REPEATED;
	sender->counters.refused += event == SENDER_REFUSED;
	if (event == SENDER_REPEATED) {
		want_bye(sender, packet->owner);
		sender->wants_bye_to_all |= sender->counters.repeated % BYES_TO_ALL == 0;
	}
	return event;
}

/* ---- the switch, and the end ---- */

void sender_use_switch(struct sender *sender, bool use)
{
	if (sender->uses_switch && !use)
		for (uint32_t at = sender->begin; at < sender->next; at++) {
			struct number *number = sender_number(sender, at);
			if (number->state == NUMBER_SENT || number->state == NUMBER_RESENT || number->state == NUMBER_RETURNED)
				number->is_overdue = sender->has_overdue = true;
		}
	sender->uses_switch = use;
}

void sender_ask(struct sender *sender, const struct atp_packet *packet)
{
	uint32_t sequence = packet->sequence;

	if (packet->type != ATP_ASK || packet->flow != sender->config.flow || sequence < sender->begin ||
	    sequence >= sender->begin + sender->config.window || packet->tag != tag_of_ask(sender->config.keys, packet))
		return;
	sender->counters.asks++;
	if (sequence >= sender->next && sequence >= sender->asked_end)
		sender->asked_end = sequence + 1;
	if (sequence >= sender->next || !sender_is_in_flight(sender_number(sender, sequence)))
		return;
	sender_number(sender, sequence)->is_overdue = sender->has_overdue = true;
}

void sender_finish(struct sender *sender)
{
	for (uint32_t owner = 0; owner < sender->config.owners; owner++)
		want_bye(sender, (uint16_t)owner);
	sender->wants_bye_to_all = true;
}

uint32_t sender_begin(const struct sender *sender)
{
	return sender->begin;
}

uint32_t sender_end(const struct sender *sender)
{
	return sender->end;
}

/* ---- for people ---- */

const struct sender_counters *sender_counters(const struct sender *sender)
{
	return &sender->counters;
}

void sender_counters_add(struct sender_counters *to, const struct sender_counters *more)
{
	to->originals += more->originals;
	to->direct += more->direct;
	to->resends += more->resends;
	to->bypasses += more->bypasses;
	to->fast += more->fast;
	to->timeouts += more->timeouts;
	to->results += more->results;
	to->repeated += more->repeated;
	to->refused += more->refused;
	to->asks += more->asks;
}

const struct window *sender_window(const struct sender *sender)
{
	return &sender->window;
}
