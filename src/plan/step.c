#include "plan/step.h"

#include <stdlib.h>

#include "base/vec.h"

void plan_row_fini(struct plan_row *row)
{
	free(row->steps);
	*row = (struct plan_row){0};
}

void plan_row_clear(struct plan_row *row)
{
	row->count = 0;
	row->tmp_count = 0;
	row->failed = false;
}

void plan_row_step(struct plan_row *row, struct plan_step step)
{
	if (vec_reserve(&row->steps, &row->capacity, (size_t)row->count + 1, sizeof(*row->steps)))
		row->steps[row->count++] = step;
	else
		row->failed = true;
}

static void row_push(struct plan_row *row, enum plan_verb verb, uint8_t place, uint32_t argument)
{
	plan_row_step(row, (struct plan_step){.verb = (uint8_t)verb, .place = place, .node = argument});
}

void plan_row_fetch(struct plan_row *row)
{
	row_push(row, PLAN_FETCH, PLAN_IN, 0);
}

void plan_row_send(struct plan_row *row, uint8_t place, uint32_t to)
{
	row_push(row, PLAN_SEND, place, to);
}

void plan_row_recv(struct plan_row *row, uint8_t place, uint32_t from)
{
	row_push(row, PLAN_RECV, place, from);
}

void plan_row_copy(struct plan_row *row, uint8_t place, uint8_t source)
{
	row_push(row, PLAN_COPY, place, source);
}

void plan_row_update(struct plan_row *row, uint8_t place)
{
	row_push(row, PLAN_UPDATE, place, 0);
}

void plan_row_deliver(struct plan_row *row)
{
	row_push(row, PLAN_DELIVER, PLAN_OUT, 0);
}

void plan_row_fold(struct plan_row *row, uint8_t place, uint32_t term_count)
{
	row_push(row, PLAN_FOLD, place, term_count);
}

void plan_row_term(struct plan_row *row, uint32_t node)
{
	row_push(row, PLAN_TERM, 0, node);
}

void plan_row_local(struct plan_row *row, uint8_t place)
{
	row_push(row, PLAN_LOCAL, place, 0);
}

uint8_t plan_row_tmp(struct plan_row *row)
{
	if (row->tmp_count == PLAN_TMP_MAX) {
		row->failed = true;
		return PLAN_TMP;
	}
	return (uint8_t)(PLAN_TMP + row->tmp_count++);
}
