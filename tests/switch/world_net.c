/*
 * world_net.c - time, packets on their way, and switches: slots, a soft table of members, forwarding.
 */
#include "world_state.h"

#define FORGE_EVERY (500 * US)

/* ---- time ---- */

static bool before(const struct event *a, const struct event *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void swap(struct event *a, struct event *b)
{
	struct event c = *a;
	*a = *b;
	*b = c;
}

void world_post(struct world *world, const struct event *event)
{
	if (world->heap_count == world->heap_max) {
		world->heap_max = world->heap_max ? 2 * world->heap_max : 1024;
		world->heap = realloc(world->heap, world->heap_max * sizeof(*world->heap));
		CHECK(world->heap);
	}
	uint32_t at = world->heap_count++;
	world->heap[at] = *event;
	world->heap[at].order = world->order++;
	for (; at > 0 && before(&world->heap[at], &world->heap[(at - 1) / 2]); at = (at - 1) / 2)
		swap(&world->heap[at], &world->heap[(at - 1) / 2]);
}

bool world_take(struct world *world, struct event *out)
{
	if (world->heap_count == 0)
		return false;
	*out = world->heap[0];
	world->heap[0] = world->heap[--world->heap_count];
	for (uint32_t at = 0;;) {
		uint32_t least = at;
		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < world->heap_count; child++)
			if (before(&world->heap[child], &world->heap[least]))
				least = child;
		if (least == at)
			break;
		swap(&world->heap[at], &world->heap[least]);
		at = least;
	}
	world->now = out->at;
	return true;
}

/* ---- the network ---- */

static bool chance(struct world *world, uint32_t of_10000)
{
	return of_10000 && rng_chance(&world->rng, of_10000, 10000);
}

static void spoil(struct world *world, struct datagram *datagram)
{
	uint64_t bit = rng_below(&world->rng, 8 * (uint64_t)datagram->length);
	datagram->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	world->totals->corrupted++;
}

static void encode(const struct atp_packet *packet, const void *words, struct datagram *out)
{
	CHECK(atp_packet_valid(packet) && packet->words <= WORLD_WORDS);
	atp_header_put(packet, out->bytes);
	if (packet->words)
		memcpy(out->bytes + ATP_HEADER_BYTES, words, 4 * (size_t)packet->words);
	out->length = ATP_HEADER_BYTES + 4u * packet->words;
}

static void carry(struct world *world, struct event *event)
{
	uint32_t copies = chance(world, world->loss) ? 0 : chance(world, world->repeat) ? 2 : 1;

	world->totals->packets++;
	world->totals->lost += copies == 0;
	for (; copies > 0; copies--) {
		struct event arrival = *event;
		arrival.at = world->now + (world->options.trip_ns ? world->options.trip_ns : 50 * US) + (world->faults[FAULT_REORDER] ? rng_below(&world->rng, 80 * US) : 0);
		if (chance(world, world->delay))
			arrival.at += rng_below(&world->rng, 3 * SECOND);
		if (chance(world, world->corrupt))
			spoil(world, &arrival.datagram);
		world_post(world, &arrival);
	}
}

/* A queue on the way was long: a switch or host sets the mark. */
static void carry_packet(struct world *world, struct event *event, const struct atp_packet *packet, const void *words)
{
	struct atp_packet marked = *packet;

	if (packet->type <= ATP_RESULT && chance(world, world->mark))
		marked.flags |= ATP_MARK;
	encode(&marked, words, &event->datagram);
	carry(world, event);
}

/* Without O1's check any change would be taken: here one that has the right tag. */
static void send_changed(struct world *world, struct event *event, const struct endpoint_out *out,
                         const struct tag_keys *keys)
{
	struct atp_packet packet = out->header;
	uint32_t words[WORLD_WORDS];

	memcpy(words, out->words, 4 * (size_t)packet.words);
	packet.tag += words[0] & 1 ? -keys->sums[0] : keys->sums[0];
	words[0] ^= 1;
	carry_packet(world, event, &packet, words);
}

void world_send(struct world *world, const struct endpoint_out *out, const struct node *from)
{
	struct event event = {.kind = TO_NODE, .job = from->job, .node = out->member};

	if (out->to == ENDPOINT_TO_MEMBER && world->options.is_shut)
		return;
	if (out->to == ENDPOINT_TO_SWITCH) {
		event.kind = TO_SWITCH;
		event.node = from->home;
		event.from_member = true;
		event.sender = from->number;
	}
	if (world->options.off == OFF_O1 && out->header.type == ATP_GRADIENT && chance(world, 100))
		send_changed(world, &event, out, &from->stream.current->keys);
	else
		carry_packet(world, &event, &out->header, out->words);
}

/* ---- switches ---- */

/* The job, and the place of the flow number among all jobs' */
static struct job *job_of_flow(struct world *world, uint64_t flow, uint16_t *out)
{
	for (uint16_t i = 0; i < world->jobs_count * WORLD_GENERATIONS; i++)
		if (world->jobs[i / WORLD_GENERATIONS].flows[i % WORLD_GENERATIONS] == flow) {
			*out = i;
			return &world->jobs[i / WORLD_GENERATIONS];
		}
	return NULL;
}

static void forward_to_node(struct world *world, const struct net_switch *at, uint16_t flow, uint16_t node,
                            const struct atp_packet *packet, const void *words)
{
	struct event event = {.kind = TO_NODE, .job = flow / WORLD_GENERATIONS, .node = node};

	if (node < WORLD_NODES && at->is_registered[flow][node])
		carry_packet(world, &event, packet, words);
	else
		world->totals->unregistered++;
}

static void forward_to_switch(struct world *world, uint16_t to, const struct atp_packet *packet, const void *words)
{
	struct event event = {.kind = TO_SWITCH, .node = to};

	if (to < world->switches_count)
		carry_packet(world, &event, packet, words);
}

static struct table_slot *slot_of(struct world *world, struct net_switch *at, const struct atp_packet *packet,
                                  uint32_t hop)
{
	return &at->slots[hop][step_index(packet->flow, packet->sequence, world->slots_count)];
}

static uint64_t cookie_of(const struct net_switch *at, uint16_t flow, uint16_t node)
{
	return at->secret * 31 + flow * 100u + node + 1;
}

static void greet(struct world *world, struct net_switch *at, const struct event *event,
                  const struct atp_packet *packet, const uint8_t *body)
{
	struct event answer = {.kind = TO_NODE, .node = packet->owner};
	struct atp_greeting hello, welcome;
	struct atp_packet out = {.type = ATP_WELCOME, .owner = packet->owner, .words = ATP_GREETING_WORDS,
	                         .next = ATP_NO_NEXT, .flow = packet->flow};
	uint8_t bytes[ATP_GREETING_BYTES];
	uint16_t flow;

	if (!job_of_flow(world, packet->flow, &flow) || !event->from_member || packet->owner != event->sender ||
	    packet->words != ATP_GREETING_WORDS || !atp_greeting_decode(body, &hello))
		return;
	answer.job = flow / WORLD_GENERATIONS;
	uint64_t cookie = cookie_of(at, flow, packet->owner);
	bool right = hello.cookie == cookie;
	at->is_registered[flow][packet->owner] |= right;
	welcome = (struct atp_greeting){.cookie = cookie, .slots = world->slots_count, .words_max = WORLD_WORDS,
	                                .is_registered = right, .sent_ns = hello.sent_ns};
	atp_greeting_encode(&welcome, bytes);
	carry_packet(world, &answer, &out, bytes);
}

/* A result frees the slots of its number; it and byes go to all members here, and from the owner's switch to the other switches. */
static void pass_to_all(struct world *world, struct net_switch *at, const struct event *event,
                        struct atp_packet *packet, void *words)
{
	uint16_t flow;
	struct job *job = job_of_flow(world, packet->flow, &flow);

	for (uint32_t hop = 0; hop < ATP_HOPS && packet->type == ATP_RESULT && world->options.off != OFF_S6; hop++)
		world->totals->step[step_run(&world->limits, &slot_of(world, at, packet, hop)->slot, packet, false,
		                             world->now)]++;
	if (!job)
		return;
	for (uint16_t node = 0; node < WORLD_NODES; node++)
		if (at->is_registered[flow][node] && node != packet->owner)
			forward_to_node(world, at, flow, node, packet, words);
	for (uint16_t other = 0; other < world->switches_count && event->from_member; other++)
		if (other != event->node)
			forward_to_switch(world, other, packet, words);
}

static void pass_gradient(struct world *world, const struct event *event, struct atp_packet *packet, uint32_t *words,
                          bool from_member)
{
	struct net_switch *at = &world->switches[event->node];
	bool is_home = packet->next == ATP_NO_NEXT || packet->next == event->node,
	    is_child = packet->hop == 0 ? from_member : is_home;
	uint8_t hop = packet->hop;
	struct table_slot *slot = slot_of(world, at, packet, hop);
	uint16_t flow;

	enum step_event what = step_run(&world->limits, &slot->slot, packet, is_child, world->now);
	step_run_words(what, slot->words, words, packet->words);
	world->totals->step[what]++;
	if (!step_leaves(what))
		return;
	if (!is_home)
		forward_to_switch(world, packet->next, packet, words);
	else if (packet->hop != hop)
		pass_gradient(world, event, packet, words, false);
	else if (job_of_flow(world, packet->flow, &flow))
		forward_to_node(world, at, flow, packet->owner, packet, words);
}

/* A member that is not registered here has no packets forwarded: it may be anyone. */
static bool is_stranger(struct world *world, const struct event *event, const struct atp_packet *packet)
{
	uint16_t flow;

	if (!event->from_member || packet->type == ATP_HELLO)
		return false;
	return !job_of_flow(world, packet->flow, &flow) || !world->switches[event->node].is_registered[flow][event->sender];
}

void world_at_switch(struct world *world, const struct event *event)
{
	struct net_switch *at = &world->switches[event->node];
	struct atp_packet packet;
	uint32_t words[WORLD_WORDS];

	if (at->is_dead || atp_packet_decode(event->datagram.bytes, event->datagram.length, &packet) != ATP_DECODED)
		return;
	if (is_stranger(world, event, &packet)) {
		world->totals->unregistered++;
		return;
	}
	memcpy(words, event->datagram.bytes + ATP_HEADER_BYTES, 4 * (size_t)packet.words);
	if (packet.type == ATP_HELLO)
		greet(world, at, event, &packet, (const uint8_t *)words);
	else if (packet.type == ATP_RESULT || packet.type == ATP_BYE)
		pass_to_all(world, at, event, &packet, words);
	else if (packet.type == ATP_GRADIENT)
		pass_gradient(world, event, &packet, words, event->from_member);
}

void world_reboot(struct world *world, uint16_t which)
{
	struct net_switch *at = &world->switches[which];

	at->secret = rng_next(&world->rng);
	for (uint32_t hop = 0; hop < ATP_HOPS; hop++)
		memset(at->slots[hop], 0, world->slots_count * sizeof(*at->slots[hop]));
	memset(at->is_registered, 0, sizeof(at->is_registered));
}

/* ---- strangers that know a flow and have no key ---- */

static void forge_gradient(struct world *world, const struct job *job, struct atp_packet *packet)
{
	uint16_t owner = world_owner_of(job, packet->sequence), member = (uint16_t)rng_below(&world->rng, job->members);

	packet->owner = owner;
	packet->type = ATP_RESULT;
	if (member == owner)
		return;
	struct shape_place place = shape_place(job->shape, owner, member);
	packet->type = ATP_GRADIENT;
	packet->flags = (uint8_t)rng_below(&world->rng, 4);
	packet->group = place.group;
	packet->bitmap = UINT64_C(1) << place.child;
	memcpy(packet->fan_in, place.fan_in, sizeof(packet->fan_in));
}

void world_forge(struct world *world)
{
	uint16_t number = (uint16_t)rng_below(&world->rng, world->jobs_count);
	const struct job *job = &world->jobs[number];
	const struct generation *at = job->nodes[0].stream.current;
	struct event event = {.kind = rng_chance(&world->rng, 1, 2) ? TO_NODE : TO_SWITCH, .job = number, .at = world->now,
	                      .from_member = true};
	struct atp_packet packet = {.kind = ATP_SIGNED, .words = (uint16_t)job->words, .next = ATP_NO_NEXT,
	                            .flow = job->flows[at->number % WORLD_GENERATIONS],
	                            .call = (uint32_t)rng_below(&world->rng, job->calls), .tag = rng_next(&world->rng)};
	uint32_t words[WORLD_WORDS], lowest = at->sender ? sender_begin(at->sender) : 0;

	packet.sequence = lowest + (uint32_t)rng_below(&world->rng, job->window);
	forge_gradient(world, job, &packet);
	for (uint32_t i = 0; i < WORLD_WORDS; i++)
		words[i] = (uint32_t)rng_next(&world->rng);
	event.sender = (uint16_t)rng_below(&world->rng, job->members);
	event.node = event.kind == TO_NODE ? (packet.type == ATP_RESULT ? event.sender : packet.owner) :
	    job->nodes[event.sender].home;
	encode(&packet, words, &event.datagram);
	world_post(world, &event);
	world->totals->forged++;
	world_post(world, &(struct event){.at = world->now + FORGE_EVERY + rng_below(&world->rng, FORGE_EVERY),
	                                  .kind = FORGE});
}
