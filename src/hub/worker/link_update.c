/*
 * link_update.c - updates of an asynchronous job: offered to the hub, sent once they are granted, applied or dropped as
 * a whole. And whole models, read with the version that they have at least.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "hub/worker/link_state.h"
#include "math/math.h"
#include "wire/hub_frame.h"

/* ---- the link's thread: messages ---- */

bool link_update_take_msg(struct hub_link *link, struct hub_msg *out)
{
	struct link_update *update = &link->update;

	pthread_mutex_lock(&link->lock);
	bool is_offer = update->is_unsent, is_spoil = !is_offer && update->spoils;
	if (is_spoil)
		*out = (struct hub_msg){.type = HUB_MSG_SPOIL, .spoil = update->offer.number};
	else
		*out = (struct hub_msg){.type = HUB_MSG_OFFER, .offer = update->offer};
	update->is_unsent = false;
	update->spoils = update->spoils && !is_spoil;
	pthread_mutex_unlock(&link->lock);
	return is_offer || is_spoil;
}

bool link_update_on_msg(struct hub_link *link, const struct hub_msg *msg)
{
	struct link_update *update = &link->update;
	bool fits = false;

	pthread_mutex_lock(&link->lock);
	if (msg->type == HUB_MSG_GRANT && update->state == LINK_UPDATE_OFFERED && msg->grant == update->offer.number) {
		update->state = LINK_UPDATE_GRANTED;
		fits = true;
	} else if (msg->type == HUB_MSG_SPOIL && update->state == LINK_UPDATE_GRANTED &&
	           msg->spoil == update->offer.number) {
		update->is_spoiled = fits = true;
	} else if (msg->type == HUB_MSG_RESULT && msg->result.number == update->offer.number &&
	           (update->state == LINK_UPDATE_OFFERED || update->state == LINK_UPDATE_GRANTED)) {
		update->result = msg->result;
		update->state = LINK_UPDATE_SETTLED;
		fits = true;
	}
	pthread_cond_broadcast(&link->changed);
	pthread_mutex_unlock(&link->lock);
	return fits;
}

bool link_update_is_late(struct hub_link *link)
{
	pthread_mutex_lock(&link->lock);
	bool is_late = link->update.is_late;
	pthread_mutex_unlock(&link->lock);
	return is_late;
}

/* ---- the link's thread: pace ---- */

static uint64_t fill(struct hub_link *link, struct pace *pace, uint64_t now_ns)
{
	bool was_empty = pace->budget <= 0;

	if (pace->rate == 0)
		return UINT64_MAX;
	if (!pace_fill(pace, now_ns))
		return pace_due(pace);
	for (uint32_t i = 0; was_empty && i < link->lane_count; i++) {
		client_lane_refill(link->lanes[i].client);
		link->lanes[i].is_active = true;
	}
	return UINT64_MAX;
}

/* There is more of an update that is pushed while it comes. */
static void look_filled(struct hub_link *link)
{
	uint32_t ready = atomic_load(&link->chunks_ready);

	for (uint32_t i = 0; ready != link->chunks_seen && i < link->lane_count; i++) {
		client_lane_refill(link->lanes[i].client);
		link->lanes[i].is_active = true;
	}
	link->chunks_seen = ready;
}

uint64_t link_pace_turn(struct hub_link *link, uint64_t now_ns)
{
	if (link->delay_bound == 0)
		return UINT64_MAX;
	look_filled(link);
	uint64_t push = fill(link, &link->push_pace, now_ns), pull = fill(link, &link->pull_pace, now_ns);
	return push < pull ? push : pull;
}

/* ---- the caller's side ---- */

static enum esp_status check_async(const struct hub_link *link, struct error *err)
{
	if (!link->is_declared)
		return error_set(err, ESP_ESTATE, "no tensors are declared: call esp_hub_init() first");
	if (link->delay_bound == 0)
		return error_set(err, ESP_EUNSUPPORTED, "job %s trains in rounds: it was created without --mode async",
		                 link->ticket.name);
	return ESP_OK;
}

/* With the lock held. The thread makes of a late update a failure of the link. */
static enum esp_status await(struct hub_link *link, uint8_t state, uint64_t until_ns)
{
	const struct timespec until = {(time_t)(until_ns / NS_PER_S), (long)(until_ns % NS_PER_S)};

	while (link->update.state < state && link->failure.status == ESP_OK) {
		if (until_ns == UINT64_MAX || link->update.is_late) {
			pthread_cond_wait(&link->changed, &link->lock);
		} else if (pthread_cond_timedwait(&link->changed, &link->lock, &until) == ETIMEDOUT) {
			link->update.is_late = true;
			poller_wake(&link->poller);
		}
	}
	return link->update.state >= state ? ESP_OK : link->failure.status;
}

static enum esp_status end_all(struct hub_op **ops, uint32_t count, bool reads, uint64_t *out_least, struct error *err)
{
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; i < count; i++) {
		if (!ops[i])
			continue;
		enum esp_status one = hub_op_wait(ops[i], UINT64_MAX);

		if (one != ESP_OK && status == ESP_OK)
			status = hub_op_failure(ops[i], err);
		if (one == ESP_OK && reads && hub_op_version(ops[i]) < *out_least)
			*out_least = hub_op_version(ops[i]);
		hub_op_put(ops[i]);
	}
	return status;
}

/*
 * The same call on all tensors, to their end. *out_least: the least version of a tensor that was read. update: whose
 * gradients are filled in meanwhile; NULL: none.
 */
static enum esp_status run_all(struct hub_link *link, struct hub_op_call call, const void *const *gradients,
                               void *const *weights, const struct hub_update *update, uint64_t *out_least,
                               struct error *err)
{
	uint32_t count = link->layout.tensors;
	struct hub_op **ops = calloc(count + 1u, sizeof(struct hub_op *));
	enum esp_status status = ESP_OK;
	struct error ended = {0};

	*out_least = UINT64_MAX;
	if (!ops)
		return error_set(err, ESP_ENOMEM, "no memory for calls on %u tensors", count);
	for (uint32_t i = 0; status == ESP_OK && i < count; i++) {
		call.tensor = i;
		call.gradient = gradients ? gradients[i] : NULL;
		call.weights = weights ? weights[i] : NULL;
		status = hub_op_start(link, &call, &ops[i], err);
	}
	if (update && update->fill)
		update->fill(update->context);
	enum esp_status end = end_all(ops, count, call.kind == HUB_PULL, out_least, &ended);
	if (status == ESP_OK && end != ESP_OK) {
		if (err)
			*err = ended;
		status = end;
	}
	free(ops);
	return status;
}

static enum esp_status refuse_failed(struct hub_link *link, struct error *err)
{
	enum esp_status status = hub_link_failure(link, err);

	assert(status != ESP_OK);
	return status;
}

/* Offers it, and waits until the hub has granted or refused it. */
static enum esp_status offer(struct hub_link *link, const struct hub_update *update, uint64_t until_ns,
                             bool *out_granted, struct error *err)
{
	pthread_mutex_lock(&link->lock);
	if (link->update.state != LINK_UPDATE_NONE) {
		pthread_mutex_unlock(&link->lock);
		return error_set(err, ESP_ESTATE, "another update of this worker is under way");
	}
	link->update = (struct link_update){
		.state = LINK_UPDATE_OFFERED,
		.is_unsent = true,
		.offer = {.number = ++link->updates,
	              .computed_from = update->computed_from,
	              .epoch = update->epoch,
	              .position = update->position,
	              .patience_ns = update->patience_ns,
	              .bundle = update->bundle,
	              .members = update->members,
	              .aggregator = update->aggregator},
	};
	link->unfinished++; /* a worker with an update under way does not leave in order */
	poller_wake(&link->poller);
	enum esp_status status = await(link, LINK_UPDATE_GRANTED, until_ns);
	*out_granted = link->update.state == LINK_UPDATE_GRANTED; /* else it has ended already */
	pthread_mutex_unlock(&link->lock);
	return status == ESP_OK ? ESP_OK : refuse_failed(link, err);
}

static enum esp_status send_granted(struct hub_link *link, const struct hub_update *update, uint64_t until_ns,
                                    struct error *err)
{
	uint64_t now = clock_now_ns(), unused;
	const struct hub_op_call call = {.kind = HUB_PUSH,
	                                 .rate = update->rate,
	                                 .deadline_ns = until_ns == UINT64_MAX ? UINT64_MAX
	                                                : until_ns > now     ? until_ns - now
	                                                                     : 0};
	enum esp_status status = ESP_OK;

	atomic_store(&link->chunks_ready, update->fill ? 0 : UINT32_MAX);
	if (update->send)
		update->send(update->context);
	else
		status = run_all(link, call, update->gradients, NULL, update, &unused, err);
	if (status != ESP_OK)
		return status;
	pthread_mutex_lock(&link->lock);
	status = await(link, LINK_UPDATE_SETTLED, until_ns);
	pthread_mutex_unlock(&link->lock);
	return status == ESP_OK ? ESP_OK : refuse_failed(link, err);
}

void hub_link_fill(struct hub_link *link, uint32_t chunks)
{
	atomic_store(&link->chunks_ready, chunks);
	poller_wake(&link->poller);
}

void hub_link_spoil(struct hub_link *link)
{
	pthread_mutex_lock(&link->lock);
	link->update.spoils = true;
	poller_wake(&link->poller);
	while (!link->update.is_spoiled && link->failure.status == ESP_OK)
		pthread_cond_wait(&link->changed, &link->lock);
	pthread_mutex_unlock(&link->lock);
	hub_link_fill(link, UINT32_MAX);
}

enum esp_status hub_link_update(struct hub_link *link, const struct hub_update *update, struct hub_update_result *out,
                                struct error *err)
{
	uint64_t now = clock_now_ns();
	uint64_t until = update->deadline_ns < UINT64_MAX - now ? now + update->deadline_ns : UINT64_MAX;
	enum esp_status status = check_async(link, err);
	bool is_granted = false;

	if (status == ESP_OK)
		status = offer(link, update, until, &is_granted, err);
	if (status == ESP_ESTATE || status == ESP_EUNSUPPORTED)
		return status;
	is_granted &= status == ESP_OK;
	if (is_granted)
		status = send_granted(link, update, until, err);
	pthread_mutex_lock(&link->lock);
	*out = (struct hub_update_result){.why = link->update.result.why,
	                                  .version = link->update.result.version,
	                                  .delay = link->update.result.delay,
	                                  .is_sent = is_granted && !update->send,
	                                  .took_ns = link->update.result.took_ns};
	if (status == ESP_OK && out->version > link->version)
		link->version = out->version;
	link->update.state = LINK_UPDATE_NONE;
	link->unfinished--;
	pthread_mutex_unlock(&link->lock);
	return status;
}

enum esp_status hub_link_model(struct hub_link *link, const struct hub_model *model, uint64_t *out_version,
                               struct error *err)
{
	const struct hub_op_call call = {.kind = HUB_PULL,
	                                 .rate = model->rate,
	                                 .deadline_ns = model->deadline_ns,
	                                 .arrived = model->arrived,
	                                 .context = model->context};
	uint64_t least;
	enum esp_status status = check_async(link, err);

	if (status == ESP_OK)
		status = run_all(link, call, NULL, model->weights, NULL, &least, err);
	if (status != ESP_OK)
		return status;
	pthread_mutex_lock(&link->lock);
	*out_version = least == UINT64_MAX ? link->version : least; /* without elements no answer has one */
	pthread_mutex_unlock(&link->lock);
	return ESP_OK;
}

uint32_t hub_link_delay_bound(const struct hub_link *link)
{
	return link->delay_bound;
}

uint64_t hub_link_bytes(const struct hub_link *link)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < link->layout.tensors; i++)
		bytes += link->layout.tensor[i].elements * math_type_bytes((enum esp_type)link->layout.tensor[i].type);
	return bytes;
}
