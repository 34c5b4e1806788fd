/*
 * mismatch_test.c - calls that do not fit together: every rank gets an error that names both, never a result.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "job.h"

#define SMALL 5 /* elements: a call that goes over the board, if there is one */

static const char *const *settings;

enum oddity {
	ODD_COUNT,
	ODD_TYPE,
	ODD_OP,
	ODD_ROOT,
	ODD_COLLECTIVE,
	ODD_ORDER,
	ODD_PLAN,
	ODD_FACTOR,
	ODD_NUMERICS,
	ODD_SIZE,    /* small, where the others are not */
	ODD_SIZES,   /* the other way round             */
	ODDITIES,
};

struct oddness {
	enum oddity what;
	uint64_t count;
	uint32_t odd_one;
	bool in_background;
	int64_t deadline_ns;
	enum esp_collective collective; /* of ODD_SIZE and ODD_SIZES */
};

/* The call of a rank: the odd one's differs. */
static void choose(const struct oddness *odd, bool is_odd, struct esp_call *call)
{
	call->collective = odd->what == ODD_ROOT ? ESP_BROADCAST : ESP_ALLREDUCE;
	call->type = ESP_F32;
	call->count = odd->count;
	call->op = odd->what == ODD_FACTOR ? ESP_SCALED : ESP_SUM;
	call->factor = 0.5;
	call->deadline_ns = odd->deadline_ns;
	if (odd->what == ODD_SIZE || odd->what == ODD_SIZES) {
		call->collective = odd->collective;
		call->count = is_odd == (odd->what == ODD_SIZE) ? SMALL : odd->count;
	}
	if (!is_odd)
		return;
	switch (odd->what) {
	case ODD_COUNT:
		call->count--;
		break;
	case ODD_TYPE:
		call->type = ESP_I32;
		break;
	case ODD_OP:
		call->op = ESP_MAX;
		break;
	case ODD_ROOT:
		call->root = 1;
		break;
	case ODD_COLLECTIVE:
		call->collective = ESP_REDUCE;
		break;
	case ODD_ORDER:
		call->collective = ESP_BARRIER;
		break;
	case ODD_PLAN:
		call->plan = "ring";
		break;
	case ODD_FACTOR:
		call->factor = 0.25;
		break;
	case ODD_NUMERICS:
		call->numerics = ESP_NUMERICS_FIXED;
		break;
	case ODD_SIZE:
	case ODD_SIZES:
	case ODDITIES:
		break;
	}
}

static enum esp_status run(struct job_rank *rank, const struct esp_call *call, bool in_background)
{
	struct esp_work *work;

	if (!in_background)
		return esp_run(rank->world, call);
	enum esp_status status = esp_start(rank->world, call, &work);
	if (status != ESP_OK)
		return status;
	status = esp_wait(work, -1);
	esp_work_free(work);
	return status;
}

static unsigned times_in(const char *text, const char *word)
{
	unsigned times = 0;

	for (const char *at = text; (at = strstr(at, word)); at += strlen(word))
		times++;
	return times;
}

/* "as call 3", and before it "call 7, ..." if that was the one to end; never one number twice. */
static void check_number(const char *text)
{
	const char *last = strstr(text, "as call "), *first = strstr(text, "call ");

	CHECK_MSG(last, "no number: %s", text);
	CHECK_MSG(first == last + 3 || strtoull(first + 5, NULL, 10) != strtoull(last + 8, NULL, 10), "a number twice: %s", text);
	CHECK_MSG(times_in(text, "call ") <= 2, "too many numbers: %s", text);
}

/* Two ranks with different calls, one of them the odd one; the one that is blamed has not made the call that this rank has. */
static void check_words(const struct job_rank *rank, const struct oddness *odd, const struct esp_error *error)
{
	char made[64];

	snprintf(made, sizeof(made), "rank %u made ", odd->odd_one);
	CHECK_MSG(error->rank >= 0 && (uint32_t)error->rank < rank->size, "no culprit: %s", error->text);
	CHECK_MSG((rank->rank == odd->odd_one) == ((uint32_t)error->rank != odd->odd_one), "rank %u is told that it was %d: %s",
	          rank->rank, error->rank, error->text);
	CHECK_MSG(times_in(error->text, " made ") == 2, "the calls are not named: %s", error->text);
	CHECK_MSG(times_in(error->text, made) == 1, "the odd one is not named: %s", error->text);
	check_number(error->text);
	snprintf(made, sizeof(made), " of %d f32", SMALL);
	if (odd->what == ODD_SIZE || odd->what == ODD_SIZES)
		CHECK_MSG(strstr(error->text, made), "the small call is not named: %s", error->text);
	if (odd->what == ODD_FACTOR)
		CHECK_MSG(strstr(error->text, "by 0.5") && strstr(error->text, "by 0.25"), "no factors: %s", error->text);
	if (odd->what == ODD_NUMERICS)
		CHECK_MSG(strstr(error->text, "numerics fixed"), "no numerics: %s", error->text);
	if (odd->what == ODD_PLAN)
		CHECK_MSG(strstr(error->text, "plan ring"), "no plan: %s", error->text);
}

static void body(struct job_rank *rank)
{
	const struct oddness *odd = rank->argument;
	struct esp_call call = ESP_CALL_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	float *data = calloc((odd->count + 1) * rank->size, sizeof(*data));
	float *other = calloc((odd->count + 1) * rank->size, sizeof(*data));
	enum esp_status status = ESP_OK;

	OK(esp_barrier(rank->world));
	job_meet(rank); /* nobody is still in it when the group fails */
	choose(odd, rank->rank == odd->odd_one, &call);
	call.in = data;
	call.out = call.collective == ESP_BROADCAST ? data : other;
	/* A rank that only gives finds out when nobody takes it any more. */
	for (int i = 0; i < 100 && status == ESP_OK; i++)
		status = run(rank, &call, odd->in_background);
	job_expect(status, ESP_EMISMATCH, "calls that do not fit");
	OK(esp_last_error(&error));
	check_words(rank, odd, &error);
	EXPECT(esp_barrier(rank->world), ESP_EMISMATCH);
	free(data);
	free(other);
}

static void all_oddities(uint32_t size, uint64_t count)
{
	struct oddness odd = {.count = count};

	for (odd.what = 0; odd.what < ODD_SIZE; odd.what++) {
		for (unsigned i = 0; i < 2; i++) {
			odd.odd_one = odd.what % size;
			odd.in_background = i == 1;
			job_run(size, settings, body, &odd);
		}
	}
}

/* Over the board here, by a plan there; with less time than it takes until ranks ask each other. */
static void small_and_large(uint32_t size)
{
	struct oddness odd = {.count = 50000, .deadline_ns = 600000000};

	for (odd.what = ODD_SIZE; odd.what <= ODD_SIZES; odd.what++) {
		for (odd.collective = ESP_ALLREDUCE; odd.collective < ESP_BARRIER; odd.collective++) {
			odd.odd_one = odd.collective % size;
			odd.in_background = odd.collective % 2;
			job_run(size, settings, body, &odd);
		}
	}
}

static void expect_words(enum esp_status status, const char *one, const char *other)
{
	struct esp_error error = ESP_ERROR_INIT;

	EXPECT(status, ESP_EMISMATCH);
	OK(esp_last_error(&error));
	CHECK_MSG(strstr(error.text, one) && strstr(error.text, other), "%s", error.text);
}

/* Two roots that only send may notice nothing, nor may a small call behind; the next large one comes upon what they sent. */
static void two_roots(struct job_rank *rank)
{
	float *data = calloc(50000, sizeof(*data));

	job_meet(rank);
	enum esp_status status = esp_broadcast(rank->world, data, 50000, ESP_F32, rank->rank);
	if (status == ESP_OK)
		status = esp_barrier(rank->world);
	if (status == ESP_OK)
		status = esp_allreduce(rank->world, data, data, 50000, ESP_F32, ESP_SUM);
	expect_words(status, "rank 0 made broadcast of 50000 f32, root 0", "rank 1 made broadcast of 50000 f32, root 1");
	free(data);
}

/* Ranks 1 and 2 are done with their calls, rank 0 waits for rank 2, and rank 1 has made the same call as rank 0. */
static void only_one_waits(struct job_rank *rank)
{
	float *data = calloc(50000, sizeof(*data)), *all = calloc(150000, sizeof(*data));
	struct esp_call call = ESP_CALL_INIT;

	OK(esp_barrier(rank->world));
	job_meet(rank);
	call.collective = ESP_GATHER;
	call.count = 50000;
	call.in = data;
	call.out = all;
	call.deadline_ns = 1000000000;
	if (rank->rank == 0)
		expect_words(esp_run(rank->world, &call), "rank 0 made gather", "rank 2 made reduce");
	else if (rank->rank == 1)
		OK(esp_run(rank->world, &call));
	else
		OK(esp_reduce(rank->world, data, all, 50000, ESP_F32, ESP_SUM, 1));
	job_meet(rank);
	if (rank->rank != 0) { /* and is told as it leaves, if word of it has come by then: here nobody lingers */
		enum esp_status status = esp_fini(rank->context);

		CHECK(status == ESP_OK || status == ESP_EMISMATCH);
		rank->context = NULL;
	}
	free(data);
	free(all);
}

/* The very first call of a job is call 1. */
static void first_call(struct job_rank *rank)
{
	float data[2] = {0};
	struct esp_error error = ESP_ERROR_INIT;

	job_meet(rank); /* or esp_init() tells of it, where that is still on */
	EXPECT(esp_allreduce(rank->world, data, data, rank->rank == 0 ? 1 : 2, ESP_F32, ESP_SUM), ESP_EMISMATCH);
	OK(esp_last_error(&error));
	CHECK_MSG(error.sequence == 1 && strstr(error.text, "as call 1, "), "%s", error.text);
	CHECK_STR(error.operation, "allreduce");
	/* What is refused afterwards is named as well. */
	EXPECT(esp_barrier(rank->world), ESP_EMISMATCH);
	OK(esp_last_error(&error));
	CHECK_STR(error.operation, "barrier");
}

/* Who makes a group is not told of calls that it has not made. */
static void group_or_call(struct job_rank *rank)
{
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_group *group;

	job_meet(rank);
	EXPECT(rank->rank == 0 ? esp_group_split(rank->world, 0, 0, &group) : esp_barrier(rank->world), ESP_EMISMATCH);
	OK(esp_last_error(&error));
	CHECK_MSG(strstr(error.text, "rank 0 made a group (esp_group_create or esp_group_split)") && strstr(error.text, "barrier"),
	          "%s", error.text);
	CHECK_STR(error.operation, rank->rank == 0 ? "group" : "barrier");
}

/* Lists that differ: all ranks are told the same, none has a group, and the parent goes on. */
static void other_list(struct job_rank *rank)
{
	static const uint32_t all[] = {0, 1, 2}, other[] = {0, 2, 1};
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_group *group = NULL;
	int32_t data = 1;

	for (int again = 0; again < 3; again++) {
		EXPECT(esp_group_create(rank->world, rank->rank == 1 ? other : all, 3, &group), ESP_EMISMATCH);
		OK(esp_last_error(&error));
		CHECK_MSG(strncmp(error.text, "esp_group_create: ", 18) == 0 && strstr(error.text, "another list"), "%s", error.text);
		CHECK_MSG((error.rank == 1) == (rank->rank != 1), "rank %u is told that it was %d", rank->rank, error.rank);
		CHECK(!group);
		OK(esp_group_error(rank->world, &error));
		CHECK(error.status == ESP_OK);
	}
	OK(esp_allreduce(rank->world, &data, &data, 1, ESP_I32, ESP_SUM));
	CHECK(data == 3);
	OK(esp_group_create(rank->world, all, 3, &group));
	OK(esp_group_free(group));
}

/* Nobody notices in the last call: one only contributes, another needs nothing. Who leaves is told. */
static void last_call(struct job_rank *rank)
{
	uint64_t count = rank->argument ? 50000 : 5;
	float *data = calloc(count, sizeof(*data)), *out = calloc(count, sizeof(*out));
	struct esp_error error = ESP_ERROR_INIT;

	CHECK(data && out);
	OK(esp_barrier(rank->world));
	job_meet(rank); /* nobody is still in it when the group fails */
	enum esp_status call = rank->argument ? esp_reduce(rank->world, data, out, count, ESP_F32, ESP_SUM, rank->rank == 0 ? 2 : 0)
	                                      : esp_broadcast(rank->world, out, rank->rank == 2 ? 0 : count, ESP_F32, 0);
	CHECK(call == ESP_OK || call == ESP_EMISMATCH);
	enum esp_status status = esp_fini(rank->context);
	CHECK(call == ESP_EMISMATCH || status == ESP_EMISMATCH);
	if (call == ESP_OK) {
		OK(esp_last_error(&error));
		CHECK_MSG(strstr(error.text, rank->argument ? "root 2" : "of 0 f32") && strstr(error.text, rank->argument ? "root 0" : "of 5 f32"), "%s", error.text);
		CHECK_MSG(strncmp(error.text, "esp_fini: ", 10) == 0, "%s", error.text);
	}
	rank->context = NULL;
	free(data);
	free(out);
}

int main(void)
{
	static const char *const by_memory[] = {"linger_seconds=0", NULL};
	static const char *const by_sockets[] = {"linger_seconds=0", "transport=tcp", NULL};

	settings = by_memory;
	all_oddities(2, 5);
	all_oddities(3, 50000);
	small_and_large(2);
	small_and_large(3);
	job_run(2, settings, two_roots, NULL);
	job_run(3, settings, only_one_waits, NULL);
	job_run(2, settings, first_call, NULL);
	job_run(3, settings, group_or_call, NULL);
	job_run(3, settings, other_list, NULL);
	job_run(3, NULL, last_call, "reduce");
	job_run(3, NULL, last_call, NULL);
	job_run(3, by_sockets + 1, last_call, "reduce");
	job_run(3, by_sockets + 1, last_call, NULL);
	settings = by_sockets;
	all_oddities(3, 5);
	all_oddities(2, 50000);
	job_run(2, settings, two_roots, NULL);
	job_run(3, settings, only_one_waits, NULL);
	job_run(2, settings, first_call, NULL);
	job_run(3, settings, group_or_call, NULL);
	job_run(3, settings, other_list, NULL);
	return 0;
}
