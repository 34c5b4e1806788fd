#include "switch/endpoint/sender.h"

#include <assert.h>
#include <stdlib.h>

#define HIGHER_RESULTS 3u /* of the same owner: then a number counts as lost */
#define OVERHEAD_BYTES (ATP_HEADER_BYTES + 28u) /* beside the words of a packet: IPv4, UDP and the header */
#define NONE UINT32_MAX

enum number_state {
	NUMBER_ACKNOWLEDGED, /* its result is here; the place is free for a later number */
	NUMBER_OWN,          /* this member owns it */
	NUMBER_UNSENT,
	NUMBER_SENT,      /* an original, through the switch */
	NUMBER_RESENT,    /* a resend, through the switch    */
	NUMBER_BYPASSING, /* straight to the owner           */
};

static const uint8_t number_moves[] = {
	[NUMBER_ACKNOWLEDGED] = 1u << NUMBER_OWN | 1u << NUMBER_UNSENT,
	[NUMBER_OWN] = 1u << NUMBER_ACKNOWLEDGED,
	[NUMBER_UNSENT] = 1u << NUMBER_SENT | 1u << NUMBER_BYPASSING,
	[NUMBER_SENT] = 1u << NUMBER_RESENT | 1u << NUMBER_BYPASSING | 1u << NUMBER_ACKNOWLEDGED,
	[NUMBER_RESENT] = 1u << NUMBER_BYPASSING | 1u << NUMBER_ACKNOWLEDGED,
	[NUMBER_BYPASSING] = 1u << NUMBER_BYPASSING | 1u << NUMBER_ACKNOWLEDGED,
};

struct number {
	struct sender_element element;
	uint64_t sent_ns, due_ns;
	uint64_t tag;
	uint32_t before, after; /* in flight to the same owner, in order: numbers, or NONE */
	uint8_t state;          /* enum number_state */
	uint8_t attempts;
	uint8_t higher;  /* results of higher numbers of the same owner */
	bool is_overdue; /* repaired at the next occasion */
};

/* Numbers in flight to one owner. */
struct lineup {
	uint32_t first, last; /* numbers; NONE: empty */
	bool wants_bye;
};

struct sender {
	struct sender_config config;
	struct number *numbers; /* of a number: at its remainder */
	struct lineup *lineups; /* by owner */
	struct window window;
	uint32_t begin, next, end; /* lowest unacknowledged, lowest unsent, not yet offered */
	uint32_t asked_end;        /* numbers below were asked for: no slot waits for this member's */
	uint64_t in_flight_bytes;
	struct patience patience;
	uint64_t due_ns;             /* no number in flight is due before */
	uint64_t least_due_ns;       /* of the numbers that a repair has passed */
	uint32_t repair_at;          /* where the repair under way goes on */
	uint32_t byes;               /* owners that want one */
	bool is_repairing, has_overdue, uses_switch;
	bool has_waiting; /* numbers whose time is over, and that wait for the next result or round */
	struct sender_counters counters;
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
		sender->lineups[owner] = (struct lineup){NONE, NONE, false};
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

static struct number *number_of(const struct sender *sender, uint32_t sequence)
{
	return &sender->numbers[sequence & (sender->config.window - 1)];
}

static void number_enter(struct number *number, enum number_state to)
{
	assert(number_moves[number->state] & 1u << to);
	number->state = (uint8_t)to;
}

static bool is_in_flight(const struct number *number)
{
	return number->state >= NUMBER_SENT;
}

static uint32_t packet_bytes(const struct number *number)
{
	return OVERHEAD_BYTES + 4u * number->element.count;
}

/* Own numbers are not sent: next is a number to send, or the end. */
static void skip_own(struct sender *sender)
{
	while (sender->next < sender->end && number_of(sender, sender->next)->state != NUMBER_UNSENT)
		sender->next++;
}

bool sender_offer(struct sender *sender, const struct sender_element *element, uint32_t *out_sequence)
{
	bool is_own = element->owner == sender->config.self;

	assert(element->owner < sender->config.owners && sender->end < SENDER_NUMBERS && element->count >= 1 &&
	       (is_own || element->words));
	if (sender->end - sender->begin >= sender->config.window)
		return false;
	struct number *number = number_of(sender, sender->end);
	number_enter(number, is_own ? NUMBER_OWN : NUMBER_UNSENT);
	number->element = *element;
	number->attempts = number->higher = 0;
	number->is_overdue = false;
	*out_sequence = sender->end++;
	skip_own(sender);
	return true;
}

static void advance(struct sender *sender)
{
	while (sender->begin < sender->end && number_of(sender, sender->begin)->state == NUMBER_ACKNOWLEDGED)
		sender->begin++;
	if (sender->next < sender->begin)
		sender->next = sender->begin;
	skip_own(sender);
}

void sender_own_complete(struct sender *sender, uint32_t sequence)
{
	assert(sequence >= sender->begin && sequence < sender->end);
	number_enter(number_of(sender, sequence), NUMBER_ACKNOWLEDGED);
	advance(sender);
}

/* ---- in flight, by owner ---- */

static void lineup_append(struct sender *sender, uint32_t sequence)
{
	struct number *number = number_of(sender, sequence);
	struct lineup *lineup = &sender->lineups[number->element.owner];

	number->before = lineup->last;
	number->after = NONE;
	if (lineup->last != NONE)
		number_of(sender, lineup->last)->after = sequence;
	else
		lineup->first = sequence;
	lineup->last = sequence;
}

static void lineup_remove(struct sender *sender, const struct number *number)
{
	struct lineup *lineup = &sender->lineups[number->element.owner];

	if (number->before != NONE)
		number_of(sender, number->before)->after = number->after;
	else
		lineup->first = number->after;
	if (number->after != NONE)
		number_of(sender, number->after)->before = number->before;
	else
		lineup->last = number->before;
}

/* W1: each number by itself, with the results of its own owner: results of different owners have no order. */
static void count_higher(struct sender *sender, uint16_t owner, uint32_t sequence)
{
	uint32_t at = sender->lineups[owner].first;

	while (at != NONE && at < sequence) {
		struct number *number = number_of(sender, at);
		if (number->state == NUMBER_SENT && ++number->higher == HIGHER_RESULTS)
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
}

/* Round trips may have become longer since it was sent. */
static bool is_late(const struct sender *sender, struct number *number, uint64_t now_ns)
{
	uint64_t due = number->sent_ns + patience_after_ns(&sender->patience, number->attempts);

	if (number->due_ns <= now_ns && due > now_ns)
		number->due_ns = due;
	return number->due_ns <= now_ns;
}

/* ---- sending ---- */

static void write_header(const struct sender *sender, uint32_t sequence, const struct number *number,
                         struct atp_packet *out)
{
	const struct sender_config *config = &sender->config;
	const struct sender_element *element = &number->element;
	struct shape_place place = shape_place(config->shape, element->owner, config->self);

	*out = (struct atp_packet){
		.type = ATP_GRADIENT, .scale = element->scale, .kind = element->kind,
		.fan_in = {place.fan_in[0], place.fan_in[1]},
		.owner = element->owner, .group = place.group, .words = element->count,
		.next = config->next ? config->next[element->owner] : ATP_NO_NEXT, .sequence = sequence, .call = element->call,
		.flow = config->flow, .bitmap = UINT64_C(1) << place.child,
	};
	if (number->attempts == 0)
		out->tag = tag_of_gradient(config->keys, out, place.order, element->words);
	else
		out->tag = number->tag;
}

/* The packet of a number in its new state, sent now. */
static void write_packet(struct sender *sender, uint32_t sequence, uint64_t now_ns, struct endpoint_out *out)
{
	struct number *number = number_of(sender, sequence);

	*out = (struct endpoint_out){.words = number->element.words, .to = ENDPOINT_TO_SWITCH};
	write_header(sender, sequence, number, &out->header);
	number->tag = out->header.tag;
	out->header.flags = number->attempts > 0 ? ATP_RESEND : 0;
	if (number->state == NUMBER_BYPASSING) {
		out->header.flags |= ATP_BYPASS;
		out->to = ENDPOINT_TO_MEMBER;
		out->member = number->element.owner;
	}
	if (number->attempts < UINT8_MAX)
		number->attempts++;
	number->is_overdue = false;
	number->sent_ns = now_ns;
	number->due_ns = now_ns + patience_after_ns(&sender->patience, number->attempts);
	if (number->due_ns < sender->due_ns)
		sender->due_ns = number->due_ns;
}

static void repair(struct sender *sender, uint32_t sequence, uint64_t now_ns, struct endpoint_out *out)
{
	struct number *number = number_of(sender, sequence);

	bool through = number->state == NUMBER_SENT && sender->uses_switch;

	if (number->is_overdue)
		sender->counters.fast++;
	else
		sender->counters.timeouts++;
	if (through)
		sender->counters.resends++;
	else
		sender->counters.bypasses++;
	if (number->attempts == 1)
		window_lost(&sender->window, sequence, sender->next);
	number_enter(number, through ? NUMBER_RESENT : NUMBER_BYPASSING);
	write_packet(sender, sequence, now_ns, out);
}

static bool is_due(struct sender *sender, struct number *number, uint64_t now_ns)
{
	if (number->is_overdue || !is_late(sender, number, now_ns))
		return number->is_overdue;
	bool allowed = patience_allows(&sender->patience, now_ns);
	sender->has_waiting |= !allowed;
	return allowed;
}

static void look_again_at(struct sender *sender, uint64_t when_ns)
{
	if (when_ns < sender->least_due_ns)
		sender->least_due_ns = when_ns;
}

/* A pass over all numbers in flight, a packet per call, after which it is known when to look again. */
static void begin_pass(struct sender *sender)
{
	sender->is_repairing = true;
	sender->has_overdue = sender->has_waiting = false;
	sender->repair_at = sender->begin;
	sender->due_ns = sender->least_due_ns = UINT64_MAX;
}

static void end_pass(struct sender *sender)
{
	sender->is_repairing = false;
	if (sender->least_due_ns < sender->due_ns)
		sender->due_ns = sender->least_due_ns;
}

/* False: the pass is over. */
static bool go_on_with_pass(struct sender *sender, uint64_t now_ns, struct endpoint_out *out)
{
	if (sender->repair_at < sender->begin)
		sender->repair_at = sender->begin;
	while (sender->repair_at < sender->next) {
		uint32_t sequence = sender->repair_at++;
		struct number *number = number_of(sender, sequence);
		if (!is_in_flight(number))
			continue;
		bool due = is_due(sender, number, now_ns);
		if (due)
			repair(sender, sequence, now_ns, out);
		look_again_at(sender, number->due_ns > now_ns ? number->due_ns : sender->patience.round_ns);
		if (due)
			return true;
	}
	return false;
}

static bool next_repair(struct sender *sender, uint64_t now_ns, struct endpoint_out *out)
{
	while (sender->is_repairing || sender->has_overdue || now_ns >= sender->due_ns) {
		if (!sender->is_repairing)
			begin_pass(sender);
		if (go_on_with_pass(sender, now_ns, out))
			return true;
		end_pass(sender);
	}
	return false;
}

static bool may_send_new(const struct sender *sender)
{
	return sender->next < sender->end && sender->in_flight_bytes < sender->window.bytes;
}

static bool next_new(struct sender *sender, uint64_t now_ns, struct endpoint_out *out)
{
	if (!may_send_new(sender))
		return false;
	uint32_t sequence = sender->next++;
	skip_own(sender);
	struct number *number = number_of(sender, sequence);
	bool through = sender->uses_switch && sequence >= sender->asked_end;
	number_enter(number, through ? NUMBER_SENT : NUMBER_BYPASSING);
	if (through)
		sender->counters.originals++;
	else
		sender->counters.direct++;
	sender->in_flight_bytes += packet_bytes(number);
	lineup_append(sender, sequence);
	write_packet(sender, sequence, now_ns, out);
	return true;
}

static void write_bye(const struct sender *sender, uint16_t owner, struct endpoint_out *out)
{
	*out = (struct endpoint_out){
		.header = {
			.type = ATP_BYE, .flags = ATP_DONE | ATP_BYPASS, .owner = sender->config.self, .next = ATP_NO_NEXT,
			.sequence = sender->begin, .flow = sender->config.flow,
		},
		.to = ENDPOINT_TO_MEMBER,
		.member = owner,
	};
	out->header.tag = tag_of_bye(sender->config.keys, &out->header);
}

static bool next_bye(struct sender *sender, struct endpoint_out *out)
{
	if (sender->byes == 0 || sender->begin < sender->end)
		return false;
	uint32_t owner = 0;
	while (!sender->lineups[owner].wants_bye)
		owner++;
	sender->lineups[owner].wants_bye = false;
	sender->byes--;
	write_bye(sender, (uint16_t)owner, out);
	return true;
}

bool sender_next(struct sender *sender, uint64_t now_ns, struct endpoint_out *out)
{
	return next_repair(sender, now_ns, out) || next_new(sender, now_ns, out) || next_bye(sender, out);
}

uint64_t sender_wake_ns(const struct sender *sender)
{
	bool has_new = may_send_new(sender), has_bye = sender->byes > 0 && sender->begin == sender->end;
	return sender->is_repairing || sender->has_overdue || has_new || has_bye ? 0 : sender->due_ns;
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
	struct number *number = number_of(sender, packet->sequence);
	bool was_used = sender->in_flight_bytes >= sender->window.bytes / 2;

	measure(sender, number, (packet->flags & ATP_RESEND) != 0, now_ns);
	window_result(&sender->window, packet->sequence, sender->next, packet_bytes(number),
	              (packet->flags & ATP_MARK) != 0, was_used);
	sender->in_flight_bytes -= packet_bytes(number);
	lineup_remove(sender, number);
	number_enter(number, NUMBER_ACKNOWLEDGED);
	count_higher(sender, packet->owner, packet->sequence);
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
	if (packet->sequence < sender->begin || !is_in_flight(number_of(sender, packet->sequence)))
		return SENDER_REPEATED;
	if (!is_contents(&number_of(sender, packet->sequence)->element, packet))
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
	if (event == SENDER_REPEATED)
		want_bye(sender, packet->owner);
	return event;
}

/* ---- the switch, and the end ---- */

void sender_use_switch(struct sender *sender, bool use)
{
	if (sender->uses_switch && !use)
		for (uint32_t at = sender->begin; at < sender->next; at++) {
			struct number *number = number_of(sender, at);
			if (number->state == NUMBER_SENT || number->state == NUMBER_RESENT)
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
	if (sequence >= sender->next || !is_in_flight(number_of(sender, sequence)))
		return;
	number_of(sender, sequence)->is_overdue = sender->has_overdue = true;
}

void sender_finish(struct sender *sender)
{
	for (uint32_t owner = 0; owner < sender->config.owners; owner++)
		want_bye(sender, (uint16_t)owner);
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
