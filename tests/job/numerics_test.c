/*
 * numerics_test.c - allreduces in fixed point: the bits are those of math/fixed.h whatever the plan, the transport, the memory
 * and the way in which the call is made; numbers that are not finite, refusals, and calls that fail between their stages.
 *
 *     job_numerics_test [--seed N]
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "job.h"
#include "math/fixed.h"

static uint64_t seed;

/* ---- data, and what must come out ---- */

static uint32_t pattern(uint32_t rank, uint64_t salt, uint64_t i)
{
	uint64_t state = seed * 1000003 + salt * 65537 + rank * UINT64_C(0x9e3779b97f4a7c15) + i;
	uint32_t bits = (uint32_t)rng_splitmix(&state);

	/* a sign, any fraction, exponents from 97 to 126 */
	return (bits & 0x807fffffu) | (97 + (bits >> 23 & 0xff) % 30) << 23;
}

static void put_element(enum esp_type type, uint32_t bits, uint8_t *at)
{
	uint16_t half = type == ESP_BF16 ? (uint16_t)(bits >> 16)
	                                 : (uint16_t)((bits >> 16 & 0x8000) | (bits & 0x3ff) | (1 + (bits >> 12) % 15) << 10);

	if (type == ESP_F32)
		memcpy(at, &bits, sizeof(bits));
	else
		memcpy(at, &half, sizeof(half));
}

static void fill(uint8_t *data, enum esp_type type, uint64_t count, uint32_t rank, uint64_t salt)
{
	for (uint64_t i = 0; i < count; i++)
		put_element(type, pattern(rank, salt, i), data + i * esp_type_bytes(type));
}

static void add_words(const struct fixed *fixed, uint32_t *sum, const uint32_t *words, uint64_t count)
{
	for (uint64_t i = 0; i < fixed_bytes(fixed, count) / sizeof(*sum); i++)
		sum[i] += words[i];
}

/* The result of the call on the data of fill(), from the arithmetic alone. */
static void work_out(const struct esp_call *call, uint32_t ranks, uint64_t salt, uint8_t *out)
{
	struct fixed fixed = {call->numerics == ESP_NUMERICS_FIXED16 ? FIXED_16 : FIXED_32, call->type, ranks};
	size_t blocks = fixed_blocks(call->count), bytes = fixed_bytes(&fixed, call->count);
	uint8_t *exponents = calloc(blocks, 1), *own = malloc(blocks);
	uint32_t *sum = calloc(1, bytes), *words = malloc(bytes);

	for (uint32_t r = 0; r < ranks; r++) {
		fill(out, call->type, call->count, r, salt);
		fixed_exponents(call->type, out, call->count, own);
		for (size_t i = 0; i < blocks; i++)
			exponents[i] = own[i] > exponents[i] ? own[i] : exponents[i];
	}
	for (uint32_t r = 0; r < ranks; r++) {
		fill(out, call->type, call->count, r, salt);
		fixed_quantize(&fixed, out, call->count, exponents, words);
		add_words(&fixed, sum, words, call->count);
	}
	fixed_dequantize(&fixed, sum, call->count, exponents, call->op == ESP_AVG ? ranks : 1, out);
	free(exponents);
	free(own);
	free(sum);
	free(words);
}

/* ---- every plan, transport, form and type ---- */

struct buffers {
	uint8_t *in, *out, *expected;
	uint64_t bytes;
	bool is_alloc;
};

static struct buffers make_buffers(struct job_rank *rank, const struct esp_call *call, uint64_t salt, bool is_alloc)
{
	struct buffers buffers = {.bytes = call->count * esp_type_bytes(call->type), .is_alloc = is_alloc};
	void *in = NULL, *out = NULL;

	if (is_alloc) {
		OK(esp_alloc(rank->context, buffers.bytes, &in));
		OK(esp_alloc(rank->context, buffers.bytes, &out));
	}
	buffers.in = is_alloc ? in : malloc(buffers.bytes);
	buffers.out = is_alloc ? out : malloc(buffers.bytes);
	buffers.expected = malloc(buffers.bytes);
	fill(buffers.in, call->type, call->count, rank->rank, salt);
	work_out(call, rank->size, salt, buffers.expected);
	return buffers;
}

static void free_buffers(struct job_rank *rank, struct buffers *buffers)
{
	if (buffers->is_alloc) {
		OK(esp_free(rank->context, buffers->in));
		OK(esp_free(rank->context, buffers->out));
	} else {
		free(buffers->in);
		free(buffers->out);
	}
	free(buffers->expected);
}

static void check_bits(const struct job_rank *rank, const struct esp_call *call, const void *got, const void *expected)
{
	CHECK_MSG(memcmp(got, expected, call->count * esp_type_bytes(call->type)) == 0,
	          "rank %u of %u: %llu %s, %s, numerics %d, plan %s: other bits", rank->rank, rank->size,
	          (unsigned long long)call->count, esp_type_name(call->type), esp_op_name(call->op), (int)call->numerics,
	          call->plan ? call->plan : "chosen");
}

static void try_call(struct job_rank *rank, struct esp_call *call, uint64_t salt)
{
	struct buffers buffers = make_buffers(rank, call, salt, salt % 2);

	call->in = buffers.in;
	call->out = buffers.out;
	OK(esp_run(rank->world, call));
	check_bits(rank, call, buffers.out, buffers.expected);
	call->out = buffers.in;
	OK(esp_run(rank->world, call));
	check_bits(rank, call, buffers.in, buffers.expected);
	free_buffers(rank, &buffers);
}

static void all_plans(struct job_rank *rank)
{
	static const char *const plans[] = {NULL, "ring", "tree", "halving-doubling", "flat", "two-level", "exchange", "double-tree"};
	static const uint64_t counts[] = {1, 255, 513, 70001};
	static const enum esp_type types[] = {ESP_F32, ESP_BF16, ESP_F16};
	uint64_t salt = 0;

	for (unsigned p = 0; p < sizeof(plans) / sizeof(plans[0]); p++) {
		for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
			struct esp_call call = ESP_CALL_INIT;

			call.plan = plans[p];
			call.count = counts[c];
			for (int way = 0; way < 4; way++, salt++) {
				call.type = types[salt % 3];
				call.op = way % 2 ? ESP_AVG : ESP_SUM;
				call.numerics = way / 2 ? ESP_NUMERICS_FIXED16 : ESP_NUMERICS_FIXED;
				try_call(rank, &call, salt);
			}
		}
	}
}

/* ---- every way to make a call; the setting makes it fixed point ---- */

#define WAYS 6

/* Several under way on one communicator, among calls of other kinds, in the same order everywhere. */
static void many_at_once(struct job_rank *rank)
{
	struct buffers buffers[WAYS];
	struct esp_call calls[WAYS];
	struct esp_work *works[WAYS];
	uint32_t number = 1, sum = 0;

	for (uint32_t i = 0; i < WAYS; i++) {
		calls[i] = (struct esp_call)ESP_CALL_INIT;
		calls[i].count = 1000 + i * 30000;
		calls[i].type = i % 2 ? ESP_BF16 : ESP_F32;
		calls[i].op = ESP_AVG;
		calls[i].numerics = ESP_NUMERICS_FIXED; /* for work_out() */
		buffers[i] = make_buffers(rank, &calls[i], i, false);
		calls[i].in = buffers[i].in;
		calls[i].out = i % 3 ? buffers[i].out : buffers[i].in;
		calls[i].numerics = ESP_NUMERICS_DEFAULT;
	}
	for (uint32_t i = 0; i < WAYS; i++) {
		OK(esp_start(rank->world, &calls[i], &works[i]));
		if (i % 2)
			OK(esp_allreduce(rank->world, &number, &sum, 1, ESP_U32, ESP_SUM));
	}
	CHECK(sum == rank->size);
	for (uint32_t i = WAYS; i-- > 0;) {
		OK(esp_wait(works[i], -1));
		check_bits(rank, &calls[i], calls[i].out, buffers[i].expected);
		esp_work_free(works[i]);
		free_buffers(rank, &buffers[i]);
	}
}

/* Behind a gate; without a thread that waits; again and again. */
static void persistent(struct job_rank *rank)
{
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *work;
	uint64_t gate = 0, ended = 0;

	call.type = ESP_F32;
	call.count = 30001;
	call.numerics = ESP_NUMERICS_FIXED16;
	call.gate = &gate;
	call.signal = &ended;
	struct buffers buffers = make_buffers(rank, &call, 7, true);
	call.in = buffers.in;
	call.out = buffers.out;
	OK(esp_prepare(rank->world, &call, &work));
	for (uint64_t i = 1; i <= 5; i++) {
		call.gate_value = 1;
		__atomic_store_n(&gate, 0, __ATOMIC_RELEASE);
		call.signal_value = 1;
		__atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
		memset(buffers.out, 0, buffers.bytes);
		OK(esp_restart(work));
		__atomic_store_n(&gate, 1, __ATOMIC_RELEASE);
		esp_poke(rank->context);
		OK(esp_wait(work, -1));
		check_bits(rank, &call, buffers.out, buffers.expected);
	}
	esp_work_free(work);
	free_buffers(rank, &buffers);
}

static struct esp_buffer buffer_of(void *data, uint64_t bytes)
{
	struct esp_buffer buffer = ESP_BUFFER_INIT;

	buffer.data = data;
	buffer.bytes = bytes;
	return buffer;
}

/* Blocks go on from one buffer to the next, small and large. */
static void many_buffers(struct job_rank *rank)
{
	static const uint64_t cuts[] = {0, 100, 101, 700, 40000, 40003, 70001};
	struct esp_buffer ins[6], outs[6];
	struct esp_call call = ESP_CALL_INIT;

	call.type = ESP_F32;
	call.count = 70001;
	call.numerics = ESP_NUMERICS_FIXED;
	struct buffers buffers = make_buffers(rank, &call, 9, false);
	for (int i = 0; i < 6; i++) {
		uint64_t bytes = (cuts[i + 1] - cuts[i]) * 4;

		ins[i] = buffer_of(buffers.in + cuts[i] * 4, bytes);
		outs[i] = buffer_of(buffers.out + cuts[i] * 4, bytes);
	}
	call.in_buffers = ins;
	call.out_buffers = outs;
	call.in_buffer_count = call.out_buffer_count = 6;
	OK(esp_run(rank->world, &call));
	check_bits(rank, &call, buffers.out, buffers.expected);
	call.out_buffers = ins;
	OK(esp_run(rank->world, &call));
	check_bits(rank, &call, buffers.in, buffers.expected);
	free_buffers(rank, &buffers);
}

/* Two groups at once, with other members in each rank's. */
static void in_groups(struct job_rank *rank)
{
	struct esp_group *half;
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *work;

	OK(esp_group_split(rank->world, rank->rank % 2, 0, &half));
	struct job_rank member = {.context = rank->context, .world = half, .rank = esp_rank(half), .size = esp_size(half)};
	call.type = ESP_F32;
	call.count = 5000;
	call.numerics = ESP_NUMERICS_FIXED;
	struct buffers of_half = make_buffers(&member, &call, 3, false), of_all = make_buffers(rank, &call, 4, false);
	call.in = of_all.in;
	call.out = of_all.out;
	OK(esp_start(rank->world, &call, &work));
	struct esp_call inner = call;
	inner.in = of_half.in;
	inner.out = of_half.out;
	OK(esp_run(half, &inner));
	OK(esp_wait(work, -1));
	check_bits(rank, &call, of_all.out, of_all.expected);
	if (member.size > 1)
		check_bits(&member, &inner, of_half.out, of_half.expected);
	esp_work_free(work);
	free_buffers(rank, &of_all);
	free_buffers(rank, &of_half);
	OK(esp_group_free(half));
}

/* The functions without a struct follow the setting, too; integers and maxima are none of its business. */
static void by_setting(struct job_rank *rank)
{
	struct esp_call call = ESP_CALL_INIT;
	int32_t number = 3, sum;
	float own = (float)rank->rank, most;

	call.count = 777;
	call.numerics = ESP_NUMERICS_FIXED;
	struct buffers buffers = make_buffers(rank, &call, 1, false);
	OK(esp_allreduce(rank->world, buffers.in, buffers.out, 777, ESP_F32, ESP_SUM));
	check_bits(rank, &call, buffers.out, buffers.expected);
	free_buffers(rank, &buffers);
	OK(esp_allreduce(rank->world, &number, &sum, 1, ESP_I32, ESP_SUM));
	CHECK(sum == 3 * (int32_t)rank->size);
	OK(esp_allreduce(rank->world, &own, &most, 1, ESP_F32, ESP_MAX));
	CHECK(most == (float)(rank->size - 1));
	OK(esp_allreduce(rank->world, &own, &most, 0, ESP_F32, ESP_SUM));
}

static void all_ways(struct job_rank *rank)
{
	by_setting(rank);
	many_at_once(rank);
	persistent(rank);
	many_buffers(rank);
	in_groups(rank);
}

/* ---- numbers that are not finite ---- */

static void not_finite(struct job_rank *rank)
{
	float data[600], expected = (float)(rank->size * (rank->size + 1) / 2);
	struct esp_call call = ESP_CALL_INIT;
	uint32_t last = rank->size - 1;

	call.numerics = ESP_NUMERICS_FIXED16;
	call.count = 600;
	call.in = call.out = data;
	for (int kind = 0; kind < 3; kind++) {
		for (int i = 0; i < 600; i++)
			data[i] = (float)(rank->rank + 1);
		if (rank->rank == last)
			data[550] = kind == 0 ? NAN : kind == 1 ? INFINITY : -INFINITY;
		OK(esp_run(rank->world, &call));
		for (int i = 0; i < 600; i++)
			CHECK(i == 550 || data[i] == expected);
		CHECK(kind == 0 ? isnan(data[550]) : isinf(data[550]) && (data[550] < 0) == (kind == 2));
	}
}

/* ---- bytes ---- */

static uint64_t bytes_of(struct job_rank *rank, const struct esp_call *call)
{
	struct esp_stats before = ESP_STATS_INIT, after = ESP_STATS_INIT;

	OK(esp_get_stats(rank->context, &before));
	OK(esp_run(rank->world, call));
	OK(esp_get_stats(rank->context, &after));
	return after.network_bytes - before.network_bytes;
}

/* What a rank sends of f32: as much as ever with `fixed`, half of it with `fixed16`, and a byte or so for each block. */
static void half_the_bytes(struct job_rank *rank)
{
	struct esp_call call = ESP_CALL_INIT;
	uint64_t sent[ESP_NUMERICS_FIXED16 + 1];

	call.count = 1 << 18;
	call.in = call.out = calloc(call.count, sizeof(float));
	call.plan = "ring";
	for (int i = ESP_NUMERICS_FLOAT; i <= ESP_NUMERICS_FIXED16; i++) {
		call.numerics = (enum esp_numerics)i;
		sent[i] = bytes_of(rank, &call);
	}
	CHECK(sent[ESP_NUMERICS_FIXED] >= sent[ESP_NUMERICS_FLOAT]);
	CHECK(sent[ESP_NUMERICS_FIXED] < sent[ESP_NUMERICS_FLOAT] * 102 / 100);
	CHECK(sent[ESP_NUMERICS_FIXED16] > sent[ESP_NUMERICS_FLOAT] * 50 / 100);
	CHECK(sent[ESP_NUMERICS_FIXED16] < sent[ESP_NUMERICS_FLOAT] * 52 / 100);
	free(call.out);
}

/* ---- refusals and failures ---- */

static void refusals(struct job_rank *rank)
{
	struct esp_call call = ESP_CALL_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	float data = 1;

	call.count = 1;
	call.in = call.out = &data;
	call.numerics = (enum esp_numerics)4;
	EXPECT(esp_run(rank->world, &call), ESP_EINVAL);
	call.numerics = ESP_NUMERICS_FIXED16;
	EXPECT(esp_run(rank->world, &call), ESP_EUNSUPPORTED);
	OK(esp_last_error(&error));
	CHECK_MSG(strstr(error.text, "fixed16 has room for sums of 32 ranks, and the group has 33"), "%s", error.text);
	call.numerics = ESP_NUMERICS_FIXED;
	OK(esp_run(rank->world, &call));
	CHECK(data == 33);
	call.flags = ESP_KEYED;
	EXPECT(esp_run(rank->world, &call), ESP_EUNSUPPORTED);
}

/* A rank that does not come; it is named, and calls behind the waiting one end as well. */
static void too_late(struct job_rank *rank)
{
	struct esp_call call = ESP_CALL_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_work *works[3];
	float *data = calloc(50000, sizeof(*data));

	call.count = 50000;
	call.in = call.out = data;
	call.numerics = ESP_NUMERICS_FIXED;
	call.deadline_ns = 300000000;
	OK(esp_barrier(rank->world));
	job_meet(rank);
	for (int i = 0; i < 3 && rank->rank != 1; i++)
		OK(esp_start(rank->world, &call, &works[i]));
	for (int i = 0; i < 3 && rank->rank != 1; i++) {
		EXPECT(esp_wait(works[i], -1), ESP_ETIMEOUT);
		OK(esp_work_error(works[i], &error));
		CHECK_MSG(error.rank == 1, "%s", error.text);
		esp_work_free(works[i]);
	}
	job_meet(rank);
	free(data);
}

/* The group fails while calls are under way on the others, in either stage. */
static void aborted(struct job_rank *rank)
{
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *works[4];
	enum esp_status status;
	float *data = calloc(400000, sizeof(*data));

	call.count = 400000;
	call.in = call.out = data;
	call.numerics = ESP_NUMERICS_FIXED;
	OK(esp_barrier(rank->world));
	job_meet(rank);
	/* The last rank makes one call of four. */
	int made = rank->rank + 1 == rank->size ? 1 : 4, started = 0;
	for (status = ESP_OK; started < made && status == ESP_OK; started += status == ESP_OK)
		status = esp_start(rank->world, &call, &works[started]);
	if (made == 1)
		(void)esp_abort(rank->world, "no more");
	for (int i = 0; i < started; i++) {
		status = esp_wait(works[i], -1);
		CHECK(status == ESP_OK || status == ESP_EABORTED);
		esp_work_free(works[i]);
	}
	EXPECT(esp_run(rank->world, &call), ESP_EABORTED);
	job_meet(rank);
	free(data);
}

/* The context is closed while a call waits for the others' exponents. */
static void dropped(struct job_rank *rank)
{
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *work;
	float *data = calloc(50000, sizeof(*data));

	call.count = 50000;
	call.in = call.out = data;
	call.numerics = ESP_NUMERICS_FIXED;
	OK(esp_barrier(rank->world));
	job_meet(rank);
	if (rank->rank == 0) {
		OK(esp_start(rank->world, &call, &work));
		(void)esp_fini(rank->context);
		rank->context = NULL;
	}
	job_meet(rank);
	if (rank->rank != 0)
		CHECK(esp_run(rank->world, &call) < 0);
	free(data);
}

int main(int argc, char **argv)
{
	static const char *const by_sockets[] = {"transport=tcp", NULL};
	static const char *const by_lanes[] = {"transport=tcp", "lanes=2", "chunk_bytes=4K", "credits=2", NULL};
	static const char *const no_linger[] = {"linger_seconds=0", NULL};
	static const char *const no_linger_by_sockets[] = {"linger_seconds=0", "transport=tcp", NULL};
	static const char *const fixed[] = {"numerics=fixed", NULL};
	static const char *const fixed_by_sockets[] = {"numerics=fixed", "transport=tcp", "lanes=2", NULL};

	seed = test_option(argc, argv, "--seed", 1);
	for (uint32_t size = 2; size <= 8; size++)
		job_run(size, size % 2 ? NULL : by_sockets, all_plans, NULL);
	job_run(4, NULL, all_plans, NULL);
	job_run(3, by_lanes, all_plans, NULL);
	for (uint32_t size = 1; size <= 5; size += 2) {
		job_run(size + 1, fixed, all_ways, NULL);
		job_run(size + 1, fixed_by_sockets, all_ways, NULL);
	}
	job_run(3, NULL, not_finite, NULL);
	job_run(4, by_sockets, not_finite, NULL);
	job_run(33, by_sockets, refusals, NULL);
	job_run(4, by_sockets, half_the_bytes, NULL);
	job_run(3, NULL, too_late, NULL);
	job_run(3, by_sockets, too_late, NULL);
	job_run(3, no_linger, dropped, NULL);
	job_run(3, no_linger_by_sockets, dropped, NULL);
	for (int again = 0; again < 5; again++) {
		job_run(3, NULL, aborted, NULL);
		job_run(3, by_sockets, aborted, NULL);
	}
	return 0;
}
