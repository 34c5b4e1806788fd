/*
 * switch_flow.c - one flow of a link: its life, its packets and its turns.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "switch/worker/link_state.h"

#define OVERHEAD_BYTES (28u + ATP_HEADER_BYTES)
#define START_BYTES (60u << 10)         /* the paper's: what most ports of switches can hold */
#define HELLO_BUSY (100 * NS_PER_MS)
#define HELLO_IDLE (1000 * NS_PER_MS)
#define RTO_FLOOR (20 * NS_PER_MS)      /* not below the lateness of timers under load: 14 ms at the 99th percentile */
#define RTO_CAP (320 * NS_PER_MS)
#define RESERVE_SHARE 8u                /* of a flow's numbers, for calls under way: a terabyte */

/* ---- life ---- */

/* Flow numbers and keys are each generation's own. */
static struct generation_config generation_config(const struct switch_flow *flow)
{
	uint32_t packet = OVERHEAD_BYTES + 4u * flow->words;

	return (struct generation_config){
		.sends = true, .owns = true, .probed = flow->members,
		.sender = {
			.self = flow->self, .shape = flow->shape, .window = SWITCH_FLOW_WINDOW, .owners = flow->members,
			.congestion = {.packet_bytes = packet,
			               .start_bytes = START_BYTES > 16 * packet ? START_BYTES : 16 * packet,
			               .ceiling_bytes = SWITCH_FLOW_WINDOW * packet},
			.rto_floor_ns = RTO_FLOOR, .rto_cap_ns = RTO_CAP,
		},
		.owner = {
			.self = flow->self, .shape = flow->shape, .window = SWITCH_FLOW_WINDOW, .words_max = flow->words,
			.elements = (2 * SWITCH_FLOW_WINDOW + flow->members - 1) / flow->members,
		},
		.membership = {.self = flow->self, .words_max = flow->words, .busy_ns = HELLO_BUSY, .idle_ns = HELLO_IDLE,
		               .probe_ns = RTO_FLOOR},
	};
}

/* With the lock held: flows of a process share a budget. */
static enum esp_status reserve(struct switch_flow *flow, uint32_t owners, struct error *err)
{
	struct switch_link *link = flow->link;
	uint64_t bytes = owners * flow->owner_bytes, kept = link->kept_bytes - flow->kept_bytes + bytes;

	if (bytes > flow->kept_bytes && kept > SWITCH_FLOW_BUDGET)
		return error_set(err, ESP_ELIMIT, "the flows of a process keep at most %u MiB of sums",
		                 SWITCH_FLOW_BUDGET >> 20);
	link->kept_bytes = kept;
	flow->kept_bytes = bytes;
	return ESP_OK;
}

enum esp_status switch_flow_prepare(struct switch_flow *flow, struct error *err)
{
	if (flow->stream.next)
		return ESP_OK;
	enum esp_status status = reserve(flow, succession_owners(&flow->stream) + 1, err);
	return status == ESP_OK ? succession_prepare(&flow->stream, clock_now_ns(), err) : status;
}

static void release(struct switch_flow *flow)
{
	pthread_mutex_lock(&flow->link->lock);
	flow->link->kept_bytes -= flow->kept_bytes;
	pthread_mutex_unlock(&flow->link->lock);
	succession_close(&flow->stream);
	shape_close(flow->shape);
	free(flow->peers);
	free(flow);
}

static enum esp_status open_stream(struct switch_flow *flow, const struct switch_flow_config *config,
                                   struct error *err)
{
	uint32_t limit = config->limit ? config->limit : SENDER_NUMBERS;
	struct generation_config generation = generation_config(flow);

	flow->owner_bytes = owner_bytes(&generation.owner);
	pthread_mutex_lock(&flow->link->lock);
	enum esp_status status = reserve(flow, 1, err);
	pthread_mutex_unlock(&flow->link->lock);
	if (status != ESP_OK)
		return status;
	memcpy(generation.secret, config->secret, sizeof(generation.secret));
	status = succession_open(&flow->stream, &generation, limit, clock_now_ns(), err);
	explicit_bzero(generation.secret, sizeof(generation.secret));
	return status;
}

static enum esp_status open_parts(struct switch_flow *flow, const struct switch_flow_config *config, struct error *err)
{
	const uint16_t group_of[ATP_CHILDREN_MAX] = {0};
	enum esp_status status = shape_open(group_of, flow->members, 1, &flow->shape, err);

	if (status == ESP_OK)
		status = open_stream(flow, config, err);
	if (status != ESP_OK)
		return status;
	flow->peers = calloc(flow->members, sizeof(*flow->peers));
	if (!flow->peers)
		return error_set(err, ESP_ENOMEM, "no memory for a flow of %u members", flow->members);
	for (uint32_t i = 0; i < flow->members; i++)
		flow->peers[i].address = config->addresses[i];
	return ESP_OK;
}

enum esp_status switch_flow_open(struct switch_link *link, const struct switch_flow_config *config,
                                 struct switch_flow **out, struct error *err)
{
	struct switch_flow *flow = calloc(1, sizeof(*flow));

	assert(config->members >= 2 && config->members <= ATP_CHILDREN_MAX && config->self < config->members);
	assert(config->words >= 1 && config->words <= ATP_WORDS_MAX && config->limit <= SENDER_NUMBERS);
	if (!flow)
		return error_set(err, ESP_ENOMEM, "no memory for a flow");
	flow->link = link;
	flow->self = config->self;
	flow->members = config->members;
	flow->words = config->words;
	enum esp_status status = open_parts(flow, config, err);
	if (status != ESP_OK) {
		release(flow);
		return status;
	}
	pthread_mutex_lock(&link->lock);
	flow->next = link->flows;
	link->flows = flow;
	pthread_mutex_unlock(&link->lock);
	loop_post(&link->loop, &link->kick);
	*out = flow;
	return ESP_OK;
}

void switch_flow_close(struct switch_flow *flow)
{
	if (!flow)
		return;
	struct switch_link *link = flow->link;
	pthread_mutex_lock(&link->lock);
	struct switch_flow **at = &link->flows;
	while (*at != flow)
		at = &(*at)->next;
	*at = flow->next;
	assert(!flow->first);
	pthread_mutex_unlock(&link->lock);
	release(flow);
}

/* ---- sums ---- */

static uint64_t elements_of(const struct switch_flow *flow, uint64_t words)
{
	return (words + flow->words - 1) / flow->words;
}

/* With the lock held: calls that have been asked about and have not begun need numbers, too. */
static bool find_numbers(struct switch_flow *flow, uint64_t needed)
{
	struct succession *stream = &flow->stream;
	uint32_t reserve = stream->limit / RESERVE_SHARE;
	struct error err;

	if (flow->has_ended || needed > stream->limit - reserve)
		return false;
	if (needed + reserve <= succession_left(stream))
		return true;
	return succession_is_settled(stream) && switch_flow_prepare(flow, &err) == ESP_OK;
}

bool switch_flow_has_numbers(struct switch_flow *flow, uint64_t words, uint32_t pieces)
{
	pthread_mutex_lock(&flow->link->lock);
	bool has = find_numbers(flow, elements_of(flow, words) + pieces);
	pthread_mutex_unlock(&flow->link->lock);
	return has;
}

static uint32_t number_pieces(const struct switch_flow *flow, struct switch_sum *sum)
{
	uint64_t elements = 0;

	for (uint32_t i = 0; i < sum->piece_count; i++) {
		assert(sum->pieces[i].words > 0);
		sum->pieces[i].first = (uint32_t)elements;
		elements += elements_of(flow, sum->pieces[i].words);
	}
	assert(elements > 0 && elements <= flow->stream.limit);
	return (uint32_t)elements;
}

bool switch_flow_start(struct switch_flow *flow, struct switch_sum *sum)
{
	struct switch_link *link = flow->link;
	uint32_t elements = number_pieces(flow, sum);

	pthread_mutex_lock(&link->lock);
	bool ok = flow->failed == ESP_OK;
	if (ok) {
		/* Not by the last sum in the list: a later one may have ended before it. */
		struct succession_number first = succession_number(&flow->stream, elements);
		sum->elements = sum->missing = elements;
		sum->offered = 0;
		sum->generation = first.generation;
		sum->first = first.sequence;
		switch_sum_append(flow, sum);
		succession_busy(&flow->stream, true, clock_now_ns());
	}
	pthread_mutex_unlock(&link->lock);
	loop_post(&link->loop, &link->kick);
	return ok;
}

void switch_flow_fail(struct switch_flow *flow, enum esp_status status)
{
	struct switch_link *link = flow->link;

	assert(status != ESP_OK);
	pthread_mutex_lock(&link->lock);
	if (flow->failed == ESP_OK)
		flow->failed = status;
	pthread_mutex_unlock(&link->lock);
	loop_post(&link->loop, &link->kick);
}

/* ---- packets and turns; the link's lock is held ---- */

static void use_switch(struct switch_flow *flow)
{
	bool helps = generation_helps(flow->stream.current) && reach_is_whole(&flow->stream.current->reach);

	atomic_store_explicit(&flow->rate_bps, flow->stream.current->membership.switch_info.rate_bps, memory_order_relaxed);
	if (helps == atomic_load_explicit(&flow->helps, memory_order_relaxed))
		return;
	atomic_store_explicit(&flow->helps, helps, memory_order_release);
	flow->gone += !helps;
	pthread_cond_broadcast(&flow->link->changed);
}

void switch_flow_packet(struct switch_flow *flow, struct generation *at, struct atp_packet *packet, void *words,
                        uint64_t now_ns)
{
	enum generation_event event = succession_packet(&flow->stream, at, packet, words, now_ns);

	if (event == GENERATION_COMPLETED)
		switch_sum_own_complete(flow, packet->sequence);
	else if (event == GENERATION_RESULT)
		switch_sum_receive(flow, packet->sequence, words);
	else if (packet->type == ATP_WELCOME || packet->type == ATP_PROBE)
		use_switch(flow);
}

static void end_failed(struct switch_flow *flow)
{
	switch_sum_end_all(flow);
	trains_flush(flow->link->udp);
	flow->has_ended = true;
	/* Its owners answer no member any more, and other flows may have the memory that they kept. */
	succession_close(&flow->stream);
	flow->link->kept_bytes -= flow->kept_bytes;
	flow->kept_bytes = 0;
	atomic_store(&flow->helps, false);
	pthread_cond_broadcast(&flow->link->changed);
}

/* Memory that a former generation kept is free again. A generation that was not prepared is tried for now. */
static void turn_over(struct switch_flow *flow)
{
	struct error err;
	bool lacks = flow->offering && succession_lacks(&flow->stream, flow->offering->generation);

	if (lacks && switch_flow_prepare(flow, &err) != ESP_OK)
		flow->failed = err.status;
	if (reserve(flow, succession_owners(&flow->stream), &err) != ESP_OK)
		abort(); /* it is not more than before */
}

static uint64_t wake_of(const struct switch_flow *flow)
{
	uint64_t wake = succession_wake_ns(&flow->stream);

	return flow->is_lingering && flow->linger_ns < wake ? flow->linger_ns : wake;
}

uint64_t switch_flow_pump(struct switch_flow *flow, uint64_t now_ns)
{
	struct endpoint_out out;

	if (flow->has_ended)
		return UINT64_MAX;
	turn_over(flow);
	if (flow->failed != ESP_OK) {
		end_failed(flow);
		return UINT64_MAX;
	}
	while (succession_greet(&flow->stream, now_ns, &out))
		switch_link_send(flow, &out);
	use_switch(flow);
	if (flow->is_lingering)
		switch_leave_pump(flow, now_ns);
	switch_sum_offer_all(flow);
	while (succession_next(&flow->stream, now_ns, &out))
		switch_link_send(flow, &out);
	return wake_of(flow);
}

/* ---- questions ---- */

bool switch_flow_is_busy(struct switch_flow *flow)
{
	pthread_mutex_lock(&flow->link->lock);
	bool is_busy = flow->first != NULL;
	pthread_mutex_unlock(&flow->link->lock);
	return is_busy;
}

bool switch_flow_helps(const struct switch_flow *flow)
{
	return atomic_load_explicit(&flow->helps, memory_order_acquire);
}

uint64_t switch_flow_rate_bps(const struct switch_flow *flow)
{
	return atomic_load(&flow->rate_bps);
}

bool switch_flow_await(struct switch_flow *flow, uint64_t until_ns)
{
	bool in_time = true;

	pthread_mutex_lock(&flow->link->lock);
	if (!flow->has_ended)
		succession_busy(&flow->stream, true, clock_now_ns()); /* hellos are lost, too */
	while (!switch_flow_helps(flow) && flow->failed == ESP_OK && in_time)
		in_time = switch_link_await(flow->link, until_ns);
	if (!flow->has_ended)
		succession_busy(&flow->stream, flow->first != NULL, clock_now_ns());
	pthread_mutex_unlock(&flow->link->lock);
	return switch_flow_helps(flow);
}

void switch_flow_stats(struct switch_flow *flow, struct switch_flow_stats *out)
{
	pthread_mutex_lock(&flow->link->lock);
	const struct sender_counters sent = succession_sent(&flow->stream);
	const struct owner_counters owned = succession_owned(&flow->stream);
	*out = (struct switch_flow_stats){
		.sums = flow->sums, .words = flow->summed_words, .originals = sent.originals, .direct = sent.direct,
		.resends = sent.resends, .bypasses = sent.bypasses, .refused = sent.refused + owned.events[OWNER_REFUSED],
		.added_here = owned.taken, .completed = owned.events[OWNER_COMPLETED], .gone = flow->gone,
		.generations = flow->stream.counting + 1,
	};
	pthread_mutex_unlock(&flow->link->lock);
}
