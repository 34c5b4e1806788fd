#include "switch/endpoint/membership.h"

#include <assert.h>

#define UNANSWERED_MAX 2u

static const uint8_t moves[] = {
	[MEMBERSHIP_UNKNOWN] = 1u << MEMBERSHIP_ALIVE,
	[MEMBERSHIP_ALIVE] = 1u << MEMBERSHIP_ALIVE | 1u << MEMBERSHIP_GONE,
	[MEMBERSHIP_GONE] = 1u << MEMBERSHIP_ALIVE,
};

static void enter(struct membership *membership, enum membership_state to)
{
	assert(moves[membership->state] & 1u << to);
	membership->state = (uint8_t)to;
}

void membership_init(struct membership *membership, const struct membership_config *config, uint64_t now_ns)
{
	assert(config->busy_ns >= 1 && config->idle_ns >= config->busy_ns && config->probe_ns >= 1);
	*membership = (struct membership){.config = *config, .hello_ns = now_ns};
}

void membership_busy(struct membership *membership, bool is_busy, uint64_t now_ns)
{
	if (is_busy && !membership->is_busy && membership->hello_ns > now_ns + membership->config.busy_ns)
		membership->hello_ns = now_ns;
	membership->is_busy = is_busy;
}

void membership_suspect(struct membership *membership, uint64_t now_ns)
{
	if (membership->state != MEMBERSHIP_ALIVE || membership->is_suspected)
		return;
	membership->is_suspected = true;
	if (membership->hello_ns > now_ns)
		membership->hello_ns = now_ns;
}

/* Until the next hello. */
static uint64_t pause_of(const struct membership *membership)
{
	const struct membership_config *config = &membership->config;
	/* An answer that is under way is not missing. */
	uint64_t pause = (membership->is_busy ? config->busy_ns : config->idle_ns) + membership->round_trip_ns;
	uint64_t probe = config->probe_ns + 2 * membership->round_trip_ns;

	return membership->is_suspected && probe < pause ? probe : pause;
}

static void write_hello(struct membership *membership, uint64_t now_ns, struct endpoint_out *out)
{
	const struct atp_greeting hello = {.cookie = membership->cookie, .words_max = membership->config.words_max,
	                                   .sent_ns = now_ns};

	atp_greeting_encode(&hello, membership->body);
	*out = (struct endpoint_out){
		.header = {
			.type = ATP_HELLO, .owner = membership->config.self, .words = ATP_GREETING_WORDS, .next = ATP_NO_NEXT,
			.flow = membership->config.flow,
		},
		.words = membership->body,
		.to = ENDPOINT_TO_SWITCH,
	};
}

bool membership_next(struct membership *membership, uint64_t now_ns, struct endpoint_out *out)
{
	if (!membership->answers_now && now_ns < membership->hello_ns)
		return false;
	uint64_t pause = pause_of(membership);
	bool is_late = now_ns >= membership->hello_ns + pause; /* the answer may lie here */
	if (membership->state == MEMBERSHIP_ALIVE && membership->unanswered >= UNANSWERED_MAX && !is_late) {
		enter(membership, MEMBERSHIP_GONE);
		membership->is_suspected = false;
		pause = pause_of(membership);
	}
	if (!membership->answers_now && membership->unanswered < UINT8_MAX)
		membership->unanswered++;
	membership->answers_now = false;
	membership->hello_ns = now_ns + pause;
	write_hello(membership, now_ns, out);
	return true;
}

uint64_t membership_wake_ns(const struct membership *membership)
{
	return membership->answers_now ? 0 : membership->hello_ns;
}

bool membership_welcome(struct membership *membership, const struct atp_packet *packet, const uint8_t *body,
                        uint64_t now_ns)
{
	struct atp_greeting welcome;

	if (packet->type != ATP_WELCOME || packet->flow != membership->config.flow ||
	    packet->owner != membership->config.self ||
	    packet->words < ATP_GREETING_WORDS || !atp_greeting_decode(body, &welcome))
		return false;
	membership->switch_info = welcome;
	if (!welcome.is_registered) {
		/* It started anew, and what it held is lost. */
		if (membership->state == MEMBERSHIP_ALIVE && welcome.cookie != membership->cookie)
			enter(membership, MEMBERSHIP_GONE);
		/* Each cookie is brought back once: two switches that disagree must not keep each other busy. */
		membership->answers_now = welcome.cookie != membership->cookie;
		membership->cookie = welcome.cookie;
		return true;
	}
	membership->cookie = welcome.cookie;
	membership->unanswered = 0;
	membership->is_suspected = false;
	if (now_ns > welcome.sent_ns)
		membership->round_trip_ns = now_ns - welcome.sent_ns;
	enter(membership, MEMBERSHIP_ALIVE);
	return true;
}

bool membership_helps(const struct membership *membership)
{
	return membership->state == MEMBERSHIP_ALIVE && membership->switch_info.words_max >= membership->config.words_max;
}
