#include "fabric/sched_parts.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"

#define STEPS 1024u
#define BOOKINGS (4 * LEDGER_WORKERS_MOST + SCHED_MODELS_MOST) /* updates, also while they are ordered; sums; models */
#define LEASE_LEAST (2 * NS_PER_S)
#define LEASE_TIMES 4u       /* as long as was booked */
#define PATIENCE_LEAST (100 * NS_PER_MS)
#define RATE_LEAST UINT64_C(1000)


/* ---- opening ---- */

uint32_t sched_hub_link(const struct sched *sched)
{
	return sched->config.workers;
}

uint32_t sched_link_out(const struct sched *sched, uint32_t worker)
{
	return sched->hosts[worker];
}

uint32_t sched_link_in(const struct sched *sched, uint32_t worker)
{
	return sched->config.workers + 1 + sched->hosts[worker];
}

uint32_t sched_hub_link_out(const struct sched *sched)
{
	return 2 * sched->config.workers + 1;
}

static enum esp_status set_rates(struct sched *sched, struct error *err)
{
	bool is_set = calendar_set_rate(sched->calendar, sched_hub_link(sched), 0, sched->config.hub_rate) &&
	              calendar_set_rate(sched->calendar, sched_hub_link_out(sched), 0, sched->config.hub_rate);

	for (uint32_t i = 0; i < sched->config.workers; i++) {
		sched->links[i] = (struct sched_link){.rate = sched->config.worker_rate,
		                                      .rate_in = sched->config.worker_rate,
		                                      .booking = CALENDAR_NONE,
		                                      .aggregator = SCHED_ALONE};
		outlook_init(&sched->ways[i].in, sched->config.worker_rate, sched->config.hub_rate);
		outlook_init(&sched->ways[i].out, sched->config.worker_rate, sched->config.hub_rate);
		is_set &= calendar_set_rate(sched->calendar, sched_link_out(sched, i), 0, sched->config.worker_rate) &&
		          calendar_set_rate(sched->calendar, sched_link_in(sched, i), 0, sched->config.worker_rate);
	}
	return is_set ? ESP_OK : error_set(err, ESP_ENOMEM, "no room in the calendar");
}

static bool rate_is_good(uint64_t rate)
{
	return rate >= RATE_LEAST && rate <= CALENDAR_RATE_MOST;
}

enum esp_status sched_open(const struct sched_config *config, struct sched **out, struct error *err)
{
	if (config->workers < 1 || config->workers > LEDGER_WORKERS_MOST || config->bound < 1)
		return error_set(err, ESP_EINVAL, "%u workers and a delay bound of %u: out of range", config->workers,
		                 config->bound);
	if (!rate_is_good(config->hub_rate) || !rate_is_good(config->worker_rate) || config->batch_ns < NS_PER_MS ||
	    config->batch_ns > 60 * NS_PER_S)
		return error_set(err, ESP_EINVAL, "a rate or the length of a batch is out of range");
	struct sched *sched = calloc(1, sizeof(*sched));
	if (!sched)
		return error_set(err, ESP_ENOMEM, "no memory for a job's scheduler");
	sched->config = *config;
	for (uint32_t i = 0; i < config->workers; i++) {
		sched->hosts[i] = config->hosts ? config->hosts[i] : i;
		assert(sched->hosts[i] < config->workers);
	}
	sched->config.hosts = NULL;
	sched->batch_end_ns = UINT64_MAX;
	rng_init(&sched->rng, 1);
	ledger_init(&sched->ledger, config->workers, config->bound);
	enum esp_status status =
		calendar_open(2 * config->workers + 2, STEPS, BOOKINGS, &sched->calendar, err);
	if (status == ESP_OK)
		status = set_rates(sched, err);
	if (status == ESP_OK && config->chains && !(sched->batch = calloc(1, sizeof(*sched->batch))))
		status = error_set(err, ESP_ENOMEM, "no memory for chains");
	if (status != ESP_OK) {
		sched_close(sched);
		return status;
	}
	*out = sched;
	return ESP_OK;
}

void sched_close(struct sched *sched)
{
	if (!sched)
		return;
	calendar_close(sched->calendar);
	free(sched->batch);
	free(sched);
}

/* ---- workers and their links ---- */

enum esp_status sched_see_time(struct sched *sched, uint64_t now, struct error *err)
{
	if (now < sched->now)
		return error_set(err, ESP_EINVAL, "the time runs backwards, from %" PRIu64 " to %" PRIu64 " ns", sched->now,
		                 now);
	sched->now = now;
	return ESP_OK;
}

/* Of calls that cannot be refused. */
static void advance(struct sched *sched, uint64_t now)
{
	sched->now = now > sched->now ? now : sched->now;
}

static void end_update(struct sched *sched, uint32_t worker, uint8_t end, uint64_t delay)
{
	struct sched_link *link = &sched->links[worker];

	if (link->booking != CALENDAR_NONE)
		calendar_give_back(sched->calendar, link->booking, 0);
	link->booking = CALENDAR_NONE;
	link->aggregator = SCHED_ALONE;
	link->members = 0;
	link->steps += sched->ledger.updates[worker].state != LEDGER_NONE && end != LEDGER_BROKEN && end != LEDGER_GONE;
	ledger_end(&sched->ledger, worker, end, delay);
}

/* A worker whose decision has not been handed out is told nothing any more. */
static void forget_decision(struct sched *sched, uint32_t worker)
{
	for (uint32_t i = sched->decision_at; i < sched->decision_count; i++) {
		if (sched->decisions[i].worker == worker)
			sched->decisions[i].number = 0;
	}
}

void sched_gone(struct sched *sched, uint32_t worker, uint64_t now)
{
	assert(worker < sched->config.workers);
	advance(sched, now);
	forget_decision(sched, worker);
	end_update(sched, worker, LEDGER_GONE, 0);
	ledger_gone(&sched->ledger, worker);
	sched->links[worker].is_here = false;
	sched->links[worker].wants = 0;
}

/* The calendar has what is believed. Without room it stays as it was: a link that is booked so often has a rate. */
static void book_rates(struct sched *sched, uint32_t worker)
{
	const struct sched_host *host = &sched->ways[sched->hosts[worker]];

	if (!calendar_set_rate(sched->calendar, sched_link_out(sched, worker), sched->now, host->out.rate) ||
	    !calendar_set_rate(sched->calendar, sched_link_in(sched, worker), sched->now, host->in.rate))
		return;
	for (uint32_t other = 0; other < sched->config.workers; other++) {
		if (sched->hosts[other] != sched->hosts[worker])
			continue;
		sched->links[other].rate = host->out.rate;
		sched->links[other].rate_in = host->in.rate;
	}
}

enum esp_status sched_report_ways(struct sched *sched, uint32_t worker, uint64_t in, uint64_t out, uint64_t now,
                                  struct error *err)
{
	if (worker >= sched->config.workers)
		return error_set(err, ESP_EINVAL, "there is no worker %u of %u", worker, sched->config.workers);
	if (!rate_is_good(in) || !rate_is_good(out))
		return error_set(err, ESP_EINVAL, "worker %u has a link of %" PRIu64 " bytes per second", worker,
		                 rate_is_good(in) ? out : in);
	enum esp_status status = sched_see_time(sched, now, err);
	if (status != ESP_OK)
		return status;
	struct sched_host *host = &sched->ways[sched->hosts[worker]];
	bool is_other = outlook_report(&host->in, in);
	if (outlook_report(&host->out, out) || is_other)
		book_rates(sched, worker);
	sched->links[worker].is_measured = true;
	return ESP_OK;
}

enum esp_status sched_report(struct sched *sched, uint32_t worker, uint64_t rate, uint64_t now, struct error *err)
{
	return sched_report_ways(sched, worker, rate, rate, now, err);
}

enum esp_status sched_join(struct sched *sched, uint32_t worker, uint64_t rate, uint64_t now, struct error *err)
{
	if (worker >= sched->config.workers)
		return error_set(err, ESP_EINVAL, "there is no worker %u of %u", worker, sched->config.workers);
	enum esp_status status = sched_see_time(sched, now, err);
	if (status != ESP_OK)
		return status;
	sched_gone(sched, worker, now);
	sched->links[worker].steps = sched_least_steps(sched);
	sched->links[worker].is_here = true;
	sched->links[worker].can_aggregate = sched->links[worker].can_forward = false;
	sched->ledger.last[worker] = 0; /* its numbers begin anew */
	return rate > 0 ? sched_report(sched, worker, rate, now, err) : ESP_OK;
}

void sched_set_aggregator(struct sched *sched, uint32_t worker, bool can_aggregate)
{
	assert(worker < sched->config.workers);
	sched->links[worker].can_aggregate = can_aggregate;
}

void sched_set_forwarder(struct sched *sched, uint32_t worker, bool can_forward)
{
	assert(worker < sched->config.workers);
	sched->links[worker].can_forward = can_forward;
}

/* ---- updates ---- */

void sched_want_batch(struct sched *sched, uint64_t now)
{
	if (sched->batch_end_ns == UINT64_MAX)
		sched->batch_end_ns = (now / sched->config.batch_ns + 1) * sched->config.batch_ns;
}

enum esp_status sched_ready(struct sched *sched, uint32_t worker, const struct ledger_update *update, uint64_t now,
                            struct error *err)
{
	enum esp_status status = sched_see_time(sched, now, err);

	if (status == ESP_OK && worker < sched->config.workers && !sched->links[worker].is_here)
		return error_set(err, ESP_EINVAL, "worker %u announced an update before it had registered", worker);
	if (status == ESP_OK)
		status = ledger_ready(&sched->ledger, worker, update, err);
	if (status != ESP_OK)
		return status;
	sched->ledger.updates[worker].ready_ns = now;
	sched_want_batch(sched, now);
	return ESP_OK;
}

static void learn_out(struct sched *sched, uint32_t worker, uint64_t bytes, uint64_t took_ns)
{
	struct outlook *out = &sched->ways[sched->hosts[worker]].out;
	struct sched_link *link = &sched->links[worker];

	link->sent += bytes;
	if (outlook_transfer(out, link->granted, bytes, took_ns))
		book_rates(sched, worker);
	link->achieved = out->achieved;
	link->is_measured |= out->is_measured;
}

enum esp_status sched_got(struct sched *sched, uint32_t worker, const struct sched_got *got, uint64_t now,
                          struct error *err)
{
	if (worker >= sched->config.workers || !sched->links[worker].is_here)
		return error_set(err, ESP_EINVAL, "worker %u tells of a model before it had registered", worker);
	enum esp_status status = sched_see_time(sched, now, err);
	if (status != ESP_OK)
		return status;
	struct outlook *in = &sched->ways[sched->hosts[worker]].in;
	struct sched_link *link = &sched->links[worker];
	if (got->tree != link->tree || link->model_bytes == 0)
		return ESP_OK; /* of another life of the scheduler */
	if (outlook_transfer(in, link->model_rate, link->model_bytes, got->took_ns))
		book_rates(sched, worker);
	link->model_bytes = 0;
	return ESP_OK;
}

enum esp_status sched_done(struct sched *sched, uint32_t worker, const struct sched_done *done, uint64_t now,
                           struct error *err)
{
	if (worker >= sched->config.workers)
		return error_set(err, ESP_EINVAL, "there is no worker %u of %u", worker, sched->config.workers);
	const struct ledger_update *update = &sched->ledger.updates[worker];
	if (done->end != LEDGER_APPLIED && done->end != LEDGER_LATE_AT_OFFER && done->end != LEDGER_LATE_AT_HUB &&
	    done->end != LEDGER_BROKEN)
		return error_set(err, ESP_EINVAL, "worker %u tells of an update that ended in a way that workers do not know",
		                 worker);
	if (done->end == LEDGER_APPLIED &&
	    (done->delay == 0 || done->delay > done->version || done->delay > sched->config.bound))
		return error_set(err, ESP_EINVAL, "worker %u tells of an update with delay %" PRIu64 " at version %" PRIu64,
		                 worker, done->delay, done->version);
	enum esp_status status = sched_see_time(sched, now, err);
	if (status != ESP_OK)
		return status;
	ledger_see(&sched->ledger, worker, done->version);
	if (update->state != LEDGER_DECIDED || update->number != done->number)
		return ESP_OK; /* its lease was over, or the worker had not asked */
	if (done->took_ns > 0)
		learn_out(sched, worker, update->bytes, done->took_ns);
	end_update(sched, worker, done->end, done->delay);
	return ESP_OK;
}

/* ---- batches ---- */

static uint32_t collect(struct sched *sched)
{
	uint64_t version = sched->ledger.version + sched->ledger.decided;
	uint32_t count = 0;

	for (uint32_t worker = 0; worker < sched->config.workers; worker++) {
		const struct ledger_update *update = &sched->ledger.updates[worker];

		if (update->state != LEDGER_READY)
			continue;
		sched->workers[count] = worker;
		sched->order[count++] = (struct order_update){
			.path = {2, {sched_link_out(sched, worker), sched_hub_link(sched)}},
			.bytes = update->bytes,
			.from = sched->now,
			.deadline = order_deadline(update->computed_from, sched->config.bound, version),
			.has_waited = update->batches >= SCHED_WAITED || update->leaves,
		};
	}
	return count;
}

uint64_t sched_rate_of(uint64_t bytes, const struct calendar_span *span)
{
	uint64_t ns = span->end > span->begin ? span->end - span->begin : 1;
	unsigned __int128 rate = ((unsigned __int128)bytes * NS_PER_S + ns - 1) / ns;

	return rate > CALENDAR_RATE_MOST ? CALENDAR_RATE_MOST : (uint64_t)rate;
}

static struct sched_decision *add_decision(struct sched *sched, uint32_t worker)
{
	struct sched_decision *decision = &sched->decisions[sched->decision_count++];

	*decision = (struct sched_decision){
		.worker = worker, .number = sched->ledger.updates[worker].number, .aggregator = SCHED_ALONE};
	return decision;
}

struct sched_decision *sched_decide_send(struct sched *sched, uint32_t worker, uint64_t bytes,
                                         const struct calendar_span *span, uint32_t booking)
{
	struct sched_decision *decision = add_decision(sched, worker);
	uint64_t lasts = span->end - sched->now;

	decision->end = LEDGER_APPLIED;
	decision->position = ++sched->positions;
	decision->start_ns = span->begin > sched->now ? span->begin - sched->now : 0;
	decision->rate = sched_rate_of(bytes, span);
	decision->patience_ns = 2 * sched->config.batch_ns + lasts;
	if (decision->patience_ns < PATIENCE_LEAST)
		decision->patience_ns = PATIENCE_LEAST;
	sched->links[worker].booking = booking;
	sched->links[worker].granted = decision->rate;
	ledger_decide(&sched->ledger, worker, decision->position,
	              sched->now + LEASE_LEAST + LEASE_TIMES * (lasts + decision->patience_ns));
	sched->latest_sent++;
	return decision;
}

static void decide_drop(struct sched *sched, uint32_t worker, const struct order_update *order)
{
	static const uint8_t ends[] = {
		[ORDER_LATE] = LEDGER_LATE, [ORDER_CROWDED] = LEDGER_CROWDED, [ORDER_OVERTAKEN] = LEDGER_OVERTAKEN};
	struct sched_decision *decision = add_decision(sched, worker);

	decision->end = ends[order->fate];
	decision->delay = (uint64_t)((int64_t)sched->config.bound - order->deadline + 1);
	end_update(sched, worker, decision->end, 0);
}

void sched_put_off(struct sched *sched, uint32_t worker, uint32_t booking)
{
	if (booking != CALENDAR_NONE)
		calendar_give_back(sched->calendar, booking, 0);
	sched->ledger.updates[worker].batches++;
}

/* Updates that are not sent. */
void sched_decide_rest(struct sched *sched, uint32_t count, uint32_t rows[LEDGER_WORKERS_MOST + 1])
{
	for (uint32_t row = 0; row < count; row++) {
		const struct order_update *order = &sched->order[row];

		if (order->fate == ORDER_SENT)
			rows[order->place] = row;
		else if (order->fate == ORDER_UNBOOKED)
			sched_put_off(sched, sched->workers[row], CALENDAR_NONE);
		else
			decide_drop(sched, sched->workers[row], order);
	}
}

uint32_t sched_order(struct sched *sched, uint32_t count)
{
	return order_run_with(sched->calendar, sched->order, count, sched->config.order_flags);
}

/* In the order of the places. */
static void decide(struct sched *sched, uint32_t count, uint32_t places)
{
	uint64_t next_batch = sched->now + sched->config.batch_ns;
	uint32_t rows[LEDGER_WORKERS_MOST + 1];

	sched_decide_rest(sched, count, rows);
	for (uint32_t place = 1; place <= places; place++) {
		const struct order_update *order = &sched->order[rows[place]];
		uint32_t worker = sched->workers[rows[place]];

		if (order->span.begin < next_batch || order->has_waited) {
			(void)sched_decide_send(sched, worker, order->bytes, &order->span, order->booking);
			continue;
		}
		sched_put_off(sched, worker, order->booking);
	}
}

static void end_leases(struct sched *sched)
{
	for (uint32_t worker = 0; worker < sched->config.workers; worker++) {
		const struct ledger_update *update = &sched->ledger.updates[worker];

		if (update->state == LEDGER_DECIDED && update->lease_ns <= sched->now)
			end_update(sched, worker, LEDGER_UNHEARD, 0);
	}
}

static bool has_work(const struct sched *sched)
{
	for (uint32_t worker = 0; worker < sched->config.workers; worker++) {
		if (sched->ledger.updates[worker].state == LEDGER_READY || sched->links[worker].wants > 0)
			return true;
	}
	return false;
}

void sched_tick(struct sched *sched, uint64_t now)
{
	advance(sched, now);
	end_leases(sched);
	sched_model_end(sched);
	if (sched->decision_at < sched->decision_count || sched->model_at < sched->model_count)
		return;
	if (sched->now < sched->batch_end_ns) {
		if (sched->has_short_want)
			sched_model_decide(sched);
		return;
	}
	sched->decision_at = sched->decision_count = 0;
	calendar_trim(sched->calendar, sched->now);
	uint32_t count = collect(sched);
	if (count > 0) {
		sched->batches++;
		sched->latest_updates = count;
		sched->latest_sent = 0;
		if (sched_chain_is_possible(sched, count))
			sched_chain_decide(sched, count);
		else if (sched_sum_is_possible(sched, count))
			sched_sum_decide(sched, count);
		else
			decide(sched, count, sched_order(sched, count));
	}
	sched_model_decide(sched);
	sched->batch_end_ns = UINT64_MAX;
	if (has_work(sched))
		sched_want_batch(sched, sched->now);
}

uint64_t sched_due(const struct sched *sched)
{
	uint64_t due = sched->has_short_want ? sched->now : sched->batch_end_ns;

	for (uint32_t worker = 0; worker < sched->config.workers; worker++) {
		const struct ledger_update *update = &sched->ledger.updates[worker];

		if (update->state == LEDGER_DECIDED && update->lease_ns < due)
			due = update->lease_ns;
	}
	return due;
}

bool sched_next(struct sched *sched, struct sched_decision *out)
{
	while (sched->decision_at < sched->decision_count) {
		*out = sched->decisions[sched->decision_at++];
		if (out->number > 0) /* its worker has gone meanwhile */
			return true;
	}
	return false;
}

/* ---- what is known ---- */

const struct ledger *sched_ledger(const struct sched *sched)
{
	return &sched->ledger;
}

const struct sched_link *sched_worker(const struct sched *sched, uint32_t worker)
{
	assert(worker < sched->config.workers);
	return &sched->links[worker];
}

uint64_t sched_batches(const struct sched *sched)
{
	return sched->batches;
}

void sched_latest(const struct sched *sched, uint32_t *out_updates, uint32_t *out_sent)
{
	*out_updates = sched->latest_updates;
	*out_sent = sched->latest_sent;
}

void sched_sums(const struct sched *sched, uint64_t *out_sums, uint64_t *out_updates)
{
	*out_sums = sched->sums;
	*out_updates = sched->summed;
}

void sched_trees(const struct sched *sched, uint64_t *out_trees, uint64_t *out_models)
{
	*out_trees = sched->trees;
	*out_models = sched->models_decided;
}

uint64_t sched_hub_booked_until(const struct sched *sched)
{
	return calendar_booked_until(sched->calendar, sched_hub_link(sched));
}
