#include "contest.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tools/bench/bench_time.h"

#define PERIOD 13 /* of the terms along a buffer */
#define PAGE 4096

static const char usage[] = "usage: %s [--ranks N] [--sizes BYTES,...] [--seconds S] [--iters N] [--in-place] [--peer NAME] "
							"[--variant NAME]\n";

/* One size, in place or out of place. */
struct heat {
	const struct contestant *contestant;
	const struct contest_options *options;
	float *in, *out; /* the same when in place */
	size_t count;
	struct bench_pace pace;
	int64_t wrong; /* on all ranks */
};

/* ---- options ---- */

static size_t parse_bytes(const char *text, char **out_end)
{
	static const char units[] = "KMG";
	size_t bytes = strtoull(text, out_end, 10);
	const char *unit = **out_end != '\0' ? strchr(units, **out_end) : NULL;

	if (unit) {
		bytes <<= 10 * (unit - units + 1);
		(*out_end)++;
	}
	return bytes;
}

static bool parse_sizes(const char *text, struct contest_options *options)
{
	options->size_count = 0;
	for (;;) {
		char *end;
		size_t bytes = parse_bytes(text, &end);

		if (end == text || bytes == 0 || bytes % sizeof(float) != 0 || options->size_count == CONTEST_SIZES_MAX)
			return false;
		options->sizes[options->size_count++] = bytes;
		if (*end == '\0')
			return true;
		if (*end != ',')
			return false;
		text = end + 1;
	}
}

static bool parse_option(int option, struct contest_options *options)
{
	switch (option) {
	case 'r':
		options->ranks = atoi(optarg);
		return options->ranks > 0;
	case 's':
		return parse_sizes(optarg, options);
	case 't':
		options->seconds = atof(optarg);
		return options->seconds > 0;
	case 'i':
		options->iters = strtoull(optarg, NULL, 10);
		return options->iters > 0 && options->iters <= bench_pace_capacity(1);
	case 'o':
		options->in_place_only = true;
		return true;
	case 'p':
		options->peer = optarg;
		return true;
	case 'v':
		options->variant = optarg;
		return true;
	default:
		return false;
	}
}

struct contest_options contest_parse(int argc, char **argv)
{
	static const struct option names[] = {
		{"ranks", required_argument, NULL, 'r'},   {"sizes", required_argument, NULL, 's'},
		{"seconds", required_argument, NULL, 't'}, {"iters", required_argument, NULL, 'i'},
		{"peer", required_argument, NULL, 'p'},    {"variant", required_argument, NULL, 'v'},
		{"in-place", no_argument, NULL, 'o'},      {NULL, 0, NULL, 0},
	};
	struct contest_options options = {
		.sizes = {4, 1024, 65536, 1 << 20},
		.size_count = 4,
		.seconds = 1,
		.iters = 3,
		.peer = "",
		.variant = "",
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (!parse_option(option, &options)) {
			fprintf(stderr, usage, argv[0]);
			exit(2);
		}
	}
	return options;
}

/* ---- checking ---- */

static float term(size_t i, int rank)
{
	return (float)(i % PERIOD + 1 + (size_t)rank);
}

static float sum_of_terms(size_t i, int ranks)
{
	float sum = 0;

	for (int rank = 0; rank < ranks; rank++)
		sum += term(i, rank);
	return sum;
}

static void fill(const struct heat *heat)
{
	if (heat->out != heat->in)
		memset(heat->out, 0xff, heat->count * sizeof(float)); /* not a number */
	for (size_t i = 0; i < heat->count; i++)
		heat->in[i] = term(i, heat->contestant->rank);
}

static int64_t count_wrong(const struct heat *heat)
{
	float expected[PERIOD];
	int64_t wrong = 0;

	for (size_t i = 0; i < PERIOD; i++)
		expected[i] = sum_of_terms(i, heat->contestant->ranks);
	for (size_t i = 0; i < heat->count; i++)
		wrong += !(heat->out[i] == expected[i % PERIOD]);
	return wrong;
}

static void call(const struct heat *heat, uint64_t times)
{
	const struct contestant *contestant = heat->contestant;

	for (uint64_t i = 0; i < times; i++)
		contestant->allreduce(contestant->context, heat->in, heat->out, heat->count);
}

static void check(struct heat *heat)
{
	const struct contestant *contestant = heat->contestant;

	fill(heat);
	call(heat, 1);
	heat->wrong += contestant->total(contestant->context, count_wrong(heat));
}

/* ---- measuring ---- */

/* What rank 0 knows, known to all. */
static uint64_t from_rank_0(const struct contestant *contestant, uint64_t value)
{
	return (uint64_t)contestant->total(contestant->context, contestant->rank == 0 ? (int64_t)value : 0);
}

static void measure_batch(struct heat *heat, uint64_t start_ns)
{
	const struct contestant *contestant = heat->contestant;
	uint64_t begin_ns, end_ns, elapsed_ns, spent_ns;

	contestant->barrier(contestant->context);
	begin_ns = clock_now_ns();
	call(heat, bench_pace_calls(&heat->pace));
	end_ns = clock_now_ns();
	elapsed_ns = from_rank_0(contestant, end_ns - begin_ns);
	spent_ns = from_rank_0(contestant, end_ns - start_ns);
	bench_pace_add(&heat->pace, elapsed_ns, elapsed_ns, spent_ns);
}

static void measure(struct heat *heat)
{
	const struct contestant *contestant = heat->contestant;
	uint64_t start_ns;

	if (contestant->prepare)
		contestant->prepare(contestant->context, heat->out, heat->count);
	check(heat);
	start_ns = clock_now_ns();
	while (bench_pace_calls(&heat->pace) > 0)
		measure_batch(heat, start_ns);
	check(heat);
	if (contestant->prepare)
		contestant->prepare(contestant->context, NULL, 0);
}

static void print(const struct heat *heat)
{
	printf("{\"peer\": \"%s\", \"variant\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"place\": \"%s\", "
	       "\"calls_per_sample\": %" PRIu64 ", \"samples_us\": [",
	       heat->options->peer, heat->options->variant, heat->contestant->ranks, heat->count * sizeof(float),
	       heat->in == heat->out ? "in" : "out", heat->pace.calls);
	for (size_t i = 0; i < heat->pace.count; i++)
		printf("%s%.3f", i == 0 ? "" : ", ", heat->pace.samples_us[i]);
	printf("], \"wrong\": %" PRId64 "}\n", heat->wrong);
	fflush(stdout);
}

/* ---- all sizes ---- */

static void *allocate(size_t bytes)
{
	void *memory = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);

	if (!memory) {
		fprintf(stderr, "contest: no memory for %zu bytes\n", bytes);
		exit(1);
	}
	return memory;
}

int64_t contest(const struct contestant *contestant, const struct contest_options *options)
{
	size_t capacity = bench_pace_capacity(options->iters);
	double *samples_us = allocate(2 * capacity * sizeof(double));
	uint64_t budget_ns = (uint64_t)(options->seconds / 2 * 1e9);
	int64_t wrong = 0;

	for (int i = 0; i < 2 * options->size_count; i++) {
		size_t bytes = options->sizes[i / 2];

		if (i % 2 == 1 && options->in_place_only)
			continue;
		float *in = allocate(bytes), *out = i % 2 == 0 ? in : allocate(bytes);
		struct heat heat = {
			.contestant = contestant, .options = options, .in = in, .out = out, .count = bytes / sizeof(float)};

		bench_pace_init(&heat.pace, options->iters, budget_ns, samples_us, samples_us + capacity, capacity);
		measure(&heat);
		if (contestant->rank == 0)
			print(&heat);
		wrong += heat.wrong;
		if (out != in)
			free(out);
		free(in);
	}
	free(samples_us);
	return wrong;
}
