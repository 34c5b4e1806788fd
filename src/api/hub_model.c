/*
 * hub_model.c - the model of an asynchronous job comes as its scheduler says: from the hub or from another worker, and
 * on to others while it comes (fabric/worker/relay.h). Without a scheduler, and where a tree has failed, from the hub.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/api.h"
#include "api/hub_update.h"
#include "base/clock.h"
#include "fabric/worker/relay_fetch.h"
#include "math/math.h"

#define START_MOST (10 * NS_PER_S) /* no time of a scheduler holds a caller up for longer */

/* One read. */
struct read {
	struct hub_link *link;
	struct api_updates *updates;
	void *const *weights;
	uint64_t until_ns;
};

static uint64_t rest_of(const struct read *read)
{
	uint64_t now = clock_now_ns();

	return read->until_ns == UINT64_MAX ? UINT64_MAX : read->until_ns > now ? read->until_ns - now : 0;
}

static void sleep_until(uint64_t until_ns)
{
	const struct timespec at = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		continue;
}

static void await_start(const struct read *read, uint64_t start_ns)
{
	uint64_t start = clock_now_ns() + (start_ns < START_MOST ? start_ns : START_MOST);

	sleep_until(start < read->until_ns ? start : read->until_ns);
}

/* ---- from the hub ---- */

static enum esp_status read_directly(const struct read *read, uint64_t rate, uint64_t *out_version, struct error *err)
{
	const struct hub_model model = {.weights = read->weights, .rate = rate, .deadline_ns = rest_of(read)};

	return hub_link_model(read->link, &model, out_version, err);
}

/* Chunks of a model as they come from the hub, on several lanes: what is there from the beginning on is passed on. */
struct passing {
	const struct read *read;
	const struct hub_layout *layout;
	struct relay_model *model;
	uint64_t *place; /* owned: by tensor, bytes before it */
	uint8_t *is_there; /* owned: by chunk */
	uint32_t next;   /* the first chunk that is not there */
	uint64_t ready;
};

/* The link's thread. */
static void on_arrived(void *context, uint32_t chunk)
{
	struct passing *passing = context;
	const struct hub_layout *layout = passing->layout;
	const struct layout_chunk *cut = &layout->chunk[chunk];
	uint64_t at = (cut->at - layout->place[cut->tensor].at) *
	              math_type_bytes((enum esp_type)layout->tensor[cut->tensor].type);

	memcpy(relay_data(passing->model) + passing->place[cut->tensor] + at,
	       (const uint8_t *)passing->read->weights[cut->tensor] + at, hub_layout_chunk_bytes(layout, chunk));
	passing->is_there[chunk] = 1;
	if (chunk != passing->next)
		return;
	for (; passing->next < layout->chunks && passing->is_there[passing->next]; passing->next++)
		passing->ready += hub_layout_chunk_bytes(layout, passing->next);
	relay_advance(passing->read->updates->port, passing->model, passing->ready);
}

static uint64_t tensor_bytes(const struct hub_layout *layout, uint32_t tensor)
{
	return layout->tensor[tensor].elements * math_type_bytes((enum esp_type)layout->tensor[tensor].type);
}

static bool passing_init(struct passing *passing, const struct read *read, struct relay_model *model)
{
	const struct hub_layout *layout = hub_link_layout(read->link);
	uint64_t at = 0;

	*passing = (struct passing){.read = read,
	                            .layout = layout,
	                            .model = model,
	                            .place = calloc(layout->tensors + UINT64_C(1), sizeof(*passing->place)),
	                            .is_there = calloc(layout->chunks + UINT64_C(1), 1)};
	if (!passing->place || !passing->is_there)
		return false;
	for (uint32_t i = 0; i < layout->tensors; i++) {
		passing->place[i] = at;
		at += tensor_bytes(layout, i);
	}
	return true;
}

static enum esp_status read_and_pass_on(const struct read *read, const struct sched_link_model *decision,
                                        uint64_t *out_version, struct error *err)
{
	struct peer_port *port = read->updates->port;
	struct relay_model *model = relay_open(port, decision->epoch, decision->model.tree);
	struct passing passing = {0};
	enum esp_status status;

	if (model && passing_init(&passing, read, model)) {
		const struct hub_model from = {.weights = read->weights,
		                               .rate = decision->model.rate,
		                               .deadline_ns = rest_of(read),
		                               .arrived = on_arrived,
		                               .context = &passing};
		status = hub_link_model(read->link, &from, out_version, err);
		if (status == ESP_OK)
			relay_finish(port, model, *out_version);
	} else {
		status = read_directly(read, decision->model.rate, out_version, err);
	}
	free(passing.place);
	free(passing.is_there);
	relay_put(port, model);
	return status;
}

/* ---- from another worker ---- */

static void take_over(const struct read *read, const uint8_t *data)
{
	const struct hub_layout *layout = hub_link_layout(read->link);
	uint64_t at = 0;

	for (uint32_t i = 0; i < layout->tensors; i++) {
		uint64_t bytes = tensor_bytes(layout, i);

		if (bytes > 0)
			memcpy(read->weights[i], data + at, bytes);
		at += bytes;
	}
}

/* False: it is to be read from the hub. The workers behind this one learn so, too, as the model is put unfinished. */
static bool fetch(const struct read *read, const struct sched_link_model *decision, uint64_t *out_version)
{
	struct peer_port *port = read->updates->port;
	struct relay_model *model = relay_open(port, decision->epoch, decision->model.tree);
	const struct relay_fetching fetching = {.ticket = hub_link_ticket(read->link),
	                                        .worker = hub_link_worker(read->link),
	                                        .decision = decision,
	                                        .port = port,
	                                        .model = model,
	                                        .bytes = hub_link_bytes(read->link),
	                                        .until_ns = read->until_ns};
	bool has_come = model && relay_fetch(&fetching, out_version, NULL) == ESP_OK;

	if (has_come) {
		relay_finish(port, model, *out_version);
		take_over(read, relay_data(model));
	}
	relay_put(port, model);
	return has_come;
}

/* ---- both ---- */

/* False: there is no scheduler, it cannot be asked now, or another thread asks it something. */
static bool ask(const struct read *read, struct sched_link_model *out)
{
	struct api_updates *updates = read->updates;
	uint64_t bytes = hub_link_bytes(read->link);

	if (!updates->scheduler || !updates->port || bytes == 0 || pthread_mutex_trylock(&updates->lock) != 0)
		return false;
	bool is_decided = sched_link_want(updates->scheduler, bytes, api_scheduler_until(read->until_ns), out);
	pthread_mutex_unlock(&updates->lock);
	return is_decided;
}

/* The scheduler learns the rate of this worker's link from it. */
static void tell(const struct read *read, const struct sched_link_model *decision, uint64_t began_ns)
{
	const struct fabric_msg_got got = {.tree = decision->model.tree, .took_ns = clock_now_ns() - began_ns + 1};
	struct api_updates *updates = read->updates;

	if (pthread_mutex_trylock(&updates->lock) != 0)
		return;
	sched_link_got(updates->scheduler, &got);
	pthread_mutex_unlock(&updates->lock);
}

static enum esp_status read_as_decided(const struct read *read, const struct sched_link_model *decision,
                                       uint64_t *out_version, struct error *err)
{
	enum esp_status status;

	await_start(read, decision->model.start_ns);
	uint64_t began = clock_now_ns();
	if (decision->model.outputs > 0)
		status = read_and_pass_on(read, decision, out_version, err);
	else
		status = read_directly(read, decision->model.rate, out_version, err);
	if (status == ESP_OK)
		tell(read, decision, began);
	return status;
}

static enum esp_status run(const struct read *read, uint64_t *out_version, struct error *err)
{
	struct sched_link_model decision;

	if (!ask(read, &decision))
		return read_directly(read, 0, out_version, err);
	if (decision.model.source == FABRIC_FROM_HUB)
		return read_as_decided(read, &decision, out_version, err);
	if (fetch(read, &decision, out_version))
		return ESP_OK;
	return read_directly(read, 0, out_version, err);
}

static enum esp_status check_weights(const char *who, const struct esp_hub *hub, void *const *weights)
{
	const struct hub_layout *layout = hub_link_layout(api_hub_link(hub));

	if (!layout)
		return api_refuse_with(who, ESP_ESTATE, "no model is declared: call esp_hub_init() first");
	for (uint32_t i = 0; i < layout->tensors; i++) {
		if (!weights || (!weights[i] && layout->tensor[i].elements > 0))
			return api_refuse_with(who, ESP_EINVAL, "weights, or weights[%u], is NULL", i);
	}
	if (!api_hub_updates(hub))
		return api_refuse_with(who, ESP_EUNSUPPORTED, "job %s trains in rounds: it was created without --mode async",
		                       hub_link_job(api_hub_link(hub)));
	return ESP_OK;
}

enum esp_status esp_hub_model(struct esp_hub *hub, void *const *weights, uint64_t *out_version)
{
	struct error err = {0};
	enum esp_status status = api_hub_check(__func__, hub);

	if (status == ESP_OK)
		status = api_check_out(__func__, out_version, "out_version");
	if (status == ESP_OK)
		status = check_weights(__func__, hub, weights);
	if (status != ESP_OK)
		return status;
	uint64_t now = clock_now_ns(), deadline = api_hub_deadline(hub, 0);
	const struct read read = {.link = api_hub_link(hub),
	                          .updates = api_hub_updates(hub),
	                          .weights = weights,
	                          .until_ns = deadline < UINT64_MAX - now ? now + deadline : UINT64_MAX};
	status = run(&read, out_version, &err);
	return status == ESP_OK ? ESP_OK : api_refuse_with(__func__, status, "%s", err.text);
}
