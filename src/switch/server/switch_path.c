/*
 * switch_path.c - the way of a packet through a switch: registered or a stranger's, the step, and where it goes on.
 */
#include <string.h>

#include "math/math.h"
#include "switch/endpoint/tag.h"
#include "switch/server/switch_state.h"

#define COOKIE_EPOCH (UINT64_C(60) * 1000000000) /* a cookie is good for one to two of them */

/* ---- sending ---- */

static void put(struct switch_server *server, const struct atp_packet *packet, const void *words)
{
	uint8_t head[ATP_HEADER_BYTES];

	atp_header_put(packet, head);
	trains_put(server->udp, head, sizeof(head), words, 4u * packet->words);
}

/* The packet that was put goes to the peer, unless a fault for tests loses it. */
static void to_peer(struct switch_server *server, struct trains_peer *peer)
{
	if (!switch_impair_loses(&server->impair))
		trains_to(server->udp, peer);
}

/* ---- hellos ---- */

/*
 * Of address, flow, number and time, so that a hello that brings it back comes from where welcomes go now: a host that
 * had the address a while ago cannot register it any more.
 */
static uint64_t cookie_of(const struct switch_server *server, const struct atp_packet *packet,
                          const union trains_address *from, uint64_t epoch)
{
	uint8_t bytes[36] = {0};
	uint64_t cookie;

	bytes_put64(bytes, packet->flow);
	bytes_put16(bytes + 8, packet->owner);
	if (from->any.sa_family == AF_INET6) {
		memcpy(bytes + 10, &from->v6.sin6_addr, 16);
		bytes_put16(bytes + 26, from->v6.sin6_port);
	} else {
		memcpy(bytes + 10, &from->v4.sin_addr, 4);
		bytes_put16(bytes + 26, from->v4.sin_port);
	}
	bytes_put64(bytes + 28, epoch);
	cookie = tag_siphash(server->secret, bytes, sizeof(bytes));
	return cookie ? cookie : 1;
}

static void greet(struct switch_server *server, const struct trains_datagram *datagram, const struct atp_packet *packet,
                  const uint8_t *body, uint64_t now_ns)
{
	struct atp_packet out = {.type = ATP_WELCOME, .owner = packet->owner, .words = ATP_GREETING_WORDS,
	                         .next = ATP_NO_NEXT, .flow = packet->flow};
	struct trains_peer peer = {.address = *datagram->from};
	uint64_t epoch = now_ns / COOKIE_EPOCH, cookie = cookie_of(server, packet, datagram->from, epoch);
	uint8_t bytes[ATP_GREETING_BYTES];
	struct atp_greeting hello;

	if (packet->words != ATP_GREETING_WORDS || !atp_greeting_decode(body, &hello)) {
		server->traffic.malformed++;
		return;
	}
	server->traffic.hellos++;
	bool is_right = hello.cookie == cookie ||
	                (epoch > 0 && hello.cookie == cookie_of(server, packet, datagram->from, epoch - 1));
	enum atp_refusal refusal = is_right
	                               ? switch_member_register(server, packet->flow, packet->owner, datagram->from, now_ns)
	                               : ATP_REFUSED_NOT;
	bool is_registered = is_right && refusal == ATP_REFUSED_NOT;
	server->traffic.registered += is_registered;
	server->traffic.refused_flows += refusal != ATP_REFUSED_NOT;
	/* A switch that is to be taken out has room for no element: members go on without it at once. */
	struct atp_greeting welcome = {
		.cookie = cookie, .rate_bps = server->config.rate_bps, .slots = server->is_draining ? 0 : server->config.slots,
		.words_max = server->is_draining ? 0 : server->config.words_max, .is_registered = is_registered,
		.refusal = (uint8_t)refusal,
		.sent_ns = hello.sent_ns,
	};
	atp_greeting_encode(&welcome, bytes);
	put(server, &out, bytes);
	to_peer(server, &peer);
	trains_flush(server->udp); /* the peer is on the stack */
}

/* A header of this version, no longer than what came, so that a member of another one can say why nothing helps. */
static void tell_version(struct switch_server *server, const struct trains_datagram *datagram)
{
	struct atp_packet out = {.type = ATP_WELCOME, .next = ATP_NO_NEXT, .flow = bytes_get64(datagram->bytes + 8)};
	struct trains_peer peer = {.address = *datagram->from};

	server->traffic.foreign++;
	if (datagram->bytes[1] != ATP_HELLO)
		return;
	put(server, &out, NULL);
	to_peer(server, &peer);
	trains_flush(server->udp); /* the peer is on the stack */
}

/* ---- gradients ---- */

static void run_words(enum step_event event, uint32_t *slot, uint8_t *words, uint32_t count)
{
	switch (step_words_of(event)) {
	case STEP_WORDS_NONE: break;
	case STEP_WORDS_STORE: memcpy(slot, words, 4 * (size_t)count); break;
	case STEP_WORDS_TAKE: memcpy(words, slot, 4 * (size_t)count); break;
	case STEP_WORDS_ADD: math_fold(ESP_U32, ESP_SUM)(slot, slot, words, count); break;
	case STEP_WORDS_MERGE: math_fold(ESP_U32, ESP_SUM)(words, words, slot, count); break;
	case STEP_WORDS_ADD_TAKE:
		math_fold(ESP_U32, ESP_SUM)(slot, slot, words, count);
		memcpy(words, slot, 4 * (size_t)count);
		break;
	}
}

/* A packet that may not claim a slot goes on as a resend: it takes along what is there, and claims nothing. */
static void refuse_slots(struct switch_server *server, struct switch_flow *flow, const struct switch_member *member,
                         const struct step_slot *slot, struct atp_packet *packet)
{
	bool is_full = member->host->slots >= server->config.quota && !step_same_number(slot, packet);

	flow->over_quota += is_full;
	if (is_full || server->is_draining)
		packet->flags |= ATP_RESEND | ATP_COLLISION;
}

static enum step_event step_at(struct switch_server *server, struct switch_flow *flow,
                               const struct switch_member *member, uint64_t place, struct atp_packet *packet,
                               uint8_t *words, uint64_t now_ns)
{
	const struct step_limits limits = {.age_ns = server->config.age_ns, .words_max = server->config.words_max};
	struct step_slot *slot = &server->slots[place];
	/* one level: all that comes from members is of hop 0 and goes to an owner behind this switch */
	bool is_child = packet->hop == 0 && packet->next == ATP_NO_NEXT;
	enum step_event event = step_run(&limits, slot, packet, is_child, now_ns);

	run_words(event, server->words + place * server->config.words_max, words, packet->words);
	if (event == STEP_CLAIMED || event == STEP_RECLAIMED)
		switch_slot_held_by(server, place, member->host, flow);
	else if (!slot->is_used)
		switch_slot_held_by(server, place, NULL, NULL);
	server->step[event]++;
	flow->step[event]++;
	return event;
}

static void pass_gradient(struct switch_server *server, struct switch_flow *flow, const struct switch_member *member,
                          struct atp_packet *packet, uint8_t *words, uint64_t now_ns)
{
	uint64_t place = step_index(packet->flow, packet->sequence, server->config.slots);
	struct switch_member *owner = packet->owner < SWITCH_MEMBERS ? flow->members[packet->owner] : NULL;

	flow->contributions++;
	if (!owner) {
		server->traffic.undelivered++;
		return;
	}
	refuse_slots(server, flow, member, &server->slots[place], packet);
	enum step_event event = step_at(server, flow, member, place, packet, words, now_ns);
	if (!step_leaves(event))
		return;
	put(server, packet, words);
	to_peer(server, &owner->peer);
}

/* ---- results, and byes ---- */

static void pass_to_all(struct switch_server *server, struct switch_flow *flow, const struct switch_member *member,
                        struct atp_packet *packet, uint8_t *words, uint64_t now_ns)
{
	uint64_t place = step_index(packet->flow, packet->sequence, server->config.slots);

	if (member->number != packet->owner) {
		server->traffic.strangers++;
		return;
	}
	if (packet->type == ATP_RESULT)
		(void)step_at(server, flow, member, place, packet, words, now_ns);
	put(server, packet, words);
	for (uint32_t i = 0; i < SWITCH_MEMBERS; i++)
		if (flow->members[i] && i != packet->owner) {
			flow->results += packet->type == ATP_RESULT;
			to_peer(server, &flow->members[i]->peer);
		}
}

/* ---- all packets ---- */

void switch_path_packet(struct switch_server *server, const struct trains_datagram *datagram, uint64_t now_ns)
{
	uint8_t *words = datagram->bytes + ATP_HEADER_BYTES;
	struct atp_packet packet;

	enum atp_decoded decoded = atp_packet_decode(datagram->bytes, datagram->length, &packet);
	if (decoded == ATP_FOREIGN) {
		tell_version(server, datagram);
		return;
	}
	if (decoded != ATP_DECODED) {
		server->traffic.malformed++;
		return;
	}
	if (packet.type == ATP_HELLO) {
		greet(server, datagram, &packet, words, now_ns);
		return;
	}
	/* An address that is not registered has no packets forwarded, and claims nothing. */
	struct switch_flow *flow = switch_flow_find(server, packet.flow);
	struct switch_member *member = flow ? switch_member_at(flow, datagram->from) : NULL;
	if (!member || (packet.type > ATP_RESULT && packet.type != ATP_BYE)) {
		server->traffic.strangers++;
		return;
	}
	flow->used_ns = now_ns;
	if (datagram->is_marked || server->is_crowded)
		packet.flags |= ATP_MARK;
	if (packet.type == ATP_GRADIENT)
		pass_gradient(server, flow, member, &packet, words, now_ns);
	else
		pass_to_all(server, flow, member, &packet, words, now_ns);
}
