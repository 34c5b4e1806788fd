#include "node/observe/tally.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"
#include "espalier/types.h"

static struct record record_of(uint64_t took, uint64_t bytes)
{
	return (struct record){.note.sequence = 1,
	                       .started_ns = 1000,
	                       .ended_ns = 1000 + took,
	                       .bytes = bytes,
	                       .members = 4,
	                       .waited_ns = took / 2};
}

static void test_classes(void)
{
	CHECK_U64(tally_class(0), 0);
	CHECK_U64(tally_class(64), 0);
	CHECK_U64(tally_class(65), 1);
	CHECK_U64(tally_class(UINT64_MAX), TALLY_CLASSES - 1);
	for (uint32_t i = 0; i + 1 < TALLY_CLASSES; i++) {
		CHECK_U64(tally_class(tally_class_most(i)), i);
		CHECK_U64(tally_class(tally_class_most(i) + 1), i + 1);
	}
	CHECK_STR(tally_class_name(TALLY_CLASSES - 1), "more");
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* Compares quantiles with those of sorted times. */
static void test_quantiles(struct rng *rng, struct tally *tally)
{
	static const double shares[] = {0, 0.01, 0.5, 0.9, 0.99, 1};
	static uint64_t times[5000];
	struct tally_cell *cell = &tally->cells[0][1];
	uint64_t count = 1 + rng_below(rng, 5000), sum = 0;
	*cell = (struct tally_cell){0};
	for (uint64_t i = 0; i < count; i++) {
		times[i] = rng_below(rng, UINT64_C(1) << (1 + rng_below(rng, 41)));
		struct record record = record_of(times[i], 100);
		tally_add(tally, &record);
		sum += times[i];
	}
	qsort(times, count, sizeof(times[0]), compare);
	CHECK_U64(cell->count, count);
	CHECK_U64(cell->time_ns, sum);
	CHECK_U64(cell->bytes, 100 * count);
	CHECK_U64(cell->bus_bytes, 150 * count);
	CHECK_U64(cell->least_ns, times[0]);
	CHECK_U64(cell->most_ns, times[count - 1]);
	for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
		uint64_t at = (uint64_t)(shares[i] * (double)count), got = tally_quantile(cell, shares[i]);
		uint64_t exact = times[at < count ? at : count - 1];
		CHECK_MSG(got >= exact && (double)got <= (double)exact * 1.25 + 1, "%" PRIu64 " instead of %" PRIu64, got,
		          exact);
	}
	for (uint32_t octave = 1; octave < TALLY_OCTAVES; octave++) {
		uint64_t within = 0;
		while (within < count && times[within] <= UINT64_C(1) << octave)
			within++;
		CHECK_U64(tally_within(cell, octave), within);
	}
}

static void test_rest(struct tally *tally)
{
	struct record record = record_of(UINT64_MAX / 2, 1 << 20);
	struct tally_cell *cell = &tally->cells[0][tally_class(1 << 20)];
	tally_add(tally, &record);
	CHECK_U64(cell->buckets[TALLY_BUCKETS - 1], 1);
	CHECK_U64(tally_quantile(cell, 0.5), UINT64_MAX / 2);
	record.status = ESP_EPEER;
	tally_add(tally, &record);
	CHECK(cell->count == 1 && cell->failed == 1 && cell->bytes == 1 << 20);
	record.status = ESP_OK;
	record.note.sequence = 0;
	tally_add(tally, &record); /* the barrier of esp_init() */
	CHECK_U64(cell->count, 1);
	record.ended_ns = 0; /* an end before its beginning, in case a clock goes backwards */
	record.note.sequence = 1;
	record.waited_ns = 5;
	tally_add(tally, &record);
	CHECK(cell->count == 2 && cell->least_ns == 0 && cell->waited_ns == UINT64_MAX / 4);
}

int main(int argc, char **argv)
{
	struct rng rng;
	struct tally *tally = calloc(1, sizeof(*tally));
	rng_init(&rng, test_seed(argc, argv, 1));
	CHECK(tally);
	test_classes();
	for (int i = 0; i < 200; i++)
		test_quantiles(&rng, tally);
	test_rest(tally);
	free(tally);
	return 0;
}
