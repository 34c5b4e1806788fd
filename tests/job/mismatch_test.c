/*
 * mismatch_test.c - calls that do not fit together: every rank gets an error that names both, never a result.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "job.h"

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
	ODDITIES,
};

struct oddness {
	enum oddity what;
	uint64_t count;
	uint32_t odd_one;
	bool in_background;
};

/* The call of a rank: the odd one's differs. */
static void choose(const struct oddness *odd, bool is_odd, struct esp_call *call)
{
	call->collective = odd->what == ODD_ROOT ? ESP_BROADCAST : ESP_ALLREDUCE;
	call->type = ESP_F32;
	call->count = odd->count;
	call->op = odd->what == ODD_FACTOR ? ESP_SCALED : ESP_SUM;
	call->factor = 0.5;
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

static void body(struct job_rank *rank)
{
	const struct oddness *odd = rank->argument;
	struct esp_call call = ESP_CALL_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	float *data = calloc(odd->count + 1, sizeof(*data));
	enum esp_status status = ESP_OK;

	OK(esp_barrier(rank->world));
	job_meet(rank); /* nobody is still in it when the group fails */
	choose(odd, rank->rank == odd->odd_one, &call);
	call.in = call.out = data;
	/* A rank that only gives finds out when nobody takes it any more. */
	for (int i = 0; i < 100 && status == ESP_OK; i++)
		status = run(rank, &call, odd->in_background);
	job_expect(status, ESP_EMISMATCH, "calls that do not fit");
	OK(esp_last_error(&error));
	CHECK_MSG(error.rank >= 0 && (uint32_t)error.rank < rank->size, "no culprit: %s", error.text);
	CHECK_MSG(strstr(error.text, " made ") != NULL, "the calls are not named: %s", error.text);
	EXPECT(esp_barrier(rank->world), ESP_EMISMATCH);
	free(data);
}

static void all_oddities(uint32_t size, uint64_t count)
{
	struct oddness odd = {.count = count};

	for (odd.what = 0; odd.what < ODDITIES; odd.what++) {
		for (unsigned i = 0; i < 2; i++) {
			odd.odd_one = odd.what % size;
			odd.in_background = i == 1;
			job_run(size, settings, body, &odd);
		}
	}
}

int main(void)
{
	static const char *const by_memory[] = {"linger_seconds=0", NULL};
	static const char *const by_sockets[] = {"linger_seconds=0", "transport=tcp", NULL};

	settings = by_memory;
	all_oddities(2, 5);
	all_oddities(3, 50000);
	settings = by_sockets;
	all_oddities(3, 5);
	all_oddities(2, 50000);
	return 0;
}
