/*
 * group.c - groups of a cluster: opened and closed while others run, and what a group does when a member fails.
 */
#include <stdlib.h>

#include "base/check.h"
#include "cluster.h"

uint32_t cluster_rank(const struct cluster_group *group, uint32_t place)
{
	return group->ranks ? group->ranks[place] : place;
}

uint32_t cluster_place(const struct cluster_group *group, uint32_t rank)
{
	if (!group->ranks)
		return rank < group->count ? rank : PLAN_NONE;
	for (uint32_t place = 0; place < group->count; place++) {
		if (group->ranks[place] == rank)
			return place;
	}
	return PLAN_NONE;
}

bool cluster_is_dead(const struct cluster *cluster, uint32_t rank)
{
	return cluster->spec.victim == rank && inproc_now(cluster->loop) >= cluster->spec.victim_after_ns;
}

void cluster_group_close(struct cluster_group *group)
{
	free(group->ranks);
	free(group->members);
}

/* ---- streams ---- */

static void member_close(struct cluster *cluster, struct cluster_group *group, uint32_t place)
{
	uint32_t rank = cluster_rank(group, place);

	for (uint32_t lane = 0; lane < cluster->spec.lanes; lane++) {
		inproc_forget(cluster->loop, rank, lane, group->channel);
		lane_stream_close(cluster_lane(cluster, rank, lane), group->channel);
	}
	group->members[place].open = false;
}

bool cluster_member_open(struct cluster *cluster, struct cluster_group *group, uint32_t place)
{
	struct lane_stream_config config = {
		.channel = group->channel, .node = place, .members = group->count, .peers = group->ranks};
	enum esp_status status = ESP_OK;
	struct error err;

	for (uint32_t lane = 0; status == ESP_OK && lane < cluster->spec.lanes; lane++)
		status = lane_stream_open(cluster_lane(cluster, cluster_rank(group, place), lane), &config, &err);
	group->members[place].open = true;
	if (status == ESP_OK)
		return true;
	CHECK_MSG(status == ESP_EPEER, "open: %s", err.text);
	member_close(cluster, group, place);
	return false;
}

/* Something that happens to a member after a while. */
struct later {
	struct cluster *cluster;
	struct cluster_group *group;
	uint32_t place, call;
	struct exec_failure why;
};

static void after(const struct later *what, uint64_t most_ns, void (*act)(void *))
{
	struct later *copy = malloc(sizeof(*copy));

	CHECK(copy);
	*copy = *what;
	inproc_after(what->cluster->loop, rng_below(&what->cluster->rng, most_ns + 1), act, copy);
}

/* ---- failure ---- */

static void close_fires(void *context);
static void member_fails(struct cluster *cluster, struct cluster_group *group, uint32_t place,
                         const struct exec_failure *why, bool heard);

static void news_arrives(void *context)
{
	struct later *later = context;
	const struct cluster_member *member = &later->group->members[later->place];

	if (member->open && !cluster_is_dead(later->cluster, cluster_rank(later->group, later->place)))
		member_fails(later->cluster, later->group, later->place, &later->why, true);
	free(later);
}

/* Nobody reads what the members of a group had offered, once all have failed or left: their memory goes. */
static void close_failed(struct cluster *cluster, struct cluster_group *group)
{
	for (uint32_t place = 0; place < group->count; place++) {
		const struct cluster_member *member = &group->members[place];

		if (member->open && !member->failed && !cluster_is_dead(cluster, cluster_rank(group, place)))
			return;
	}
	for (uint32_t place = 0; place < group->count; place++) {
		struct later later = {.cluster = cluster, .group = group, .place = place};

		if (group->members[place].open)
			after(&later, cluster->spec.delay_ns, close_fires);
	}
}

static void close_fires(void *context)
{
	struct later *later = context;

	if (later->group->members[later->place].open &&
	    !cluster_is_dead(later->cluster, cluster_rank(later->group, later->place))) {
		member_close(later->cluster, later->group, later->place);
		close_failed(later->cluster, later->group);
	}
	free(later);
}

/* What fails on one lane fails on all: a call that ended on one is not to be read by another. */
static void member_fails(struct cluster *cluster, struct cluster_group *group, uint32_t place,
                         const struct exec_failure *why, bool heard)
{
	struct cluster_member *member = &group->members[place];
	uint32_t rank = cluster_rank(group, place);

	if (member->failed)
		return;
	member->failed = true;
	member->heard = heard;
	member->failure = *why;
	for (uint32_t lane = 0; lane < cluster->spec.lanes; lane++) {
		lane_fail_stream(cluster_lane(cluster, rank, lane), group->channel, why->node, why->status);
		inproc_forget(cluster->loop, rank, lane, group->channel);
	}
	for (uint32_t other = 0; !heard && other < group->count; other++) {
		struct later later = {.cluster = cluster, .group = group, .place = other, .why = *why};

		if (other != place)
			after(&later, cluster->spec.delay_ns, news_arrives);
	}
	if (group->comes_and_goes)
		close_failed(cluster, group);
}

static struct cluster_group *group_of(struct cluster *cluster, uint16_t channel)
{
	for (uint32_t i = 0; i < cluster->group_count; i++) {
		if (cluster->groups[i].channel == channel)
			return &cluster->groups[i];
	}
	CHECK(false);
	return NULL;
}

/* ---- calls ---- */

void sim_cluster_start(struct cluster *cluster, struct cluster_call *call, uint32_t place)
{
	const struct cluster_group *group = &cluster->groups[call->group];
	const struct cluster_buffers *buffers =
		call->buffers && place < call->plan->workers ? &call->buffers[place] : NULL;
	uint32_t rank = cluster_rank(group, place);

	for (uint32_t lane = 0; lane < cluster->spec.lanes; lane++) {
		struct exec_call exec_call = {
			.plan = call->plan,
			.in = buffers ? buffers->in : NULL,
			.out = buffers ? buffers->out : NULL,
			.type = call->type,
			.op = call->op,
			.factor = call->factor,
			.lane_of = call->lane_of,
			.lane = (uint8_t)lane,
			.digest = (uint32_t)call->data_seed + (place == call->odd),
			.cookie = call,
		};
		struct error err;
		enum esp_status status = lane_start(cluster_lane(cluster, rank, lane), group->channel, &exec_call, &err);

		if (status != ESP_OK && cluster->spec.victim == PLAN_NONE && cluster->spec.corrupt_one_in == 0 &&
		    !group->members[place].failed)
			check_fail(__FILE__, __LINE__, "start: %s", err.text);
		if (status != ESP_OK)
			call->status[place] = status;
		inproc_poke(cluster->loop, rank, lane);
	}
}

static void call_ends(struct cluster *cluster, struct cluster_call *call, uint32_t place, enum esp_status status)
{
	struct cluster_group *group = &cluster->groups[call->group];
	struct cluster_member *member = &group->members[place];

	if (status != ESP_OK)
		call->status[place] = status;
	else if (--call->lanes_left[place] == 0 && call->status[place] == ESP_PENDING)
		call->status[place] = ESP_OK;
	if (cluster->spec.scribble && call->status[place] != ESP_PENDING)
		cluster_scribble(call, place);
	bool is_over = status == ESP_OK && call->lanes_left[place] == 0 && --member->calls_left == 0;
	struct later later = {.cluster = cluster, .group = group, .place = place};
	if (is_over && group->comes_and_goes && !member->failed)
		after(&later, cluster->spec.delay_ns, close_fires);
}

void cluster_collect(struct cluster *cluster, uint32_t rank)
{
	struct lane_failure failure;
	struct exec_done done;

	for (uint32_t lane = 0; lane < cluster->spec.lanes; lane++) {
		while (lane_take_failure(cluster_lane(cluster, rank, lane), &failure)) {
			struct cluster_group *group = group_of(cluster, failure.channel);

			member_fails(cluster, group, cluster_place(group, rank), &failure.why, false);
		}
	}
	for (uint32_t lane = 0; lane < cluster->spec.lanes; lane++) {
		while (lane_take_done(cluster_lane(cluster, rank, lane), &done)) {
			struct cluster_call *call = done.cookie;

			call_ends(cluster, call, cluster_place(&cluster->groups[call->group], rank), done.status);
		}
	}
}

/* ---- groups that come and go ---- */

/* The member's next call from later->call on that is the group's. */
static void call_fires(void *context)
{
	struct later *later = context;
	struct cluster *cluster = later->cluster;
	uint32_t index = (uint32_t)(later->group - cluster->groups), at = later->call;

	while (at < cluster->call_count &&
	       (cluster->calls[at].group != index || later->place >= cluster->calls[at].plan->nodes))
		at++;
	if (at < cluster->call_count && !cluster_is_dead(cluster, cluster_rank(later->group, later->place)) &&
	    later->group->members[later->place].open) {
		sim_cluster_start(cluster, &cluster->calls[at], later->place);
		later->call = at + 1;
		after(later, cluster->spec.start_spread_ns, call_fires);
	}
	free(later);
}

/* A group is made: all its members open their streams, then they may make calls. */
static void open_fires(void *context)
{
	struct later *later = context;
	struct cluster *cluster = later->cluster;
	struct cluster_group *group = later->group;

	for (uint32_t place = 0; place < group->count; place++) {
		if (!cluster_is_dead(cluster, cluster_rank(group, place)))
			group->refused |= !cluster_member_open(cluster, group, place);
	}
	for (uint32_t place = 0; place < group->count; place++) {
		later->place = place;
		if (group->refused && group->members[place].open)
			member_close(cluster, group, place);
		else if (!group->refused)
			after(later, cluster->spec.start_spread_ns, call_fires);
	}
	free(later);
}

void cluster_groups_run(struct cluster *cluster)
{
	for (uint32_t i = 0; i < cluster->call_count; i++) {
		const struct cluster_call *call = &cluster->calls[i];

		for (uint32_t place = 0; place < call->plan->nodes; place++)
			cluster->groups[call->group].members[place].calls_left++;
	}
	for (uint32_t i = 0; i < cluster->group_count; i++) {
		struct later later = {.cluster = cluster, .group = &cluster->groups[i]};
		struct later *copy = malloc(sizeof(*copy));

		if (!cluster->groups[i].comes_and_goes) {
			free(copy);
			continue;
		}
		CHECK(copy);
		*copy = later;
		inproc_after(cluster->loop, cluster->groups[i].open_after_ns, open_fires, copy);
	}
}
