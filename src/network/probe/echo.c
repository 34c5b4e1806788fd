#include "network/probe/echo.h"

#include <string.h>

#define NS 1e-9
#define SAMPLE_MAX_NS UINT64_C(10000000000) /* a longer time is a clock that was set meanwhile */

void probe_echo_init(struct echo *echo, const struct packet_session *session, uint32_t hosts, uint32_t self)
{
	*echo = (struct echo){.session = session, .hosts = hosts, .self = self, .partner = UINT32_MAX};
	for (uint32_t i = 0; i < ECHO_ASKERS; i++)
		echo->askers[i].host = UINT32_MAX;
}

void probe_echo_begin(struct echo *echo, uint32_t round, uint32_t partner, const struct echo_pace *pace,
                      struct samples *samples)
{
	echo->round = round;
	echo->partner = partner;
	if (partner != UINT32_MAX)
		echo->pace = *pace;
	echo->left_to_ask = partner != UINT32_MAX ? pace->asks : 0;
	echo->left_of_train = 0;
	echo->next_train_ns = 0;
	echo->waits = false;
	echo->has_half = false;
	echo->samples = samples;
}

/* ---- asking ---- */

/* True if the next request is due; otherwise *out_wake_ns is its time. */
static bool is_due(struct echo *echo, uint64_t now_ns, uint64_t *out_wake_ns)
{
	if (echo->left_of_train == 0 && now_ns < echo->next_train_ns) {
		*out_wake_ns = echo->next_train_ns;
		return false;
	}
	if (echo->left_of_train == 0) {
		echo->left_of_train = echo->pace.train > 0 ? echo->pace.train : echo->left_to_ask;
		echo->next_train_ns = now_ns + echo->pace.gap_ns;
	}
	echo->left_of_train--;
	echo->left_to_ask--;
	return true;
}

bool probe_echo_ask(struct echo *echo, uint64_t now_ns, uint64_t stamp, uint8_t out[PACKET_BYTES],
                    uint64_t *out_wake_ns)
{
	if (echo->waits && now_ns < echo->until_ns) {
		*out_wake_ns = echo->until_ns;
		return false;
	}
	if (echo->waits) {
		echo->lost++;
		echo->waits = false;
	}
	if (echo->left_to_ask == 0) {
		*out_wake_ns = ECHO_NEVER;
		return false;
	}
	if (!is_due(echo, now_ns, out_wake_ns))
		return false;
	echo->sequence++;
	echo->waits = true;
	echo->until_ns = now_ns + echo->pace.patience_ns;
	echo->left = stamp;
	const struct packet packet = {
		.kind = PACKET_REQUEST,
		.from = echo->self,
		.to = echo->partner,
		.round = echo->round,
		.sequence = echo->sequence,
	};
	probe_packet_encode(echo->session, &packet, out);
	return true;
}

/* Completes the previous sample, if this reply has the other half of it. */
static void complete_half(struct echo *echo, const struct packet *packet)
{
	if (!echo->has_half || packet->before != echo->half_sequence || packet->turnaround_ns == 0)
		return;
	if (echo->half_ns > packet->turnaround_ns && echo->half_ns < SAMPLE_MAX_NS)
		probe_samples_add(echo->samples, (double)(echo->half_ns - packet->turnaround_ns) * NS);
}

static void receive_reply(struct echo *echo, const struct packet *packet, uint64_t arrived)
{
	if (!echo->waits || packet->from != echo->partner || packet->round != echo->round ||
	    packet->sequence != echo->sequence)
		return; /* late, duplicate, or not requested */
	complete_half(echo, packet);
	echo->waits = false;
	echo->has_half = arrived > echo->left;
	echo->half_sequence = packet->sequence;
	echo->half_ns = arrived - echo->left;
}

/* ---- answering ---- */

static struct echo_asker *find_asker(struct echo *echo, const struct packet *packet)
{
	for (uint32_t i = 0; i < ECHO_ASKERS; i++)
		if (echo->askers[i].host == packet->from && echo->askers[i].round == packet->round)
			return &echo->askers[i];
	struct echo_asker *asker = &echo->askers[echo->next_asker];
	echo->next_asker = (echo->next_asker + 1) % ECHO_ASKERS;
	*asker = (struct echo_asker){.host = packet->from, .round = packet->round};
	return asker;
}

/* False: the request was answered before. A second answer would overwrite the times of the first. */
static bool answer_request(struct echo *echo, const struct packet *request, uint64_t arrived, uint64_t stamp,
                           uint8_t out[PACKET_BYTES])
{
	struct echo_asker *asker = find_asker(echo, request);

	if (asker->arrived && (int32_t)(request->sequence - asker->sequence) <= 0)
		return false;
	struct packet reply = {
		.kind = PACKET_REPLY,
		.from = echo->self,
		.to = request->from,
		.round = request->round,
		.sequence = request->sequence,
		.before = asker->sequence,
	};

	if (asker->arrived && asker->left >= asker->arrived && asker->left - asker->arrived < SAMPLE_MAX_NS)
		reply.turnaround_ns = asker->left > asker->arrived ? asker->left - asker->arrived : 1; /* 0 means unknown */
	asker->sequence = request->sequence;
	asker->arrived = arrived;
	asker->left = stamp;
	probe_packet_encode(echo->session, &reply, out);
	return true;
}

bool probe_echo_receive(struct echo *echo, const uint8_t *bytes, size_t length, uint64_t arrived, uint64_t stamp,
                        uint8_t out[PACKET_BYTES])
{
	struct packet packet;

	if (!probe_packet_decode(echo->session, bytes, length, echo->hosts, &packet) || packet.to != echo->self)
		return false;
	if (packet.kind == PACKET_REPLY)
		receive_reply(echo, &packet, arrived);
	return packet.kind == PACKET_REQUEST && answer_request(echo, &packet, arrived, stamp, out);
}

void probe_echo_left(struct echo *echo, const uint8_t *bytes, size_t length, uint64_t stamp)
{
	struct packet packet;

	if (!probe_packet_decode(echo->session, bytes, length, echo->hosts, &packet) || packet.from != echo->self)
		return;
	if (packet.kind == PACKET_REQUEST && echo->waits && packet.sequence == echo->sequence && stamp >= echo->left)
		echo->left = stamp;
	for (uint32_t i = 0; i < ECHO_ASKERS && packet.kind == PACKET_REPLY; i++) {
		struct echo_asker *asker = &echo->askers[i];
		if (asker->host == packet.to && asker->round == packet.round && asker->sequence == packet.sequence &&
		    stamp >= asker->left)
			asker->left = stamp;
	}
}
