/*
 * world_node.c - members and servers: a driver's work with a sender, an owner and a membership.
 */
#include "world_state.h"

#define LINGER_EVERY (50 * MS)

static struct job *job_of(struct world *world, const struct node *node)
{
	return &world->jobs[node->job];
}

static uint32_t *part_of(const struct job *job, const struct node *node, uint32_t element)
{
	return node->data + (size_t)element * job->words;
}

/* ---- opening ---- */

static void open_sender(struct world *world, struct node *node)
{
	struct job *job = job_of(world, node);
	uint32_t packet_bytes = 28 + ATP_HEADER_BYTES + 4 * job->words;
	struct sender_config config = {
		.flow = job->flow, .self = node->number, .shape = job->shape, .keys = &job->keys, .window = job->window,
		.owners = job->members + 1,
		.next = job->next[node->home],
		.congestion = {.is_fixed = rng_chance(&world->rng, 1, 4), .packet_bytes = packet_bytes,
		               .start_bytes = (1 + (uint32_t)rng_below(&world->rng, 50)) * packet_bytes,
		    .ceiling_bytes = job->window * packet_bytes,
		               .loss = (enum window_loss)rng_below(&world->rng, 3)},
		.rto_floor_ns = 20 * MS, .rto_cap_ns = 320 * MS,
	};
	struct error err;

	CHECK(sender_open(&config, &node->sender, &err) == ESP_OK);
	node->data = calloc((size_t)world_elements(job) * job->words, sizeof(*node->data));
	node->has_result = calloc(world_elements(job), 1);
	CHECK(node->data && node->has_result);
	for (uint32_t i = 0; i < world_elements(job) * job->words; i++)
		node->data[i] = (uint32_t)((int64_t)rng_below(&world->rng,
		                                              UINT32_MAX / job->members) - UINT32_MAX / job->members / 2);
}

static void open_owner(struct world *world, struct node *node)
{
	struct job *job = job_of(world, node);
	uint32_t owners = job->has_server ? 1 : job->members;
	struct owner_config config = {
		.flow = job->flow, .self = node->number, .shape = job->shape, .keys = &job->keys, .window = job->window,
		.words_max = job->words,
		.elements = (2 * job->window + owners - 1) / owners,
	};
	struct error err;

	CHECK(owner_open(&config, &node->owner, &err) == ESP_OK);
}

void world_open_node(struct world *world, uint16_t job_number, uint16_t number)
{
	struct job *job = &world->jobs[job_number];
	struct node *node = &job->nodes[number];

	*node = (struct node){.job = job_number, .number = number, .is_there = true, .is_member = number < job->members,
	                      .wake_at = UINT64_MAX};
	node->home = node->is_member ? job->group_of[number] : 0;
	if (node->is_member)
		open_sender(world, node);
	if (node->is_member != job->has_server)
		open_owner(world, node);
	struct membership_config config = {.flow = job->flow, .self = number, .words_max = (uint16_t)job->words,
	                                   .busy_ns = 100 * MS, .idle_ns = SECOND};
	membership_init(&node->membership, &config, world->now);
}

void world_close_node(struct world *world, struct node *node)
{
	struct world_totals *totals = world->totals;

	if (node->sender) {
		const struct sender_counters *counters = sender_counters(node->sender);
		totals->resends += counters->resends, totals->bypasses += counters->bypasses;
		totals->fast += counters->fast, totals->timeouts += counters->timeouts;
		totals->results += counters->results, totals->repeated += counters->repeated,
		    totals->refused += counters->refused;
		totals->asks += counters->asks;
		totals->marks += sender_window(node->sender)->marks, totals->halvings += sender_window(node->sender)->halvings;
	}
	if (node->owner) {
		for (int i = 0; i < OWNER_EVENTS; i++)
			totals->owner[i] += owner_counters(node->owner)->events[i];
		totals->taken += owner_counters(node->owner)->taken;
	}
	sender_close(node->sender);
	owner_close(node->owner);
	free(node->data);
	free(node->has_result);
}

/* ---- results ---- */

/* The oracle: plain addition, element by element. */
static void check_sum(struct world *world, const struct job *job, uint32_t element, const uint32_t *words)
{
	for (uint32_t i = 0; i < job->words; i++) {
		uint32_t sum = 0;
		for (uint32_t member = 0; member < job->members; member++)
			sum += part_of(job, &job->nodes[member], element)[i];
		WORLD_CHECK(world, words[i] == sum, "wrong sum: job %td element %u word %u is %u, not %u", job - world->jobs,
		            element, i, words[i], sum);
	}
}

static void call_after(struct world *world, struct node *node)
{
	uint64_t pause = rng_below(&world->rng, world->faults[FAULT_STRAGGLER] ? 300 * MS : 2 * MS);
	world_post(world, &(struct event){.at = world->now + pause, .kind = CALL, .job = node->job, .node = node->number});
}

static void receive(struct world *world, struct node *node, uint32_t element, const uint32_t *words)
{
	struct job *job = job_of(world, node);

	WORLD_CHECK(world, element < node->offered && !node->has_result[element], "result %u of member %u comes twice",
	            element, node->number);
	check_sum(world, job, element, words);
	node->has_result[element] = 1;
	node->received++;
	if (node->received < node->allowed)
		return;
	membership_busy(&node->membership, false, world->now);
	if (node->received < world_elements(job)) {
		call_after(world, node);
		return;
	}
	node->has_finished = true;
	sender_finish(node->sender);
	if (node->owner)
		world_linger(world, node);
	if (job->has_server && ++job->finished == job->members)
		world_linger(world, &job->nodes[job->members]);
}

static void own_complete(struct world *world, struct node *node, uint32_t element)
{
	const uint32_t *sum = owner_sum(node->owner, element);
	const struct job *job = job_of(world, node);

	WORLD_CHECK(world, sum, "a complete element has no sum");
	world->totals->elements++;
	world->totals->contributions += job->members - node->is_member;
	if (!node->is_member) {
		check_sum(world, job, element, sum);
		return;
	}
	sender_own_complete(node->sender, element);
	receive(world, node, element, sum);
}

/* ---- a node's turn ---- */

/* False: the window, or the owner, has no room. */
static bool offer_own(struct world *world, struct node *node, const struct sender_element *element)
{
	struct owner_part part = {.words = part_of(job_of(world, node), node, node->offered), .call = element->call,
	                          .count = element->count, .kind = element->kind};
	enum owner_event event = owner_own(node->owner, node->offered, &part);
	uint32_t sequence;

	if (event == OWNER_FULL)
		return false;
	CHECK(sender_offer(node->sender, element, &sequence) && sequence == node->offered);
	node->offered++;
	if (event == OWNER_COMPLETED)
		own_complete(world, node, sequence);
	return true;
}

static bool offer(struct world *world, struct node *node)
{
	struct job *job = job_of(world, node);
	struct sender_element element = {.words = part_of(job, node, node->offered), .call = node->offered / job->per_call,
	                                 .count = (uint16_t)job->words, .owner = world_owner_of(job, node->offered),
	    .kind = ATP_SIGNED};
	uint32_t sequence;

	if (sender_end(node->sender) - sender_begin(node->sender) >= job->window)
		return false;
	if (element.owner == node->number)
		return offer_own(world, node, &element);
	CHECK(sender_offer(node->sender, &element, &sequence) && sequence == node->offered);
	node->offered++;
	return true;
}

static void use_switch(struct world *world, struct node *node, bool before)
{
	bool helps = membership_helps(&node->membership);

	if (node->sender)
		sender_use_switch(node->sender, helps);
	if (node->owner)
		owner_use_switch(node->owner, helps);
	world->totals->alive += helps && !before;
	world->totals->gone += before && !helps;
}

static void set_wake(struct world *world, struct node *node)
{
	uint64_t wake = membership_wake_ns(&node->membership);

	if (node->sender && sender_wake_ns(node->sender) < wake)
		wake = sender_wake_ns(node->sender);
	if (wake < world->now)
		wake = world->now;
	if (wake >= node->wake_at)
		return;
	node->wake_at = wake;
	world_post(world, &(struct event){.at = wake, .kind = WAKE, .job = node->job, .node = node->number});
}

void world_pump(struct world *world, struct node *node)
{
	struct endpoint_out out;
	bool before = membership_helps(&node->membership);

	while (membership_next(&node->membership, world->now, &out))
		world_send(world, &out, node);
	use_switch(world, node, before);
	while (node->sender && node->offered < node->allowed && offer(world, node))
		;
	while (node->owner && owner_next(node->owner, &out))
		world_send(world, &out, node);
	while (node->sender && sender_next(node->sender, world->now, &out))
		world_send(world, &out, node);
	if (node->owner)
		WORLD_CHECK(world, owner_elements_held(node->owner) <= 2 * job_of(world, node)->window,
		            "an owner holds too much");
	set_wake(world, node);
}

/* ---- events ---- */

void world_call(struct world *world, struct node *node)
{
	node->allowed += job_of(world, node)->per_call;
	membership_busy(&node->membership, true, world->now);
}

void world_linger(struct world *world, struct node *node)
{
	if (owner_is_quiet(node->owner))
		return;
	owner_linger(node->owner);
	world_post(world, &(struct event){.at = world->now + LINGER_EVERY, .kind = LINGER, .job = node->job,
	                                  .node = node->number});
}

void world_at_node(struct world *world, struct node *node, const struct datagram *datagram)
{
	struct atp_packet packet;
	uint32_t words[WORLD_WORDS];
	bool before = membership_helps(&node->membership);

	if (atp_packet_decode(datagram->bytes, datagram->length, &packet) != ATP_DECODED)
		return;
	memcpy(words, datagram->bytes + ATP_HEADER_BYTES, 4 * (size_t)packet.words);
	if (packet.type == ATP_WELCOME) {
		membership_welcome(&node->membership, &packet, (const uint8_t *)words, world->now);
		use_switch(world, node, before);
	} else if (packet.type == ATP_BYE && node->owner) {
		owner_bye(node->owner, &packet);
	} else if (packet.type == ATP_ASK && node->sender) {
		sender_ask(node->sender, &packet);
	} else if (packet.type == ATP_GRADIENT && node->owner) {
		if (owner_packet(node->owner, &packet, words) == OWNER_COMPLETED)
			own_complete(world, node, packet.sequence);
	} else if (packet.type == ATP_RESULT && node->sender) {
		if (sender_result(node->sender, &packet, words, world->now) == SENDER_NEW)
			receive(world, node, packet.sequence, words);
	}
}
