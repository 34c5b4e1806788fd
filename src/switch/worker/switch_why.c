/*
 * switch_why.c - why a switch does not help, in words.
 */
#include "base/clip.h"
#include "switch/worker/link_state.h"

static const char *why_not_registered(const struct switch_flow *flow, char out[SWITCH_FLOW_WHY])
{
	const struct membership *at = &flow->stream.current->membership;

	switch ((enum atp_refusal)at->switch_info.refusal) {
	case ATP_REFUSED_FULL: return "its table of flows is full";
	case ATP_REFUSED_QUOTA: return "this host has as many flows there as it may have";
	case ATP_REFUSED_NUMBER: return "this rank's address is registered there as another member";
	case ATP_REFUSED_NOT: break;
	}
	if (flow->link->foreign)
		return clip(out, SWITCH_FLOW_WHY, "it speaks version %u of the protocol, and this rank version %u",
		            flow->link->foreign, ATP_VERSION);
	return at->state == MEMBERSHIP_GONE ? "it has fallen silent" : "it does not answer";
}

static const char *why_of(const struct switch_flow *flow, char out[SWITCH_FLOW_WHY])
{
	const struct generation *at = flow->stream.current;
	const struct atp_greeting *told = &at->membership.switch_info;

	if (at->membership.state != MEMBERSHIP_ALIVE)
		return why_not_registered(flow, out);
	if (told->words_max == 0)
		return "it is drained";
	if (told->words_max < flow->words)
		return clip(out, SWITCH_FLOW_WHY,
		            "its aggregators have room for %u words, and packets here carry %u (--words, MTU)", told->words_max,
		            flow->words);
	if (!reach_is_whole(&at->reach))
		return clip(out, SWITCH_FLOW_WHY,
		            "packets of %u bytes to member %u, past the switch, are not answered (UDP, firewall, MTU)",
		            4 * flow->words + ATP_HEADER_BYTES, reach_missing(&at->reach));
	return "it answers";
}

const char *switch_flow_why(struct switch_flow *flow, char out[SWITCH_FLOW_WHY])
{
	const char *why = "the group has failed";

	pthread_mutex_lock(&flow->link->lock);
	if (!flow->has_ended)
		why = why_of(flow, out);
	pthread_mutex_unlock(&flow->link->lock);
	return why;
}
