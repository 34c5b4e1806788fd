#include "runtime/board.h"

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
	uint32_t rank, size;
	uint64_t sequence; /* of the latest call */
	uint32_t digests[2];
	struct call_note notes[2];
	struct cell *own[2];
	_Atomic uint32_t *sleeping;        /* in our segment: we sleep          */
	const struct cell *(*cells)[2];    /* by member, ours too               */
	const _Atomic uint32_t **sleepers; /* by member: does it sleep?         */
};

enum esp_status board_open(struct segment *own, uint16_t channel, uint32_t rank, uint32_t size,
                           const struct segment_view *const *views, struct board **out)
{
	struct board *board = calloc(1, sizeof(*board));

	if (!board)
		return ESP_ENOMEM;
	*board = (struct board){.segment = own, .channel = channel, .rank = rank, .size = size};
	board->cells = calloc(size, sizeof(*board->cells));
	board->sleepers = calloc(size, sizeof(*board->sleepers));
	if (!board->cells || !board->sleepers) {
		board_close(board);
		return ESP_ENOMEM;
	}
	for (uint32_t c = 0; c < 2; c++) {
		board->own[c] = segment_board(own, channel, c);
		if (!board->own[c]) {
			board->own[0] = NULL;
			board_close(board);
			return ESP_ENOMEM;
		}
	}
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
	if (board->own[0])
		segment_board_clear(board->segment, board->channel);
	free(board->cells);
	free(board->sleepers);
	free(board);
}

/* ---- what is pinned ---- */

uint64_t board_bytes(const struct call *call, uint32_t size)
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

static const uint8_t *pinned_data(const struct cell *cell, uint64_t bytes)
{
	return bytes <= SHORT_BYTES ? cell->data : (const uint8_t *)cell + BOARD_HEAD_BYTES;
}

/* Raises the call's number over its data, and wakes whoever sleeps until then. */
static void publish(struct board *board, struct cell *cell)
{
	/* Pairs with the acquire in is_pinned(); and, being sequentially consistent, with board_sleep(). */
	atomic_store(&cell->sequence, board->sequence);
	for (uint32_t i = 0; i < board->size; i++) {
		if (i != board->rank && atomic_load(board->sleepers[i]) != 0) {
			syscall(SYS_futex, &cell->sequence, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
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
	publish(board, cell);
}

/* ---- what the others have pinned ---- */

static bool is_pinned(const struct board *board, uint32_t member, uint64_t sequence)
{
	return atomic_load_explicit(&board->cells[member][sequence % 2]->sequence, memory_order_acquire) >= sequence;
}

static enum esp_status compare(struct board *board, uint32_t member, uint64_t sequence, struct call_note *out_mine,
                               struct call_note *out_other)
{
	const struct cell *cell = board->cells[member][sequence % 2];

	if (cell->digest == board->digests[sequence % 2])
		return ESP_OK;
	*out_mine = board->notes[sequence % 2];
	call_note_decode((const uint8_t *)cell + NOTE_AT, out_other);
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
		if (!is_pinned(board, member, board->sequence))
			return ESP_PENDING;
		enum esp_status status = compare(board, member, board->sequence, out_mine, out_other);
		if (status != ESP_OK)
			return status;
	}
	return ESP_OK;
}

/* ---- results ---- */

static void fold_all(struct board *board, const struct call *call, uint64_t at, uint64_t bytes)
{
	math_fold_fn *fold = math_fold(call->type, call->op);
	uint64_t pinned = board_bytes(call, board->size), count = bytes / call->element_bytes;
	uint32_t cell = board->sequence % 2;
	const uint8_t *first = pinned_data(board->cells[0][cell], pinned) + at;

	if (bytes == 0)
		return;
	if (board->size == 1)
		memmove(call->out, first, bytes);
	for (uint32_t i = 1; i < board->size; i++)
		fold(call->out, i == 1 ? first : call->out, pinned_data(board->cells[i][cell], pinned) + at, count);
	math_finish(call->out, count, call->type, call->op, call->factor, board->size);
}

static void copy_from(struct board *board, const struct call *call, uint32_t member, uint64_t from, uint64_t to)
{
	const struct cell *cell = board->cells[member][board->sequence % 2];

	if (call->block_bytes > 0)
		memmove((uint8_t *)call->out + to, pinned_data(cell, board_bytes(call, board->size)) + from, call->block_bytes);
}

static void work_out(struct board *board, const struct call *call)
{
	uint64_t block = call->block_bytes;

	switch (call->collective) {
	case PLAN_ALLREDUCE:
		fold_all(board, call, 0, block);
		break;
	case PLAN_REDUCE:
		if (board->rank == call->root)
			fold_all(board, call, 0, block);
		break;
	case PLAN_REDUCE_SCATTER:
		fold_all(board, call, board->rank * block, block);
		break;
	case PLAN_BROADCAST:
		copy_from(board, call, call->root, 0, 0);
		break;
	case PLAN_SCATTER:
		copy_from(board, call, call->root, board->rank * block, 0);
		break;
	case PLAN_GATHER:
		for (uint32_t i = 0; board->rank == call->root && i < board->size; i++)
			copy_from(board, call, i, 0, i * block);
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
		break;
	}
}

/* ---- a call ---- */

void board_begin(struct board *board, struct board_call *op)
{
	uint64_t sequence = ++board->sequence;

	board->digests[sequence % 2] = op->digest;
	board->notes[sequence % 2] = op->note;
	op->seen = 0;
	/* All have pinned the call before, or it would not have ended: they are done with the one that is in our cell. */
	pin(board, op);
}

enum esp_status board_go_on(struct board *board, struct board_call *op, struct call_note *out_mine,
                            struct call_note *out_other)
{
	enum esp_status status = look(board, op, out_mine, out_other);

	if (status == ESP_OK)
		work_out(board, op->call);
	return status;
}

void board_sleep(struct board *board, const struct board_call *op, uint64_t timeout_ns)
{
	uint64_t sequence = board->sequence;
	const _Atomic uint64_t *number = &board->cells[op->waits_for][sequence % 2]->sequence;
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

/* What stands in a cell that may be written at the same time: nothing, unless it is whole. */
static bool read_note(const struct cell *cell, struct call_note *out)
{
	uint8_t bytes[CALL_NOTE_BYTES];

	if (atomic_load_explicit(&cell->sequence, memory_order_acquire) == 0)
		return false;
	memcpy(bytes, (const uint8_t *)cell + NOTE_AT, sizeof(bytes));
	uint32_t digest = cell->digest;
	call_note_decode(bytes, out);
	return digest == call_note_digest(out);
}

bool board_other(const struct board *board, const struct call_note *note, uint32_t *out_member, struct call_note *out_other)
{
	uint32_t digest = call_note_digest(note);

	for (uint32_t i = 0; i < 2 * board->size; i++) {
		struct call_note other;

		if (i / 2 == board->rank || !read_note(board->cells[i / 2][i % 2], &other))
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
