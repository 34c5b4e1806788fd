/*
 * kept_test.c - memory that outlives its segment: at random beside a list of what must be there, and by example.
 *
 *     kept_test [--seed FIRST] [--count N]
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "transport/shm/parts.h"
#include "transport/shm/segment.h"

#define PAGE 4096u

static struct segment *open_one(uint32_t self)
{
	struct segment_config config = {.lanes = 2,
	                                .peers = 2,
	                                .self = self,
	                                .slot_bytes = 4096,
	                                .slots = 8,
	                                .small_shm_bytes = 4096,
	                                .heap_bytes = 64 * PAGE,
	                                .is_open = true};
	struct segment *segment;

	CHECK(shm_segment_open(&config, &segment, NULL) == ESP_OK);
	return segment;
}

static bool is_full(const uint8_t *memory, uint64_t bytes, uint8_t value)
{
	for (uint64_t i = 0; i < bytes; i++)
		if (memory[i] != value)
			return false;
	return true;
}

static bool is_mapped(const void *memory)
{
	unsigned char there;

	return mincore((void *)(uintptr_t)memory, PAGE, &there) == 0;
}

static uint64_t bytes_in_file(int fd)
{
	struct stat stat;

	CHECK(fstat(fd, &stat) == 0);
	return (uint64_t)stat.st_blocks * 512;
}

/* ---- at random ---- */

#define SEGMENTS 3
#define PIECES 24

struct piece {
	uint8_t *memory; /* NULL: none */
	uint64_t bytes;
	uint8_t value;
	bool is_kept;
	int segment; /* -1: it has gone */
};

struct model {
	struct rng rng;
	struct segment *segments[SEGMENTS];
	struct piece pieces[PIECES];
	uint8_t value;
};

static void check_all(const struct model *model)
{
	for (int i = 0; i < PIECES; i++)
		CHECK(!model->pieces[i].memory ||
		      is_full(model->pieces[i].memory, model->pieces[i].bytes, model->pieces[i].value));
}

static void take(struct model *model, struct piece *piece, int segment)
{
	if (!model->segments[segment])
		model->segments[segment] = open_one(0);
	uint64_t bytes = 1 + rng_below(&model->rng, 5 * PAGE);
	uint8_t *memory = shm_segment_alloc(model->segments[segment], bytes);
	if (!memory)
		return;
	CHECK(is_full(memory, bytes, 0));
	*piece = (struct piece){.memory = memory, .bytes = bytes, .value = ++model->value, .segment = segment};
	memset(memory, piece->value, bytes);
}

static void give(struct model *model, struct piece *piece)
{
	if (piece->is_kept && (piece->segment < 0 || rng_below(&model->rng, 2) == 0)) {
		CHECK(!shm_segment_free_kept(piece->memory + 1));
		CHECK(shm_segment_free_kept(piece->memory));
		CHECK(!shm_segment_free_kept(piece->memory));
	} else {
		CHECK(piece->is_kept || !shm_segment_free_kept(piece->memory));
		CHECK(shm_segment_free(model->segments[piece->segment], piece->memory));
		CHECK(!shm_segment_free_kept(piece->memory));
	}
	piece->memory = NULL;
}

static void end(struct model *model, int segment)
{
	shm_segment_close(model->segments[segment]);
	model->segments[segment] = NULL;
	for (int i = 0; i < PIECES; i++) {
		struct piece *piece = &model->pieces[i];

		if (!piece->memory || piece->segment != segment)
			continue;
		piece->segment = -1;
		if (!piece->is_kept)
			piece->memory = NULL;
	}
}

static void step(struct model *model)
{
	struct piece *piece = &model->pieces[rng_below(&model->rng, PIECES)];
	int segment = (int)rng_below(&model->rng, SEGMENTS);
	uint64_t dice = rng_below(&model->rng, 20);

	if (dice == 0) {
		end(model, segment);
	} else if (!piece->memory) {
		take(model, piece, segment);
	} else if (dice < 8 && piece->segment >= 0) {
		CHECK(shm_segment_keep(model->segments[piece->segment], piece->memory)); /* perhaps once more */
		piece->is_kept = true;
	} else if (dice < 10 && piece->segment >= 0) {
		CHECK(shm_segment_withdraw(model->segments[piece->segment], piece->memory, piece->bytes));
	} else if (dice < 14) {
		give(model, piece);
	} else {
		piece->value = ++model->value;
		memset(piece->memory, piece->value, piece->bytes);
	}
}

static void at_random(uint64_t seed)
{
	struct model model = {0};

	rng_init(&model.rng, seed);
	for (int i = 0; i < 300; i++) {
		step(&model);
		check_all(&model);
	}
	for (int i = 0; i < SEGMENTS; i++)
		end(&model, i);
	check_all(&model);
	for (int i = 0; i < PIECES; i++)
		if (model.pieces[i].memory)
			give(&model, &model.pieces[i]);
}

/* ---- by example ---- */

/* Nothing else stays, and a peer that comes late stores into pages that no process uses. */
static void is_private(void)
{
	struct segment *own = open_one(0), *peer = open_one(1);
	struct segment_view *view;
	uint8_t *lost = shm_segment_alloc(own, PAGE), *left = shm_segment_alloc(own, 3 * PAGE),
			*board = shm_segment_small(own, 0, 0), local;
	uint64_t at = (uint64_t)(left - own->base);

	int file = dup(shm_segment_descriptor(own));
	CHECK(shm_segment_view_open(peer, 0, dup(shm_segment_descriptor(own)), &view, NULL) == ESP_OK);
	CHECK(!shm_segment_keep(own, &local) && !shm_segment_keep(own, left + PAGE) && !shm_segment_keep(own, board));
	CHECK(shm_segment_keep(own, left));
	memset(left, 5, 3 * PAGE);
	uint64_t in_use = bytes_in_file(file);
	shm_segment_close(own);
	CHECK_U64(bytes_in_file(file), in_use - 3 * PAGE); /* peers that stay do not hold what they cannot use */
	CHECK(!is_mapped(lost) && !is_mapped(board) && is_mapped(left) && !is_mapped(left + 3 * PAGE));
	memset((void *)(uintptr_t)view_at(view, at), 6, 3 * PAGE);
	CHECK(is_full(left, 3 * PAGE, 5));
	close(file);
	CHECK(!shm_segment_free_kept(lost) && !shm_segment_free_kept(left + PAGE));
	CHECK(shm_segment_free_kept(left) && !shm_segment_free_kept(left));
	CHECK(!is_mapped(left));
	shm_segment_view_close(view);
	shm_segment_close(peer);
}

/* Memory that a child frees stays its parent's, and the child's writes are its own. */
static void children(bool withdraws)
{
	struct segment *own = open_one(0);
	uint8_t *memory = shm_segment_alloc(own, 3 * PAGE), *other = shm_segment_alloc(own, PAGE);
	int status;

	CHECK(shm_segment_keep(own, memory));
	CHECK(!withdraws || shm_segment_withdraw(own, memory + PAGE, PAGE));
	memset(memory, 7, 3 * PAGE);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		memset(other, 8, PAGE);
		struct segment *another = open_one(0);
		uint8_t *mine = shm_segment_alloc(another, PAGE);
		bool is_right = !shm_segment_free_kept(memory) && shm_segment_keep(another, mine);

		shm_segment_close(another);
		is_right = is_right && shm_segment_free_kept(mine) && is_full(memory, 3 * PAGE, 7);
		memset(memory, 8, 3 * PAGE);
		_exit(is_right ? 0 : 1);
	}
	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	CHECK_U64(WEXITSTATUS(status), 0);
	/* memory that was not kept is shared with children */
	CHECK(is_full(memory, 3 * PAGE, 7) && is_full(other, PAGE, 8));
	shm_segment_close(own);
	CHECK(is_full(memory, 3 * PAGE, 7) && shm_segment_free_kept(memory));
}

static void *free_all(void *context)
{
	uint8_t **pieces = context;

	for (int i = 0; i < 16; i++)
		CHECK(shm_segment_free_kept(pieces[i]));
	return NULL;
}

/* Freed by one thread while another closes the segment. */
static void threads(void)
{
	for (int round = 0; round < 50; round++) {
		struct segment *own = open_one(0);
		uint8_t *pieces[16];
		pthread_t thread;

		for (int i = 0; i < 16; i++) {
			pieces[i] = shm_segment_alloc(own, 2 * PAGE);
			CHECK(pieces[i] && shm_segment_keep(own, pieces[i]));
		}
		CHECK(pthread_create(&thread, NULL, free_all, pieces) == 0);
		shm_segment_close(own);
		pthread_join(thread, NULL);
	}
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 100);

	for (uint64_t seed = first; seed - first < count; seed++) {
		printf("seed %" PRIu64 "\n", seed);
		at_random(seed);
	}
	is_private();
	children(false);
	children(true);
	threads();
	return 0;
}
