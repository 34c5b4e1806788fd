/*
 * annex_test.c - the caller's own memory in the heap: at random beside a copy of what it must hold, and by example.
 *
 *     annex_test [--seed FIRST] [--count N]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "transport/shm/annex.h"
#include "transport/shm/parts.h"

#define PAGE 4096u

struct pair {
	struct segment *own, *peer;
	struct segment_view *view; /* the peer's, of ours */
};

static struct segment *open_one(uint32_t self, uint64_t heap_bytes)
{
	struct segment_config config = {.lanes = 1,
	                                .peers = 2,
	                                .self = self,
	                                .slot_bytes = 4096,
	                                .slots = 8,
	                                .small_shm_bytes = 4096,
	                                .heap_bytes = heap_bytes,
	                                .is_open = true};
	struct segment *segment;

	CHECK(shm_segment_open(&config, &segment, NULL) == ESP_OK);
	return segment;
}

static void open_pair(struct pair *pair, uint64_t heap_bytes)
{
	pair->own = open_one(0, heap_bytes);
	pair->peer = open_one(1, heap_bytes);
	CHECK(shm_segment_view_open(pair->peer, 0, dup(shm_segment_descriptor(pair->own)), &pair->view, NULL) == ESP_OK);
}

static void close_pair(struct pair *pair)
{
	shm_segment_view_close(pair->view);
	shm_segment_close(pair->own);
	shm_segment_close(pair->peer);
}

static uint8_t *map(uint64_t bytes)
{
	uint8_t *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(memory != MAP_FAILED);
	return memory;
}

static uint64_t bytes_in_file(const struct segment *segment)
{
	struct stat stat;

	CHECK(fstat(segment->fd, &stat) == 0);
	return (uint64_t)stat.st_blocks * 512;
}

/* Where the peer finds what lies there in our heap. */
static uint8_t *at_peer(const struct pair *pair, const uint8_t *place)
{
	return (uint8_t *)(uintptr_t)view_at(pair->view, (uint64_t)(place - pair->own->base));
}

static void fill_random(struct rng *rng, uint8_t *to, uint64_t bytes)
{
	uint64_t value = rng_next(rng);

	for (uint64_t i = 0; i < bytes; i++)
		to[i] = (uint8_t)(value + i * 167 + i / 251);
}

/* ---- at random ---- */

#define BLOCKS 6
#define BLOCK_BYTES (6 * PAGE)

/* Memory of the caller; some of it is shared. The bytes around that must not change either. */
struct block {
	uint8_t *memory, *model;
	uint64_t from, bytes;
	bool is_annexed; /* shm_annex_make() was called */
	bool is_shared;  /* and nothing has ended that */
};

struct world {
	struct rng rng;
	struct pair pair;
	struct block blocks[BLOCKS];
	bool has_lost; /* a place of the heap that is not used again */
};

static void check_all(const struct world *world)
{
	for (int i = 0; i < BLOCKS; i++)
		CHECK(memcmp(world->blocks[i].memory, world->blocks[i].model, BLOCK_BYTES) == 0);
}

static void share(struct world *world, struct block *block)
{
	block->from = rng_below(&world->rng, 2 * PAGE);
	block->bytes = 1 + rng_below(&world->rng, BLOCK_BYTES - block->from);
	CHECK(shm_annex_make(world->pair.own, block->memory + block->from, block->bytes, NULL) == ESP_OK);
	CHECK(shm_annex_make(world->pair.own, block->memory + block->from + block->bytes - 1, 1, NULL) == ESP_EINVAL);
	block->is_annexed = block->is_shared = true;
}

static void end_sharing(struct world *world, struct block *block)
{
	CHECK(shm_annex_end(world->pair.own, block->memory + block->from, NULL) == ESP_OK);
	CHECK(shm_annex_end(world->pair.own, block->memory + block->from, NULL) == ESP_EINVAL);
	block->is_annexed = block->is_shared = false;
}

/* A call, as far as memory goes: the peer reads what is there, and stores something else. It may end badly. */
static void call(struct world *world, struct block *block)
{
	struct pair *pair = &world->pair;
	uint64_t at = rng_below(&world->rng, block->bytes), bytes = 1 + rng_below(&world->rng, block->bytes - at);
	uint8_t *mine = block->memory + block->from + at, *model = block->model + block->from + at, *place;
	struct annex *annex = shm_annex_get(pair->own, mine, bytes, &place);

	if (!annex)
		return;
	CHECK(shm_segment_owns(pair->own, place, bytes));
	CHECK(!shm_annex_get(pair->own, mine, block->bytes - at + 1, &place));
	shm_annex_fetch_ends(annex, mine, bytes);
	CHECK(memcmp(at_peer(pair, place), mine, bytes) == 0);
	CHECK(shm_annex_end(pair->own, block->memory + block->from, NULL) == ESP_ESTATE);
	if (rng_below(&world->rng, 8) > 0) {
		fill_random(&world->rng, model, bytes);
		memcpy(at_peer(pair, place), model, bytes);
		shm_annex_store_ends(annex, mine, bytes);
	} else { /* it is withdrawn from a peer that stores all the same */
		world->has_lost = true;
		CHECK(shm_segment_withdraw(pair->own, place, bytes));
		memset(at_peer(pair, place), 0xee, bytes);
	}
	shm_annex_put(annex);
}

static void change(struct world *world, struct block *block)
{
	uint64_t at = rng_below(&world->rng, BLOCK_BYTES), bytes = 1 + rng_below(&world->rng, BLOCK_BYTES - at);

	fill_random(&world->rng, block->model + at, bytes);
	memcpy(block->memory + at, block->model + at, bytes);
}

/* The child has the bytes of that moment, whatever its parent does next, and its own writes reach no other process. */
static void have_child(struct world *world)
{
	int go[2], status;
	char word = 0;

	CHECK(pipe(go) == 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		close(go[1]); /* so that a parent that fails is noticed */
		CHECK(read(go[0], &word, 1) == 1);
		check_all(world);
		for (int i = 0; i < BLOCKS; i++)
			memset(world->blocks[i].memory, 0xcc, BLOCK_BYTES);
		_exit(0);
	}
	for (int i = 0; i < BLOCKS; i++) {
		world->has_lost = world->has_lost || world->blocks[i].is_shared;
		world->blocks[i].is_shared = false;
		change(world, &world->blocks[i]);
	}
	CHECK(write(go[1], &word, 1) == 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	close(go[0]);
	close(go[1]);
}

static void step(struct world *world)
{
	struct block *block = &world->blocks[rng_below(&world->rng, BLOCKS)];
	uint64_t dice = rng_below(&world->rng, 40);

	if (dice == 0)
		have_child(world);
	else if (!block->is_annexed)
		share(world, block);
	else if (dice < 6)
		end_sharing(world, block);
	else if (dice < 16)
		change(world, block);
	else
		call(world, block);
}

static void at_random(uint64_t seed)
{
	struct world world = {0};

	rng_init(&world.rng, seed);
	open_pair(&world.pair, 4096 * PAGE);
	uint64_t before = bytes_in_file(world.pair.own);
	for (int i = 0; i < BLOCKS; i++) {
		world.blocks[i] = (struct block){.memory = map(BLOCK_BYTES), .model = malloc(BLOCK_BYTES)};
		fill_random(&world.rng, world.blocks[i].model, BLOCK_BYTES);
		memcpy(world.blocks[i].memory, world.blocks[i].model, BLOCK_BYTES);
	}
	for (int i = 0; i < 200; i++) {
		step(&world);
		check_all(&world);
	}
	if (seed % 2 == 0) {
		for (int i = 0; i < BLOCKS; i++)
			if (world.blocks[i].is_annexed)
				end_sharing(&world, &world.blocks[i]);
		CHECK(world.has_lost || (bytes_in_file(world.pair.own) == before && world.pair.own->heap.count == 0));
	}
	close_pair(&world.pair);
	check_all(&world);
	for (int i = 0; i < BLOCKS; i++) {
		munmap(world.blocks[i].memory, BLOCK_BYTES);
		free(world.blocks[i].model);
	}
}

/* ---- by example ---- */

/* Only memory of one's own that can be written, and nothing has happened to any other. */
static void refused(void)
{
	struct pair pair;
	uint8_t *place;

	open_pair(&pair, 16 * PAGE);
	uint8_t *shared = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint8_t *fixed = mmap(NULL, 2 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *gone = map(3 * PAGE), *large = map(32 * PAGE), *heap = shm_segment_alloc(pair.own, PAGE);
	CHECK(munmap(gone + PAGE, PAGE) == 0);
	CHECK(shm_annex_make(pair.own, shared, 2 * PAGE, NULL) == ESP_EUNSUPPORTED);
	CHECK(shm_annex_make(pair.own, fixed, 2 * PAGE, NULL) == ESP_EUNSUPPORTED);
	CHECK(shm_annex_make(pair.own, gone, 3 * PAGE, NULL) == ESP_EUNSUPPORTED);
	memset(large, 3, 32 * PAGE);
	CHECK(shm_annex_make(pair.own, large, 32 * PAGE, NULL) == ESP_ENOMEM);
	CHECK(large[0] == 3 && large[32 * PAGE - 1] == 3 && !shm_annex_get(pair.own, large, PAGE, &place));
	CHECK(shm_annex_make(pair.own, heap, PAGE, NULL) == ESP_OK && shm_annex_end(pair.own, heap, NULL) == ESP_OK);
	CHECK(shm_annex_make(pair.own, large, 0, NULL) == ESP_OK && shm_annex_end(pair.own, large, NULL) == ESP_EINVAL);
	close_pair(&pair);
	munmap(shared, 2 * PAGE);
	munmap(fixed, 2 * PAGE);
	munmap(gone, 3 * PAGE);
	munmap(large, 32 * PAGE);
}

/* Several huge pages, and steps: both places have the same. */
static void large(void)
{
	uint64_t bytes = (UINT64_C(70) << 20) + 12345;
	uint8_t *other = map(4 * HUGE_PAGE), *memory = map(bytes + PAGE), *place;
	struct pair pair;

	open_pair(&pair, UINT64_C(1) << 30);
	CHECK(shm_annex_make(pair.own, other + HUGE_PAGE - (uintptr_t)other % HUGE_PAGE + 16, HUGE_PAGE + 5 * PAGE, NULL) ==
	      ESP_OK);
	for (uint64_t i = 0; i < bytes; i += 1000)
		memory[16 + i] = (uint8_t)(i / 1000);
	CHECK(shm_annex_make(pair.own, memory + 16, bytes, NULL) == ESP_OK);
	struct annex *annex = shm_annex_get(pair.own, memory + 16, bytes, &place);
	CHECK(annex);
	CHECK_U64((uintptr_t)place % HUGE_PAGE, (uintptr_t)(memory + 16) % HUGE_PAGE);
	shm_annex_fetch_ends(annex, memory + 16, bytes);
	for (uint64_t i = 0; i < bytes; i += 1000)
		CHECK(at_peer(&pair, place)[i] == (uint8_t)(i / 1000) && memory[16 + i] == (uint8_t)(i / 1000));
	shm_annex_put(annex);
	CHECK(shm_annex_end(pair.own, memory + 16, NULL) == ESP_OK);
	for (uint64_t i = 0; i < bytes; i += 1000)
		CHECK(memory[16 + i] == (uint8_t)(i / 1000));
	close_pair(&pair);
	munmap(memory, bytes + PAGE);
	munmap(other, 4 * HUGE_PAGE);
}

static unsigned count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned count = 0;

	CHECK(maps);
	for (int c = fgetc(maps); c != EOF; c = fgetc(maps))
		count += c == '\n';
	(void)fclose(maps);
	return count;
}

/*
 * Some pages of much memory were withdrawn: what lies between them is moved as a whole, as a process has only so many
 * mappings.
 */
static void few_mappings(void)
{
	enum { PAGES = 4000 };
	struct pair pair;
	uint8_t *memory = map(PAGES * PAGE), *place;

	open_pair(&pair, 2 * PAGES * PAGE);
	memset(memory, 9, PAGES * PAGE);
	CHECK(shm_annex_make(pair.own, memory, PAGES * PAGE, NULL) == ESP_OK);
	for (int i = 0; i < 3; i++) {
		struct annex *annex = shm_annex_get(pair.own, memory + (500 + i * 700) * PAGE, 3 * PAGE, &place);

		CHECK(annex && shm_segment_withdraw(pair.own, place, 3 * PAGE));
		shm_annex_put(annex);
	}
	unsigned before = count_mappings();
	CHECK(shm_annex_end(pair.own, memory, NULL) == ESP_OK);
	CHECK(count_mappings() < before + 10);
	for (int i = 0; i < PAGES; i++)
		CHECK(memory[i * PAGE] == 9 && memory[i * PAGE + PAGE - 1] == 9);
	close_pair(&pair);
	munmap(memory, PAGES * PAGE);
}

/*
 * A call is under way when the process forks: its result reaches the parent, and nothing of what comes after it the
 * child.
 */
static void fork_in_call(void)
{
	struct pair pair;
	uint8_t *memory = map(3 * PAGE), *place;
	int go[2], status;
	char word = 0;

	open_pair(&pair, 16 * PAGE);
	CHECK(pipe(go) == 0 && shm_annex_make(pair.own, memory, 3 * PAGE, NULL) == ESP_OK);
	struct annex *annex = shm_annex_get(pair.own, memory, 3 * PAGE, &place);
	CHECK(annex && shm_annex_is_whole(annex, memory, 3 * PAGE) && !shm_annex_is_whole(annex, memory, 3 * PAGE - 1) &&
	      !shm_annex_is_whole(annex, memory + 1, 3 * PAGE - 1));
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		close(go[1]); /* so that a parent that fails is noticed */
		CHECK(read(go[0], &word, 1) == 1);
		_exit(memory[0] == 4 && memory[3 * PAGE - 1] == 4 ? 0 : 1);
	}
	memset(at_peer(&pair, place), 4, 3 * PAGE);
	/* for another call, of which the child would see */
	CHECK(!shm_annex_get(pair.own, memory, 3 * PAGE, &(uint8_t *){NULL}));
	shm_annex_put(annex);
	CHECK(memory[0] == 4 && !shm_annex_get(pair.own, memory, 3 * PAGE, &place));
	memset(memory, 5, 3 * PAGE);
	CHECK(write(go[1], &word, 1) == 1 && waitpid(child, &status, 0) == child);
	CHECK_U64(status, 0);
	CHECK(shm_annex_end(pair.own, memory, NULL) == ESP_OK && memory[0] == 5);
	close(go[0]);
	close(go[1]);
	close_pair(&pair);
	munmap(memory, 3 * PAGE);
}

struct writer {
	uint8_t *memory;
	atomic_bool is_over;
	atomic_uint rounds;
};

static void *keep_writing(void *argument)
{
	struct writer *writer = argument;

	for (uint64_t round = 1; !atomic_load(&writer->is_over); round++) {
		for (int i = 0; i < 64; i++)
			*(volatile uint64_t *)(writer->memory + i * PAGE) = round + (uint64_t)i;
		for (int i = 0; i < 64; i++)
			CHECK_U64(*(volatile uint64_t *)(writer->memory + i * PAGE), round + (uint64_t)i);
		atomic_fetch_add(&writer->rounds, 1);
	}
	return NULL;
}

/*
 * The caller's threads write to memory that no call uses while the process forks, or leaves the job: no write is lost.
 */
static void writes_are_kept(void)
{
	for (int round = 0; round < 20; round++) {
		struct pair pair;
		struct writer writer = {.memory = map(64 * PAGE)};
		pthread_t thread;

		open_pair(&pair, 256 * PAGE);
		CHECK(shm_annex_make(pair.own, writer.memory, 64 * PAGE, NULL) == ESP_OK);
		CHECK(pthread_create(&thread, NULL, keep_writing, &writer) == 0);
		while (atomic_load(&writer.rounds) < 3)
			sched_yield();
		if (round % 2 == 0) {
			int status;
			pid_t child = fork();

			if (child == 0)
				_exit(0);
			CHECK(child > 0 && waitpid(child, &status, 0) == child);
		}
		close_pair(&pair);
		unsigned seen = atomic_load(&writer.rounds);
		while (atomic_load(&writer.rounds) < seen + 3)
			sched_yield();
		atomic_store(&writer.is_over, true);
		pthread_join(thread, NULL);
		munmap(writer.memory, 64 * PAGE);
	}
}

int main(int argc, char **argv)
{
	uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 60);

	for (uint64_t seed = first; seed - first < count; seed++) {
		printf("seed %" PRIu64 "\n", seed);
		at_random(seed);
	}
	refused();
	large();
	few_mappings();
	fork_in_call();
	writes_are_kept();
	return 0;
}
