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

struct board {
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

enum esp_status board_open(struct segment *own, uint16_t channel, uint32_t mark, uint32_t bytes, uint32_t rank, uint32_t size,
                           const struct segment_view *const *views, struct board **out)
{
	struct board *board = calloc(1, sizeof(*board));

	if (!board)
		return ESP_ENOMEM;
	*board = (struct board){
		.segment = own, .channel = channel, .cell_bytes = BOARD_HEAD_BYTES + bytes, .rank = rank, .size = size,
		.mark = mark,
	};
	board->cells = calloc(size, sizeof(*board->cells));
	board->sleepers = calloc(size, sizeof(*board->sleepers));
	board->sources = calloc(size, sizeof(*board->sources));
	if (!board->cells || !board->sleepers || !board->sources ||
	    !segment_board_reserve(own, channel, board->cell_bytes)) {
		board_close(board);
		return ESP_ENOMEM;
	}
	for (uint32_t c = 0; c < 2; c++)
		board->own[c] = segment_board(own, channel, c);
	for (uint32_t i = 0; i < size; i++) {
		for (uint32_t c = 0; c < 2; c++)
			board->cells[i][c] = i == rank ? segment_board(own, channel, c) : segment_view_board(views[i], channel, c);
		board->sleepers[i] = (const _Atomic uint32_t *)(const void *)((const uint8_t *)board->cells[i][0] + SLEEPERS_AT);
	}
	board->sleeping = (_Atomic uint32_t *)(void *)((uint8_t *)board->own[0] + SLEEPERS_AT);
	*out = board;
	return ESP_OK;
}

void board_close(struct board *board)
{
	if (!board)
		return;
	/* Whoever has slept over it and still reads notices that it reads what is not there any more: see is_pinned(). */
	for (uint32_t c = 0; c < 2 && board->own[0]; c++)
		atomic_store(&board->own[c]->sequence, 0);
	if (board->own[0])
		segment_board_clear(board->segment, board->channel, board->cell_bytes);
	free(board->cells);
	free(board->sleepers);
	free(board->sources);
	free(board);
}

/* ---- what is pinned ---- */

/* Bytes that this call pins at most, on any rank; UINT64_MAX: not for boards. The same on all ranks. */
static uint64_t board_bytes(const struct call *call, uint32_t size)
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

unsigned board_rounds(const struct call *call, uint32_t size, const struct board_limits *limits)
{
	uint64_t bytes = board_bytes(call, size);
	bool is_redundant = call->collective == PLAN_ALLREDUCE || call->collective == PLAN_REDUCE;

	if (bytes > limits->bytes)
		return 0;
	/* Two halves are not worth the second round. */
	return is_redundant && size > 2 && bytes > limits->redundant_bytes ? 2 : 1;
}

static const uint8_t *pinned_data(const struct cell *cell, uint64_t bytes)
{
	return bytes <= SHORT_BYTES ? cell->data : (const uint8_t *)cell + BOARD_HEAD_BYTES;
}

/* Raises the call's number over its data, and wakes whoever sleeps until then. */
static void publish(struct board *board, _Atomic uint64_t *number)
{
	/* Pairs with the acquire in is_raised(); and, being sequentially consistent, with board_sleep(). */
	atomic_store(number, board->sequence);
	for (uint32_t i = 0; i < board->size; i++) {
		if (i != board->rank && atomic_load(board->sleepers[i]) != 0) {
			syscall(SYS_futex, number, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
			return;
		}
	}
}

static void pin(struct board *board, struct board_call *op)
{
	struct cell *cell = board->own[board->sequence % 2];
	const struct call *call = op->call;

	if (call->in_bytes > 0)
		memcpy((uint8_t *)(uintptr_t)pinned_data(cell, board_bytes(call, board->size)), call->in, call->in_bytes);
	cell->digest = op->digest;
	cell->core = (uint32_t)sched_getcpu();
	call_note_encode(&op->note, (uint8_t *)cell + NOTE_AT);
	publish(board, &cell->sequence);
}

/* ---- what the others have pinned ---- */

/* The number that tells that a member has done its part of this round. */
static const _Atomic uint64_t *number_of(const struct board *board, uint32_t member, bool has_summed)
{
	const struct cell *cell = board->cells[member][board->sequence % 2];

	return has_summed ? (const _Atomic uint64_t *)(const void *)((const uint8_t *)cell + SUMMED_AT) : &cell->sequence;
}

static bool is_raised(const struct board *board, uint32_t member, bool has_summed)
{
	return atomic_load_explicit(number_of(board, member, has_summed), memory_order_acquire) >= board->sequence;
}

/* What stands in a cell that may be written at the same time: nothing, unless it is whole. */
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
 * Is what a member had pinned still there? To be asked after it was read. A member that waits for us for too long gives us up, and its
 * board is cleared and becomes that of another group: if we were stopped just then, we have read that.
 */
static bool is_pinned(const struct board *board, uint32_t member)
{
	uint32_t place = board->sequence % 2;
	const struct cell *cell = board->cells[member][place];

#ifndef __SANITIZE_THREAD__ /* gcc refuses fences then; on x86 loads stay in order all the same */
	atomic_thread_fence(memory_order_acquire); /* what was read was read before */
#endif
	return atomic_load_explicit(&cell->sequence, memory_order_relaxed) == board->sequence && cell->digest == board->digests[place];
}

/* The same of some of them. False: there is nothing more to come of this call; it waits until that is known. */
static bool were_pinned(const struct board *board, struct board_call *op, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++) {
		if (i != board->rank && !is_pinned(board, i)) {
			op->seen = op->waits_for = i;
			return false;
		}
	}
	return true;
}

static enum esp_status compare(struct board *board, uint32_t member, struct call_note *out_mine, struct call_note *out_other)
{
	uint32_t place = board->sequence % 2;
	const struct cell *cell = board->cells[member][place];

	if (cell->digest == board->digests[place])
		return ESP_OK;
	*out_mine = board->notes[place];
	if (!read_note(cell, board->mark, out_other)) /* of another group */
		return ESP_PENDING;
	return ESP_EMISMATCH;
}

/* Have all members pinned this call, and the same one? op->seen is how far we have looked. */
static enum esp_status look(struct board *board, struct board_call *op, struct call_note *out_mine,
                            struct call_note *out_other)
{
	for (; op->seen < board->size; op->seen++) {
		uint32_t member = op->seen;

		if (member == board->rank)
			continue;
		op->waits_for = member;
		if (!is_raised(board, member, false))
			return ESP_PENDING;
		enum esp_status status = compare(board, member, out_mine, out_other);
		if (status != ESP_OK)
			return status;
	}
	return ESP_OK;
}

/* ---- results ---- */

/* Sums so many bytes of what all have pinned, in rank order. */
static void fold_all(struct board *board, const struct call *call, uint64_t at, uint64_t bytes, void *out)
{
	uint64_t pinned = board_bytes(call, board->size), count = bytes / call->element_bytes;

	if (bytes == 0)
		return;
	for (uint32_t i = 0; i < board->size; i++)
		board->sources[i] = pinned_data(board->cells[i][board->sequence % 2], pinned) + at;
	if (board->size == 1)
		memmove(out, board->sources[0], bytes);
	else
		math_fold_many(call->type, call->op, out, board->sources, board->size, count);
	math_finish(out, count, call->type, call->op, call->factor, board->size);
}

static void copy_from(struct board *board, const struct call *call, uint32_t member, uint64_t from, uint64_t to)
{
	const struct cell *cell = board->cells[member][board->sequence % 2];

	if (call->block_bytes > 0)
		memmove((uint8_t *)call->out + to, pinned_data(cell, board_bytes(call, board->size)) + from, call->block_bytes);
}

/* False: somebody took away what was read meanwhile. */
static bool work_out(struct board *board, struct board_call *op)
{
	const struct call *call = op->call;
	uint64_t block = call->block_bytes;
	uint32_t first = 0, end = board->size; /* those who are read from */

	switch (call->collective) {
	case PLAN_ALLREDUCE:
		fold_all(board, call, 0, block, call->out);
		break;
	case PLAN_REDUCE:
		if (board->rank == call->root)
			fold_all(board, call, 0, block, call->out);
		else
			end = 0;
		break;
	case PLAN_REDUCE_SCATTER:
		fold_all(board, call, board->rank * block, block, call->out);
		break;
	case PLAN_BROADCAST:
	case PLAN_SCATTER:
		copy_from(board, call, call->root, call->collective == PLAN_SCATTER ? board->rank * block : 0, 0);
		first = call->root;
		end = first + 1;
		break;
	case PLAN_GATHER:
		for (uint32_t i = 0; board->rank == call->root && i < board->size; i++)
			copy_from(board, call, i, 0, i * block);
		end = board->rank == call->root ? board->size : 0;
		break;
	case PLAN_ALLGATHER:
		for (uint32_t i = 0; i < board->size; i++)
			copy_from(board, call, i, 0, i * block);
		break;
	case PLAN_ALLTOALL:
		for (uint32_t i = 0; i < board->size; i++)
			copy_from(board, call, i, board->rank * block, i * block);
		break;
	case PLAN_BARRIER:
		end = 0;
		break;
	}
	return were_pinned(board, op, first, end);
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

/* Sums our slice, piece by piece, and shows it in the place of what we had pinned there. False: somebody took away what was read meanwhile. */
static bool sum_slice(struct board *board, struct board_call *op)
{
	const struct call *call = op->call;
	struct slice slice = slice_of(call, board->size, board->rank);
	struct cell *own = board->own[board->sequence % 2];
	uint8_t *place = (uint8_t *)(uintptr_t)pinned_data(own, board_bytes(call, board->size));
	uint8_t sum[PIECE_BYTES]; /* our own input is one of the terms, and in its place until the sum is known */

	for (uint64_t done = 0; done < slice.bytes; done += PIECE_BYTES) {
		uint64_t at = slice.at + done, bytes = slice.bytes - done < PIECE_BYTES ? slice.bytes - done : PIECE_BYTES;

		fold_all(board, call, at, bytes, sum);
		memcpy(place + at, sum, bytes);
	}
	if (!were_pinned(board, op, 0, board->size))
		return false;
	publish(board, (_Atomic uint64_t *)(void *)((uint8_t *)own + SUMMED_AT));
	return true;
}

/* Copies the slices that are ready, ours first; op->seen is how far we are. */
static enum esp_status collect_slices(struct board *board, struct board_call *op)
{
	const struct call *call = op->call;
	uint64_t pinned = board_bytes(call, board->size);

	if (call->collective == PLAN_REDUCE && board->rank != call->root)
		return ESP_OK;
	for (; op->seen < board->size; op->seen++) {
		uint32_t member = (board->rank + op->seen) % board->size;
		struct slice slice = slice_of(call, board->size, member);

		op->waits_for = member;
		if (!is_raised(board, member, true))
			return ESP_PENDING;
		if (slice.bytes > 0)
			memcpy((uint8_t *)call->out + slice.at,
			       pinned_data(board->cells[member][board->sequence % 2], pinned) + slice.at, slice.bytes);
		if (member != board->rank && !is_pinned(board, member))
			return ESP_PENDING;
	}
	return ESP_OK;
}

/* ---- a call ---- */

void board_begin(struct board *board, struct board_call *op)
{
	uint64_t sequence = ++board->sequence;

	board->digests[sequence % 2] = op->digest;
	board->notes[sequence % 2] = op->note;
	op->has_summed = false;
	op->seen = 0;
	/* All have pinned the call before, or it would not have ended: they are done with the one that is in our cell. */
	pin(board, op);
}

enum esp_status board_go_on(struct board *board, struct board_call *op, struct call_note *out_mine,
                            struct call_note *out_other)
{
	enum esp_status status = op->has_summed ? ESP_OK : look(board, op, out_mine, out_other);

	if (status != ESP_OK)
		return status;
	if (op->rounds < 2)
		return work_out(board, op) ? ESP_OK : ESP_PENDING;
	if (!op->has_summed) {
		if (!sum_slice(board, op))
			return ESP_PENDING;
		op->has_summed = true;
		op->seen = 0;
	}
	return collect_slices(board, op);
}

void board_sleep(struct board *board, const struct board_call *op, uint64_t timeout_ns)
{
	uint64_t sequence = board->sequence;
	const _Atomic uint64_t *number = number_of(board, op->waits_for, op->has_summed);
	struct timespec timeout = {(time_t)(timeout_ns / NS_PER_S), (long)(timeout_ns % NS_PER_S)};

	atomic_store(board->sleeping, 1);
	uint64_t before = atomic_load(number); /* after sleeping is raised: see publish() */
	/* The kernel looks at the lower half of the number again, and sleeps only if it has not changed. */
	if (before < sequence)
		syscall(SYS_futex, number, FUTEX_WAIT, (uint32_t)before, &timeout, NULL, 0);
	atomic_store(board->sleeping, 0);
}

void board_step_aside(struct board *board, const struct board_call *op)
{
	const struct cell *theirs = board->cells[op->waits_for][(board->sequence - 1) % 2];
	cpu_set_t allowed, others;
	int core = sched_getcpu();

	/* One of the two is enough. What is read may be of any moment: it is a hint. */
	if (board->rank < op->waits_for || core < 0 || board->sequence < 2 || theirs->core != (uint32_t)core)
		return;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2)
		return;
	others = allowed;
	CPU_CLR((size_t)core, &others);
	if (sched_setaffinity(0, sizeof(others), &others) == 0)
		(void)sched_setaffinity(0, sizeof(allowed), &allowed);
}

bool board_other(const struct board *board, const struct call_note *note, uint32_t *out_member, struct call_note *out_other)
{
	uint32_t digest = call_note_digest(note);

	for (uint32_t i = 0; i < 2 * board->size; i++) {
		struct call_note other;

		if (i / 2 == board->rank || !read_note(board->cells[i / 2][i % 2], board->mark, &other))
			continue;
		if (other.sequence == note->sequence && call_note_digest(&other) != digest) {
			*out_member = i / 2;
			*out_other = other;
			return true;
		}
	}
	return false;
}

void board_notes(const struct board *board, struct call_note out[2])
{
	memcpy(out, board->notes, sizeof(board->notes));
}
