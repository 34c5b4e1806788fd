/*
 * switch_flow.c - one flow of a link: its sums, its elements, and what their results do.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "switch/worker/link_state.h"

#define WINDOW 512u                     /* numbers in flight, alike on all members */
#define OVERHEAD_BYTES (28u + ATP_HEADER_BYTES)
#define START_BYTES (60u << 10)         /* the paper's: what most ports of switches can hold */
#define HELLO_BUSY (100 * NS_PER_MS)
#define HELLO_IDLE (1000 * NS_PER_MS)
#define RTO_FLOOR (20 * NS_PER_MS)      /* not below the lateness of timers under load: 14 ms at the 99th percentile */
#define RTO_CAP (320 * NS_PER_MS)
#define LINGER_EVERY (50 * NS_PER_MS)
#define RESERVE (SENDER_NUMBERS / 8)    /* numbers that are not used: a terabyte of calls under way */
#define LAST_BYES 3u                    /* byes are not acknowledged */

/* ---- life ---- */

static enum esp_status open_sender(struct switch_flow *flow, struct error *err)
{
	uint32_t packet = OVERHEAD_BYTES + 4u * flow->words;
	struct sender_config config = {
		.flow = flow->id, .self = flow->self, .shape = flow->shape, .keys = &flow->keys, .window = WINDOW,
		.owners = flow->members,
		.congestion = {.packet_bytes = packet, .start_bytes = START_BYTES > 16 * packet ? START_BYTES : 16 * packet,
		               .ceiling_bytes = WINDOW * packet},
		.rto_floor_ns = RTO_FLOOR, .rto_cap_ns = RTO_CAP,
	};

	return sender_open(&config, &flow->sender, err);
}

/* Flows of a process share a budget. */
static enum esp_status reserve(struct switch_flow *flow, uint64_t bytes, struct error *err)
{
	struct switch_link *link = flow->link;

	pthread_mutex_lock(&link->lock);
	bool fits = link->kept_bytes + bytes <= SWITCH_FLOW_BUDGET;
	if (fits) {
		link->kept_bytes += bytes;
		flow->kept_bytes = bytes;
	}
	pthread_mutex_unlock(&link->lock);
	return fits ? ESP_OK : error_set(err, ESP_ELIMIT, "the flows of a process keep at most %u MiB of sums",
	                                 SWITCH_FLOW_BUDGET >> 20);
}

static enum esp_status open_owner(struct switch_flow *flow, struct error *err)
{
	struct owner_config config = {
		.flow = flow->id, .self = flow->self, .shape = flow->shape, .keys = &flow->keys, .window = WINDOW,
		.words_max = flow->words, .elements = (2 * WINDOW + flow->members - 1) / flow->members,
	};

	enum esp_status status = reserve(flow, owner_bytes(&config), err);
	return status == ESP_OK ? owner_open(&config, &flow->owner, err) : status;
}

static enum esp_status open_shape(struct switch_flow *flow, struct error *err)
{
	uint16_t group_of[ATP_CHILDREN_MAX] = {0};

	return shape_open(group_of, flow->members, 1, &flow->shape, err);
}

static void release(struct switch_flow *flow)
{
	pthread_mutex_lock(&flow->link->lock);
	flow->link->kept_bytes -= flow->kept_bytes;
	pthread_mutex_unlock(&flow->link->lock);
	sender_close(flow->sender);
	owner_close(flow->owner);
	tag_keys_fini(&flow->keys);
	shape_close(flow->shape);
	free(flow->peers);
	free(flow);
}

static enum esp_status open_parts(struct switch_flow *flow, const struct switch_flow_config *config, struct error *err)
{
	enum esp_status status = open_shape(flow, err);

	if (status == ESP_OK)
		status = tag_keys_init(&flow->keys, config->secret + 8, flow->words, err);
	if (status == ESP_OK)
		status = open_sender(flow, err);
	if (status == ESP_OK)
		status = open_owner(flow, err);
	if (status != ESP_OK)
		return status;
	flow->peers = calloc(flow->members, sizeof(*flow->peers));
	if (!flow->peers)
		return error_set(err, ESP_ENOMEM, "no memory for a flow of %u members", flow->members);
	for (uint32_t i = 0; i < flow->members; i++)
		flow->peers[i].address = config->addresses[i];
	/* Until the switch has answered, packets go straight. */
	sender_use_switch(flow->sender, false);
	owner_use_switch(flow->owner, false);
	return ESP_OK;
}

enum esp_status switch_flow_open(struct switch_link *link, const struct switch_flow_config *config,
                                 struct switch_flow **out, struct error *err)
{
	struct switch_flow *flow = calloc(1, sizeof(*flow));

	assert(config->members >= 2 && config->members <= ATP_CHILDREN_MAX && config->self < config->members);
	assert(config->words >= 1 && config->words <= ATP_WORDS_MAX);
	if (!flow)
		return error_set(err, ESP_ENOMEM, "no memory for a flow");
	flow->link = link;
	flow->id = bytes_get64(config->secret);
	flow->self = config->self;
	flow->members = config->members;
	flow->words = config->words;
	enum esp_status status = open_parts(flow, config, err);
	if (status != ESP_OK) {
		release(flow);
		return status;
	}
	struct membership_config membership = {.flow = flow->id, .self = flow->self, .words_max = flow->words,
	                                       .busy_ns = HELLO_BUSY, .idle_ns = HELLO_IDLE};
	membership_init(&flow->membership, &membership, clock_now_ns());
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

/* ---- elements ---- */

/* Where an element of a sum is in its caller's memory. */
struct place {
	const uint32_t *in;
	uint32_t *out;
	uint16_t count;
};

static struct place place_of(const struct switch_flow *flow, const struct switch_sum *sum, uint32_t element)
{
	const struct switch_piece *piece = sum->pieces + sum->piece_count - 1;

	while (piece->first > element)
		piece--;
	uint64_t at = (uint64_t)(element - piece->first) * flow->words, left = piece->words - at;
	return (struct place){
		.in = (const uint32_t *)piece->in + at,
		.out = (uint32_t *)piece->out + at,
		.count = (uint16_t)(left < flow->words ? left : flow->words),
	};
}

static struct switch_sum *sum_of(const struct switch_flow *flow, uint32_t sequence)
{
	struct switch_sum *sum = flow->first;

	while (sum && sequence - sum->first >= sum->elements)
		sum = sum->next;
	return sum;
}

static uint64_t elements_of(const struct switch_flow *flow, uint64_t words)
{
	return (words + flow->words - 1) / flow->words;
}

/* Sums may end in another order than they began, where the last elements of one are late. */
static void take_out(struct switch_flow *flow, struct switch_sum *sum)
{
	struct switch_sum **at = &flow->first, *before = NULL;

	while (*at != sum) {
		before = *at;
		at = &(*at)->next;
	}
	*at = sum->next;
	if (flow->last == sum)
		flow->last = before;
	if (flow->offering == sum)
		flow->offering = sum->next;
}

static void end_sum(struct switch_flow *flow, struct switch_sum *sum)
{
	for (uint32_t i = 0; i < sum->piece_count; i++)
		flow->summed_words += sum->pieces[i].words;
	flow->sums++;
	take_out(flow, sum);
	switch_link_end(flow->link, sum, ESP_OK);
	membership_busy(&flow->membership, flow->first != NULL, loop_now(&flow->link->loop));
}

/* The result of an element: it takes the place of the contribution, which is not needed any more. */
static void receive(struct switch_flow *flow, uint32_t sequence, const void *words)
{
	struct switch_sum *sum = sum_of(flow, sequence);

	assert(sum && sum->missing > 0);
	struct place place = place_of(flow, sum, sequence - sum->first);
	memcpy(place.out, words, 4 * (size_t)place.count);
	if (--sum->missing == 0)
		end_sum(flow, sum);
}

static void own_complete(struct switch_flow *flow, uint32_t sequence)
{
	const uint32_t *words = owner_sum(flow->owner, sequence);

	assert(words);
	sender_own_complete(flow->sender, sequence);
	receive(flow, sequence, words);
}

/* ---- offering ---- */

/* False: the owner has no room now. */
static bool offer_own(struct switch_flow *flow, const struct sender_element *element, const uint32_t *words)
{
	struct owner_part part = {.words = words, .call = element->call, .count = element->count, .kind = element->kind};
	uint32_t expected = sender_end(flow->sender), sequence;
	enum owner_event event = owner_own(flow->owner, expected, &part);

	if (event == OWNER_FULL)
		return false;
	bool taken = sender_offer(flow->sender, element, &sequence);
	assert(taken && sequence == expected);
	(void)taken;
	flow->offering->offered++;
	if (event == OWNER_COMPLETED)
		own_complete(flow, sequence);
	return true;
}

/* The next element; false: the window, or the owner, has no room. Elements go to owners in turn. */
static bool offer(struct switch_flow *flow)
{
	struct switch_sum *sum = flow->offering;
	uint32_t expected = sender_end(flow->sender), sequence;

	if (expected - sender_begin(flow->sender) >= WINDOW)
		return false;
	struct place place = place_of(flow, sum, sum->offered);
	struct sender_element element = {.words = place.in, .call = sum->call, .count = place.count,
	                                 .owner = (uint16_t)(expected % flow->members), .kind = (uint8_t)sum->kind};
	if (element.owner == flow->self)
		return offer_own(flow, &element, place.in);
	bool taken = sender_offer(flow->sender, &element, &sequence);
	assert(taken && sequence == expected);
	(void)taken;
	sum->offered++;
	return true;
}

static void offer_all(struct switch_flow *flow)
{
	while (flow->offering) {
		struct switch_sum *sum = flow->offering;
		bool goes_on = offer(flow);
		if (!goes_on)
			return;
		/* It may have ended by that, and be gone. */
		if (flow->offering == sum && sum->offered == sum->elements)
			flow->offering = sum->next;
	}
}

bool switch_flow_has_numbers(struct switch_flow *flow, uint64_t words, uint32_t pieces)
{
	pthread_mutex_lock(&flow->link->lock);
	/* Calls that have been asked about and have not begun need some, too. */
	uint64_t needed = elements_of(flow, words) + pieces + RESERVE;
	uint64_t left = flow->sender ? SENDER_NUMBERS - flow->numbered : 0;
	pthread_mutex_unlock(&flow->link->lock);
	return needed < left;
}

bool switch_flow_start(struct switch_flow *flow, struct switch_sum *sum)
{
	struct switch_link *link = flow->link;
	uint64_t elements = 0;

	for (uint32_t i = 0; i < sum->piece_count; i++) {
		assert(sum->pieces[i].words > 0);
		sum->pieces[i].first = (uint32_t)elements;
		elements += elements_of(flow, sum->pieces[i].words);
	}
	assert(elements > 0 && elements < SENDER_NUMBERS);
	pthread_mutex_lock(&link->lock);
	bool ok = flow->failed == ESP_OK;
	if (ok) {
		sum->next = NULL;
		sum->elements = sum->missing = (uint32_t)elements;
		sum->offered = 0;
		sum->first = flow->numbered; /* not by the last sum in the list: a later one may have ended before it */
		flow->numbered += sum->elements;
		if (flow->last)
			flow->last->next = sum;
		else
			flow->first = sum;
		flow->last = sum;
		if (!flow->offering)
			flow->offering = sum;
		membership_busy(&flow->membership, true, clock_now_ns());
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
	bool helps = membership_helps(&flow->membership);

	if (helps == atomic_load_explicit(&flow->helps, memory_order_relaxed))
		return;
	atomic_store_explicit(&flow->helps, helps, memory_order_release);
	flow->gone += !helps;
	sender_use_switch(flow->sender, helps);
	owner_use_switch(flow->owner, helps);
	pthread_cond_broadcast(&flow->link->changed);
}

void switch_flow_packet(struct switch_flow *flow, struct atp_packet *packet, void *words, uint64_t now_ns)
{
	if (!flow->sender)
		return;
	switch ((enum atp_type)packet->type) {
	case ATP_WELCOME:
		if (membership_welcome(&flow->membership, packet, words, now_ns))
			atomic_store(&flow->rate_bps, flow->membership.switch_info.rate_bps);
		use_switch(flow);
		break;
	case ATP_BYE: owner_bye(flow->owner, packet); break;
	case ATP_ASK: sender_ask(flow->sender, packet); break;
	case ATP_GRADIENT:
		if (owner_packet(flow->owner, packet, words) == OWNER_COMPLETED)
			own_complete(flow, packet->sequence);
		break;
	case ATP_RESULT:
		if (sender_result(flow->sender, packet, words, now_ns) == SENDER_NEW)
			receive(flow, packet->sequence, words);
		break;
	case ATP_HELLO: break;
	}
}

static void end_failed(struct switch_flow *flow)
{
	while (flow->first) {
		struct switch_sum *sum = flow->first;
		take_out(flow, sum);
		switch_link_end(flow->link, sum, flow->failed);
	}
	trains_flush(flow->link->udp);
	sender_close(flow->sender);
	owner_close(flow->owner);
	flow->sender = NULL;
	flow->owner = NULL;
	atomic_store(&flow->helps, false);
	pthread_cond_broadcast(&flow->link->changed);
}

static void linger(struct switch_flow *flow, uint64_t now_ns)
{
	if (owner_is_quiet(flow->owner)) {
		pthread_cond_broadcast(&flow->link->changed);
		flow->linger_ns = UINT64_MAX;
	} else if (now_ns >= flow->linger_ns) {
		owner_linger(flow->owner);
		flow->linger_ns = now_ns + LINGER_EVERY;
	}
}

static uint64_t wake_of(const struct switch_flow *flow)
{
	uint64_t wake = membership_wake_ns(&flow->membership), sender = sender_wake_ns(flow->sender);

	wake = sender < wake ? sender : wake;
	return flow->is_lingering && flow->linger_ns < wake ? flow->linger_ns : wake;
}

uint64_t switch_flow_pump(struct switch_flow *flow, uint64_t now_ns)
{
	struct endpoint_out out;

	if (!flow->sender)
		return UINT64_MAX;
	if (flow->failed != ESP_OK) {
		end_failed(flow);
		return UINT64_MAX;
	}
	while (membership_next(&flow->membership, now_ns, &out))
		switch_link_send(flow, &out);
	use_switch(flow);
	if (flow->is_lingering)
		linger(flow, now_ns);
	offer_all(flow);
	while (owner_next(flow->owner, &out))
		switch_link_send(flow, &out);
	while (sender_next(flow->sender, now_ns, &out))
		switch_link_send(flow, &out);
	return wake_of(flow);
}

/* ---- questions ---- */

bool switch_flow_helps(const struct switch_flow *flow)
{
	return atomic_load_explicit(&flow->helps, memory_order_acquire);
}

uint64_t switch_flow_rate_bps(const struct switch_flow *flow)
{
	return atomic_load(&flow->rate_bps);
}

/* With the lock held; false: that time has come. */
static bool wait_for_change(struct switch_link *link, uint64_t until_ns)
{
	struct timespec until = {.tv_sec = (time_t)(until_ns / NS_PER_S), .tv_nsec = (long)(until_ns % NS_PER_S)};

	return pthread_cond_timedwait(&link->changed, &link->lock, &until) == 0;
}

bool switch_flow_await(struct switch_flow *flow, uint64_t until_ns)
{
	bool in_time = true;

	pthread_mutex_lock(&flow->link->lock);
	membership_busy(&flow->membership, true, clock_now_ns()); /* hellos are lost, too */
	while (!switch_flow_helps(flow) && flow->failed == ESP_OK && in_time)
		in_time = wait_for_change(flow->link, until_ns);
	membership_busy(&flow->membership, flow->first != NULL, clock_now_ns());
	pthread_mutex_unlock(&flow->link->lock);
	return switch_flow_helps(flow);
}

/* With the lock held: some byes, as none is acknowledged. */
static void say_bye(struct switch_flow *flow)
{
	for (uint32_t i = 0; i < LAST_BYES && flow->sender && flow->failed == ESP_OK; i++) {
		sender_finish(flow->sender);
		(void)switch_flow_pump(flow, clock_now_ns());
		trains_flush(flow->link->udp);
	}
}

/* With the lock held, which is given back meanwhile. */
static bool is_awaited(struct switch_flow *flow, switch_is_gone_fn *is_gone, void *context)
{
	for (uint16_t member = 0; member < flow->members; member++) {
		if (flow->failed != ESP_OK || owner_is_done(flow->owner, member))
			continue;
		pthread_mutex_unlock(&flow->link->lock);
		bool gone = is_gone(context, member);
		pthread_mutex_lock(&flow->link->lock);
		if (!gone && flow->failed == ESP_OK && !owner_is_done(flow->owner, member))
			return true;
	}
	return false;
}

bool switch_flow_linger(struct switch_flow *flow, uint64_t until_ns, switch_is_gone_fn *is_gone, void *context)
{
	struct switch_link *link = flow->link;
	uint64_t now = clock_now_ns();

	pthread_mutex_lock(&link->lock);
	say_bye(flow);
	flow->is_lingering = true;
	flow->linger_ns = 0;
	loop_post(&link->loop, &link->kick);
	bool awaits = is_awaited(flow, is_gone, context);
	for (; awaits && now < until_ns; now = clock_now_ns()) {
		(void)wait_for_change(link, now + LINGER_EVERY < until_ns ? now + LINGER_EVERY : until_ns);
		awaits = is_awaited(flow, is_gone, context);
	}
	say_bye(flow);
	pthread_mutex_unlock(&link->lock);
	return !awaits;
}

void switch_flow_stats(struct switch_flow *flow, struct switch_flow_stats *out)
{
	*out = (struct switch_flow_stats){0};
	pthread_mutex_lock(&flow->link->lock);
	out->sums = flow->sums;
	out->words = flow->summed_words;
	out->gone = flow->gone;
	if (flow->sender) {
		const struct sender_counters *sender = sender_counters(flow->sender);
		const struct owner_counters *owner = owner_counters(flow->owner);
		out->originals = sender->originals;
		out->direct = sender->direct;
		out->resends = sender->resends;
		out->bypasses = sender->bypasses;
		out->refused = sender->refused + owner->events[OWNER_REFUSED];
		out->added_here = owner->taken;
		out->completed = owner->events[OWNER_COMPLETED];
	}
	pthread_mutex_unlock(&flow->link->lock);
}
