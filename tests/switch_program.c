/*
 * switch_program.c - a rank for switch_cli_test.py: sums integers whose right sums it knows.
 *
 * switch_program CALLS COUNT SEED [FILE]: CALLS allreduces of up to COUNT elements each, of i32 and u32, blocking and
 * not, in place and not, in one buffer and in several; with FILE, more of them until there is such a file. Every sum is
 * compared with one that is added up here. With ESP_NUMERICS in the environment, half of the calls sum floats, and in
 * some of these rank 0 has a NaN: they may not go through a switch. Prints how many calls did, and a digest of all
 * results of the first CALLS calls.
 */
#include <espalier/espalier.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define AT_ONCE 3u
#define BUFFERS 3u
#define QUIET_NAN 0x7fc00000u

static uint64_t mix(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static int fail(const char *what)
{
	struct esp_error error = ESP_ERROR_INIT;

	esp_last_error(&error);
	fprintf(stderr, "%s: %s\n", what, error.text);
	exit(1);
}

/* What a call is like, the same on all ranks. */
struct shape {
	uint64_t seed, count;
	enum esp_type type;
	bool is_large; /* values whose sum needs all bits of a word, or leaves it */
	bool has_nan;  /* of floats: the last element of rank 0 */
};

static struct shape shape_of(uint64_t seed, uint64_t call, uint64_t most)
{
	uint64_t random = mix(seed * 1000003 + call);

	bool is_float = getenv("ESP_NUMERICS") && (random >> 45 & 1);

	return (struct shape){
		.seed = random, .count = 1 + random % most,
		.type = is_float ? ESP_F32 : random >> 40 & 1 ? ESP_I32 : ESP_U32, .is_large = (random >> 41) % 5 == 0,
		.has_nan = is_float && (random >> 55) % 4 == 0,
	};
}

static uint32_t value_of(const struct shape *shape, uint32_t rank, uint64_t i)
{
	uint32_t value = (uint32_t)mix(shape->seed ^ ((uint64_t)rank << 48) ^ i);

	if (shape->type == ESP_F32) {
		float real = (float)(int32_t)value * 0x1.0p-31f;
		memcpy(&value, &real, sizeof(value));
		return value;
	}
	if (shape->is_large)
		return value;
	return shape->type == ESP_U32 ? value % 1000000 : (uint32_t)((int32_t)(value % 2000000) - 1000000);
}

struct op {
	struct shape shape;
	uint32_t *in, *out;
	struct esp_buffer buffers[BUFFERS], out_buffers[BUFFERS];
	struct esp_call call;
	struct esp_work *work;
};

static void cut(struct op *op)
{
	uint64_t bytes = op->shape.count * 4, at = 0;

	for (uint32_t i = 0; i < BUFFERS; i++) {
		uint64_t part = i + 1 < BUFFERS ? bytes / 8 * i / 4 * 4 : bytes - at;
		op->buffers[i] = (struct esp_buffer)ESP_BUFFER_INIT;
		op->buffers[i].data = (uint8_t *)op->in + at;
		op->buffers[i].bytes = part;
		op->out_buffers[i] = op->buffers[i];
		op->out_buffers[i].data = (uint8_t *)op->out + at;
		at += part;
	}
}

static void prepare(struct op *op, const struct shape *shape, uint32_t rank)
{
	bool is_in_place = shape->seed >> 50 & 1, is_cut = (shape->seed >> 51 & 3) == 0;

	*op = (struct op){.shape = *shape};
	op->in = malloc(shape->count * 4);
	op->out = is_in_place ? op->in : malloc(shape->count * 4);
	if (!op->in || !op->out)
		exit(1);
	for (uint64_t i = 0; i < shape->count; i++)
		op->in[i] = value_of(shape, rank, i);
	if (shape->has_nan && rank == 0)
		op->in[shape->count - 1] = QUIET_NAN;
	op->call = (struct esp_call)ESP_CALL_INIT;
	op->call.collective = ESP_ALLREDUCE;
	op->call.type = shape->type;
	op->call.op = ESP_SUM;
	op->call.count = shape->count;
	op->call.in = op->in;
	op->call.out = op->out;
	if (!is_cut)
		return;
	cut(op);
	op->call.in_buffers = op->buffers;
	op->call.out_buffers = op->out_buffers;
	op->call.in_buffer_count = op->call.out_buffer_count = BUFFERS;
}

static double real_of(uint32_t word)
{
	float real;

	memcpy(&real, &word, sizeof(real));
	return (double)real;
}

/* In fixed point: within what it rounds by, and its bits are in the digest. */
static void check_floats(const struct op *op, uint32_t size)
{
	double bound = size * (strcmp(getenv("ESP_NUMERICS"), "fixed16") == 0 ? 0.005 : 1e-6);

	if (op->shape.has_nan && !isnan(real_of(op->out[op->shape.count - 1]))) {
		fprintf(stderr, "wrong sum: NaN was lost\n");
		exit(1);
	}
	for (uint64_t i = 0; i < op->shape.count - op->shape.has_nan; i++) {
		double sum = 0;
		for (uint32_t rank = 0; rank < size; rank++)
			sum += real_of(value_of(&op->shape, rank, i));
		if (!(fabs(real_of(op->out[i]) - sum) <= bound)) {
			fprintf(stderr, "wrong sum: element %" PRIu64 " is %g, not %g\n", i, real_of(op->out[i]), sum);
			exit(1);
		}
	}
}

static void check(const struct op *op, uint32_t size)
{
	if (op->shape.type == ESP_F32) {
		check_floats(op, size);
		return;
	}
	for (uint64_t i = 0; i < op->shape.count; i++) {
		uint32_t sum = 0;
		for (uint32_t rank = 0; rank < size; rank++)
			sum += value_of(&op->shape, rank, i);
		if (op->out[i] != sum) {
			fprintf(stderr, "wrong sum: element %" PRIu64 " of %" PRIu64 " is %" PRIu32 ", not %" PRIu32 "\n", i,
			        op->shape.count, op->out[i], sum);
			exit(1);
		}
	}
}

static uint64_t digest(uint64_t before, const struct op *op)
{
	uint64_t all = before;

	for (uint64_t i = 0; i < op->shape.count; i++)
		all = mix(all ^ op->out[i]);
	return all;
}

static void finish(struct op *op)
{
	if (op->out != op->in)
		free(op->out);
	free(op->in);
	esp_work_free(op->work);
}

/* Some calls under way at once. Returns how many went through a switch. */
static uint32_t run(struct esp_group *world, uint64_t first, uint64_t seed, uint64_t most, uint64_t *out_digest)
{
	struct op ops[AT_ONCE];
	uint32_t through = 0;

	for (uint32_t i = 0; i < AT_ONCE; i++) {
		struct shape shape = shape_of(seed, first + i, most);
		prepare(&ops[i], &shape, esp_rank(world));
		if (esp_start(world, &ops[i].call, &ops[i].work) != ESP_OK)
			fail("start");
	}
	for (uint32_t i = 0; i < AT_ONCE; i++) {
		if (esp_wait(ops[i].work, -1) != ESP_OK)
			fail("wait");
		check(&ops[i], esp_size(world));
		bool went_through = strcmp(esp_work_plan(ops[i].work), "switch") == 0;
		if (went_through && ops[i].shape.has_nan) {
			fprintf(stderr, "a NaN went through the switch\n");
			exit(1);
		}
		through += went_through;
		*out_digest = digest(*out_digest, &ops[i]);
		finish(&ops[i]);
	}
	return through;
}

static void run_blocking(struct esp_group *world, uint64_t call, uint64_t seed, uint64_t most, uint64_t *out_digest)
{
	struct shape shape = shape_of(seed, call, most);
	struct op op;

	prepare(&op, &shape, esp_rank(world));
	if (esp_run(world, &op.call) != ESP_OK)
		fail("run");
	check(&op, esp_size(world));
	*out_digest = digest(*out_digest, &op);
	finish(&op);
}

/* Rank 0 says so for all. */
static bool is_over(struct esp_group *world, const char *file)
{
	uint32_t over = !file || access(file, F_OK) == 0;

	if (esp_broadcast(world, &over, 1, ESP_U32, 0) != ESP_OK)
		fail("broadcast");
	return over;
}

int main(int argc, char **argv)
{
	struct esp_context *context;
	uint64_t sums = 0, calls, most, seed, done = 0, through = 0, unused = 0;

	if (argc < 4)
		return 2;
	calls = strtoull(argv[1], NULL, 10);
	most = strtoull(argv[2], NULL, 10);
	seed = strtoull(argv[3], NULL, 10);
	if (esp_init(NULL, &context) != ESP_OK)
		fail("init");
	struct esp_group *world = esp_world(context);
	for (; done < calls; done += AT_ONCE + 1) {
		through += run(world, done, seed, most, &sums);
		run_blocking(world, done + AT_ONCE, seed, most, &sums);
	}
	if (esp_rank(world) == 0)
		fprintf(stderr, "first calls are over\n");
	for (; argc > 4 && !is_over(world, argv[4]); done += AT_ONCE)
		through += run(world, done, seed, most, &unused);
	printf("rank %u: %" PRIu64 " calls, %" PRIu64 " through a switch, sums %016" PRIx64 "\n", esp_rank(world), done,
	       through, sums);
	esp_fini(context);
	return 0;
}
