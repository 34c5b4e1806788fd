#include "rank/rank_account.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/fnv.h"
#include "node/observe/tally.h"
#include "rank/comm/call_record.h"
#include "rank/comm/comm.h"
#include "rank/comm/work.h"
#include "rank/observe/recorder.h"
#include "rank/observe/tracer.h"
#include "rank/rank_info.h"

#define CALLS_MOST 4096u /* under way: more are not listed */

/* ---- identity ---- */

uint64_t rank_instance(const struct rank *context)
{
	uint64_t hash = FNV_START; /* over all node infos: processes and ports are in them */

	for (uint32_t i = 0; i < context->roster.size; i++) {
		uint8_t bytes[NODE_INFO_BYTES];

		node_info_encode(&context->roster.nodes[i], bytes);
		hash = fnv_add(hash, bytes, sizeof(bytes));
	}
	return hash;
}

void rank_account_who(const struct rank *context, struct account *out)
{
	const struct node_info *card = &context->join.info;
	struct timespec real;

	*out = (struct account){0};
	snprintf(out->job, sizeof(out->job), "%s", context->join.launch.job);
	snprintf(out->host, sizeof(out->host), "%s", card->host_name);
	out->instance = context->instance;
	out->rank = context->rank;
	out->size = context->size;
	out->pid = card->pid;
	out->now_ns = clock_now_ns();
	clock_gettime(CLOCK_REALTIME, &real);
	out->real_ns = (uint64_t)real.tv_sec * NS_PER_S + (uint64_t)real.tv_nsec;
}

/* All have come, and connect with each other. */
static void tell_opening(struct rank *context, struct account *out)
{
	pthread_mutex_lock(&context->lock);
	uint32_t missing = context->opening.neighbours_missing + context->opening.controls_missing;
	out->joins_since_ns = context->opening.began_ns;
	pthread_mutex_unlock(&context->lock);
	if (out->joins_since_ns > 0 && missing > 0 && missing <= 2 * context->size)
		snprintf(out->joins_words, sizeof(out->joins_words), "all have come; %u connection%s to others", missing,
		         missing == 1 ? "" : "s");
	else if (out->joins_since_ns > 0)
		snprintf(out->joins_words, sizeof(out->joins_words), "all have come; some have not connected yet");
}

/* ---- words ---- */

static void put_words(const struct rank *context, struct account_call *call)
{
	const struct record *record = &call->record;
	char who[RANK_TEXT] = "any rank", words[CALL_TEXT];

	snprintf(call->plan, sizeof(call->plan), "%s", record->plan);
	call->digest = call_note_digest(&record->note);
	if (record->kind != RECORD_SEND && record->kind != RECORD_RECEIVE) {
		snprintf(call->words, sizeof(call->words), "%s", call_describe(&record->note, words));
		return;
	}
	if (record->peer < context->size)
		rank_text(context, record->peer, who);
	snprintf(call->words, sizeof(call->words), "%s %s with tag %" PRIu64,
	         record->kind == RECORD_SEND ? "send to" : "receive from", who, record->note.key);
}

/* ---- what is under way; context->lock is held ---- */

static struct account_call *add_call(struct account *out, uint32_t capacity, const struct record *record)
{
	if (out->call_count == capacity)
		return NULL;
	struct account_call *call = &out->calls[out->call_count++];
	*call = (struct account_call){.record = *record};
	return call;
}

static void add_work(const struct work *work, struct account *out, uint32_t capacity)
{
	const struct comm *group = work->group;
	struct record record;

	call_record_work(work, work_plan(work), &record);
	/* for its message, or for the receiver */
	if (work->kind != WORK_CALL && work->end.is_waiting && work->msg.peer < group->size) {
		record.waits_for = group->ranks[work->msg.peer];
		record.since_ns = work->time.started_ns;
	}
	(void)add_call(out, capacity, &record);
}

static bool has_ended(const struct ring *ring, const struct record *record)
{
	for (uint32_t i = 0; i < ring_count(ring); i++) {
		const struct record *other = ring_at(ring, i);

		if (other->channel == record->channel && other->first == record->first && other->note.flags == 0 &&
		    other->note.sequence == record->note.sequence && record->note.sequence > 0)
			return true;
	}
	return false;
}

/* A call on the small path that a caller sleeps over; it may be known as work, or have ended this very moment. */
static void add_vigil(const struct comm *group, const struct ring *ring, struct account *out, uint32_t capacity)
{
	const struct record *record = &group->small.vigil.record;

	if (group->small.vigil.began_ns == 0 || has_ended(ring, record))
		return;
	for (uint32_t i = 0; i < out->call_count; i++) {
		struct record *other = &out->calls[i].record;

		if (other->ended_ns == 0 && other->channel == record->channel && other->first == record->first &&
		    other->note.flags == 0 && other->note.sequence == record->note.sequence) {
			other->waits_for = record->waits_for;
			other->since_ns = group->small.vigil.began_ns;
			return;
		}
	}
	struct account_call *call = add_call(out, capacity, record);
	if (call)
		call->record.since_ns = group->small.vigil.began_ns;
}

static uint32_t count_under_way(const struct rank *context)
{
	uint32_t count = 0;

	for (const struct work *work = context->comms.live; work && count < CALLS_MOST; work = work->link.live_next)
		count++;
	for (const struct comm *group = context->comms.list; group; group = group->next)
		count += group->small.vigil.began_ns != 0;
	return count;
}

static uint32_t count_groups(const struct rank *context)
{
	uint32_t count = 0;

	for (const struct comm *group = context->comms.list; group; group = group->next)
		count++;
	return count;
}

static bool is_all(const struct rank *context, const struct comm *group)
{
	bool all = group->size == context->size;

	for (uint32_t i = 0; all && i < group->size; i++)
		all = group->ranks[i] == i;
	return all;
}

static bool add_group(const struct comm *group, struct account *out)
{
	struct account_group *entry = &out->groups[out->group_count++];
	struct call_note none = {0};

	*entry = (struct account_group){
		.channel = group->channel,
		.first = group->ranks[0],
		.size = group->size,
		.calls = atomic_load_explicit(&group->calls, memory_order_relaxed),
		.failed = atomic_load(&group->fail.status),
		.failed_ns = group->fail.at_ns,
		.culprit = comm_culprit(group, &none),
	};
	snprintf(entry->reason, sizeof(entry->reason), "%s", group->fail.reason.failed.text);
	if (is_all(group->context, group))
		return true;
	entry->ranks = malloc(group->size * sizeof(*entry->ranks));
	if (entry->ranks)
		memcpy(entry->ranks, group->ranks, group->size * sizeof(*entry->ranks));
	return entry->ranks != NULL;
}

static uint8_t fate_of(uint8_t fate)
{
	return fate == FATE_LEFT ? ACCOUNT_LEFT : fate == FATE_SILENT ? ACCOUNT_SILENT : ACCOUNT_DIED;
}

static void add_gone(const struct rank *context, struct account *out)
{
	for (uint32_t i = 0; i < context->size && out->gone_count < context->fates.gone; i++) {
		struct account_gone *gone = &out->gone[out->gone_count];

		if (context->fates.of[i] == FATE_HERE)
			continue;
		*gone = (struct account_gone){.rank = i, .fate = fate_of(context->fates.of[i]),
		                               .at_ns = context->fates.of_ns[i]};
		snprintf(gone->host, sizeof(gone->host), "%s", context->roster.nodes[i].host_name);
		out->gone_count++;
	}
}

/* ---- what has ended ---- */

static int compare_ends(const void *a, const void *b)
{
	const struct record *x = a, *y = b;

	return x->ended_ns < y->ended_ns ? -1 : x->ended_ns > y->ended_ns;
}

/* Small calls come into the ring some dozen at a time. */
static void sort_by_end(struct ring *ring)
{
	uint32_t count = ring_count(ring);

	qsort(ring->records, count, sizeof(ring->records[0]), compare_ends);
	/* the first is the oldest */
	ring->added = ring->added - ring->added % RING_RECORDS + (count < RING_RECORDS ? count : 0);
}

/* The latest calls that have ended, in front of those that are listed. There is room. */
static void put_ended(struct ring *ring, uint32_t most, struct account *out)
{
	uint64_t added = ring->added;
	uint32_t there = ring_count(ring), count = there < most ? there : most;

	sort_by_end(ring);
	memmove(out->calls + count, out->calls, out->call_count * sizeof(*out->calls));
	for (uint32_t i = 0; i < count; i++)
		out->calls[i] = (struct account_call){.record = *ring_at(ring, there - count + i)};
	out->call_count += count;
	out->forgotten = added - count;
}

/* ---- what lanes wait for ---- */

/* The oldest call of that stream that is listed. */
static struct record *find_oldest(struct account *account, const struct comm *group, unsigned stream)
{
	struct record *oldest = NULL;

	for (uint32_t i = 0; i < account->call_count; i++) {
		struct record *record = &account->calls[i].record;
		bool is_message = record->kind == RECORD_SEND || record->kind == RECORD_RECEIVE;
		unsigned its_stream = is_message                         ? STREAM_MESSAGES
		                      : record->note.flags & CALL_KEYED ? STREAM_KEYED
		                                                        : STREAM_CALLS;

		if (record->ended_ns == 0 && record->channel == group->channel && record->first == group->ranks[0] &&
		    its_stream == stream && record->waits_for == RECORD_NONE &&
		    (!oldest || record->started_ns < oldest->started_ns))
			oldest = record;
	}
	return oldest;
}

static void ask_lane(struct progress *progress, const struct comm *group, uint64_t idle_since_ns, struct account *out)
{
	for (unsigned stream = 0; stream < STREAMS; stream++) {
		struct exec_wait wait;
		struct record *record;

		if (!lane_waits(progress->lane, (uint16_t)(group->channel + stream), &wait) ||
		    wait.peer >= group->context->size || !(record = find_oldest(out, group, stream)))
			continue;
		record->waits_for = wait.peer;
		record->chunk = wait.chunk;
		record->step = wait.step;
		record->since_ns = idle_since_ns;
	}
}

/* The group is visited. */
static void ask_lanes(struct rank *context, const struct comm *group, uint64_t until_ns, struct account *out)
{
	for (uint32_t i = 0; i < context->lanes; i++) {
		struct progress *progress = &context->progress.lanes[i];
		/* before we disturb it */
		uint64_t since = atomic_load_explicit(&progress->idle_since_ns, memory_order_relaxed);

		if (!progress_try_acquire(progress, until_ns))
			continue;
		ask_lane(progress, group, since, out);
		progress_release(progress);
	}
}

/* Calls on a small path that no caller sleeps over: lane 0's thread checks them now and then. */
static void ask_small(struct comm *group, struct account *out)
{
	if (!group->small.shm || pthread_mutex_trylock(&group->lock) != 0)
		return;
	if (group->small.has_begun && !atomic_load_explicit(&group->small.is_held, memory_order_acquire)) {
		for (uint32_t i = 0; i < out->call_count; i++) {
			struct record *record = &out->calls[i].record;

			if (record->ended_ns == 0 && record->channel == group->channel && record->first == group->ranks[0] &&
			    record->note.flags == 0 && record->note.sequence == group->small.call.note.sequence &&
			    record->waits_for == RECORD_NONE) {
				record->waits_for = group->ranks[group->small.call.waits_for];
				record->since_ns = record->started_ns;
			}
		}
	}
	pthread_mutex_unlock(&group->lock);
}

static void ask_all(struct rank *context, uint64_t patience_ns, struct account *out)
{
	uint64_t until = clock_now_ns() + patience_ns;

	pthread_mutex_lock(&context->lock);
	for (struct comm *group = context->comms.list; group; group = group->next) {
		if (group->unfinished == 0)
			continue;
		comm_visit(group);
		pthread_mutex_unlock(&context->lock);
		ask_small(group, out);
		ask_lanes(context, group, until, out);
		pthread_mutex_lock(&context->lock);
		comm_depart(group);
	}
	pthread_mutex_unlock(&context->lock);
}

/* With context->lock held, so that no call is between being under way and having ended. Room is for so many of each. */
static bool list_all(struct rank *context, struct ring *ring, uint32_t calls, uint32_t groups, uint32_t gone,
                     struct account *out)
{
	bool complete = true;

	call_record_copy_locked(context, ring, NULL);
	for (const struct work *work = context->comms.live; work; work = work->link.live_next)
		add_work(work, out, calls);
	for (const struct comm *group = context->comms.list; group; group = group->next) {
		add_vigil(group, ring, out, calls);
		if (out->group_count < groups)
			complete &= add_group(group, out);
	}
	if (context->fates.gone <= gone)
		add_gone(context, out);
	return complete;
}

static enum esp_status take_account(struct rank *context, const struct account_wishes *wishes, struct ring *ring,
                                    struct account *out)
{
	pthread_mutex_lock(&context->lock);
	uint32_t calls = count_under_way(context) + 64, groups = count_groups(context) + 16,
	         gone = context->fates.gone + 16;
	pthread_mutex_unlock(&context->lock);
	out->calls = calloc((size_t)calls + RING_RECORDS, sizeof(*out->calls));
	out->groups = calloc(groups, sizeof(*out->groups));
	out->gone = calloc(gone, sizeof(*out->gone));
	if (!out->calls || !out->groups || !out->gone)
		return ESP_ENOMEM;
	pthread_mutex_lock(&context->lock);
	bool complete = list_all(context, ring, calls, groups, gone, out);
	pthread_mutex_unlock(&context->lock);
	if (!complete)
		return ESP_ENOMEM;
	if (wishes->patience_ns > 0)
		ask_all(context, wishes->patience_ns, out);
	put_ended(ring, wishes->ended, out);
	for (uint32_t i = 0; i < out->call_count; i++)
		put_words(context, &out->calls[i]);
	return ESP_OK;
}

enum esp_status rank_account(struct rank *context, const struct account_wishes *wishes, struct account *out)
{
	struct ring *ring = malloc(sizeof(*ring));

	rank_account_who(context, out);
	tell_opening(context, out);
	enum esp_status status = ring ? take_account(context, wishes, ring, out) : ESP_ENOMEM;
	if (status != ESP_OK)
		account_fini(out);
	free(ring);
	return status;
}

/* ---- for Prometheus ---- */

void rank_metrics(struct rank *context, const struct account *account, uint64_t patience_ns, struct metrics *out)
{
	struct rank_stats stats;
	uint64_t oldest = account->now_ns;

	rank_stats_until(context, clock_now_ns() + patience_ns, &stats);
	*out = (struct metrics){
		.job = account->job,
		.host = account->host,
		.rank = account->rank,
		.size = account->size,
		.sent_bytes = stats.sent_bytes,
		.received_bytes = stats.received_bytes,
		.sent_messages = stats.sent_messages,
		.shared_bytes = stats.shared_bytes,
		.network_bytes = stats.network_bytes,
		.retunes = stats.retunes,
		.moved_masters = stats.moved_masters,
		.groups = account->group_count,
		.trace_lost = tracer_lost(context->mod.tracer),
	};
	for (uint32_t i = 0; i < account->call_count; i++) {
		const struct record *record = &account->calls[i].record;

		out->under_way += record->ended_ns == 0;
		if (record->ended_ns == 0 && record->started_ns < oldest)
			oldest = record->started_ns;
	}
	out->oldest_seconds = (double)(account->now_ns - oldest) / 1e9;
	for (uint32_t i = 0; i < account->group_count; i++)
		out->failed_groups += account->groups[i].failed != ESP_OK;
	for (uint32_t i = 0; i < account->gone_count; i++) {
		out->left += account->gone[i].fate == ACCOUNT_LEFT;
		out->died += account->gone[i].fate == ACCOUNT_DIED;
	}
}
