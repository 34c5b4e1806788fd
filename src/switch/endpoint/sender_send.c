/*
 * sender_send.c - the next packet of a sender: a repair, a new number or a bye.
 */
#include <assert.h>

#include "switch/endpoint/sender_state.h"

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
	struct number *number = sender_number(sender, sequence);

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
	number->higher = 0;
	number->sent_ns = now_ns;
	number->due_ns = now_ns + patience_after_ns(&sender->patience, number->attempts);
	if (number->due_ns < sender->due_ns)
		sender->due_ns = number->due_ns;
}

/* W1, W2: how a number goes out again. A way that was tried in vain is not the only one. */
static enum number_state after(const struct sender *sender, const struct number *number)
{
	if (!sender->uses_switch)
		return NUMBER_BYPASSING;
	if (number->state == NUMBER_SENT)
		return NUMBER_RESENT;
	return number->state == NUMBER_BYPASSING && number->attempts > 1 ? NUMBER_RETURNED : NUMBER_BYPASSING;
}

static void repair(struct sender *sender, uint32_t sequence, uint64_t now_ns, struct endpoint_out *out)
{
	struct number *number = sender_number(sender, sequence);

	enum number_state to = after(sender, number);

	if (number->is_overdue)
		sender->counters.fast++;
	else
		sender->counters.timeouts++;
	if (to == NUMBER_BYPASSING)
		sender->counters.bypasses++;
	else
		sender->counters.resends++;
	/* Time mostly shows that a member is late, results of later numbers that a packet was lost. */
	if (number->attempts == 1 && number->higher >= SENDER_HIGHER_RESULTS)
		window_lost(&sender->window, sequence, sender->next);
	sender_number_enter(number, to);
	write_packet(sender, sequence, now_ns, out);
}

static bool is_due(struct sender *sender, struct number *number, uint64_t now_ns)
{
	if (number->is_overdue || !is_late(sender, number, now_ns))
		return number->is_overdue;
	/* A number that was sent again waits in no slot: it takes no partial sum along. */
	bool allowed = number->state != NUMBER_SENT || patience_allows(&sender->patience, now_ns);
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
		struct number *number = sender_number(sender, sequence);
		if (!sender_is_in_flight(number))
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
	sender_skip_own(sender);
	struct number *number = sender_number(sender, sequence);
	bool through = sender->uses_switch && sequence >= sender->asked_end;
	sender_number_enter(number, through ? NUMBER_SENT : NUMBER_BYPASSING);
	if (through)
		sender->counters.originals++;
	else
		sender->counters.direct++;
	sender->in_flight_bytes += sender_packet_bytes(number);
	sender_lineup_append(sender, sequence);
	write_packet(sender, sequence, now_ns, out);
	return true;
}

/* To one owner, or through the switch to all. */
static void write_bye(const struct sender *sender, enum endpoint_to to, uint16_t owner, struct endpoint_out *out)
{
	*out = (struct endpoint_out){
		.header =
			{
				.type = ATP_BYE,
				.flags = to == ENDPOINT_TO_MEMBER ? ATP_DONE | ATP_BYPASS : ATP_DONE,
				.owner = sender->config.self,
				.next = ATP_NO_NEXT,
				.sequence = sender->begin,
				.flow = sender->config.flow,
			},
		.to = to,
		.member = owner,
	};
	out->header.tag = tag_of_bye(sender->config.keys, &out->header);
}

static bool has_bye(const struct sender *sender)
{
	return sender->begin == sender->end && (sender->byes > 0 || (sender->wants_bye_to_all && sender->uses_switch));
}

static bool next_bye(struct sender *sender, struct endpoint_out *out)
{
	if (!has_bye(sender))
		return false;
	if (sender->wants_bye_to_all && sender->uses_switch) {
		sender->wants_bye_to_all = false;
		write_bye(sender, ENDPOINT_TO_SWITCH, 0, out);
		return true;
	}
	uint32_t owner = 0;
	while (!sender->lineups[owner].wants_bye)
		owner++;
	sender->lineups[owner].wants_bye = false;
	sender->byes--;
	write_bye(sender, ENDPOINT_TO_MEMBER, (uint16_t)owner, out);
	return true;
}

bool sender_next(struct sender *sender, uint64_t now_ns, struct endpoint_out *out)
{
	return next_repair(sender, now_ns, out) || next_new(sender, now_ns, out) || next_bye(sender, out);
}

uint64_t sender_wake_ns(const struct sender *sender)
{
	bool goes_on = sender->is_repairing || sender->has_overdue || may_send_new(sender) || has_bye(sender);
	return goes_on ? 0 : sender->due_ns;
}
