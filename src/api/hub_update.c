/*
 * hub_update.c - asynchronous updates of espalier/hub.h: announced to the scheduler, if the job has one, then given to
 * the hub.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "api/api.h"
#include "api/hub_chain.h"
#include "api/hub_sum.h"
#include "api/hub_update.h"
#include "base/clock.h"
#include "fabric/gate.h"
#include "fabric/ledger.h"
#include "fabric/worker/sched_link.h"

#define ATTEMPTS_MOST 4u /* then an update goes to the hub without the scheduler */

void api_updates_close(struct api_updates *updates)
{
	if (!updates)
		return;
	sched_link_close(updates->scheduler);
	peer_port_close(updates->port);
	pthread_mutex_destroy(&updates->lock);
	free(updates);
}

/* Without a port the worker takes no part in sums and trees. */
static void open_port(struct hub_link *link, struct api_updates *updates)
{
	const struct peer_port_config config = {.ticket = hub_link_ticket(link),
	                                        .worker = hub_link_worker(link),
	                                        .bytes = hub_link_bytes(link),
	                                        .takes_sums = updates->takes_sums};

	if (config.bytes == 0 || peer_port_open(&config, &updates->port, NULL) != ESP_OK)
		updates->port = NULL;
}

enum esp_status api_updates_open(struct hub_link *link, struct api_updates **out, struct error *err)
{
	struct api_updates *updates = calloc(1, sizeof(*updates));
	struct sched_link_config config = {.ticket = hub_link_ticket(link),
	                                   .worker = hub_link_worker(link),
	                                   .delay_bound = hub_link_delay_bound(link),
	                                   .session = hub_link_session(link)};

	if (!updates)
		return error_set(err, ESP_ENOMEM, "no memory for updates");
	pthread_mutex_init(&updates->lock, NULL);
	*out = updates;
	if (!config.ticket->has_scheduler)
		return ESP_OK;
	updates->takes_sums = optimizer_is_linear(hub_link_optimizer(link)) && !hub_link_layout(link)->has_halves;
	open_port(link, updates);
	config.port = updates->port ? peer_port_number(updates->port) : 0;
	config.takes_sums = updates->takes_sums;
	return sched_link_open(&config, &updates->scheduler, err);
}

static enum esp_status refuse(const char *who, const struct error *err)
{
	return api_refuse_with(who, err->status, "%s", err->text);
}

/* ---- the scheduler ---- */

/* As the scheduler says, but no longer than the call may take. */
static void sleep_for(uint64_t ns, uint64_t most_ns)
{
	uint64_t until = clock_now_ns() + (ns < most_ns ? ns : most_ns);
	const struct timespec at = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		continue;
}

uint64_t api_scheduler_until(uint64_t until_ns)
{
	uint64_t now = clock_now_ns();

	return until_ns == UINT64_MAX ? UINT64_MAX : until_ns > now ? now + (until_ns - now) / 2 : now;
}

/* False: there is no scheduler, or it cannot be asked now. */
static bool ask(struct esp_hub *hub, struct api_updates *updates, const struct esp_hub_update *update,
                uint32_t attempts, uint64_t until_ns, struct sched_link_decision *out)
{
	const struct fabric_msg_ready ready = {.number = ++updates->announced,
	                                       .computed_from = update->computed_from,
	                                       .bytes = hub_link_bytes(api_hub_link(hub)),
	                                       .norm = update->norm,
	                                       .attempts = attempts,
	                                       .leaves_ns = (uint64_t)update->leaves_ns};

	if (!updates->scheduler || ready.bytes == 0 || attempts >= ATTEMPTS_MOST)
		return false;
	pthread_mutex_lock(&updates->lock);
	bool is_decided = sched_link_ask(updates->scheduler, &ready, api_scheduler_until(until_ns), out);
	pthread_mutex_unlock(&updates->lock);
	return is_decided;
}

static void tell(struct api_updates *updates, const struct hub_update_result *result)
{
	static const uint8_t ends[GATE_WHYS] = {[GATE_APPLIED] = LEDGER_APPLIED,
	                                        [GATE_LATE_OFFER] = LEDGER_LATE_AT_OFFER,
	                                        [GATE_LATE] = LEDGER_LATE_AT_HUB,
	                                        [GATE_GONE] = LEDGER_LATE_AT_HUB,
	                                        [GATE_BROKEN] = LEDGER_BROKEN};
	const struct fabric_msg_done done = {.number = updates->announced,
	                                     .end = ends[result->why],
	                                     .version = result->version,
	                                     .delay = result->delay,
	                                     .took_ns = result->took_ns};

	pthread_mutex_lock(&updates->lock);
	sched_link_done(updates->scheduler, &done);
	pthread_mutex_unlock(&updates->lock);
}

/* ---- an update ---- */

static enum esp_hub_fate fate_of(uint8_t why)
{
	return why == GATE_APPLIED      ? ESP_HUB_APPLIED
	       : why == GATE_LATE_OFFER ? ESP_HUB_LATE_AT_OFFER
	                                : ESP_HUB_LATE_AT_HUB;
}

/* The rest of a deadline. */
static uint64_t rest_of(uint64_t until_ns)
{
	uint64_t now = clock_now_ns();

	return until_ns == UINT64_MAX ? UINT64_MAX : now < until_ns ? until_ns - now : 0;
}

/* The hub is not to blame for a deadline that has passed before it was asked: the link goes on. */
static enum esp_status send_now(struct esp_hub *hub, struct hub_update *full, uint64_t until_ns,
                                struct hub_update_result *out, struct error *err)
{
	full->deadline_ns = rest_of(until_ns);
	if (full->deadline_ns == 0)
		return error_set(err, ESP_ETIMEOUT, "the update was not sent: its deadline was over when its turn came");
	return hub_link_update(api_hub_link(hub), full, out, err);
}

/* As the scheduler has decided, or directly if decision is NULL. */
static enum esp_status send_once(struct esp_hub *hub, struct api_updates *updates, const struct esp_hub_update *update,
                                 const struct sched_link_decision *decision, uint64_t until_ns,
                                 struct hub_update_result *out, struct error *err)
{
	struct hub_update full = {.gradients = update->gradients,
	                          .computed_from = update->computed_from,
	                          .deadline_ns = rest_of(until_ns)};

	if (!decision)
		return send_now(hub, &full, until_ns, out, err);
	full.epoch = decision->epoch;
	full.position = decision->decide.position;
	full.patience_ns = decision->decide.patience_ns;
	full.rate = decision->decide.rate;
	if (updates->port && decision->decide.bundle > 0 && decision->decide.is_chain)
		return api_chain_update(api_hub_link(hub), updates->port, decision, &full, out, err);
	if (updates->port && decision->decide.bundle > 0)
		return api_sum_update(api_hub_link(hub), updates->port, decision, &full, out, err);
	sleep_for(decision->decide.start_ns < GATE_PATIENCE_MOST ? decision->decide.start_ns : GATE_PATIENCE_MOST,
	          full.deadline_ns);
	return send_now(hub, &full, until_ns, out, err);
}

/* An update whose sum has failed is announced again: this worker still has it. */
static enum esp_status give(struct esp_hub *hub, struct api_updates *updates, const struct esp_hub_update *update,
                            struct esp_hub_result *out, struct error *err)
{
	uint64_t deadline = api_hub_deadline(hub, update->deadline_ns), began = clock_now_ns();
	if (update->leaves_ns > 0 && (uint64_t)update->leaves_ns < deadline)
		deadline = (uint64_t)update->leaves_ns;
	uint64_t until = deadline < UINT64_MAX - began ? began + deadline : UINT64_MAX;
	struct sched_link_decision decision = {0};
	struct hub_update_result result = {.why = GATE_BROKEN};
	bool is_scheduled = false;

	for (uint32_t attempts = 0; result.why == GATE_BROKEN; attempts++) {
		is_scheduled = ask(hub, updates, update, attempts, until, &decision);
		if (is_scheduled && decision.decide.end != LEDGER_APPLIED) {
			*out = (struct esp_hub_result){.fate = ESP_HUB_LATE_AT_SOURCE, .delay = decision.decide.delay};
			return ESP_OK;
		}
		enum esp_status status = send_once(hub, updates, update, is_scheduled ? &decision : NULL,
		                                   until, &result, err);
		if (status == ESP_OK && result.why >= GATE_WHYS)
			status = error_set(err, ESP_ECORRUPT, "the hub says that an update ended in a way that is not known");
		if (status != ESP_OK)
			return status;
		if (is_scheduled)
			tell(updates, &result);
	}
	*out = (struct esp_hub_result){.fate = fate_of(result.why),
	                               .version = result.version,
	                               .delay = result.delay,
	                               .position = is_scheduled ? decision.decide.position : 0};
	return ESP_OK;
}

static enum esp_status check_update(const char *who, const struct esp_hub *hub, const struct esp_hub_update *update)
{
	const struct hub_layout *layout = hub_link_layout(api_hub_link(hub));

	if (!layout)
		return api_refuse_with(who, ESP_ESTATE, "no model is declared: call esp_hub_init() first");
	if (!(update->norm >= 0) || isinf(update->norm))
		return api_refuse_with(who, ESP_EINVAL, "norm is negative, infinite or no number: 0 stands for \"not known\"");
	if (update->leaves_ns < 0)
		return api_refuse_with(who, ESP_EINVAL, "leaves_ns is %" PRId64 ": it is a time from now on, or 0",
		                       update->leaves_ns);
	if (!update->gradients && layout->tensors > 0)
		return api_refuse_with(who, ESP_EINVAL, "gradients is NULL");
	for (uint32_t i = 0; i < layout->tensors; i++) {
		if (!update->gradients[i] && layout->tensor[i].elements > 0)
			return api_refuse_with(who, ESP_EINVAL, "gradients[%u] is NULL", i);
	}
	return ESP_OK;
}

enum esp_status esp_hub_update(struct esp_hub *hub, const struct esp_hub_update *given, struct esp_hub_result *result)
{
	struct esp_hub_update update = {sizeof(update)};
	struct esp_hub_result full = {0};
	struct error err = {0};
	enum esp_status status = api_hub_check(__func__, hub);

	if (status == ESP_OK && !given)
		status = api_refuse_with(__func__, ESP_EINVAL, "update is NULL");
	if (status == ESP_OK)
		status = api_check_out(__func__, result, "result");
	if (status == ESP_OK)
		status = api_read(__func__, given, &update, sizeof(update), "esp_hub_update");
	if (status == ESP_OK)
		status = api_check_deadline(__func__, update.deadline_ns, "deadline_seconds");
	if (status == ESP_OK)
		status = check_update(__func__, hub, &update);
	if (status != ESP_OK)
		return status;
	if (!api_hub_updates(hub))
		return api_refuse_with(__func__, ESP_EUNSUPPORTED,
		                       "job %s trains in rounds: it was created without --mode async",
		                       hub_link_job(api_hub_link(hub)));
	status = give(hub, api_hub_updates(hub), &update, &full, &err);
	if (status != ESP_OK) {
		err.status = status;
		return refuse(__func__, &err);
	}
	full.struct_size = sizeof(full);
	return api_write(__func__, result, &full, sizeof(full));
}

uint32_t esp_hub_delay_bound(const struct esp_hub *hub)
{
	return hub ? hub_link_delay_bound(api_hub_link(hub)) : 0;
}
