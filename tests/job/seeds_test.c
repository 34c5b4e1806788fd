/*
 * seeds_test.c - jobs of random calls against results that are worked out one by one.
 *
 * Every rank draws the same calls from the job's seed: collective, type, operation, sizes around the limits of boards and
 * chunks, in place or not, planner, memory, blocking, in the background or persistent, several at a time. All contributions
 * are known to all, so each rank works out what it must get, with esp_reduce_local() in rank order; values are small whole
 * numbers, so that every order of addition gives the same bits.
 *
 *     job_seeds_test [--seed FIRST] [--count JOBS]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "job.h"
#include "rank/comm/work.h"

enum { AT_ONCE = 4, CALLS = 24 };

struct drawn {
	struct esp_call call;
	uint64_t block_bytes;        /* of one equal block                       */
	uint64_t in_bytes, out_bytes; /* the largest that any rank has            */
	bool in_place;
	enum memory { FROM_MALLOC, FROM_ALLOC, SHARED, KINDS } kind; /* of memory */
	uint8_t *in, *out, *expected;
	void *memory;                /* all of it                                */
	void *shared;                /* where that begins which is               */
	struct esp_work *work;
};

/* ---- data ---- */

static uint8_t small_value(uint32_t rank, uint64_t salt, uint64_t i)
{
	return (uint8_t)(1 + (rank * 7 + salt * 13 + i * 5 + i / 64) % 3);
}

/* 1, 2 or 3 as an element of each type. */
static void put_value(enum esp_type type, uint8_t value, void *at)
{
	static const uint16_t half[] = {0, 0x3c00, 0x4000, 0x4200}, brain[] = {0, 0x3f80, 0x4000, 0x4040};
	float single = value;
	double twice = value;
	uint64_t whole = value;

	switch (type) {
	case ESP_F32:
		memcpy(at, &single, sizeof(single));
		break;
	case ESP_F64:
		memcpy(at, &twice, sizeof(twice));
		break;
	case ESP_F16:
		memcpy(at, &half[value], 2);
		break;
	case ESP_BF16:
		memcpy(at, &brain[value], 2);
		break;
	default: /* little endian */
		memcpy(at, &whole, esp_type_bytes(type));
		break;
	}
}

static void fill(uint8_t *data, uint64_t bytes, enum esp_type type, uint32_t rank, uint64_t salt)
{
	size_t size = esp_type_bytes(type);

	for (uint64_t i = 0; i < bytes / size; i++)
		put_value(type, small_value(rank, salt, i), data + i * size);
}

/* ---- drawing ---- */

static bool reduces(enum esp_collective collective)
{
	return collective == ESP_ALLREDUCE || collective == ESP_REDUCE || collective == ESP_REDUCE_SCATTER;
}

static enum esp_op draw_op(struct rng *rng, enum esp_type type)
{
	static const enum esp_op ops[] = {ESP_SUM, ESP_SUM,  ESP_MIN,  ESP_MAX,  ESP_BAND,
	                                  ESP_BOR, ESP_BXOR, ESP_LAND, ESP_LOR,  ESP_LXOR};
	uint64_t scratch = 0;
	enum esp_op op;

	do {
		op = ops[rng_below(rng, sizeof(ops) / sizeof(ops[0]))];
	} while (esp_reduce_local(&scratch, &scratch, &scratch, 1, type, op) == ESP_EUNSUPPORTED);
	return op;
}

static uint64_t draw_count(struct rng *rng, size_t element)
{
	static const uint64_t around[] = {0, 1, 12, 48, 8192, 65536, 300000};
	uint64_t bytes = around[rng_below(rng, 7)];

	bytes += rng_below(rng, 1 + bytes / 4);
	return bytes / element;
}

static void draw_call(struct rng *rng, uint32_t size, struct drawn *drawn)
{
	static const char *const plans[] = {"ring", "halving-doubling", "butterfly", "exchange", "tree", "double-tree",
	                                    "flat", "central",          "twin",      "two-level"};
	struct esp_call *call = &drawn->call;

	*drawn = (struct drawn){.call = ESP_CALL_INIT};
	call->collective = (enum esp_collective)rng_below(rng, 9);
	call->type = (enum esp_type)rng_below(rng, ESP_TYPE_COUNT - (reduces(call->collective) ? 1 : 0));
	call->op = reduces(call->collective) ? draw_op(rng, call->type) : ESP_SUM;
	call->root = (uint32_t)rng_below(rng, size);
	call->count = call->collective == ESP_BARRIER ? 0 : draw_count(rng, esp_type_bytes(call->type));
	if (call->collective == ESP_ALLREDUCE && rng_chance(rng, 1, 10)) /* so much that it is stored around the caches */
		call->count = ((4u << 20) + rng_below(rng, 1u << 18)) / esp_type_bytes(call->type);
	call->plan = rng_chance(rng, 1, 3) ? plans[rng_below(rng, sizeof(plans) / sizeof(plans[0]))] : NULL;
	if (call->collective == ESP_ALLREDUCE) /* small whole numbers are exact in fixed point, too */
		call->numerics = (enum esp_numerics)rng_below(rng, ESP_NUMERICS_FIXED16 + 1);
	drawn->in_place = call->collective != ESP_ALLTOALL && rng_chance(rng, 1, 2);
	drawn->kind = (enum memory)rng_below(rng, KINDS);
	drawn->block_bytes = call->count * esp_type_bytes(call->type);
	drawn->in_bytes = drawn->out_bytes = drawn->block_bytes;
	if (call->collective == ESP_REDUCE_SCATTER || call->collective == ESP_SCATTER || call->collective == ESP_ALLTOALL)
		drawn->in_bytes *= size;
	if (call->collective == ESP_ALLGATHER || call->collective == ESP_GATHER || call->collective == ESP_ALLTOALL)
		drawn->out_bytes *= size;
}

/* ---- what must come out ---- */

static void combine(uint8_t *expected, uint8_t *scratch, const struct drawn *drawn, uint32_t size, uint64_t salt, uint64_t at)
{
	const struct esp_call *call = &drawn->call;

	for (uint32_t r = 0; r < size; r++) {
		fill(scratch, drawn->in_bytes, call->type, r, salt);
		if (r == 0)
			memcpy(expected, scratch + at, drawn->block_bytes);
		else
			OK(esp_reduce_local(expected, expected, scratch + at, call->count, call->type, call->op));
	}
}

static void take_block(uint8_t *to, uint8_t *scratch, const struct drawn *drawn, uint32_t rank, uint64_t salt, uint64_t from)
{
	fill(scratch, drawn->in_bytes, drawn->call.type, rank, salt);
	memcpy(to, scratch + from, drawn->block_bytes);
}

/* Returns the bytes of this rank's output. */
static uint64_t work_out(const struct drawn *drawn, uint8_t *scratch, uint32_t me, uint32_t size, uint64_t salt)
{
	const struct esp_call *call = &drawn->call;
	uint64_t block = drawn->block_bytes;
	bool is_root = me == call->root;

	switch (call->collective) {
	case ESP_ALLREDUCE:
		combine(drawn->expected, scratch, drawn, size, salt, 0);
		return block;
	case ESP_REDUCE:
		combine(drawn->expected, scratch, drawn, size, salt, 0);
		return is_root ? block : 0;
	case ESP_REDUCE_SCATTER:
		combine(drawn->expected, scratch, drawn, size, salt, me * block);
		return block;
	case ESP_BROADCAST:
		take_block(drawn->expected, scratch, drawn, call->root, salt, 0);
		return block;
	case ESP_SCATTER:
		take_block(drawn->expected, scratch, drawn, call->root, salt, me * block);
		return block;
	case ESP_ALLGATHER:
	case ESP_GATHER:
	case ESP_ALLTOALL:
		for (uint32_t r = 0; r < size; r++)
			take_block(drawn->expected + r * block, scratch, drawn, r, salt,
			           call->collective == ESP_ALLTOALL ? me * block : 0);
		return call->collective == ESP_GATHER && !is_root ? 0 : size * block;
	case ESP_BARRIER:
		break;
	}
	return 0;
}

/* ---- running ---- */

/* All of it, or what may be a part of either. */
static void share_some(struct job_rank *rank, struct drawn *drawn, uint64_t all, uint64_t salt)
{
	uint64_t from = salt % 3 == 0 ? 0 : salt * 7919 % all, bytes = salt % 4 == 0 ? (all - from + 1) / 2 : all - from;

	drawn->shared = (uint8_t *)drawn->memory + from;
	OK(esp_share(rank->context, drawn->shared, bytes));
}

/* Puts input and output into memory; in place the smaller one is this rank's block of the larger one. */
static void place(struct job_rank *rank, struct drawn *drawn, uint64_t salt)
{
	uint64_t all = drawn->in_bytes + drawn->out_bytes + 64;
	uint64_t own = rank->rank * drawn->block_bytes;

	if (drawn->kind == FROM_ALLOC)
		OK(esp_alloc(rank->context, all, &drawn->memory));
	else
		drawn->memory = malloc(all);
	CHECK(drawn->memory != NULL);
	if (drawn->kind == SHARED)
		share_some(rank, drawn, all, salt);
	drawn->in = drawn->memory;
	drawn->out = drawn->in + drawn->in_bytes + salt % 8; /* any alignment */
	if (drawn->in_place && drawn->in_bytes > drawn->out_bytes)
		drawn->out = drawn->in + own;
	else if (drawn->in_place && drawn->out_bytes > drawn->in_bytes)
		drawn->in = drawn->out + own;
	else if (drawn->in_place)
		drawn->out = drawn->in;
	fill(drawn->in, drawn->in_bytes, drawn->call.type, rank->rank, salt);
	/* Root's data is where all get theirs. */
	if (drawn->call.collective == ESP_BROADCAST) {
		fill(drawn->out, drawn->out_bytes, drawn->call.type, rank->rank, salt);
		drawn->in = drawn->out;
	}
	drawn->call.in = drawn->in;
	drawn->call.out = drawn->out;
}

static void drop(struct job_rank *rank, struct drawn *drawn)
{
	if (drawn->kind == SHARED)
		OK(esp_unshare(rank->context, drawn->shared));
	if (drawn->kind == FROM_ALLOC)
		OK(esp_free(rank->context, drawn->memory));
	else
		free(drawn->memory);
	free(drawn->expected);
}

/* Starts some, in whatever way, and checks all. */
static void run_some(struct job_rank *rank, struct rng *rng, uint64_t *salt)
{
	struct drawn drawn[AT_ONCE];
	uint32_t count = 1 + (uint32_t)rng_below(rng, AT_ONCE);

	for (uint32_t i = 0; i < count; i++) {
		struct drawn *one = &drawn[i];
		uint64_t how = rng_below(rng, 3);

		draw_call(rng, rank->size, one);
		place(rank, one, *salt + i);
		if (how == 0) {
			OK(esp_run(rank->world, &one->call));
		} else if (how == 1) {
			OK(esp_start(rank->world, &one->call, &one->work));
		} else {
			OK(esp_prepare(rank->world, &one->call, &one->work));
			OK(esp_restart(one->work));
		}
	}
	for (uint32_t i = 0; i < count; i++) {
		struct drawn *one = &drawn[i];
		uint8_t *scratch = malloc(one->in_bytes + 1);

		if (one->work)
			OK(esp_wait(one->work, -1));
		one->expected = malloc(one->out_bytes + one->block_bytes + 1);
		uint64_t bytes = work_out(one, scratch, rank->rank, rank->size, *salt + i);
		CHECK_MSG(memcmp(one->out, one->expected, bytes) == 0, "%s of %llu %s, %s, root %u, plan %s, numerics %d%s",
		          esp_collective_name(one->call.collective), (unsigned long long)one->call.count,
		          esp_type_name(one->call.type), esp_op_name(one->call.op), one->call.root,
		          one->call.plan ? one->call.plan : "chosen", (int)one->call.numerics, one->in_place ? ", in place" : "");
		esp_work_free(one->work);
		free(scratch);
		drop(rank, one);
	}
	*salt += count;
}

static void body(struct job_rank *rank)
{
	struct rng rng;
	uint64_t salt = 0;

	rng_init(&rng, *(uint64_t *)rank->argument);
	while (salt < CALLS)
		run_some(rank, &rng, &salt);
}

static void run_job(uint64_t seed)
{
	static const char *const kinds[][4] = {
		{NULL},
		{"transport=tcp", NULL},
		{"lanes=2", "chunk_bytes=4K", NULL},
		{"transport=tcp", "lanes=3", "credits=2", NULL},
		{"small_shm_bytes=0", "active_chunks=3", "credits=1", NULL},
		{"small_bytes=64K", "buffer_bytes=1M", NULL},
		{"small_bytes=0", "small_shm_bytes=512K", NULL}, /* sums in two rounds, many slices empty */
	};
	struct rng rng;

	rng_init(&rng, seed ^ 0x5eed);
	printf("--seed %llu --count 1\n", (unsigned long long)seed);
	job_run(1 + (uint32_t)rng_below(&rng, 6), kinds[rng_below(&rng, 7)], body, &seed);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 40);

	for (uint64_t i = 0; i < count; i++)
		run_job(seed + i);
	return 0;
}
