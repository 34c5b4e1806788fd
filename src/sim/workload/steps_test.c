#include "sim/workload/steps.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"
#include "base/vec.h"

#define RANKS 3u
#define LENGTH_MAX 40u

/* A training program: when each gradient's call is started, and how long it takes. */
struct training {
	uint64_t bytes[LENGTH_MAX];
	uint32_t length, steps;
	bool keyed;    /* started in another order in every step and on every rank */
	bool blocking; /* each call is waited for */
	uint32_t others; /* small calls after so many steps, like those of an evaluation; 0: none */
	bool begins_alike; /* before the first step there are calls that look like the end of one */
};

static void add(struct steps_rank *rank, struct steps_call call)
{
	CHECK(vec_reserve(&rank->calls, &rank->capacity, (size_t)rank->count + 1, sizeof(*rank->calls)));
	rank->calls[rank->count++] = call;
}

/* times: [step][parameter] of computing, from the first call of the step on. */
static void run(const struct training *training, struct rng *rng, struct steps_rank *rank, double *times)
{
	double now = 100 * rank->rank;
	uint64_t number = 5;
	for (uint32_t i = training->length / 2; training->begins_alike && i < training->length; i++, now += 0.01)
		add(rank, (struct steps_call){number++, 0, training->bytes[i], now, now + 0.02, false});
	for (uint32_t step = 0; step < training->steps; step++) {
		uint32_t order[LENGTH_MAX];
		double ended = now, computed = 0;
		for (uint32_t i = 0; i < training->length; i++)
			order[i] = i;
		for (uint32_t i = training->length; training->keyed && i > 1; i--) {
			uint32_t other = (uint32_t)rng_below(rng, i), kept = order[i - 1];
			order[i - 1] = order[other];
			order[other] = kept;
		}
		now += 0.5 + 0.1 * rng_unit(rng); /* the forward pass */
		for (uint32_t i = 0; i < training->length; i++) {
			double takes = 0.05 + rng_unit(rng) * 0.1;
			add(rank, (struct steps_call){number++, training->keyed ? 70 + order[i] : 0, training->bytes[order[i]], now,
			                              now + takes, training->keyed});
			times[step * training->length + order[i]] = computed;
			ended = fmax(ended, now + takes);
			double computes = 0.001 + rng_unit(rng) * 0.02;
			now += computes + (training->blocking ? takes : 0);
			computed += computes;
		}
		now = fmax(now, ended) + 1e-4;
		for (uint32_t i = 0; training->others && (step + 1) % training->others == 0 && i < 2; i++, now += 0.01)
			add(rank, (struct steps_call){number++, 0, 24, now, now + 0.005, false});
	}
}

static void check(const struct training *training, uint64_t seed)
{
	struct rng rng;
	struct steps_rank ranks[RANKS] = {0};
	double *times = calloc((size_t)RANKS * training->steps * training->length + 1, sizeof(*times));
	struct traces traces;
	struct steps_found found;
	struct error err = {0};
	const struct steps_options options = {.name = "m", .skip = 1, .most = 1000, .blocking = training->blocking};
	CHECK(times != NULL);
	rng_init(&rng, seed);
	for (uint32_t r = 0; r < RANKS; r++) {
		ranks[r].rank = r;
		run(training, &rng, &ranks[r], &times[(size_t)r * training->steps * training->length]);
	}
	CHECK_MSG(workload_steps_find(ranks, RANKS, &options, &traces, &found, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(found.length, training->length);
	CHECK_U64(found.steps, training->steps);
	CHECK_U64(traces.worker_count, RANKS * (training->steps - 1));
	CHECK(found.by_key == training->keyed);
	CHECK_MSG(traces.forward_s > 0.49 && traces.forward_s < 0.62, "forward pass of %g", traces.forward_s);
	CHECK(training->length < 2 || (training->blocking ? found.overlap == 0 : found.overlap > 0.2));
	for (uint32_t f = 0; f < traces.worker_count; f++) {
		const struct traces_worker *worker = &traces.workers[f];
		const double *row = &times[((size_t)worker->rank * training->steps + worker->iteration + 1) * training->length];
		CHECK_U64(worker->trace.count, training->length);
		for (uint32_t i = 0; i < training->length; i++) {
			const struct trace_event *event = &worker->trace.events[i];
			unsigned parameter;
			CHECK(sscanf(event->parameter, training->keyed ? "key-%u" : "tensor-%u", &parameter) == 1);
			parameter -= training->keyed ? 70 : 0;
			CHECK_U64(event->bytes, training->bytes[parameter]);
			CHECK_MSG(fabs(event->time_s - row[parameter]) < 2e-9, "%s at %g, not at %g", event->parameter,
			          event->time_s, row[parameter]);
		}
	}
	for (uint32_t r = 0; r < RANKS; r++)
		free(ranks[r].calls);
	workload_traces_fini(&traces);
	free(times);
}

static void test_trainings(uint64_t seed)
{
	struct rng rng;
	rng_init(&rng, seed);
	for (int round = 0; round < 60; round++) {
		struct training training = {.length = 1 + (uint32_t)rng_below(&rng, LENGTH_MAX),
		                            .steps = 5 + (uint32_t)rng_below(&rng, 20),
		                            .keyed = rng_chance(&rng, 1, 3), .blocking = rng_chance(&rng, 1, 4)};
		/* Few different sizes: equal layers, as in transformers. The last one differs, or a shorter step would fit. */
		for (uint32_t i = 0; i < training.length; i++)
			training.bytes[i] = 4096 * (1 + rng_below(&rng, 3));
		training.bytes[training.length - 1] = 1000;
		training.begins_alike = !training.keyed && !training.blocking && training.length > 3 && rng_chance(&rng, 1, 3);
		training.others = !training.blocking && rng_chance(&rng, 1, 2) ? 4 : 0;
		/* If each call is waited for, only the sizes tell where steps begin. */
		if (training.blocking && !training.keyed)
			for (uint32_t i = 0; i < training.length; i++)
				training.bytes[i] = 100 + 4 * i;
		check(&training, rng_next(&rng));
	}
}

/* Steps that cannot be found are an error. */
static void test_refused(void)
{
	struct steps_call calls[6] = {0}, others[6];
	struct steps_rank ranks[2] = {{0, calls, 0, 6}, {1, others, 6, 6}};
	struct traces traces;
	struct steps_found found;
	struct error err = {0};
	const struct steps_options options = {.name = "m", .skip = 1, .most = 10};
	CHECK(workload_steps_find(ranks, 2, &options, &traces, &found, &err) == ESP_EINVAL &&
	      strstr(err.text, "reduced nothing"));
	workload_traces_fini(&traces);
	for (uint32_t i = 0; i < 6; i++)
		calls[i] = others[i] = (struct steps_call){i, 0, 100 * (i + 1), i, i + 0.5, false};
	ranks[0].count = 6;
	CHECK(workload_steps_find(ranks, 2, &options, &traces, &found, &err) == ESP_EINVAL &&
	      strstr(err.text, "nothing repeats"));
	workload_traces_fini(&traces);
	for (uint32_t i = 0; i < 6; i++)
		calls[i].bytes = others[i].bytes = i % 2 ? 8 : 16;
	others[5].bytes = 9;
	CHECK(workload_steps_find(ranks, 2, &options, &traces, &found, &err) == ESP_EINVAL);
	CHECK_MSG(strstr(err.text, "rank 1 has no call 5 of 8 bytes"), "%s", err.text);
	workload_traces_fini(&traces);
	CHECK(workload_steps_find(ranks, 1, &(struct steps_options){.name = "m", .skip = 3, .most = 10}, &traces, &found,
	                          &err) == ESP_EINVAL);
	CHECK_MSG(strstr(err.text, "there are 3 steps, of which the first 3 are left out"), "%s", err.text);
	workload_traces_fini(&traces);
	CHECK(workload_steps_find(ranks, 1, &(struct steps_options){.name = "m", .length = 5, .most = 10}, &traces, &found,
	                          &err) == ESP_EINVAL);
	CHECK_MSG(strstr(err.text, "no 5 calls repeat"), "%s", err.text);
	workload_traces_fini(&traces);
}

int main(int argc, char **argv)
{
	test_trainings(test_seed(argc, argv, 1));
	test_refused();
	return 0;
}
