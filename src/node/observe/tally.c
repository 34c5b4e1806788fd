#include "node/observe/tally.h"

#include "espalier/types.h"

static const struct {
	uint64_t most;
	const char *name;
} classes[TALLY_CLASSES] = {
	{64, "64"},        {1 << 10, "1K"},  {16 << 10, "16K"}, {256 << 10, "256K"},
	{4 << 20, "4M"},   {64 << 20, "64M"}, {1 << 30, "1G"},   {UINT64_MAX, "more"},
};

uint32_t tally_class(uint64_t bytes)
{
	uint32_t class = 0;
	while (bytes > classes[class].most)
		class++;
	return class;
}

uint64_t tally_class_most(uint32_t class)
{
	return classes[class].most;
}

const char *tally_class_name(uint32_t class)
{
	return classes[class].name;
}

/*
 * Bucket 4k + s, of octave k and quarter s, holds times above 2^k * (1 + s/4) up to and including the next bucket's
 * lower edge, as in Prometheus' histograms.
 */
static uint32_t bucket_of(uint64_t ns)
{
	if (ns <= 1)
		return 0;
	uint64_t below = ns - 1;
	uint32_t octave = 63u - (uint32_t)__builtin_clzll(below);
	/* Below 4 ns some quarters hold no whole number: the number is counted in the quarter that ends with it. */
	uint32_t coarse = octave < 2 ? 2 - octave : 0;
	uint32_t quarter =
		coarse ? ((uint32_t)(below << coarse) & 3u) + (1u << coarse) - 1 : (uint32_t)(below >> (octave - 2)) & 3u;
	uint32_t bucket = octave * 4 + quarter;
	return bucket < TALLY_BUCKETS - 1 ? bucket : TALLY_BUCKETS - 1;
}

/* The upper edge of a bucket, which belongs to it. */
static uint64_t bucket_most(uint32_t bucket)
{
	uint32_t octave = bucket / 4, quarter = bucket % 4;
	double edge = (double)(UINT64_C(1) << octave) * (1 + (quarter + 1) / 4.0);
	return (uint64_t)edge;
}

void tally_add(struct tally *tally, const struct record *record)
{
	if (record->kind >= RECORD_KINDS || (record->note.sequence == 0 && record->note.flags == 0))
		return;
	struct tally_cell *cell = &tally->cells[record->kind][tally_class(record->bytes)];
	if (record->status != ESP_OK) {
		cell->failed++;
		return;
	}
	uint64_t took = record->ended_ns > record->started_ns ? record->ended_ns - record->started_ns : 0;
	if (cell->count == 0 || took < cell->least_ns)
		cell->least_ns = took;
	if (took > cell->most_ns)
		cell->most_ns = took;
	cell->count++;
	cell->bytes += record->bytes;
	cell->bus_bytes += record_bus_bytes(record);
	cell->time_ns += took;
	cell->waited_ns += record->waited_ns < took ? record->waited_ns : took;
	cell->buckets[bucket_of(took)]++;
}

uint64_t tally_quantile(const struct tally_cell *cell, double share)
{
	uint64_t wanted = (uint64_t)(share * (double)cell->count), seen = 0;
	if (cell->count == 0)
		return 0;
	if (wanted >= cell->count)
		wanted = cell->count - 1;
	for (uint32_t i = 0; i < TALLY_BUCKETS - 1; i++) {
		seen += cell->buckets[i];
		if (seen > wanted) {
			uint64_t most = bucket_most(i);
			most = most < cell->most_ns ? most : cell->most_ns;
			return most > cell->least_ns ? most : cell->least_ns;
		}
	}
	return cell->most_ns;
}

uint64_t tally_within(const struct tally_cell *cell, uint32_t octave)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < octave * 4; i++)
		sum += cell->buckets[i];
	return sum;
}
