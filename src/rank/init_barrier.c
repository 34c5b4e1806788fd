#include "rank/init_barrier.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rank/comm/comm.h"
#include "rank/placement.h"
#include "rank/rail/bandwidth.h"

bool rank_init_barrier_has_been(struct rank *context)
{
	struct comm *world = context->world;
	enum esp_status failed = (enum esp_status)atomic_load(&world->fail.status);

	pthread_mutex_lock(&context->lock);
	bool is_by_another = (failed == ESP_EPEER || failed == ESP_EABORTED) && world->fail.reason.about != context->rank;
	pthread_mutex_unlock(&context->lock);
	return is_by_another;
}

uint64_t rank_init_barrier_patience_ns(const struct rank *context)
{
	uint64_t now = clock_now_ns(), until = context->join.deadline_ns;

	if (context->join.kin == 0)
		return context->conf.join_seconds * NS_PER_S;
	return until > now ? until - now : 1;
}

/*
 * A meeting of all ranks, at which they agree on how fast rails are if there are several, and hear whether rank 0 knows
 * the network. *out_says: what it says of that.
 */
static enum esp_status meet(struct rank *context, uint64_t own_says, uint64_t *out_says, struct failure *failure)
{
	uint64_t least[1 + RAILS_MOST] = {~own_says};
	bool measures = context->rails.count > 1 && context->conf.rail_weights[0] == '\0';
	struct work_options options = {0};
	struct call meet = {.collective = PLAN_ALLREDUCE, .type = ESP_U64, .op = ESP_MIN,
	                    .count = 1 + (measures ? context->rails.count : 0), .in = least, .out = least};
	const uint64_t *rates = least + 1;

	if (measures) {
		bandwidth_measure(context);
		memcpy(least + 1, context->mod.bandwidth->rates, context->rails.count * sizeof(*least));
	}
	options.deadline_ns = (int64_t)rank_init_barrier_patience_ns(context); /* of what measuring has left */
	enum esp_status status = call_check(&meet, context->rank, context->size, failure);
	if (status == ESP_OK)
		status = comm_run(context->world, &meet, &options, failure);
	*out_says = status == ESP_OK ? ~least[0] : 0;
	/* A joiner of a job that grows has another barrier to come. */
	if (status != ESP_OK && !measures && !context->entry && rank_init_barrier_has_been(context))
		status = ESP_OK;
	if (status == ESP_OK && measures)
		status = bandwidth_settle(context, rates, failure);
	else if (status == ESP_OK && context->rails.count > 1)
		status = bandwidth_settle_as_set(context, failure);
	else if (status == ESP_OK)
		bandwidth_settle_alone(context);
	return status;
}

enum esp_status rank_init_barrier_run(struct rank *context, struct failure *failure)
{
	char *text = NULL;
	uint64_t own = rank_placement_ask(context, &text), all = 0;

	comm_begin_aside(context->world);
	enum esp_status status = meet(context, own, &all, failure);

	bool has_met = status == ESP_OK && atomic_load(&context->world->fail.status) == ESP_OK;

	if (has_met && all == 0 && context->conf.topology[0])
		log_write(&context->log, LOG_LEVEL_WARN, LOG_CONF,
		          "topology is set here and not on rank 0, which would read it: it is not used");
	if (status == ESP_OK && all != 0)
		status = rank_placement_tell(context, all, text, failure);
	comm_end_aside(context->world);
	free(text);
	return status;
}
