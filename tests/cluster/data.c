/*
 * data.c - the contents of a call's buffers, and the reference for what must come out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cluster.h"
#include "support/math_reference.h"
#include "transport/transport.h"

#define GUARD_BYTES 64u
#define GUARD_VALUE 0xa5u

/* ---- memory with guards ---- */

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Not everybody's begins where a cache line does; where it does follows from what is asked for, as what is sent depends on it (transport.h). */
static uint8_t *guarded(uint64_t bytes, uint64_t seed)
{
	uint64_t offset = mix(seed) % TRANSPORT_SHIFTS / 8 * 8, room = bytes + 2 * GUARD_BYTES + TRANSPORT_SHIFTS;
	uint8_t *memory = aligned_alloc(GUARD_BYTES, (room + GUARD_BYTES - 1) / GUARD_BYTES * GUARD_BYTES);

	CHECK(memory);
	memset(memory, GUARD_VALUE, room);
	return memory + GUARD_BYTES + offset;
}

static void guarded_free(uint8_t *memory)
{
	if (memory)
		free(memory - GUARD_BYTES - (uintptr_t)memory % TRANSPORT_SHIFTS);
}

static bool guards_hold(const uint8_t *memory, uint64_t bytes)
{
	for (uint32_t i = 0; i < GUARD_BYTES; i++) {
		if (memory[(int64_t)i - GUARD_BYTES] != GUARD_VALUE || memory[bytes + i] != GUARD_VALUE)
			return false;
	}
	return true;
}

void cluster_free(struct cluster_call *call)
{
	for (uint32_t node = 0; call->buffers && node < call->plan->workers; node++) {
		for (int i = 0; i < 2; i++) {
			guarded_free(call->buffers[node].memory[i]);
		}
	}
	free(call->buffers);
	call->buffers = NULL;
}

/* ---- what goes in ---- */

/* Numbers whose sums and products have the same bits in any order, for up to 64 workers. */
static uint64_t small_element(const struct cluster_call *call, uint64_t random)
{
	enum esp_op op = call->op;
	int value = (int)(random % 5) - 2;

	if (!ref_is_float(call->type) && (op == ESP_BAND || op == ESP_BOR || op == ESP_BXOR || call->type == ESP_BYTES))
		return random;
	if (op == ESP_PROD)
		value = random % 16 == 0 ? 2 : random % 2 ? 1 : -1;
	if (op == ESP_LAND)
		value = random % 64 != 0;
	return ref_is_float(call->type) ? ref_encode(call->type, value) : (uint64_t)(int64_t)value;
}

/* Element number `at` of a worker's input: a function of the seed, so that it need not be kept. */
static void input_element(const struct cluster_call *call, uint32_t node, uint64_t at, void *out)
{
	uint64_t random = mix(call->data_seed + mix(node + 1) + at * UINT64_C(0x9e3779b97f4a7c15)), bits;

	if (call->fill == FILL_WILD) {
		struct rng rng;

		rng_init(&rng, random);
		bits = ref_random(call->type == ESP_BYTES ? ESP_U8 : call->type, &rng);
	} else {
		bits = small_element(call, random);
	}
	memcpy(out, &bits, math_type_bytes(call->type));
}

/* How far a worker's block lies from the beginning of the longer of its two buffers. */
static uint64_t in_place_offset(const struct chunks *chunks, uint32_t node, bool *out_is_shared)
{
	*out_is_shared = false;
	for (uint64_t c = 0; c < chunks->chunk_count; c++) {
		struct plan_piece piece = plan_chunks_piece(chunks, c);

		if (piece_gives(chunks, &piece, node) && piece_wants(chunks, &piece, node)) {
			*out_is_shared = true;
			return piece.in_at > piece.out_at ? piece.in_at - piece.out_at : piece.out_at - piece.in_at;
		}
	}
	return 0;
}

static void buffers_make(struct cluster_call *call, uint32_t node)
{
	const struct chunks *chunks = &call->plan->chunks;
	struct cluster_buffers *buffers = &call->buffers[node];
	bool shared = false;
	uint64_t offset = call->plan->in_place ? in_place_offset(chunks, node, &shared) : 0;

	buffers->in_bytes = buffers->bytes[0] = plan_chunks_input_bytes(chunks, node);
	buffers->out_bytes = buffers->bytes[1] = plan_chunks_output_bytes(chunks, node);
	bool in_is_longer = buffers->in_bytes >= buffers->out_bytes;
	if (!shared || in_is_longer)
		buffers->in = buffers->memory[0] = guarded(buffers->in_bytes, call->data_seed + 2 * node);
	if (!shared || !in_is_longer)
		buffers->out = buffers->memory[1] = guarded(buffers->out_bytes, call->data_seed + 2 * node + 1);
	if (shared && in_is_longer)
		buffers->out = buffers->in + offset;
	else if (shared)
		buffers->in = buffers->out + offset;
}

void cluster_fill(struct cluster_call *call)
{
	size_t bytes = math_type_bytes(call->type);

	call->buffers = calloc(call->plan->workers, sizeof(*call->buffers));
	CHECK(call->buffers);
	for (uint32_t node = 0; node < call->plan->workers; node++) {
		struct cluster_buffers *buffers = &call->buffers[node];

		buffers_make(call, node);
		for (uint64_t i = 0; i < buffers->in_bytes / bytes; i++)
			input_element(call, node, i, buffers->in + i * bytes);
	}
}

void cluster_scribble(struct cluster_call *call, uint32_t node)
{
	if (!call->buffers || node >= call->plan->workers)
		return;
	struct cluster_buffers *buffers = &call->buffers[node];
	bool all = call->status[node] != ESP_OK, apart = buffers->memory[0] && buffers->memory[1];

	for (int i = 0; i < 2; i++) {
		if (buffers->memory[i] && (all || (apart && i == 0)))
			memset(buffers->memory[i], 0x3c, buffers->bytes[i]);
	}
	call->scribbled = true;
}

/* ---- what must come out ---- */

static void expected_element(const struct cluster_call *call, const struct plan_piece *piece, uint64_t at, void *out)
{
	uint32_t workers = call->plan->workers;
	uint64_t element = piece->in_at / math_type_bytes(call->type) + at, one;

	if (piece->from != PLAN_ALL) {
		input_element(call, piece->from, element, out);
		return;
	}
	input_element(call, 0, element, out);
	for (uint32_t node = 1; node < workers; node++) {
		input_element(call, node, element, &one);
		ref_fold(call->type, call->op, out, out, &one);
	}
	if (call->op == ESP_AVG)
		ref_finish(call->type, ESP_AVG, out, workers);
	if (call->op == ESP_SCALED)
		ref_finish(call->type, ESP_SCALED, out, call->factor);
}

/* What a chunk must be, for all its receivers. */
static void expected_chunk(const struct cluster_call *call, const struct plan_piece *piece, uint8_t *out)
{
	size_t bytes = math_type_bytes(call->type);

	for (uint64_t i = 0; i < piece->bytes / bytes; i++)
		expected_element(call, piece, i, out + i * bytes);
}

static bool chunk_matches(const struct cluster_call *call, uint64_t chunk, uint8_t *expected, char *why, size_t why_bytes)
{
	const struct chunks *chunks = &call->plan->chunks;
	struct plan_piece piece = plan_chunks_piece(chunks, chunk);
	size_t bytes = math_type_bytes(call->type);
	bool known = call->fill == FILL_SMALL;

	if (known)
		expected_chunk(call, &piece, expected);
	for (uint32_t node = 0; node < chunks->workers; node++) {
		if (!piece_wants(chunks, &piece, node) || call->status[node] != ESP_OK)
			continue;
		const uint8_t *got = call->buffers[node].out + piece.out_at;

		if (!known) {
			memcpy(expected, got, piece.bytes);
			known = true;
		}
		for (uint64_t i = 0; i < piece.bytes / bytes; i++) {
			bool same = ref_same(call->type, got + i * bytes, expected + i * bytes);

			if (!same) {
				snprintf(why, why_bytes, "chunk %" PRIu64 ", node %u, element %" PRIu64 ": got %#" PRIx64 ", expected %#" PRIx64,
				         chunk, node, i, ref_load(call->type, got + i * bytes),
				         ref_load(call->type, expected + i * bytes));
				return false;
			}
		}
	}
	return true;
}

/* Nothing was written outside of the buffers, and no input that is not an output too was changed. */
static bool memory_holds(const struct cluster_call *call, uint32_t node, char *why, size_t why_bytes)
{
	const struct cluster_buffers *buffers = &call->buffers[node];
	size_t bytes = math_type_bytes(call->type);

	for (int i = 0; i < 2; i++) {
		if (buffers->memory[i] && !guards_hold(buffers->memory[i], buffers->bytes[i])) {
			snprintf(why, why_bytes, "node %u: something was written outside of a buffer", node);
			return false;
		}
	}
	bool keeps = !call->scribbled && buffers->memory[0] && buffers->memory[1];
	for (uint64_t i = 0; keeps && i < buffers->in_bytes / bytes; i++) {
		uint64_t bits = 0;

		input_element(call, node, i, &bits);
		if (memcmp(&bits, buffers->in + i * bytes, bytes) != 0) {
			snprintf(why, why_bytes, "node %u: the input was changed at element %" PRIu64, node, i);
			return false;
		}
	}
	return true;
}

bool cluster_matches(const struct cluster_call *call, char *why, size_t why_bytes)
{
	uint64_t most = 1;
	bool fine = true;

	for (uint64_t c = 0; c < call->plan->chunks.chunk_count; c++) {
		uint64_t bytes = plan_chunks_piece(&call->plan->chunks, c).bytes;

		most = bytes > most ? bytes : most;
	}
	uint8_t *expected = malloc(most);
	CHECK(expected);
	for (uint64_t c = 0; fine && c < call->plan->chunks.chunk_count; c++)
		fine = chunk_matches(call, c, expected, why, why_bytes);
	for (uint32_t node = 0; fine && node < call->plan->workers; node++)
		fine = memory_holds(call, node, why, why_bytes);
	free(expected);
	return fine;
}

void cluster_describe(const struct cluster_call *call, char *text, size_t bytes)
{
	const struct plan *plan = call->plan;

	snprintf(text, bytes, "%s %s of %s, %s, %u workers, %u nodes, %" PRIu64 " chunks%s, root %u, group %u",
	         plan_planner_name(plan->planner), plan_collective_name(plan->chunks.collective),
	         math_type_name(call->type), math_op_name(call->op), plan->workers, plan->nodes, plan->chunks.chunk_count,
	         plan->in_place ? ", in place" : "", plan->chunks.root, call->group);
}
