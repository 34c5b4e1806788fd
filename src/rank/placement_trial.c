/*
 * placement_trial.c - times calls with a topology that is in doubt, and without it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rank/comm/comm.h"
#include "rank/comm/comm_state.h"
#include "rank/placement.h"
#include "rank/rank.h"

#define TRIAL_FLOATS (256u * 1024u / sizeof(float))
#define TRIES 3 /* after one that does not count, as it makes the plan and opens connections */

static enum esp_status run_aside(struct comm *world, struct call *call, struct failure *failure)
{
	enum esp_status status = call_check(call, world->rank, world->size, failure);

	comm_begin_aside(world);
	if (status == ESP_OK)
		status = comm_run(world, call, &(struct work_options){0}, failure);
	comm_end_aside(world);
	return status;
}

/* The largest of all ranks' numbers. */
static enum esp_status agree(struct comm *world, uint64_t *numbers, uint32_t count, struct failure *failure)
{
	uint64_t mine[2] = {0};
	struct call call = {.collective = PLAN_ALLREDUCE, .type = ESP_U64, .op = ESP_MAX, .count = count, .in = mine,
	                    .out = numbers};

	memcpy(mine, numbers, count * sizeof(*numbers));
	return run_aside(world, &call, failure);
}

/* The shortest of a few calls, by the plans of now. */
static enum esp_status time_calls(struct comm *world, float *values, uint64_t *out_ns, struct failure *failure)
{
	struct call call = {.collective = PLAN_ALLREDUCE, .type = ESP_F32, .op = ESP_SUM, .count = TRIAL_FLOATS,
	                    .in = values, .out = values + TRIAL_FLOATS};
	enum esp_status status = run_aside(world, &call, failure);

	*out_ns = UINT64_MAX;
	for (int i = 0; i < TRIES && status == ESP_OK; i++) {
		uint64_t start = clock_now_ns();

		status = run_aside(world, &call, failure);
		uint64_t took = clock_now_ns() - start;
		*out_ns = took < *out_ns ? took : *out_ns;
	}
	return status;
}

static enum esp_status fail(struct rank *context, struct failure *failure)
{
	static const char reason[] = "a rank has no memory to try the topology";

	comm_fail(context->world, ESP_ENOMEM, (int32_t)context->rank, reason, true);
	return rank_failure_set(failure, ESP_ENOMEM, (int32_t)context->rank, "%s", reason);
}

/* kept: what was taken away meanwhile. The times are the same on all ranks, and so is the choice. */
static enum esp_status choose(struct rank *context, struct placement *kept, struct placement_trial *trial,
                              struct failure *failure)
{
	uint64_t times[] = {trial->with_ns, trial->without_ns};
	enum esp_status status = agree(context->world, times, 2, failure);

	trial->with_ns = times[0];
	trial->without_ns = times[1];
	trial->is_kept = status == ESP_OK && times[0] < times[1];
	if (!trial->is_kept) {
		rank_placement_fini(kept);
		return status;
	}
	*context->mod.placement = *kept;
	return comm_use_site(context->world) ? ESP_OK : fail(context, failure);
}

static enum esp_status try_both(struct rank *context, float *values, struct placement_trial *trial,
                                struct failure *failure)
{
	struct placement *placement = context->mod.placement, kept = *placement;
	enum esp_status status = time_calls(context->world, values, &trial->with_ns, failure);

	if (status != ESP_OK)
		return status;
	*placement = (struct placement){.wants_probe = kept.wants_probe};
	(void)comm_use_site(context->world); /* without a topology it needs no memory */
	status = time_calls(context->world, values, &trial->without_ns, failure);
	if (status == ESP_OK)
		return choose(context, &kept, trial, failure);
	rank_placement_fini(&kept);
	return status;
}

enum esp_status rank_try_topology(struct rank *context, bool is_doubted, struct placement_trial *out,
                                  struct failure *failure)
{
	uint64_t doubts = is_doubted;
	enum esp_status status = agree(context->world, &doubts, 1, failure);

	*out = (struct placement_trial){.is_kept = true};
	if (status != ESP_OK || doubts == 0)
		return status;
	float *values = calloc(2 * TRIAL_FLOATS, sizeof(*values));
	if (!values)
		return fail(context, failure);
	out->was_made = true;
	status = try_both(context, values, out, failure);
	free(values);
	return status;
}
