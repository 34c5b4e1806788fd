/*
 * rank.c - the life of a rank in a trial: it joins, makes calls whose sums it checks, and goes on without the victim.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "espalier/espalier.h"
#include "trial.h"

struct rank {
	struct stage *stage;
	const struct trial *trial;
	struct witness *witness;
	uint32_t number;
	struct esp_context *job;
	struct esp_group *group;
	int64_t *in, *out;
	uint64_t last_well; /* call of the group that ended well */
};

/* ---- telling ---- */

static void say_place(struct rank *rank, enum place place)
{
	atomic_store(&rank->witness->place, (uint32_t)place);
}

static void note_loss(struct rank *rank)
{
	uint64_t none = 0;

	atomic_compare_exchange_strong(&rank->witness->error_ns, &none, clock_now_ns());
}

/* Is the number among the words of the text? */
static bool has_number(const char *text, uint32_t number)
{
	for (const char *at = text; *at; at++) {
		char *end;

		if (*at < '0' || *at > '9' || (at > text && at[-1] != ' '))
			continue;
		if (strtoul(at, &end, 10) == number && strchr(" ,;:", *end)) /* or the end of the text */
			return true;
	}
	return false;
}

/* What ended a call tells of the loss if it names the one who is lost. */
static void note_error(struct rank *rank)
{
	struct esp_error error = ESP_ERROR_INIT;

	esp_last_error(&error);
	snprintf(rank->witness->text, TRIAL_TEXT, "%.*s", (int)TRIAL_TEXT - 1, error.text);
	bool is_named = error.rank == (int32_t)rank->trial->victim;
	if (!rank->job) { /* several may be missing at the end of joining: the text has them; and rank 0 is the leader */
		is_named = is_named || has_number(error.text, rank->trial->victim) ||
		           (rank->trial->victim == 0 && strstr(error.text, "the leader"));
		note_loss(rank); /* there will be no other error */
	}
	if (is_named)
		note_loss(rank);
	else if (error.rank != (int32_t)rank->trial->first_victim && error.rank != (int32_t)rank->number)
		atomic_fetch_add(&rank->witness->misnamed, 1);
}

static void break_off(struct rank *rank, const char *what)
{
	char text[TRIAL_TEXT];

	snprintf(text, sizeof(text), "%s: %.180s", what, rank->witness->text);
	memcpy(rank->witness->text, text, sizeof(text));
	atomic_fetch_add(&rank->witness->broken, 1);
}

/* ---- calls ---- */

static bool has_victim(const struct rank *rank)
{
	for (uint32_t i = 0; i < esp_size(rank->group); i++) {
		if (esp_world_rank(rank->group, i) == rank->trial->victim)
			return true;
	}
	return false;
}

/* Everybody gives its bit. */
static enum esp_status sum(struct rank *rank)
{
	int64_t mine = INT64_C(1) << rank->number, wanted = 0;
	uint64_t count = rank->trial->count;
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < esp_size(rank->group); i++)
		wanted |= INT64_C(1) << esp_world_rank(rank->group, i);
	for (uint64_t i = 0; i < count; i++) {
		rank->in[i] = mine;
		rank->out[i] = STAGE_UNTOUCHED;
	}
	atomic_fetch_add(&rank->witness->call, 1);
	say_place(rank, AT_CALL);
	enum esp_status status = esp_allreduce(rank->group, rank->in, rank->out, count, ESP_I64, ESP_SUM);
	if (status != ESP_OK)
		return status;
	rank->last_well = esp_group_calls(rank->group);
	for (uint64_t i = 0; i < count; i++)
		wrong += rank->out[i] != wanted;
	atomic_fetch_add(&rank->witness->wrong, wrong);
	return ESP_OK;
}

/* The referee lets all go on together; one that is stopped meanwhile, when it is thawed. */
static void pause_here(struct rank *rank)
{
	struct timespec moment = {0, 200000};

	say_place(rank, AT_PAUSE);
	while (!atomic_load(&rank->stage->is_released))
		nanosleep(&moment, NULL);
}

/* Nobody calls anything; that the group has failed is known all the same. */
static enum esp_status idle(struct rank *rank)
{
	struct timespec moment = {0, 200000};
	struct esp_error error = ESP_ERROR_INIT;

	say_place(rank, AT_PAUSE);
	for (;;) {
		if (esp_group_error(rank->group, &error) != ESP_OK || error.status != ESP_OK)
			return sum(rank); /* which says it, too */
		nanosleep(&moment, NULL);
	}
}

/* Until the group fails. */
static enum esp_status play(struct rank *rank)
{
	enum esp_status status = ESP_OK;

	while (status == ESP_OK && atomic_load(&rank->witness->call) + 1 < rank->trial->target_call)
		status = sum(rank);
	if (status != ESP_OK)
		return status;
	switch (rank->trial->phase) {
	case PHASE_IDLE:
		return idle(rank);
	case PHASE_LATE:
		if (rank->number == rank->trial->victim)
			pause_here(rank);
		break;
	case PHASE_SHRINK:
		if (rank->number == rank->trial->first_victim)
			raise(SIGKILL);
		if (rank->trial->first_victim == UINT32_MAX)
			return ESP_EABORTED; /* then shrinking is what fails it */
		break;
	default:
		break;
	}
	while (status == ESP_OK)
		status = sum(rank);
	return status;
}

/* ---- going on ---- */

/* What is reported holds here, and is the same everywhere; that is also the first call of those who go on. */
static enum esp_status compare_reports(struct rank *rank, const struct esp_shrink *report, uint64_t last_well)
{
	int64_t mine[3] = {(int64_t)report->completed_everywhere, (int64_t)report->completed_somewhere, report->lost_count};
	int64_t most[3], least[3];
	enum esp_status status = esp_allreduce(rank->group, mine, most, 3, ESP_I64, ESP_MAX);

	rank->last_well = status == ESP_OK;
	if (report->completed_everywhere > last_well || report->completed_somewhere < last_well)
		atomic_fetch_add(&rank->witness->wrong, 1);
	if (status == ESP_OK)
		status = esp_allreduce(rank->group, mine, least, 3, ESP_I64, ESP_MIN);
	rank->last_well += rank->last_well == 1 && status == ESP_OK;
	if (status == ESP_OK && (memcmp(most, least, sizeof(most)) != 0 || memcmp(most, mine, sizeof(most)) != 0))
		atomic_fetch_add(&rank->witness->wrong, 1);
	return status;
}

/* True: there is a new group. */
static bool shrink(struct rank *rank, struct esp_shrink *report)
{
	struct esp_group *next;

	atomic_fetch_add(&rank->witness->shrinks, 1);
	say_place(rank, AT_SHRINK);
	enum esp_status status = esp_group_shrink(rank->group, report, &next);
	if (status != ESP_OK) {
		struct esp_error error = ESP_ERROR_INIT;

		esp_last_error(&error);
		snprintf(rank->witness->text, TRIAL_TEXT, "%.*s", (int)TRIAL_TEXT - 1, error.text);
		if (rank->number != rank->trial->victim)
			break_off(rank, "esp_group_shrink");
		return false;
	}
	if (rank->group != esp_world(rank->job) && esp_group_free(rank->group) != ESP_OK)
		break_off(rank, "esp_group_free");
	rank->group = next;
	return true;
}

/* Shrinks as often as something fails, until the victim is out and a sum without it was right. */
static void go_on(struct rank *rank, enum esp_status status)
{
	for (;;) {
		struct esp_shrink report = ESP_SHRINK_INIT;
		uint64_t last_well = rank->last_well;

		if (status != ESP_OK && !(rank->trial->phase == PHASE_SHRINK && status == ESP_EABORTED))
			note_error(rank);
		if (!shrink(rank, &report))
			return;
		if (!has_victim(rank))
			note_loss(rank);
		if (rank->number == rank->trial->victim && esp_size(rank->group) == 1) {
			break_off(rank, "goes on alone, and others do without it");
			return;
		}
		status = compare_reports(rank, &report, last_well);
		while (status == ESP_OK && has_victim(rank))
			status = sum(rank);
		if (status == ESP_OK && (status = sum(rank)) == ESP_OK) {
			atomic_store(&rank->witness->went_on_ns, clock_now_ns());
			return;
		}
	}
}

/* ---- a life ---- */

static enum esp_status join(struct rank *rank)
{
	char liveness[40], seconds[40], name[40];
	const char *settings[] = {"linger_seconds=3", "log=off", liveness, seconds, rank->trial->is_tcp ? "transport=tcp" : "transport=auto",
	                          NULL};
	struct esp_options options = ESP_OPTIONS_INIT;

	snprintf(liveness, sizeof(liveness), "liveness_ms=%u", rank->trial->liveness_ms);
	snprintf(seconds, sizeof(seconds), "join_seconds=%u", rank->trial->join_seconds);
	options.rank = rank->number;
	options.size = rank->trial->size;
	options.leader = rank->stage->leader;
	snprintf(name, sizeof(name), "faults-%ld-%llu", (long)getppid(), (unsigned long long)rank->trial->seed);
	options.settings = settings;
	options.job = name;
	say_place(rank, AT_JOIN);
	return esp_init(&options, &rank->job);
}

static void leave(struct rank *rank)
{
	say_place(rank, AT_LEAVE);
	if (esp_fini(rank->job) != ESP_OK)
		break_off(rank, "esp_fini");
	if (rank->trial->phase == PHASE_LEAVING)
		note_loss(rank); /* it has not kept us */
}

int rank_live(struct stage *stage, uint32_t number)
{
	struct rank rank = {
		.stage = stage,
		.trial = &stage->trial,
		.witness = &stage->witnesses[number],
		.number = number,
		.out = stage->outputs[number],
	};
	enum esp_status status = join(&rank);
	void *memory = NULL;

	if (status != ESP_OK) {
		note_error(&rank);
		say_place(&rank, AT_END);
		return 0;
	}
	rank.group = esp_world(rank.job);
	size_t bytes = (size_t)rank.trial->count * sizeof(int64_t);
	rank.in = rank.trial->from_alloc ? NULL : malloc(bytes);
	if (rank.trial->from_alloc && esp_alloc(rank.job, bytes, &memory) == ESP_OK)
		rank.in = memory;
	if (!rank.in)
		return 1;
	if (rank.trial->phase == PHASE_LEAVING) {
		while (status == ESP_OK && atomic_load(&rank.witness->call) < rank.trial->target_call)
			status = sum(&rank);
		if (status != ESP_OK) /* the victim was quicker to leave than we to be done with the last call */
			note_error(&rank);
	} else {
		status = play(&rank);
		go_on(&rank, status);
	}
	leave(&rank);
	if (!rank.trial->from_alloc)
		free(rank.in);
	say_place(&rank, AT_END);
	return 0;
}
