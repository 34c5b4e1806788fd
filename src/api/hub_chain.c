#include "api/hub_chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "fabric/gate.h"
#include "fabric/worker/aggregator.h"
#include "fabric/worker/peer_dial.h"
#include "math/math.h"
#include "wire/crc32c.h"

#define INPUTS_MOST 64u
#define PIECE UINT64_C(131072)           /* bytes that are added at once, at most */
#define SILENCE_MOST (2500 * NS_PER_MS) /* of a worker before this one, from the start on */

struct chain {
	struct hub_link *link;
	struct peer_port *port;
	const struct sched_link_decision *decision;
	const struct hub_update *full;
	struct aggregator_update inputs[INPUTS_MOST];
	uint32_t count;
	float *data;                /* owned: the sum, tensor by tensor */
	const void **gradients;     /* owned: into data */
	const void *const *own;     /* this worker's update */
	uint64_t bytes, at;         /* at: so many are added */
	uint64_t start_ns, until_ns, waited_ns; /* waited_ns: for others */
	uint32_t chunk;             /* the first one of which not all is added */
	uint64_t chunk_end;         /* bytes up to the end of it */
	uint64_t took_ns;           /* 0: the next worker may not have it */
};

/* ---- life ---- */

static void chain_fini(struct chain *chain)
{
	for (uint32_t i = 0; i < chain->count; i++)
		aggregator_put(chain->port, &chain->inputs[i]);
	free(chain->data);
	free(chain->gradients);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool chain_init(struct chain *chain, struct hub_link *link, struct peer_port *port,
                       const struct sched_link_decision *decision, const struct hub_update *full)
{
	const struct hub_layout *layout = hub_link_layout(link);
	uint64_t now = clock_now_ns(), most = earlier(full->deadline_ns, GATE_PATIENCE_MOST), at = 0;

	*chain = (struct chain){.link = link,
	                        .port = port,
	                        .decision = decision,
	                        .full = full,
	                        .bytes = hub_link_bytes(link),
	                        .data = malloc(hub_link_bytes(link)),
	                        .gradients = calloc(layout->tensors + UINT64_C(1), sizeof(*chain->gradients)),
	                        .own = full->gradients,
	                        .start_ns = now + earlier(decision->decide.start_ns, most),
	                        .until_ns = full->deadline_ns < UINT64_MAX - now ? now + full->deadline_ns : UINT64_MAX};
	if (!chain->data || !chain->gradients)
		return false;
	for (uint32_t i = 0; i < layout->tensors; i++) {
		chain->gradients[i] = chain->data + at;
		at += layout->tensor[i].elements;
	}
	chain->chunk_end = hub_layout_chunk_bytes(layout, 0);
	return true;
}

/* Waits for the streams of the workers before this one. False: they have not all begun in time. */
static bool await_inputs(struct chain *chain)
{
	const struct fabric_msg_decide *decide = &chain->decision->decide;
	uint64_t wait = earlier(earlier(decide->wait_ns, chain->full->deadline_ns), GATE_PATIENCE_MOST);
	uint32_t most = decide->inputs < INPUTS_MOST ? decide->inputs : INPUTS_MOST;

	if (most > 0)
		chain->count = aggregator_await(chain->port, chain->decision->epoch, decide->bundle, most,
		                                clock_now_ns() + wait, chain->inputs);
	return chain->count >= most;
}

static uint64_t members_of(const struct chain *chain)
{
	uint64_t members = UINT64_C(1) << hub_link_worker(chain->link);

	for (uint32_t i = 0; i < chain->count; i++)
		members |= chain->inputs[i].members;
	return members;
}

static void await_start(const struct chain *chain)
{
	const uint64_t start = earlier(chain->start_ns, chain->until_ns);
	const struct timespec at = {(time_t)(start / NS_PER_S), (long)(start % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		continue;
}

/* ---- adding ---- */

/* Elements of this worker's own update, from one to another. */
static void copy_own(struct chain *chain, uint64_t from, uint64_t until)
{
	const struct hub_layout *layout = hub_link_layout(chain->link);
	uint64_t first = 0;

	for (uint32_t i = 0; i < layout->tensors && first < until; i++) {
		uint64_t end = first + layout->tensor[i].elements;
		uint64_t begin = from > first ? from : first, stop = until < end ? until : end;

		if (begin < stop)
			memcpy(chain->data + begin, (const float *)chain->own[i] + (begin - first), (stop - begin) * sizeof(float));
		first = end;
	}
}

/* So many bytes of all inputs are there; 0: one of them has failed. Whole numbers of elements. */
static uint64_t await_more(struct chain *chain)
{
	uint64_t began = clock_now_ns(), ready = earlier(chain->at + PIECE, chain->bytes);
	uint64_t until = earlier(began + SILENCE_MOST, chain->until_ns);

	for (uint32_t i = 0; i < chain->count && ready > 0; i++) {
		uint64_t some =
			aggregator_await_bytes(chain->port, &chain->inputs[i], chain->at + sizeof(float) - 1, until);

		ready = earlier(ready, some & ~(uint64_t)(sizeof(float) - 1));
		if (ready == chain->bytes && !aggregator_await_end(chain->port, &chain->inputs[i], until))
			ready = 0;
	}
	chain->waited_ns += clock_now_ns() - began;
	return ready;
}

/* Adds what has come. False: an input has failed. The last bytes are added when all checksums are right. */
static bool add_more(struct chain *chain)
{
	uint64_t ready = await_more(chain), from = chain->at / sizeof(float), until = ready / sizeof(float);

	if (ready == 0)
		return false;
	copy_own(chain, from, until);
	for (uint32_t i = 0; i < chain->count; i++)
		math_fold(ESP_F32, ESP_SUM)(chain->data + from, chain->data + from, chain->inputs[i].data + from, until - from);
	chain->at = ready;
	return true;
}

/* ---- to the next worker ---- */

static enum esp_status put_msg(const struct chain *chain, int fd, const struct fabric_msg *msg, struct error *err)
{
	uint8_t bytes[FABRIC_MSG_BYTES];
	struct pace any = {.budget = 1};

	fabric_msg_encode(msg, bytes);
	return peer_put(fd, bytes, sizeof(bytes), &any, chain->until_ns, err);
}

/* The first of a chain sets the pace. */
static uint64_t rate_of(const struct chain *chain)
{
	uint64_t rate = chain->decision->decide.rate;

	return chain->count > 0 ? pace_behind(rate) : rate;
}

static enum esp_status put_sum(struct chain *chain, int fd, struct error *err)
{
	struct fabric_msg given = {.type = FABRIC_GIVEN,
	                           .given = {chain->decision->epoch, chain->decision->decide.bundle, 0}};
	enum esp_status status = ESP_OK;
	struct pace pace = {.budget = 0};

	pace_set(&pace, rate_of(chain), clock_now_ns());
	while (status == ESP_OK && chain->at < chain->bytes) {
		const uint64_t from = chain->at;
		const uint8_t *bytes = (const uint8_t *)chain->data + from;

		if (!add_more(chain))
			return error_set(err, ESP_ELINK, "a worker of the chain has gone");
		given.given.crc = crc32c(given.given.crc, bytes, chain->at - from);
		status = peer_put(fd, bytes, chain->at - from, &pace, earlier(clock_now_ns() + SILENCE_MOST, chain->until_ns),
		                  err);
	}
	return status == ESP_OK ? put_msg(chain, fd, &given, err) : status;
}

static enum esp_status give_sum(struct chain *chain, int fd, struct error *err)
{
	const struct fabric_msg give = {.type = FABRIC_GIVE,
	                                .give = {.epoch = chain->decision->epoch,
	                                         .bundle = chain->decision->decide.bundle,
	                                         .bytes = chain->bytes,
	                                         .members = members_of(chain)}};
	struct fabric_msg taken;
	enum esp_status status = put_msg(chain, fd, &give, err);

	if (status != ESP_OK)
		return status;
	await_start(chain);
	uint64_t began = clock_now_ns();
	status = put_sum(chain, fd, err);
	if (status == ESP_OK)
		status = peer_take(fd, earlier(clock_now_ns() + SILENCE_MOST, chain->until_ns), &taken, err);
	if (status == ESP_OK && taken.type == FABRIC_TAKEN)
		chain->took_ns = clock_now_ns() - began - chain->waited_ns + 1;
	return status;
}

/* After the hub's grant. If it fails the worker behind notices, and the hub says so to all of the chain. */
static void send_on(void *context)
{
	struct chain *chain = context;
	const struct fabric_msg_decide *decide = &chain->decision->decide;
	const struct peer_dial dial = {.ticket = hub_link_ticket(chain->link),
	                               .worker = hub_link_worker(chain->link),
	                               .to = decide->next_hop,
	                               .host = decide->host,
	                               .port = decide->port,
	                               .until_ns = chain->until_ns};
	int fd;

	if (!await_inputs(chain) || peer_dial(&dial, &fd, NULL) != ESP_OK)
		return;
	(void)!give_sum(chain, fd, NULL);
	close(fd);
}

static enum esp_status update_member(struct chain *chain, struct hub_update *full, struct hub_update_result *out,
                                     struct error *err)
{
	full->send = send_on;
	full->context = chain;
	enum esp_status status = hub_link_update(chain->link, full, out, err);
	if (status == ESP_OK)
		out->took_ns = out->why == GATE_BROKEN ? 0 : chain->took_ns;
	return status;
}

/* ---- to the hub ---- */

/* Chunks of the layout of which all is added. */
static uint32_t count_chunks(struct chain *chain)
{
	const struct hub_layout *layout = hub_link_layout(chain->link);

	while (chain->chunk < layout->chunks && chain->chunk_end <= chain->at) {
		if (++chain->chunk < layout->chunks)
			chain->chunk_end += hub_layout_chunk_bytes(layout, chain->chunk);
	}
	return chain->chunk;
}

static void fill(void *context)
{
	struct chain *chain = context;

	while (chain->at < chain->bytes) {
		if (!add_more(chain)) {
			hub_link_spoil(chain->link);
			return;
		}
		hub_link_fill(chain->link, count_chunks(chain));
	}
}

/* Without all streams it gives its own update alone, and the hub breaks those of the others. */
static enum esp_status update_last(struct chain *chain, struct hub_update *full, struct hub_update_result *out,
                                   struct error *err)
{
	uint64_t now;

	if (await_inputs(chain) && members_of(chain) == chain->decision->decide.members) {
		full->members = chain->decision->decide.members;
		full->gradients = chain->gradients;
		full->fill = fill;
		full->rate = rate_of(chain);
		full->context = chain;
	} else {
		full->bundle = 0;
		full->aggregator = UINT32_MAX;
	}
	await_start(chain);
	now = clock_now_ns();
	full->deadline_ns = chain->until_ns == UINT64_MAX ? UINT64_MAX : chain->until_ns > now ? chain->until_ns - now : 0;
	enum esp_status status = hub_link_update(chain->link, full, out, err);
	if (status == ESP_OK && full->fill && out->took_ns > chain->waited_ns)
		out->took_ns -= chain->waited_ns;
	return status;
}

enum esp_status api_chain_update(struct hub_link *link, struct peer_port *port,
                                 const struct sched_link_decision *decision, struct hub_update *full,
                                 struct hub_update_result *out, struct error *err)
{
	enum esp_status status;
	struct chain chain;

	full->bundle = decision->decide.bundle;
	full->aggregator = decision->decide.aggregator;
	if (!chain_init(&chain, link, port, decision, full))
		status = error_set(err, ESP_ENOMEM, "no memory for a sum of updates");
	else if (decision->decide.next_hop == FABRIC_TO_HUB)
		status = update_last(&chain, full, out, err);
	else
		status = update_member(&chain, full, out, err);
	chain_fini(&chain);
	return status;
}
