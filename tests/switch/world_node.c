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

/* These worlds look at the window, and so at the one that the product has. */
static bool has_product_window(const struct world *world)
{
	return world->options.trip_ns || world->options.late_ns;
}

static struct generation_config generation_config(struct world *world, const struct node *node)
{
	const struct job *job = job_of(world, node);
	uint32_t packet_bytes = 28 + ATP_HEADER_BYTES + 4 * job->words, owners = job->has_server ? 1 : job->members;
	struct generation_config config = {
		.sends = node->is_member, .owns = node->owns,
		.sender = {
			.self = node->number, .shape = job->shape, .window = job->window, .owners = job->members + 1,
			.next = job->next[node->home],
			.congestion = {.is_fixed = rng_chance(&world->rng, 1, 4) && !has_product_window(world), .packet_bytes = packet_bytes,
			               .start_bytes = (has_product_window(world) ? 40 : 1 + (uint32_t)rng_below(&world->rng, 50)) * packet_bytes,
			               .ceiling_bytes = job->window * packet_bytes,
			               .loss = has_product_window(world) ? WINDOW_LOSS_MANY :
			                       (enum window_loss)rng_below(&world->rng, 3)},
			.rto_floor_ns = 20 * MS, .rto_cap_ns = 320 * MS,
		},
		.owner = {
			.self = node->number, .shape = job->shape, .window = job->window, .words_max = job->words,
			.elements = (2 * job->window + owners - 1) / owners,
		},
		.membership = {.self = node->number, .words_max = (uint16_t)job->words, .busy_ns = 100 * MS, .idle_ns = SECOND,
		               .probe_ns = 20 * MS},
	};
	memcpy(config.secret, job->secret, sizeof(config.secret));
	return config;
}

static void open_data(struct world *world, struct node *node)
{
	struct job *job = job_of(world, node);

	node->data = calloc((size_t)world_elements(job) * job->words, sizeof(*node->data));
	node->has_result = calloc(world_elements(job), 1);
	CHECK(node->data && node->has_result);
	for (uint32_t i = 0; i < world_elements(job) * job->words; i++)
		node->data[i] = (uint32_t)((int64_t)rng_below(&world->rng,
		                                              UINT32_MAX / job->members) - UINT32_MAX / job->members / 2);
}

void world_open_node(struct world *world, uint16_t job_number, uint16_t number)
{
	struct job *job = &world->jobs[job_number];
	struct node *node = &job->nodes[number];
	struct error err;

	*node = (struct node){.job = job_number, .number = number, .is_there = true, .is_member = number < job->members,
	                      .wake_at = UINT64_MAX};
	node->home = node->is_member ? job->group_of[number] : 0;
	node->owns = node->is_member != job->has_server;
	if (node->is_member)
		open_data(world, node);
	struct generation_config config = generation_config(world, node);
	CHECK(succession_open(&node->stream, &config, job->limit, world->now, &err) == ESP_OK);
}

void world_close_node(struct world *world, struct node *node)
{
	struct world_totals *totals = world->totals;
	const struct sender_counters sent = succession_sent(&node->stream);
	const struct owner_counters owned = succession_owned(&node->stream);
	const struct sender *sender = node->stream.current->sender;

	totals->resends += sent.resends, totals->bypasses += sent.bypasses;
	totals->fast += sent.fast, totals->timeouts += sent.timeouts;
	totals->results += sent.results, totals->repeated += sent.repeated, totals->refused += sent.refused;
	totals->asks += sent.asks;
	totals->marks += sender ? sender_window(sender)->marks : 0;
	totals->halvings += sender ? sender_window(sender)->halvings : 0;
	for (int i = 0; i < OWNER_EVENTS; i++)
		totals->owner[i] += owned.events[i];
	totals->taken += owned.taken;
	totals->generations += node->stream.current->number;
	succession_close(&node->stream);
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
		world->totals->wrong += words[i] != sum;
		WORLD_CHECK(world, words[i] == sum || world->options.off == OFF_O1, "wrong sum: job %td element %u word %u is %u, not %u", job - world->jobs,
		            element, i, words[i], sum);
	}
}

static void call_after(struct world *world, struct node *node)
{
	uint64_t most = world->faults[FAULT_STRAGGLER] ? 300 * MS : 2 * MS;
	/* Computing takes as long on all members, but for a little. */
	uint64_t pause = (world->options.kills ? 5 * MS : 0) + rng_below(&world->rng, most);
	pause += node->number == 0 ? world->options.late_ns : 0;
	world_post(world, &(struct event){.at = world->now + pause, .kind = CALL, .job = node->job, .node = node->number});
}

static void receive(struct world *world, struct node *node, uint32_t element, const uint32_t *words)
{
	struct job *job = job_of(world, node);

	WORLD_CHECK(world, element < node->offered && !node->has_result[element], "result %u of member %u comes twice",
	            element, node->number);
	check_sum(world, job, element, words);
	node->has_result[element] = 1;
	world_progress(world, node);
	node->received++;
	if (node->received < node->allowed)
		return;
	succession_busy(&node->stream, false, world->now);
	if (node->received < world_elements(job)) {
		call_after(world, node);
		return;
	}
	node->has_finished = true;
	sender_finish(node->stream.current->sender);
	if (node->owns)
		world_linger(world, node);
	if (job->has_server && ++job->finished == job->members)
		world_linger(world, &job->nodes[job->members]);
}

/* Results are of the current generation. */
static uint32_t element_of(const struct job *job, const struct node *node, uint32_t sequence)
{
	return node->stream.current->number * job->per_generation + sequence;
}

static void own_complete(struct world *world, struct node *node, uint32_t sequence)
{
	const uint32_t *sum = owner_sum(node->stream.current->owner, sequence);
	const struct job *job = job_of(world, node);
	uint32_t element = element_of(job, node, sequence);

	WORLD_CHECK(world, sum, "a complete element has no sum");
	world->totals->elements++;
	world->totals->contributions += job->members - node->is_member;
	if (!node->is_member) {
		check_sum(world, job, element, sum);
		return;
	}
	succession_own_complete(&node->stream, sequence);
	receive(world, node, element, sum);
}

/* ---- a node's turn ---- */

/* False: the window, or the owner, has no room. */
static bool offer_own(struct world *world, struct node *node, const struct sender_element *element)
{
	struct owner_part part = {.words = part_of(job_of(world, node), node, node->offered), .call = element->call,
	                          .count = element->count, .kind = element->kind};
	struct generation *at = node->stream.current;
	uint32_t expected = sender_end(at->sender), sequence;
	enum owner_event event = owner_own(at->owner, expected, &part);

	if (event == OWNER_FULL)
		return false;
	CHECK(sender_offer(at->sender, element, &sequence) && sequence == expected);
	node->offered++;
	if (event == OWNER_COMPLETED)
		own_complete(world, node, sequence);
	return true;
}

/* Some generations are not open when they are needed. */
static bool may_offer(struct world *world, struct node *node)
{
	uint32_t generation = node->offered / job_of(world, node)->per_generation;
	struct error err;

	if (succession_lacks(&node->stream, generation))
		CHECK(succession_prepare(&node->stream, world->now, &err) == ESP_OK);
	return succession_reach(&node->stream, generation);
}

static bool offer(struct world *world, struct node *node)
{
	struct job *job = job_of(world, node);
	struct sender_element element = {.words = part_of(job, node, node->offered), .call = node->offered / job->per_call,
	                                 .count = (uint16_t)job->words, .owner = world_owner_of_element(job, node->offered),
	    .kind = ATP_SIGNED};
	uint32_t sequence;

	if (!may_offer(world, node))
		return false;
	struct sender *sender = node->stream.current->sender;
	CHECK(sender_end(sender) == node->offered % job->per_generation);
	if (sender_end(sender) - sender_begin(sender) >= job->window)
		return false;
	if (element.owner == node->number)
		return offer_own(world, node, &element);
	CHECK(sender_offer(sender, &element, &sequence) && sequence == node->offered % job->per_generation);
	node->offered++;
	return true;
}

static void count_change(struct world *world, const struct node *node, bool before)
{
	bool helps = generation_helps(node->stream.current);

	world->totals->alive += helps && !before;
	world->totals->gone += before && !helps;
}

static void set_wake(struct world *world, struct node *node)
{
	uint64_t wake = succession_wake_ns(&node->stream);

	if (wake < world->now)
		wake = world->now;
	if (wake >= node->wake_at)
		return;
	node->wake_at = wake;
	world_post(world, &(struct event){.at = wake, .kind = WAKE, .job = node->job, .node = node->number});
}

void world_pump(struct world *world, struct node *node)
{
	const struct succession *stream = &node->stream;
	struct endpoint_out out;
	bool before = generation_helps(stream->current);

	while (succession_greet(&node->stream, world->now, &out))
		world_send(world, &out, node);
	count_change(world, node, before);
	while (node->is_member && node->offered < node->allowed && offer(world, node))
		;
	while (succession_next(&node->stream, world->now, &out))
		world_send(world, &out, node);
	if (node->owns)
		WORLD_CHECK(world, owner_elements_held(stream->current->owner) <= 2 * job_of(world, node)->window,
		            "an owner holds too much");
	set_wake(world, node);
}

/* ---- events ---- */

/* G1: the numbers of the call are those that the test counts by itself. */
void world_call(struct world *world, struct node *node)
{
	const struct job *job = job_of(world, node);
	struct error err;

	if (node->is_member) {
		struct succession_number first = succession_number(&node->stream, job->per_call);
		CHECK(first.generation == node->allowed / job->per_generation &&
		      first.sequence == node->allowed % job->per_generation);
		if (rng_chance(&world->rng, 1, 2) && first.generation > node->stream.current->number)
			CHECK(succession_prepare(&node->stream, world->now, &err) == ESP_OK);
	}
	node->allowed += job->per_call;
	node->progress_at = world->now;
	succession_busy(&node->stream, true, world->now);
}

void world_linger(struct world *world, struct node *node)
{
	if (owner_is_quiet(node->stream.current->owner))
		return;
	owner_linger(node->stream.current->owner);
	world_post(world, &(struct event){.at = world->now + LINGER_EVERY, .kind = LINGER, .job = node->job,
	                                  .node = node->number});
}

static uint64_t answers_of(const struct generation *generation)
{
	return generation && generation->owner ? owner_counters(generation->owner)->events[OWNER_ANSWERED] : 0;
}

void world_at_node(struct world *world, struct node *node, const struct datagram *datagram)
{
	struct atp_packet packet;
	uint32_t words[WORLD_WORDS];
	bool before = generation_helps(node->stream.current);

	if (atp_packet_decode(datagram->bytes, datagram->length, &packet) != ATP_DECODED)
		return;
	struct generation *at = succession_find(&node->stream, packet.flow);
	if (!at)
		return;
	memcpy(words, datagram->bytes + ATP_HEADER_BYTES, 4 * (size_t)packet.words);
	if (world->options.off == OFF_O2 && packet.type == ATP_GRADIENT && at->owner && owner_sum(at->owner, packet.sequence))
		return;
	uint64_t answers = answers_of(at);
	enum generation_event event = succession_packet(&node->stream, at, &packet, words, world->now);
	world->totals->answered_former += at == node->stream.former && answers_of(at) > answers;
	count_change(world, node, before);
	if (event == GENERATION_COMPLETED)
		own_complete(world, node, packet.sequence);
	else if (event == GENERATION_RESULT)
		receive(world, node, element_of(job_of(world, node), node, packet.sequence), words);
}
