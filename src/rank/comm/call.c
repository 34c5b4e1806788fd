#include "rank/comm/call.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "math/fixed.h"
#include "math/math.h"
#include "wire/crc32c.h"

/* ---- sizes ---- */

static bool times(uint64_t a, uint64_t b, uint64_t *out)
{
	return !__builtin_mul_overflow(a, b, out) && *out <= INT64_MAX;
}

static bool sum_counts(const uint64_t *counts, uint64_t first, uint64_t count, uint64_t stride, uint64_t *out)
{
	*out = 0;
	for (uint64_t i = 0; i < count; i++) {
		if (__builtin_add_overflow(*out, counts[first + i * stride], out))
			return false;
	}
	return true;
}

/* Elements of a rank's large buffer, and of its own block. */
static bool block_elements(const struct call *call, uint32_t rank, uint32_t size, uint64_t *out_all, uint64_t *out_own)
{
	if (!call->counts) {
		*out_own = call->count;
		return times(call->count, size, out_all);
	}
	*out_own = call->counts[rank];
	return sum_counts(call->counts, 0, size, 1, out_all);
}

/* Bytes of this rank's input and output. */
static bool work_out_sizes(struct call *call, uint32_t rank, uint32_t size)
{
	uint64_t all = 0, own = 0, in = call->count, out = call->count;
	bool is_root = rank == call->root;

	if (call->collective == PLAN_ALLTOALL) {
		if (call->counts) {
			if (!sum_counts(call->counts, (uint64_t)rank * size, size, 1, &in) ||
			    !sum_counts(call->counts, rank, size, size, &out))
				return false;
		} else if (!times(call->count, size, &in)) {
			return false;
		} else {
			out = in;
		}
	} else if (!block_elements(call, rank, size, &all, &own)) {
		return false;
	}
	switch (call->collective) {
	case PLAN_REDUCE_SCATTER:
		in = all;
		out = own;
		break;
	case PLAN_ALLGATHER:
		in = own;
		out = all;
		break;
	case PLAN_BROADCAST:
		in = is_root ? call->count : 0;
		break;
	case PLAN_REDUCE:
		out = is_root ? call->count : 0;
		break;
	case PLAN_GATHER:
		in = own;
		out = is_root ? all : 0;
		break;
	case PLAN_SCATTER:
		in = is_root ? all : 0;
		out = own;
		break;
	case PLAN_BARRIER:
		in = out = 0;
		break;
	case PLAN_ALLREDUCE:
	case PLAN_ALLTOALL:
		break;
	}
	return times(in, call->element_bytes, &call->in_bytes) && times(out, call->element_bytes, &call->out_bytes) &&
	       times(call->count, call->element_bytes, &call->block_bytes);
}

/* Bytes before this rank's block in the large buffer. */
static uint64_t own_block_at(const struct call *call, uint32_t rank)
{
	uint64_t before = 0;

	if (!call->counts)
		return rank * call->block_bytes;
	(void)sum_counts(call->counts, 0, rank, 1, &before); /* fits: the sum of all did */
	return before * call->element_bytes;
}

/* ---- buffers ---- */

/* Can it be cut anywhere? Elsewhere each block belongs to a rank. */
static bool is_vector(const struct call *call)
{
	return call->collective == PLAN_ALLREDUCE || call->collective == PLAN_REDUCE || call->collective == PLAN_BROADCAST;
}

static enum esp_status check_parts(const struct call *call, const struct memory_part *parts, uint32_t count,
                                   uint64_t wanted, const char *which, struct failure *failure)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (parts[i].bytes > 0 && !parts[i].data)
			return rank_failure_set(failure, ESP_EINVAL, -1, "buffer %u of %s is NULL and has %" PRIu64 " bytes", i,
			                        which, parts[i].bytes);
		if (parts[i].bytes % call->element_bytes != 0)
			return rank_failure_set(failure, ESP_EINVAL, -1,
			                        "buffer %u of %s has %" PRIu64 " bytes, which are no whole elements "
			                        "of %u bytes",
			                        i, which, parts[i].bytes, call->element_bytes);
		if (__builtin_add_overflow(sum, parts[i].bytes, &sum))
			return rank_failure_set(failure, ESP_EINVAL, -1, "the buffers of %s are larger than memory can be", which);
	}
	if (sum != wanted)
		return rank_failure_set(failure, ESP_EINVAL, -1,
		                        "the buffers of %s have %" PRIu64 " bytes together, and count and type say %" PRIu64,
		                        which, sum, wanted);
	return ESP_OK;
}

static bool overlap(const void *a, uint64_t a_bytes, const void *b, uint64_t b_bytes)
{
	uintptr_t x = (uintptr_t)a, y = (uintptr_t)b;

	return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

/* A piece of memory that is in or out, or part of it. */
struct piece {
	uintptr_t begin, end;
	uint64_t at; /* bytes of in or out before it */
};

static int compare_pieces(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* The parts that are not empty, in the order in which they are given. whole: the memory if there are no parts. */
static uint32_t list_pieces(const struct memory_part *parts, uint32_t count, const void *whole, uint64_t bytes,
                            struct piece *out)
{
	struct memory_part one = {(uint8_t *)(uintptr_t)whole, bytes};
	uint64_t at = 0;
	uint32_t pieces = 0;

	if (!parts) {
		parts = &one;
		count = 1;
	}
	for (uint32_t i = 0; i < count && bytes > 0; i++) {
		uintptr_t begin = (uintptr_t)parts[i].data;

		if (parts[i].bytes > 0)
			out[pieces++] = (struct piece){begin, begin + parts[i].bytes, at};
		at += parts[i].bytes;
	}
	return pieces;
}

/* May they share memory? Then byte i of one is byte i + *out_shift of the other: in's minus out's. */
static bool may_be_in_place(const struct call *call, uint32_t rank, uint64_t *out_shift)
{
	*out_shift = 0;
	switch (call->collective) {
	case PLAN_ALLREDUCE:
	case PLAN_REDUCE:
	case PLAN_BROADCAST:
		return true;
	case PLAN_REDUCE_SCATTER:
	case PLAN_SCATTER:
		*out_shift = own_block_at(call, rank);
		return true;
	case PLAN_ALLGATHER:
	case PLAN_GATHER:
		*out_shift = 0 - own_block_at(call, rank);
		return true;
	case PLAN_ALLTOALL:
	case PLAN_BARRIER:
		break;
	}
	return false;
}

/* The first of the sorted pieces, which do not overlap, that ends behind this address. */
static uint32_t find_piece(const struct piece *pieces, uint32_t count, uintptr_t address)
{
	uint32_t low = 0, high = count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (pieces[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const char *how_to_be_in_place(const struct call *call)
{
	if (call->collective == PLAN_ALLTOALL)
		return "an alltoall cannot be in place";
	return is_vector(call) ? "give the same buffer, or two that share nothing"
	                       : "in place, the smaller one is this rank's block of the larger one";
}

/* Where in and out may share memory, and whether they do. The outs are sorted here. */
static enum esp_status check_pieces(struct call *call, uint32_t rank, const struct piece *ins, uint32_t in_count,
                                    struct piece *outs, uint32_t out_count, struct failure *failure)
{
	uint64_t shift;
	bool may_be = may_be_in_place(call, rank, &shift), is_sorted = true;

	for (uint32_t i = 1; i < out_count; i++)
		is_sorted = is_sorted && outs[i - 1].begin <= outs[i].begin;
	if (!is_sorted)
		qsort(outs, out_count, sizeof(*outs), compare_pieces);
	for (uint32_t i = 1; i < out_count; i++) {
		if (outs[i].begin < outs[i - 1].end)
			return rank_failure_set(failure, ESP_EINVAL, -1,
			                        "two buffers of out overlap: each result needs a place of its own");
	}
	for (uint32_t i = 0; i < in_count; i++) {
		for (uint32_t k = find_piece(outs, out_count, ins[i].begin); k < out_count && outs[k].begin < ins[i].end; k++) {
			/* The same byte of memory has to be the same byte of the call. */
			bool is_one_place = may_be && ins[i].at - ins[i].begin == outs[k].at - outs[k].begin + shift;

			if (!is_one_place)
				return rank_failure_set(failure, ESP_EINVAL, -1, "in and out overlap: %s", how_to_be_in_place(call));
			call->in_place = true;
		}
	}
	return ESP_OK;
}

static enum esp_status check_overlap(struct call *call, uint32_t rank, struct failure *failure)
{
	uint64_t in_most = call->in_parts ? call->in_part_count : 1, out_most = call->out_parts ? call->out_part_count : 1;
	struct piece two[2], *ins = two;
	bool is_many = call->in_parts || call->out_parts;

	/* Most calls are one of these two. */
	if (!is_many && !overlap(call->in, call->in_bytes, call->out, call->out_bytes))
		return ESP_OK;
	if (!is_many && call->in == call->out && is_vector(call)) {
		call->in_place = true;
		return ESP_OK;
	}
	if (is_many)
		ins = malloc((in_most + out_most) * sizeof(*ins));
	if (!ins)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a call");
	struct piece *outs = ins + in_most;
	uint32_t in_count = list_pieces(call->in_parts, call->in_part_count, call->in, call->in_bytes, ins);
	uint32_t out_count = list_pieces(call->out_parts, call->out_part_count, call->out, call->out_bytes, outs);
	enum esp_status status = check_pieces(call, rank, ins, in_count, outs, out_count, failure);
	if (is_many)
		free(ins);
	return status;
}

/* Where both buffers are used and both are many: the same sizes. */
static bool cut_alike(const struct call *call)
{
	if (!call->in_parts || !call->out_parts || call->in_bytes == 0 || call->out_bytes == 0)
		return true;
	if (call->in_part_count != call->out_part_count)
		return false;
	for (uint32_t i = 0; i < call->in_part_count; i++) {
		if (call->in_parts[i].bytes != call->out_parts[i].bytes)
			return false;
	}
	return true;
}

static enum esp_status check_buffers(struct call *call, uint32_t rank, struct failure *failure)
{
	enum esp_status status = ESP_OK;

	/* Buffers that a rank's role leaves unused are not checked, except for how they are cut into parts. */
	if (call->in_parts && call->in_bytes > 0)
		status = check_parts(call, call->in_parts, call->in_part_count, call->in_bytes, "in", failure);
	else if (!call->in_parts && call->in_bytes > 0 && !call->in)
		status = rank_failure_set(failure, ESP_EINVAL, -1, "in is NULL, and this rank gives %" PRIu64 " bytes",
		                          call->in_bytes);
	if (status == ESP_OK && call->out_parts && call->out_bytes > 0)
		status = check_parts(call, call->out_parts, call->out_part_count, call->out_bytes, "out", failure);
	else if (status == ESP_OK && !call->out_parts && call->out_bytes > 0 && !call->out)
		status = rank_failure_set(failure, ESP_EINVAL, -1, "out is NULL, and this rank gets %" PRIu64 " bytes",
		                          call->out_bytes);
	if (status == ESP_OK)
		status = check_overlap(call, rank, failure);
	if (status == ESP_OK && is_vector(call) && !cut_alike(call))
		status = rank_failure_set(
			failure, ESP_EINVAL, -1,
			"the buffers of in and out are not cut alike: give both the same number, of the same sizes");
	return status;
}

/* Fixed point is for sums and averages of the types that math/fixed.h has; all else takes the ordinary plan. */
static enum esp_status check_numerics(struct call *call, uint32_t size, struct failure *failure)
{
	struct fixed fixed = {.form = call->numerics == ESP_NUMERICS_FIXED16 ? FIXED_16 : FIXED_32, .type = call->type,
	                      .workers = 1};
	bool is_for_it = call_is_fixed(call) && call->collective == PLAN_ALLREDUCE &&
	                 (call->op == ESP_SUM || call->op == ESP_AVG) && fixed_valid(&fixed) && size > 1;

	if (!is_for_it) {
		call->numerics = ESP_NUMERICS_DEFAULT;
		return ESP_OK;
	}
	if (call->keyed)
		return rank_failure_set(failure, ESP_EUNSUPPORTED, -1,
		                        "a keyed call cannot be in fixed point: leave the key or the numerics away");
	fixed.workers = size;
	if (!fixed_valid(&fixed) && fixed.form == FIXED_16)
		return rank_failure_set(failure, ESP_EUNSUPPORTED, -1,
		                        "fixed16 has room for sums of %u ranks, and the group has %u: choose the numerics "
		                        "fixed or float",
		                        FIXED_16_WORKERS, size);
	if (!fixed_valid(&fixed))
		return rank_failure_set(failure, ESP_EUNSUPPORTED, -1,
		                        "fixed has room for sums of %u ranks, and the group has %u", FIXED_32_WORKERS, size);
	return ESP_OK;
}

enum esp_status call_check(struct call *call, uint32_t rank, uint32_t size, struct failure *failure)
{
	bool reduces = plan_collective_reduces(call->collective) && call->collective != PLAN_BARRIER;

	if (call->collective == PLAN_BARRIER) {
		call->type = ESP_BYTES;
		call->count = 0;
		call->counts = NULL;
	}
	if (!math_type_name(call->type))
		return rank_failure_set(failure, ESP_EINVAL, -1, "type is %d, which is none of enum esp_type", (int)call->type);
	if (reduces && !math_op_name(call->op))
		return rank_failure_set(failure, ESP_EINVAL, -1, "op is %d, which is none of enum esp_op", (int)call->op);
	if (reduces && !math_fold(call->type, call->op))
		return rank_failure_set(failure, ESP_EUNSUPPORTED, -1, "%s is not defined for %s", math_op_name(call->op),
		                        math_type_name(call->type));
	if (reduces && !math_finish_valid(call->type, call->op, call->factor, size))
		return rank_failure_set(failure, ESP_EINVAL, -1,
		                        "%g is no factor for %s: it must be finite, and whole for whole numbers", call->factor,
		                        math_type_name(call->type));
	if (!reduces)
		call->op = ESP_SUM;
	if (!reduces || call->op != ESP_SCALED)
		call->factor = 0;
	if (!plan_collective_has_root(call->collective))
		call->root = 0;
	else if (call->root >= size)
		return rank_failure_set(failure, ESP_EINVAL, -1, "root is %u, and the last rank of the group is %u", call->root,
		                        size - 1);
	if (call->counts && !(call->collective == PLAN_REDUCE_SCATTER || call->collective == PLAN_ALLGATHER ||
	                      call->collective == PLAN_GATHER || call->collective == PLAN_SCATTER ||
	                      call->collective == PLAN_ALLTOALL))
		return rank_failure_set(failure, ESP_EINVAL, -1,
		                        "%s has no blocks that could have different counts: leave counts NULL and "
		                        "set count",
		                        plan_collective_name(call->collective));
	if (call->counts)
		call->count = 0; /* it says nothing then */
	call->element_bytes = (uint32_t)math_type_bytes(call->type);
	if (!work_out_sizes(call, rank, size) && call->counts)
		return rank_failure_set(failure, ESP_EINVAL, -1, "the counts are more than memory can hold");
	if (!work_out_sizes(call, rank, size))
		return rank_failure_set(failure, ESP_EINVAL, -1,
		                        "count is %" PRIu64 ", and elements have %u bytes: the buffers would be larger "
		                        "than memory can be",
		                        call->count, call->element_bytes);
	enum esp_status status = check_numerics(call, size, failure);
	return status == ESP_OK ? check_buffers(call, rank, failure) : status;
}

/* ---- notes ---- */

static uint32_t digest_parts(uint32_t digest, const struct memory_part *parts, uint32_t count)
{
	for (uint32_t i = 0; parts && i < count; i++)
		digest = crc32c(digest, &parts[i].bytes, sizeof(parts[i].bytes));
	return digest;
}

/* Of what a single count does not say. Calls of equal blocks and single buffers have 0. */
static uint32_t digest_shape(const struct call *call, uint32_t size)
{
	uint64_t blocks = call->collective == PLAN_ALLTOALL ? (uint64_t)size * size : size;
	uint32_t digest = 0;

	if (call->counts)
		digest = crc32c(1, call->counts, blocks * sizeof(*call->counts));
	/* How blocks lie in memory is each rank's own affair; how a vector is cut is not. */
	if (is_vector(call) && call->out_parts)
		digest = digest_parts(digest, call->out_parts, call->out_part_count);
	else if (is_vector(call))
		digest = digest_parts(digest, call->in_parts, call->in_part_count);
	return digest;
}

void call_note(const struct call *call, uint32_t size, uint64_t sequence, struct call_note *out)
{
	const char *plan = call->planner ? plan_planner_name(call->planner) : "";

	*out = (struct call_note){
		.collective = (uint8_t)call->collective,
		.type = (uint8_t)call->type,
		.op = (uint8_t)call->op,
		.flags = call->keyed ? CALL_KEYED : 0,
		.numerics = (uint8_t)call->numerics,
		.root = call->root,
		.count = call->count,
		.key = call->keyed ? call->key : call->makes_group ? CALL_MAKES_GROUP : 0,
		.sequence = sequence,
		.shape = digest_shape(call, size),
		.plan = call->planner ? crc32c(0, plan, strlen(plan)) : 0,
	};
	memcpy(&out->factor, &call->factor, sizeof(out->factor));
	if (call->counts) {
		uint64_t blocks = call->collective == PLAN_ALLTOALL ? (uint64_t)size * size : size;

		(void)sum_counts(call->counts, 0, blocks, 1, &out->count);
	}
}

static const char *plan_name(uint32_t digest)
{
	const struct planner *planner;

	for (unsigned i = 0; (planner = plan_planner(i)); i++) {
		const char *name = plan_planner_name(planner);

		if (crc32c(0, name, strlen(name)) == digest)
			return name;
	}
	return "unknown";
}

static bool makes_group(const struct call_note *note)
{
	return note->flags == 0 && note->key == CALL_MAKES_GROUP;
}

const char *call_operation(const struct call_note *note)
{
	return makes_group(note) ? "group" : plan_collective_name(note->collective);
}

const char *call_describe(const struct call_note *note, char text[CALL_TEXT])
{
	bool is_known = note->collective < PLAN_COLLECTIVE_COUNT && note->type < ESP_TYPE_COUNT && note->op < ESP_OP_COUNT;
	enum plan_collective collective = note->collective;
	char root[24] = "", key[32] = "", op[32] = "", plan[32] = "";
	double factor;

	if (!is_known) {
		snprintf(text, CALL_TEXT, "a call that this version does not know");
		return text;
	}
	if (makes_group(note)) {
		snprintf(text, CALL_TEXT, "a group (esp_group_create or esp_group_split)");
		return text;
	}
	if (note->flags & CALL_LETTER) {
		snprintf(text, CALL_TEXT, "message of %" PRIu64 " bytes with tag %" PRIu64, note->count, note->key);
		return text;
	}
	if (note->flags & CALL_KEYED)
		snprintf(key, sizeof(key), " with key %" PRIu64, note->key);
	if (collective == PLAN_BARRIER) {
		snprintf(text, CALL_TEXT, "barrier%s", key);
		return text;
	}
	if (plan_collective_has_root(collective))
		snprintf(root, sizeof(root), ", root %u", note->root);
	memcpy(&factor, &note->factor, sizeof(factor));
	if (plan_collective_reduces(collective) && note->op == ESP_SCALED)
		snprintf(op, sizeof(op), ", scaled by %g", factor);
	else if (plan_collective_reduces(collective))
		snprintf(op, sizeof(op), ", %s", math_op_name(note->op));
	if (note->plan)
		snprintf(plan, sizeof(plan), ", plan %s", plan_name(note->plan));
	const char *numerics = note->numerics == ESP_NUMERICS_FIXED     ? ", numerics fixed"
	                       : note->numerics == ESP_NUMERICS_FIXED16 ? ", numerics fixed16"
	                                                                : "";
	snprintf(text, CALL_TEXT, "%s of %" PRIu64 " %s%s%s%s%s%s%s", plan_collective_name(collective), note->count,
	         math_type_name(note->type), op, numerics, root, note->shape ? ", in many parts" : "", plan, key);
	return text;
}
