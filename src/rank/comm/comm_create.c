/*
 * comm_create.c - how groups are created and freed.
 *
 * A new group needs a channel that is free on all its members. Each says which it has free, all take the highest of
 * these, open their streams, and find out whether all could; if two groups were made at once a member cannot, and they
 * try again with higher numbers. When a group is freed its members meet once more, by messages and not over the small
 * path, so that no rank clears memory that others still read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "node/progress/core_affinity.h"
#include "rank/comm/call_record.h"
#include "rank/comm/comm.h"
#include "rank/comm/keyed.h"
#include "rank/comm/p2p.h"
#include "rank/comm/retune.h"
#include "rank/comm/switched.h"
#include "rank/comm/work.h"
#include "rank/member/membership.h"
#include "rank/member/past_verdict.h"
#include "rank/member/shrink.h"
#include "rank/observe/recorder.h"
#include "rank/placement.h"
#include "rank/rail/bandwidth.h"
#include "wire/crc32c.h"

#define SHM_SMALL_SMALL 2048u   /* with its head, a page for each cell */
#define PAGE 4096u

/* ---- open and close ---- */

void comm_drop_left(struct comm *group)
{
	for (uint32_t i = 0; i < COMM_LEFT; i++) {
		work_put(group->left[i]);
		group->left[i] = NULL;
	}
}

bool comm_use_site(struct comm *group)
{
	const struct placement *placement = group->context->mod.placement;

	comm_drop_left(group); /* it has a plan of those */
	comm_plan_cache_fini(&group->plans);
	group->net.layout.topology = NULL;
	free(group->net.place);
	group->net.place = NULL;
	if (!placement->topology)
		return true;
	group->net.place = calloc(group->size, sizeof(*group->net.place));
	if (!group->net.place)
		return false;
	for (uint32_t i = 0; i < group->size; i++)
		group->net.place[i] = placement->place[group->ranks[i]];
	group->net.layout.topology = placement->topology;
	group->net.layout.place = group->net.place;
	return true;
}

/* Has every rank of the job on this one's host a core? As all of them would say it. */
static bool has_cores(const struct roster *roster, uint32_t rank)
{
	for (uint32_t i = 0; i < roster->size; i++) {
		if (roster->host_of[i] == roster->host_of[rank] && roster->core_ranks[i] > roster->nodes[i].cores)
			return false;
	}
	return true;
}

static uint32_t turn_of(const struct roster *roster, uint32_t rank)
{
	return core_affinity_turn(roster->core_place[rank], roster->nodes[rank].cores);
}

/* By the cores that ranks may use, the one of these whose turn is theirs, and then by rank. */
static int compare_cores(const void *a, const void *b, void *context)
{
	const struct comm *group = context;
	const struct roster *roster = &group->context->roster;
	uint32_t one = *(const uint32_t *)a, other = *(const uint32_t *)b, rank = group->ranks[one],
	         other_rank = group->ranks[other];
	uint64_t set = roster->nodes[rank].core_set, other_set = roster->nodes[other_rank].core_set;
	uint32_t turn = turn_of(roster, rank), other_turn = turn_of(roster, other_rank);

	if (set != other_set)
		return set < other_set ? -1 : 1;
	return turn != other_turn ? (turn > other_turn) - (turn < other_turn) : (one > other) - (one < other);
}

/*
 * Where ranks of one machine share cores and talk through sockets. All of them come to the same order. False: no
 * memory.
 */
static bool order_by_cores(struct comm *group)
{
	uint32_t *order = calloc(group->size, sizeof(*order)), moved = 0;

	if (!order)
		return false;
	for (uint32_t i = 0; i < group->size; i++)
		order[i] = i;
	qsort_r(order, group->size, sizeof(*order), compare_cores, group);
	for (uint32_t i = 0; i < group->size; i++)
		moved += order[i] != i;
	if (moved == 0) {
		free(order);
		order = NULL;
	}
	group->net.layout.core_order = group->net.core_order = order;
	return true;
}

/* False: no memory. */
static bool find_hosts(struct comm *group)
{
	const struct rank *context = group->context;
	const struct roster *roster = &context->roster;
	bool apart = context->conf.transport == CONF_TRANSPORT_TCP;
	uint32_t hosts = 0;
	bool one_machine = true;
	/* by host of the job: 1 and its number here; 0: none yet */
	uint32_t *numbers = calloc(roster->hosts, sizeof(*numbers));

	if (!numbers)
		return false;
	for (uint32_t i = 0; i < group->size; i++) {
		uint32_t host = roster->host_of[group->ranks[i]];

		one_machine = one_machine && host == roster->host_of[group->ranks[0]];
		if (apart || numbers[host] == 0)
			numbers[host] = ++hosts;
		group->net.host_of[i] = numbers[host] - 1;
	}
	free(numbers);
	group->net.layout = (struct layout){
		.members = group->size,
		.hosts = hosts,
		.host_of = group->net.host_of,
		.one_machine = one_machine,
		.has_cores = one_machine && has_cores(roster, group->ranks[0]),
		.chunk_bytes = rank_chunk_bytes(context),
		.slot_bytes = rank_slot_bytes(context),
		.chunk_is_set = context->conf.chunk_bytes != 0,
		.buffer_bytes = context->conf.buffer_bytes / context->lanes,
		.credits = exec_credits(context->conf.credits),
		.lanes = context->mod.bandwidth->lanes,
		.lane_weights = context->rails.count > 1 ? context->mod.bandwidth->lane_weights : NULL,
	};
	/* messages between two ranks count with it: even a neighbour's must find room */
	if (!group->net.layout.chunk_is_set)
		group->net.layout.chunk_bytes = comm_plan_cache_fair_chunk(&group->net.layout, 1);
	return !(apart && one_machine) || group->net.layout.has_cores || order_by_cores(group);
}

static bool can_have_small(const struct comm *group)
{
	const struct rank *context = group->context;
	bool can =
		group->net.layout.hosts == 1 && group->size > 1 && context->near.segment && context->conf.small_shm_bytes > 0;

	for (uint32_t i = 0; i < group->size; i++)
		can = can && context->near.local_of[group->ranks[i]] != NO_RANK;
	return can;
}

static uint64_t shm_small_memory(uint64_t bytes)
{
	return 2 * ((SHM_SMALL_HEAD_BYTES + bytes + PAGE - 1) / PAGE * PAGE);
}

/*
 * Small-path memory is there even if no calls are made, so a thousand groups cannot all have the full size: the first
 * get that, until they have an eighth of buffer_bytes together; then come small ones, up to a quarter; then none.
 */
static void allot_small(struct comm *group)
{
	struct rank *context = group->context;
	uint64_t most = context->conf.buffer_bytes, all = 0;
	uint32_t full = (uint32_t)context->conf.small_shm_bytes, small = full < SHM_SMALL_SMALL ? full : SHM_SMALL_SMALL;

	pthread_mutex_lock(&context->lock);
	for (const struct comm *other = context->comms.list; other; other = other->next)
		all += other->small.memory;
	if (all == 0 || all + shm_small_memory(full) <= most / 8)
		group->small.bytes = full;
	else
		group->small.bytes = all + shm_small_memory(small) <= most / 4 ? small : 0;
	group->small.memory = group->small.bytes > 0 ? shm_small_memory(group->small.bytes) : 0;
	pthread_mutex_unlock(&context->lock);
}

/* Of the size that it was allotted. */
static enum esp_status open_small(struct comm *group)
{
	struct rank *context = group->context;
	const struct segment_view **views;

	if (group->small.bytes == 0)
		return ESP_OK;
	views = calloc(group->size, sizeof(struct segment_view *));
	if (!views)
		return ESP_ENOMEM;
	for (uint32_t i = 0; i < group->size; i++)
		views[i] = context->near.views[context->near.local_of[group->ranks[i]]];
	struct recorder_queue *queue = aligned_alloc(_Alignof(struct recorder_queue), sizeof(*queue));
	enum esp_status status =
		queue ? shm_small_open(context->near.segment, group->channel, group->mark, group->small.bytes, group->rank,
	                           group->size, views, &group->small.shm)
		      : ESP_ENOMEM;
	free(views);
	if (status != ESP_OK) {
		free(queue);
		return status;
	}
	memset(queue, 0, sizeof(*queue));
	pthread_mutex_lock(&context->lock);
	group->small.records = queue;
	pthread_mutex_unlock(&context->lock);
	return ESP_OK;
}

enum esp_status comm_open_small(struct comm *group)
{
	group->small.bytes = (uint32_t)group->context->conf.small_shm_bytes;
	if (!can_have_small(group))
		return ESP_OK;
	allot_small(group);
	return open_small(group);
}

/* Streams on the first `count` lanes. */
static void close_streams(struct comm *group, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct progress *progress = &group->context->progress.lanes[i];

		progress_acquire(progress);
		for (unsigned stream = 0; stream < STREAMS; stream++)
			progress_close_stream(progress, (uint16_t)(group->channel + stream));
		progress_release(progress);
	}
}

/* A member to which a connection of this lane has broken; -1: none. */
static int32_t find_lost(struct progress *progress, const struct comm *group)
{
	int32_t lost = -1;

	progress_acquire(progress);
	for (uint32_t i = 0; i < group->size && lost < 0; i++)
		lost = lane_has_lost(progress->lane, group->ranks[i]) ? (int32_t)group->ranks[i] : -1;
	progress_release(progress);
	return lost;
}

static enum esp_status open_streams(struct comm *group, struct failure *failure)
{
	struct lane_stream_config config = {
		.node = group->rank,
		.members = group->size,
		.peers = group->ranks,
	};
	struct error err;

	unsigned streams = group->tuner ? STREAMS : STREAM_TUNE; /* the last one */

	for (uint32_t i = 0; i < group->context->lanes; i++) {
		struct progress *progress = &group->context->progress.lanes[i];

		enum esp_status status = ESP_OK;

		progress_acquire(progress);
		for (unsigned stream = 0; stream < streams && status == ESP_OK; stream++) {
			config.channel = (uint16_t)(group->channel + stream);
			status = lane_stream_open(progress->lane, &config, &err);
		}
		progress_release(progress);
		if (status != ESP_OK) {
			int32_t lost = find_lost(progress, group);

			close_streams(group, i + 1);
			return rank_failure_set(failure, status, lost, "%s", err.text);
		}
	}
	return ESP_OK;
}

static void comm_release(struct comm *group)
{
	comm_drop_left(group);
	comm_switched_close(group);
	shm_small_close(group->small.shm);
	free(group->small.records);
	comm_plan_cache_fini(&group->plans);
	comm_retune_fini(group);
	comm_keyed_fini(&group->keyed);
	p2p_fini(&group->p2p);
	pthread_mutex_destroy(&group->lock);
	free(group->fail.cmds);
	free(group->net.host_of);
	free(group->net.core_order);
	free(group->net.place);
	free(group->ranks);
	free(group);
}

static struct comm *comm_new(struct rank *context, uint16_t channel, const uint32_t *ranks, uint32_t size)
{
	struct comm *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->context = context;
	group->channel = channel;
	group->size = size;
	pthread_mutex_init(&group->lock, NULL);
	group->ranks = calloc(size, sizeof(*group->ranks));
	group->net.host_of = calloc(size, sizeof(*group->net.host_of));
	group->fail.cmds = calloc((size_t)context->lanes * STREAMS, sizeof(*group->fail.cmds));
	if (!group->ranks || !group->net.host_of || !group->fail.cmds) {
		comm_release(group);
		return NULL;
	}
	memcpy(group->ranks, ranks, size * sizeof(*ranks));
	group->mark = crc32c(size, ranks, size * sizeof(*ranks));
	for (uint32_t i = 0; i < size; i++) {
		if (ranks[i] == context->rank)
			group->rank = i;
	}
	return group;
}

enum esp_status comm_open(struct rank *context, uint16_t channel, const uint32_t *ranks, uint32_t size,
                           struct comm **out, struct failure *failure)
{
	struct comm *group = comm_new(context, channel, ranks, size);
	char who[RANK_TEXT], why[CONTROL_TEXT];

	if (!group)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a group of %u ranks", size);
	bool is_placed = find_hosts(group);
	group->tuner = is_placed && comm_retune_can(group) ? &retune_tuner : NULL;
	group->keyed_ops = &keyed_ops;
	group->net.lane_order = context->mod.bandwidth->lane_order;
	enum esp_status status = is_placed
	                             ? open_streams(group, failure)
	                             : rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a group of %u ranks", size);
	/* A group that has lost a member before it was opened has failed, and needs no streams. */
	bool is_lost = status == ESP_EPEER;
	if (status != ESP_OK && !is_lost) {
		comm_release(group);
		return status;
	}
	pthread_mutex_lock(&context->lock);
	group->next = context->comms.list;
	context->comms.list = group;
	past_verdict_forget(context, channel, ranks[0]);
	/* A rank that died before, or while it was opened, does not come back. */
	uint32_t dead = NO_RANK;
	for (uint32_t i = 0; i < size; i++)
		dead = context->fates.of[ranks[i]] == FATE_DEAD ? ranks[i] : dead;
	pthread_mutex_unlock(&context->lock);
	if (dead != NO_RANK) {
		snprintf(why, sizeof(why), "%s has died before the group was made", rank_text(context, dead, who));
		comm_fail(group, ESP_EPEER, (int32_t)dead, why, false);
	} else if (is_lost) {
		comm_fail(group, ESP_EPEER, failure->rank, failure->text, true);
		if (failure->rank >= 0) /* it is there, and may not know */
			membership_part(context, (uint32_t)failure->rank);
	}
	*out = group;
	return ESP_OK;
}

/* Takes it off the context's list, once no thread visits it. */
static void unlink_group(struct comm *group)
{
	struct rank *context = group->context;
	struct comm **at = &context->comms.list;

	pthread_mutex_lock(&context->lock);
	context->sleepers++;
	while (group->visitors > 0)
		pthread_cond_wait(&context->changed, &context->lock);
	context->sleepers--;
	call_record_drain(group);
	while (*at != group)
		at = &(*at)->next;
	*at = group->next;
	pthread_mutex_unlock(&context->lock);
}

void comm_destroy(struct comm *group)
{
	unlink_group(group);
	shrink_fini(group, true);
	comm_release(group);
}

/* No thread finds it any more; then messages about it are handled and its streams are closed; then it is freed. */
void comm_retire(struct comm *group)
{
	unlink_group(group);
	shrink_fini(group, false);
	close_streams(group, group->context->lanes);
	comm_release(group);
}

/* ---- agreement ---- */

/* The proposal of a member, to the others of the parent. */
struct proposal {
	int64_t color, key;
	uint64_t digest;  /* of the list that comm_create() was given */
	uint64_t channel; /* that is free here, from this one on       */
};

/* With the lock held: no two groups of a context have the same. The channel that is kept for `keeper` is not taken. */
static bool are_all_taken(const struct rank *context, const struct comm *keeper)
{
	uint32_t count = 0;

	for (const struct comm *group = context->comms.list; group; group = group->next)
		count += 1 + (group->change.keeps_channel && group != keeper);
	return count >= context->comms.most;
}

bool comm_keep_channel(struct comm *group)
{
	pthread_mutex_lock(&group->context->lock);
	bool is_kept = group->change.keeps_channel = !are_all_taken(group->context, group);
	pthread_mutex_unlock(&group->context->lock);
	return is_kept;
}

void comm_release_channel(struct comm *group)
{
	pthread_mutex_lock(&group->context->lock);
	group->change.keeps_channel = false;
	pthread_mutex_unlock(&group->context->lock);
}

static bool is_taken(const struct rank *context, uint32_t channel)
{
	for (const struct comm *group = context->comms.list; group; group = group->next) {
		if (group->channel == channel)
			return true;
	}
	return false;
}

bool comm_channel_is_free(struct rank *context, uint32_t channel)
{
	pthread_mutex_lock(&context->lock);
	/* It may be what another rank has said. */
	bool is_free = channel <= CHANNELS - COMM_CHANNELS && channel % COMM_CHANNELS == 0 && !is_taken(context, channel);
	if (is_free && context->comms.next_channel <= channel)
		context->comms.next_channel = channel + COMM_CHANNELS;
	pthread_mutex_unlock(&context->lock);
	return is_free;
}

/* A channel that no group has here; the next proposal, of another group perhaps, is another one. */
uint32_t comm_propose_channel(struct rank *context, const struct comm *keeper, uint32_t from)
{
	uint32_t found = COMM_NO_CHANNEL;

	pthread_mutex_lock(&context->lock);
	uint32_t channel = from > context->comms.next_channel ? from : context->comms.next_channel;
	channel = channel / COMM_CHANNELS * COMM_CHANNELS;
	for (uint32_t i = are_all_taken(context, keeper) ? COMMS_MOST : 0; i < COMMS_MOST && found == COMM_NO_CHANNEL;
	     i++, channel += COMM_CHANNELS) {
		if (channel + COMM_CHANNELS > CHANNELS)
			channel = 0;
		if (!is_taken(context, channel))
			found = channel;
	}
	if (found != COMM_NO_CHANNEL)
		context->comms.next_channel = found + COMM_CHANNELS;
	pthread_mutex_unlock(&context->lock);
	return found;
}

static enum esp_status exchange(struct comm *parent, enum plan_collective collective, const void *in, void *out,
                                uint64_t count, enum esp_type type, enum esp_op op, struct failure *failure)
{
	struct call call = {
		.collective = collective, .type = type, .op = op, .count = count, .in = in, .out = out, .makes_group = true,
	};
	enum esp_status status = call_check(&call, parent->rank, parent->size, failure);

	return status == ESP_OK ? comm_run(parent, &call, &(struct work_options){0}, failure) : status;
}

struct seat {
	int64_t key;
	uint32_t place;
};

static int compare_seats(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

/* The ranks that have our color, in order; the highest channel that one of all the parent's has proposed. */
static enum esp_status read_proposals(const struct comm *parent, const struct proposal *all,
                                      const struct proposal *mine, uint32_t *ranks, uint32_t *out_count,
                                      uint32_t *out_channel, struct failure *failure)
{
	struct seat *seats = calloc(parent->size, sizeof(*seats));
	uint32_t count = 0;

	if (!seats)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a group");
	*out_channel = 0;
	for (uint32_t i = 0; i < parent->size; i++) {
		if (all[i].digest != mine->digest) {
			free(seats);
			return rank_failure_set(failure, ESP_EMISMATCH, (int32_t)parent->ranks[i],
			                        "rank %u of the group gave another list of ranks than rank %u", i, parent->rank);
		}
		if (all[i].channel > *out_channel)
			*out_channel = (uint32_t)all[i].channel;
		if (mine->color >= 0 && all[i].color == mine->color)
			seats[count++] = (struct seat){all[i].key, i};
	}
	qsort(seats, count, sizeof(*seats), compare_seats);
	for (uint32_t i = 0; i < count; i++)
		ranks[i] = parent->ranks[seats[i].place];
	*out_count = count;
	free(seats);
	return ESP_OK;
}

/* The least size that a member has room for; if that is 0 the group has no small path. */
static void settle_small(struct comm *group, uint32_t bytes)
{
	group->small.bytes = bytes;
	if (bytes > 0)
		return;
	shm_small_close(group->small.shm);
	group->small.shm = NULL;
	pthread_mutex_lock(&group->context->lock);
	group->small.memory = 0;
	pthread_mutex_unlock(&group->context->lock);
}

/* By messages: there is no small path yet. It is call 0. Its plan knows no topology, as members may differ in it. */
enum esp_status comm_settle(struct comm *group, struct failure *failure)
{
	struct rank *context = group->context;
	struct placement_word word = rank_placement_word(context->mod.placement);
	uint64_t mine[] = {context->conf.small_shm_bytes, word.digest, word.inverse}, all[] = {0, 0, 0};
	bool can = can_have_small(group);

	group->small.bytes = (uint32_t)mine[0];
	if (can) {
		allot_small(group);
		mine[0] = group->small.bytes;
	}
	comm_begin_aside(group);
	enum esp_status status = exchange(group, PLAN_ALLREDUCE, mine, all, 3, ESP_U64, ESP_MIN, failure);
	comm_end_aside(group);
	if (status != ESP_OK)
		return status;
	settle_small(group, (uint32_t)all[0]);
	const char *lacks = can && open_small(group) != ESP_OK ? "no memory for the small path" : NULL;
	if (!lacks && !rank_placement_settle(group, (struct placement_word){all[1], all[2]}))
		lacks = "no memory for the hosts of its ranks";
	if (!lacks)
		return comm_switched_open(group, failure);
	comm_fail(group, ESP_ENOMEM, (int32_t)context->rank, lacks, true);
	return ESP_ENOMEM;
}

/* Opens the group on a channel that all have proposed; *out_fits: on all members it could be. */
static enum esp_status try_channel(struct comm *parent, uint32_t channel, const uint32_t *ranks, uint32_t count,
                                   struct comm **out, bool *out_fits, struct failure *failure)
{
	struct rank *context = parent->context;
	struct comm *group = NULL;
	/* 0: the channel is taken; -1: no memory; else one more than the bytes that there is room for on the small path. */
	int32_t mine = 1 + (int32_t)context->conf.small_shm_bytes, all = 0;

	pthread_mutex_lock(&context->lock);
	bool taken = channel + COMM_CHANNELS > CHANNELS || is_taken(context, channel);
	if (context->comms.next_channel <= channel)
		context->comms.next_channel = channel + COMM_CHANNELS;
	pthread_mutex_unlock(&context->lock);
	if (taken)
		mine = 0;
	else if ((count > 0 && comm_open(context, (uint16_t)channel, ranks, count, &group, failure) != ESP_OK) ||
	         (group && comm_open_small(group) != ESP_OK) ||
	         (group && parent->net.layout.topology && !comm_use_site(group)))
		mine = -1; /* trying again does not help */
	else if (group)
		mine = 1 + (int32_t)group->small.bytes;
	enum esp_status status = exchange(parent, PLAN_ALLREDUCE, &mine, &all, 1, ESP_I32, ESP_MIN, failure);
	*out_fits = status == ESP_OK && all > 0;
	if (*out_fits && group)
		settle_small(group, (uint32_t)all - 1);
	if (status == ESP_OK && all < 0)
		status = rank_failure_set(failure, ESP_ENOMEM, -1, "a rank has no memory for the group");
	if (!*out_fits && group) {
		comm_retire(group);
		group = NULL;
	}
	*out = group;
	return status;
}

static enum esp_status agree(struct comm *parent, struct proposal mine, struct comm **out, struct failure *failure)
{
	struct proposal *all = calloc(parent->size, sizeof(*all));
	uint32_t *ranks = calloc(parent->size, sizeof(*ranks));
	uint32_t count = 0, channel = 0;
	bool fits = false;
	enum esp_status status = ESP_OK;

	if (!all || !ranks) { /* the others wait for us until their deadline */
		free(all);
		free(ranks);
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a group");
	}
	while (status == ESP_OK && !fits) {
		mine.channel = comm_propose_channel(parent->context, NULL, channel);
		status = exchange(parent, PLAN_ALLGATHER, &mine, all, sizeof(mine), ESP_BYTES, ESP_SUM, failure);
		if (status == ESP_OK)
			status = read_proposals(parent, all, &mine, ranks, &count, &channel, failure);
		if (status == ESP_OK && channel == COMM_NO_CHANNEL)
			status = rank_failure_set(failure, ESP_ELIMIT, -1, "a rank has %u groups, which is all that there can be",
			                          COMMS_MOST);
		if (status == ESP_OK)
			status = try_channel(parent, channel, ranks, count, out, &fits, failure);
		channel += COMM_CHANNELS;
	}
	free(all);
	free(ranks);
	return status == ESP_OK && *out ? comm_switched_open(*out, failure) : status;
}

enum esp_status comm_split(struct comm *parent, int64_t color, int64_t key, struct comm **out, struct failure *failure)
{
	return agree(parent, (struct proposal){.color = color, .key = key}, out, failure);
}

enum esp_status comm_create(struct comm *parent, const uint32_t *places, uint32_t count, struct comm **out,
                             struct failure *failure)
{
	struct proposal mine = {.color = -1};

	if (count == 0 || !places)
		return rank_failure_set(failure, ESP_EINVAL, -1, "%s: a group needs at least one rank",
		                        places ? "count is 0" : "ranks is NULL");
	mine.digest = 1 + (uint64_t)crc32c(count, places, count * sizeof(*places));
	for (uint32_t i = 0; i < count; i++) {
		if (places[i] >= parent->size)
			return rank_failure_set(failure, ESP_EINVAL, -1, "rank %u is not in the parent, which has %u ranks",
			                        places[i], parent->size);
		for (uint32_t j = 0; j < i; j++) {
			if (places[i] == places[j])
				return rank_failure_set(failure, ESP_EINVAL, -1, "rank %u is in the list twice", places[i]);
		}
		if (places[i] == parent->rank) {
			mine.color = 0;
			mine.key = i;
		}
	}
	return agree(parent, mine, out, failure);
}

/* ---- the end ---- */

enum esp_status comm_free(struct comm *group, struct failure *failure)
{
	struct rank *context = group->context;
	struct call meet = {.collective = PLAN_BARRIER, .planner = &planner_tree};
	enum esp_status status;

	if (group == context->world)
		return rank_failure_set(failure, ESP_ESTATE, -1, "this is the world, which esp_fini() frees");
	if (comm_is_busy(group))
		return rank_failure_set(failure, ESP_ESTATE, -1,
		                        "the group has calls that have not ended: wait for them first");
	comm_retune_settle(group);
	status = call_check(&meet, group->rank, group->size, failure);
	/* By messages: see above. If it fails, so has the group, and no rank reads its small-path memory any more. */
	if (status == ESP_OK)
		(void)comm_run(group, &meet, &(struct work_options){0}, failure);
	comm_retire(group);
	return ESP_OK;
}
