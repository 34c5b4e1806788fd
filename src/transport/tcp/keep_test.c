#include "transport/tcp/keep.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"

#define STREAM 200000u

/* Every byte of the stream follows from its place. */
static uint8_t byte_at(uint64_t place)
{
	return (uint8_t)(place * 2654435761u >> 16);
}

static void check_all(const struct keep *keep)
{
	uint64_t place = keep->first;
	const void *at;
	size_t have;

	while ((have = tcp_keep_span(keep, place, &at)) > 0) {
		for (size_t i = 0; i < have; i++)
			CHECK_U64(((const uint8_t *)at)[i], byte_at(place + i));
		place += have;
	}
	CHECK_U64(place, keep->end);
}

/* Any mix of adding and trimming, against the stream itself. */
static void holds_what_was_added(struct rng *rng)
{
	struct keep keep = {0};
	uint8_t *stream = malloc(STREAM);
	uint64_t first = 0, end = 0;

	for (uint32_t i = 0; i < STREAM; i++)
		stream[i] = byte_at(i);
	while (end < STREAM) {
		size_t bytes = rng_below(rng, STREAM - end < 30000 ? STREAM - end + 1 : 30000),
		       split = rng_below(rng, bytes + 1);
		struct iovec parts[3] = {
			{stream + end, split}, {stream + end + split, 0}, {stream + end + split, STREAM - end - split}};

		CHECK(tcp_keep_add(&keep, parts, bytes));
		end += bytes;
		if (rng_chance(rng, 2, 3)) {
			uint64_t to = first + rng_below(rng, end - first + 1);

			tcp_keep_trim(&keep, to);
			first = to;
			tcp_keep_trim(&keep, to / 2); /* an older word */
		}
		CHECK(keep.first == first && keep.end == end);
		CHECK(tcp_keep_has_room(&keep, keep.capacity - (end - first)) &&
		      !tcp_keep_has_room(&keep, keep.capacity - (end - first) + 1));
		check_all(&keep);
	}
	tcp_keep_fini(&keep);
	free(stream);
}

/* Trimmed space is used again: memory follows the bytes that are kept, not those that were sent. */
static void grows_no_more_than_needed(void)
{
	uint8_t piece[1000] = {0};
	struct iovec part = {piece, sizeof(piece)};
	struct keep keep = {0};

	for (unsigned i = 0; i < 1000; i++) {
		CHECK(tcp_keep_add(&keep, &part, sizeof(piece)));
		tcp_keep_trim(&keep, keep.end > 5000 ? keep.end - 5000 : 0);
	}
	CHECK_U64(keep.capacity, 8192);
	tcp_keep_fini(&keep);
}

int main(void)
{
	struct rng rng;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		rng_init(&rng, seed);
		holds_what_was_added(&rng);
	}
	grows_no_more_than_needed();
	return 0;
}
