#include "../data.h"

#include "base/check.h"

static uint64_t hash_glyphs(const struct glyph *glyphs, uint32_t count)
{
	uint64_t hash = 0;
	for (uint32_t i = 0; i < count; i++) {
		hash = hash * 31 + glyphs[i].label;
		for (int p = 0; p < GLYPH_PIXELS; p++)
			hash = hash * 31 + glyphs[i].pixels[p];
	}
	return hash;
}

static struct share open_share(uint64_t seed, enum random_purpose set, uint32_t total, uint32_t rank, uint32_t ranks)
{
	struct share share;
	CHECK(share_open(&share, seed, set, total, rank, ranks) == 0);
	return share;
}

static uint64_t hash_share(uint64_t seed, enum random_purpose set)
{
	struct share share = open_share(seed, set, 200, 0, 1);
	uint64_t hash = hash_glyphs(share.glyphs, share.count);
	share_close(&share);
	return hash;
}

static void test_same_seed_same_samples(void)
{
	CHECK(hash_share(1, RANDOM_TRAINING) == hash_share(1, RANDOM_TRAINING));
	CHECK(hash_share(1, RANDOM_TRAINING) != hash_share(2, RANDOM_TRAINING));
	CHECK(hash_share(1, RANDOM_TRAINING) != hash_share(1, RANDOM_TEST));
	/* On every machine: what the README shows is what everybody sees. */
	CHECK_U64(hash_share(1, RANDOM_TRAINING), UINT64_C(15602241224173100170));
}

/* The set does not depend on how many share it. */
static void test_shares(void)
{
	struct share all = open_share(5, RANDOM_TRAINING, 31, 0, 1);
	CHECK_U64(all.count, 31);
	for (uint32_t rank = 0; rank < 3; rank++) {
		struct share share = open_share(5, RANDOM_TRAINING, 31, rank, 3);
		CHECK_U64(share.count, 10);
		for (uint32_t i = 0; i < share.count; i++)
			CHECK(memcmp(&share.glyphs[i], &all.glyphs[i * 3 + rank], sizeof all.glyphs[0]) == 0);
		share_close(&share);
	}
	share_close(&all);
}

/* All digits come up about equally often, and each picture has ink and paper. */
static void test_samples_look_right(uint64_t seed)
{
	struct share share = open_share(seed, RANDOM_TRAINING, 2000, 0, 1);
	uint32_t seen[GLYPH_CLASSES] = {0};
	for (uint32_t i = 0; i < share.count; i++) {
		uint32_t ink = 0;
		for (int p = 0; p < GLYPH_PIXELS; p++)
			ink += share.glyphs[i].pixels[p] > 64;
		CHECK_MSG(ink >= 6 && ink <= GLYPH_PIXELS * 2 / 3, "sample %u has %u dark pixels", i, ink);
		CHECK(share.glyphs[i].label < GLYPH_CLASSES);
		seen[share.glyphs[i].label]++;
	}
	for (int digit = 0; digit < GLYPH_CLASSES; digit++)
		CHECK_MSG(seen[digit] > 120 && seen[digit] < 280, "%d comes up %u times in 2000", digit, seen[digit]);
	share_close(&share);
}

static void test_batch(void)
{
	struct share share = open_share(1, RANDOM_TEST, 10, 0, 1);
	const uint32_t order[] = {7, 0, 7};
	float rows[3 * GLYPH_PIXELS];
	uint8_t labels[3];
	share_batch(&share, order, 3, rows, labels);
	for (int i = 0; i < 3; i++) {
		CHECK_U64(labels[i], share.glyphs[order[i]].label);
		for (int p = 0; p < GLYPH_PIXELS; p++)
			CHECK(rows[i * GLYPH_PIXELS + p] * 128 + 64 == share.glyphs[order[i]].pixels[p]);
	}
	share_close(&share);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);
	test_same_seed_same_samples();
	test_shares();
	test_samples_look_right(seed);
	test_batch();
	return 0;
}
