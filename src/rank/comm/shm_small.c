#include "rank/comm/shm_small.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "math/math.h"

#define SHORT_BYTES 48u
#define NOTE_AT 64u
#define SLEEPERS_AT 128u /* in the first cell */
#define SUMMED_AT 136u   /* the number of the call whose slice has been summed */
#define LINE 64u
#define PIECE_BYTES 4096u

struct cell {
	_Atomic uint64_t sequence; /* of the call that is pinned here; written last */
	uint32_t digest;
	uint32_t core; /* that the owner ran on then */
	uint8_t data[SHORT_BYTES];
};
_Static_assert(sizeof(struct cell) == 64, "short data and its number share a cache line");

struct shm_small {
	struct segment *segment;
	uint16_t channel;
	uint32_t cell_bytes; /* that are reserved */
	uint32_t rank, size;
	uint32_t mark;     /* of the group */
	uint64_t sequence; /* of the latest call */
	uint32_t digests[2];
	struct call_note notes[2];
	struct cell *own[2];
	_Atomic uint32_t *sleeping;        /* in our segment: we sleep          */
	const struct cell *(*cells)[2];    /* by member, ours too               */
	const _Atomic uint32_t **sleepers; /* by member: does it sleep?         */
	const void **sources;              /* by member: for a fold             */
};

enum esp_status shm_small_open(struct segment *own, uint16_t channel, uint32_t mark, uint32_t bytes, uint32_t rank,
                               uint32_t size, const struct segment_view *const *views, struct shm_small **out)
{
	struct shm_small *small = calloc(1, sizeof(*small));

	if (!small)
		return ESP_ENOMEM;
	*small = (struct shm_small){
		.segment = own, .channel = channel, .cell_bytes = SHM_SMALL_HEAD_BYTES + bytes, .rank = rank, .size = size,
		.mark = mark,
	};
	small->cells = calloc(size, sizeof(*small->cells));
	small->sleepers = calloc(size, sizeof(*small->sleepers));
	small->sources = calloc(size, sizeof(*small->sources));
	if (!small->cells || !small->sleepers || !small->sources ||
	    !shm_segment_small_reserve(own, channel, small->cell_bytes)) {
		shm_small_close(small);
		return ESP_ENOMEM;
	}
	for (uint32_t c = 0; c < 2; c++)
		small->own[c] = shm_segment_small(own, channel, c);
	for (uint32_t i = 0; i < size; i++) {
		for (uint32_t c = 0; c < 2; c++)
			small->cells[i][c] =
				i == rank ? shm_segment_small(own, channel, c) : shm_segment_view_small(views[i], channel, c);
		small->sleepers[i] =
			(const _Atomic uint32_t *)(const void *)((const uint8_t *)small->cells[i][0] + SLEEPERS_AT);
	}
	small->sleeping = (_Atomic uint32_t *)(void *)((uint8_t *)small->own[0] + SLEEPERS_AT);
	*out = small;
	return ESP_OK;
}

void shm_small_close(struct shm_small *small)
{
	if (!small)
		return;
	/* A reader that has slept over it and still reads notices that the memory was reused: see is_pinned(). */
	for (uint32_t c = 0; c < 2 && small->own[0]; c++)
		atomic_store(&small->own[c]->sequence, 0);
	if (small->own[0])
		shm_segment_small_clear(small->segment, small->channel, small->cell_bytes);
	free(small->cells);
	free(small->sleepers);
	free(small->sources);
	free(small);
}

/* ---- what is pinned ---- */

/* Bytes that this call pins at most, on any rank; UINT64_MAX: not for small paths. The same on all ranks. */
static uint64_t small_shm_bytes(const struct call *call, uint32_t size)
{
	if (call->counts)
		return UINT64_MAX;
	switch (call->collective) {
	case PLAN_REDUCE_SCATTER:
	case PLAN_SCATTER:
	case PLAN_ALLTOALL:
		return call->block_bytes > UINT32_MAX ? UINT64_MAX : call->block_bytes * size;
	case PLAN_BARRIER:
		return 0;
	default:
		return call->block_bytes;
	}
}

unsigned shm_small_rounds(const struct call *call, uint32_t size, const struct shm_small_limits *limits)
{
	uint64_t bytes = small_shm_bytes(call, size);
	bool is_redundant = call->collective == PLAN_ALLREDUCE || call->collective == PLAN_REDUCE;

	if (bytes > limits->bytes)
		return 0;
	/* Two halves are not worth the second round. */
	return is_redundant && size > 2 && bytes > limits->redundant_bytes ? 2 : 1;
}

static const uint8_t *pinned_data(const struct cell *cell, uint64_t bytes)
{
	return bytes <= SHORT_BYTES ? cell->data : (const uint8_t *)cell + SHM_SMALL_HEAD_BYTES;
}

/* Raises the call's number over its data, and wakes threads that sleep until then. */
static void publish(struct shm_small *small, _Atomic uint64_t *number)
{
	/* Pairs with the acquire in is_raised(); and, being sequentially consistent, with shm_small_sleep(). */
	atomic_store(number, small->sequence);
	for (uint32_t i = 0; i < small->size; i++) {
		if (i != small->rank && atomic_load(small->sleepers[i]) != 0) {
			syscall(SYS_futex, number, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
			return;
		}
	}
}

static void pin(struct shm_small *small, struct shm_small_call *op)
{
	struct cell *cell = small->own[small->sequence % 2];
	const struct call *call = op->call;

	if (call->in_bytes > 0)
		memcpy((uint8_t *)(uintptr_t)pinned_data(cell, small_shm_bytes(call, small->size)), call->in, call->in_bytes);
	cell->digest = op->digest;
	cell->core = (uint32_t)sched_getcpu();
	call_note_encode(&op->note, (uint8_t *)cell + NOTE_AT);
	publish(small, &cell->sequence);
}

/* ---- what the others have pinned ---- */

/* The number that tells that a member has done its part of this round. */
static const _Atomic uint64_t *number_of(const struct shm_small *small, uint32_t member, bool has_summed)
{
	const struct cell *cell = small->cells[member][small->sequence % 2];

	return has_summed ? (const _Atomic uint64_t *)(const void *)((const uint8_t *)cell + SUMMED_AT) : &cell->sequence;
}

static bool is_raised(const struct shm_small *small, uint32_t member, bool has_summed)
{
	return atomic_load_explicit(number_of(small, member, has_summed), memory_order_acquire) >= small->sequence;
}

/* Reads the note in a cell that may be written at the same time: none, unless it is whole. */
static bool read_note(const struct cell *cell, uint32_t mark, struct call_note *out)
{
	uint8_t bytes[CALL_NOTE_BYTES];

	if (atomic_load_explicit(&cell->sequence, memory_order_acquire) == 0)
		return false;
	memcpy(bytes, (const uint8_t *)cell + NOTE_AT, sizeof(bytes));
	uint32_t digest = cell->digest;
	call_note_decode(bytes, out);
	return digest == (call_note_digest(out) ^ mark);
}

/*
 * Is what a member had pinned still there? To be asked after it was read. A member that waits for us for too long gives
 * us up, and its cell is cleared and becomes that of another group: if we were stopped just then, we have read that.
 */
static bool is_pinned(const struct shm_small *small, uint32_t member)
{
	uint32_t place = small->sequence % 2;
	const struct cell *cell = small->cells[member][place];

#ifndef __SANITIZE_THREAD__ /* gcc refuses fences then; on x86 loads stay in order all the same */
	atomic_thread_fence(memory_order_acquire); /* all reads above come before */
#endif
	return atomic_load_explicit(&cell->sequence, memory_order_relaxed) == small->sequence &&
	       cell->digest == small->digests[place];
}

/* The same of some of them. False: there is nothing more to come of this call; it waits until that is known. */
static bool were_pinned(const struct shm_small *small, struct shm_small_call *op, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		if (i != small->rank && !is_pinned(small, i)) {
			op->seen = op->waits_for = i;
			return false;
		}
	}
	return true;
}

static enum esp_status compare(struct shm_small *small, uint32_t member, struct call_note *out_mine,
                               struct call_note *out_other)
{
	uint32_t place = small->sequence % 2;
	const struct cell *cell = small->cells[member][place];

	if (cell->digest == small->digests[place])
		return ESP_OK;
	*out_mine = small->notes[place];
	if (!read_note(cell, small->mark, out_other)) /* of another group */
		return ESP_PENDING;
	return ESP_EMISMATCH;
}

/* Have all members pinned this call, and the same one? op->seen is how far we have looked. */
static enum esp_status look(struct shm_small *small, struct shm_small_call *op, struct call_note *out_mine,
                            struct call_note *out_other)
{
	for (; op->seen < small->size; op->seen++) {
		uint32_t member = op->seen;

		if (member == small->rank)
			continue;
		op->waits_for = member;
		if (!is_raised(small, member, false))
			return ESP_PENDING;
		enum esp_status status = compare(small, member, out_mine, out_other);
		if (status != ESP_OK)
			return status;
	}
	return ESP_OK;
}

/* ---- results ---- */

/* Sums so many bytes of what all have pinned, in rank order. */
static void fold_all(struct shm_small *small, const struct call *call, uint64_t at, uint64_t bytes, void *out)
{
	uint64_t pinned = small_shm_bytes(call, small->size), count = bytes / call->element_bytes;

	if (bytes == 0)
		return;
	for (uint32_t i = 0; i < small->size; i++)
		small->sources[i] = pinned_data(small->cells[i][small->sequence % 2], pinned) + at;
	if (small->size == 1)
		memmove(out, small->sources[0], bytes);
	else
		math_fold_many(call->type, call->op, out, small->sources, small->size, count);
	math_finish(out, count, call->type, call->op, call->factor, small->size);
}

static void copy_from(struct shm_small *small, const struct call *call, uint32_t member, uint64_t from, uint64_t to)
{
	const struct cell *cell = small->cells[member][small->sequence % 2];

	if (call->block_bytes > 0)
		memmove((uint8_t *)call->out + to, pinned_data(cell, small_shm_bytes(call, small->size)) + from,
		        call->block_bytes);
}

/* False: the data that was read was replaced meanwhile. */
static bool work_out(struct shm_small *small, struct shm_small_call *op)
{
	const struct call *call = op->call;
	uint64_t block = call->block_bytes;
	uint32_t first = 0, end = small->size; /* members that are read from */

	switch (call->collective) {
	case PLAN_ALLREDUCE:
		fold_all(small, call, 0, block, call->out);
		break;
	case PLAN_REDUCE:
		if (small->rank == call->root)
			fold_all(small, call, 0, block, call->out);
		else
			end = 0;
		break;
	case PLAN_REDUCE_SCATTER:
		fold_all(small, call, small->rank * block, block, call->out);
		break;
	case PLAN_BROADCAST:
	case PLAN_SCATTER:
		copy_from(small, call, call->root, call->collective == PLAN_SCATTER ? small->rank * block : 0, 0);
		first = call->root;
		end = first + 1;
		break;
	case PLAN_GATHER:
		for (uint32_t i = 0; small->rank == call->root && i < small->size; i++)
			copy_from(small, call, i, 0, i * block);
		end = small->rank == call->root ? small->size : 0;
		break;
	case PLAN_ALLGATHER:
		for (uint32_t i = 0; i < small->size; i++)
			copy_from(small, call, i, 0, i * block);
		break;
	case PLAN_ALLTOALL:
		for (uint32_t i = 0; i < small->size; i++)
			copy_from(small, call, i, small->rank * block, i * block);
		break;
	case PLAN_BARRIER:
		end = 0;
		break;
	}
	return were_pinned(small, op, first, end);
}

/* ---- two rounds ---- */

/* A member's slice of a vector: whole cache lines, but for the last ones. */
struct slice {
	uint64_t at, bytes;
};

static struct slice slice_of(const struct call *call, uint32_t size, uint32_t member)
{
	uint64_t each = (call->block_bytes / size + LINE) / LINE * LINE, at = each * member;

	if (at >= call->block_bytes)
		return (struct slice){0, 0};
	return (struct slice){at, call->block_bytes - at < each ? call->block_bytes - at : each};
}

/*
 * Sums our slice, piece by piece, and publishes it in the place of our pinned input. False: the data that was read was
 * replaced meanwhile.
 */
static bool sum_slice(struct shm_small *small, struct shm_small_call *op)
{
	const struct call *call = op->call;
	struct slice slice = slice_of(call, small->size, small->rank);
	struct cell *own = small->own[small->sequence % 2];
	uint8_t *place = (uint8_t *)(uintptr_t)pinned_data(own, small_shm_bytes(call, small->size));
	uint8_t sum[PIECE_BYTES]; /* our own input is one of the terms, and in its place until the sum is known */

	for (uint64_t done = 0; done < slice.bytes; done += PIECE_BYTES) {
		uint64_t at = slice.at + done, bytes = slice.bytes - done < PIECE_BYTES ? slice.bytes - done : PIECE_BYTES;

		fold_all(small, call, at, bytes, sum);
		memcpy(place + at, sum, bytes);
	}
	if (!were_pinned(small, op, 0, small->size))
		return false;
	publish(small, (_Atomic uint64_t *)(void *)((uint8_t *)own + SUMMED_AT));
	return true;
}

/* Copies the slices that are ready, ours first; op->seen is how far we are. */
static enum esp_status collect_slices(struct shm_small *small, struct shm_small_call *op)
{
	const struct call *call = op->call;
	uint64_t pinned = small_shm_bytes(call, small->size);

	if (call->collective == PLAN_REDUCE && small->rank != call->root)
		return ESP_OK;
	for (; op->seen < small->size; op->seen++) {
		uint32_t member = (small->rank + op->seen) % small->size;
		struct slice slice = slice_of(call, small->size, member);

		op->waits_for = member;
		if (!is_raised(small, member, true))
			return ESP_PENDING;
		if (slice.bytes > 0)
			memcpy((uint8_t *)call->out + slice.at,
			       pinned_data(small->cells[member][small->sequence % 2], pinned) + slice.at, slice.bytes);
		if (member != small->rank && !is_pinned(small, member))
			return ESP_PENDING;
	}
	return ESP_OK;
}

/* ---- a call ---- */

void shm_small_begin(struct shm_small *small, struct shm_small_call *op)
{
	uint64_t sequence = ++small->sequence;

	small->digests[sequence % 2] = op->digest;
	small->notes[sequence % 2] = op->note;
	op->has_summed = false;
	op->seen = 0;
	/* All have pinned the call before, or it would not have ended: they are done with the one that is in our cell. */
	pin(small, op);
}

enum esp_status shm_small_go_on(struct shm_small *small, struct shm_small_call *op, struct call_note *out_mine,
                            struct call_note *out_other)
{
	enum esp_status status = op->has_summed ? ESP_OK : look(small, op, out_mine, out_other);

	if (status != ESP_OK)
		return status;
	if (op->rounds < 2)
		return work_out(small, op) ? ESP_OK : ESP_PENDING;
	if (!op->has_summed) {
		if (!sum_slice(small, op))
			return ESP_PENDING;
		op->has_summed = true;
		op->seen = 0;
	}
	return collect_slices(small, op);
}

void shm_small_sleep(struct shm_small *small, const struct shm_small_call *op, uint64_t timeout_ns)
{
	uint64_t sequence = small->sequence;
	const _Atomic uint64_t *number = number_of(small, op->waits_for, op->has_summed);
	struct timespec timeout = {(time_t)(timeout_ns / NS_PER_S), (long)(timeout_ns % NS_PER_S)};

	atomic_store(small->sleeping, 1);
	uint64_t before = atomic_load(number); /* after sleeping is raised: see publish() */
	/* The kernel looks at the lower half of the number again, and sleeps only if it has not changed. */
	if (before < sequence)
		syscall(SYS_futex, number, FUTEX_WAIT, (uint32_t)before, &timeout, NULL, 0);
	atomic_store(small->sleeping, 0);
}

void shm_small_step_aside(struct shm_small *small, const struct shm_small_call *op)
{
	const struct cell *theirs = small->cells[op->waits_for][(small->sequence - 1) % 2];
	cpu_set_t allowed, others;
	int core = sched_getcpu();

	/* One of the two is enough. The value may be of any moment: it is a hint. */
	if (small->rank < op->waits_for || core < 0 || small->sequence < 2 || theirs->core != (uint32_t)core)
		return;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2)
		return;
	others = allowed;
	CPU_CLR((size_t)core, &others);
	if (sched_setaffinity(0, sizeof(others), &others) == 0)
		(void)sched_setaffinity(0, sizeof(allowed), &allowed);
}

bool shm_small_other(const struct shm_small *small, const struct call_note *note, uint32_t *out_member,
                     struct call_note *out_other)
{
	uint32_t digest = call_note_digest(note);

	for (uint32_t i = 0; i < 2 * small->size; i++) {
		struct call_note other;

		if (i / 2 == small->rank || !read_note(small->cells[i / 2][i % 2], small->mark, &other))
			continue;
		if (other.sequence == note->sequence && call_note_digest(&other) != digest) {
			*out_member = i / 2;
			*out_other = other;
			return true;
		}
	}
	return false;
}

void shm_small_notes(const struct shm_small *small, struct call_note out[2])
{
	memcpy(out, small->notes, sizeof(small->notes));
}
