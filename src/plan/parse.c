/*
 * parse.c - a plan from text. print.c writes it; docs/plan-text.md has the grammar.
 *
 * One walk over the text: the head (parse_head.c), then chunks, each followed by its rows
 * (parse_row.c, parse_turns.c).
 */
#include "plan/parse.h"

#include <stdlib.h>

#include "base/vec.h"
#include "plan/text.h"

bool plan_parse_grow(struct parser *parser, void *items, size_t needed, size_t *capacity, size_t size)
{
	return vec_reserve(items, capacity, needed, size) ||
	       plan_scan_stop(&parser->scan, ESP_ENOMEM, "no memory for a plan of this size");
}

bool plan_parse_node(struct parser *parser, uint32_t *out)
{
	uint64_t node;

	if (!scan_number(&parser->scan, "the number of a node", &node))
		return false;
	if (node >= parser->plan->nodes)
		return plan_scan_fail(&parser->scan, "node %llu is not among the %u nodes (0 to %u)", (unsigned long long)node,
		                      parser->plan->nodes, parser->plan->nodes - 1);
	*out = (uint32_t)node;
	return true;
}

bool plan_parse_rows_fit(struct parser *parser, uint64_t chunks)
{
	uint64_t nodes = parser->plan->nodes;

	if (chunks <= parser->row_limit / nodes)
		return true;
	return plan_scan_stop(&parser->scan, ESP_ELIMIT,
	                      "%llu nodes times %llu chunks: a text of this length may have %llu rows",
	                      (unsigned long long)nodes, (unsigned long long)chunks, (unsigned long long)parser->row_limit);
}

/* ---- chunks ---- */

/* The run that holds item `index` of the list. */
static const struct parse_run *list_find(const struct parse_list *list, uint64_t index)
{
	uint64_t low = 0, high = list->count - 1;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (list->runs[middle].end <= index)
			low = middle + 1;
		else
			high = middle;
	}
	return &list->runs[low];
}

/* One side of a piece: one worker or all. */
static bool take_side(struct parser *parser, uint32_t *out)
{
	uint64_t worker;

	if (scan_sign(&parser->scan, '*')) {
		*out = PLAN_ALL;
		return true;
	}
	if (!scan_number(&parser->scan, "the number of a node or *", &worker))
		return false;
	if (worker >= parser->plan->workers)
		return plan_scan_fail(&parser->scan, "node %llu is not among the %u nodes that hold data",
		                      (unsigned long long)worker, parser->plan->workers);
	*out = (uint32_t)worker;
	return true;
}

/* ", in+64" */
static bool take_offset(struct scan *scan, const char *word, uint64_t *out)
{
	return plan_scan_need_sign(scan, ',') && plan_scan_need(scan, word) && plan_scan_need_sign(scan, '+') &&
	       scan_number(scan, "an offset in bytes", out);
}

static bool take_piece(struct parser *parser, struct plan_piece *piece)
{
	struct scan *scan = &parser->scan;

	return plan_scan_need_sign(scan, ':') && scan_number(scan, "how many bytes the chunk has", &piece->bytes) &&
	       plan_scan_need(scan, "bytes") && take_offset(scan, "in", &piece->in_at) &&
	       take_offset(scan, "out", &piece->out_at) && plan_scan_need_sign(scan, ',') && plan_scan_need(scan, "from") &&
	       take_side(parser, &piece->from) && plan_scan_need_sign(scan, ',') && plan_scan_need(scan, "to") &&
	       take_side(parser, &piece->to) && plan_scan_end_line(scan);
}

/* Does every worker on this side of a piece have these bytes? */
static bool side_fits(struct parser *parser, const struct parse_list *list, uint32_t who, const char *side,
                      uint64_t at, uint64_t bytes)
{
	const struct parse_run *run = who == PLAN_ALL ? &list->runs[list->least] : list_find(list, who);

	if (at <= run->value && bytes <= run->value - at)
		return true;
	return plan_scan_fail(&parser->scan, "%llu bytes at %s+%llu are beyond the %llu bytes of node %llu",
	                      (unsigned long long)bytes, side, (unsigned long long)at, (unsigned long long)run->value,
	                      (unsigned long long)(who == PLAN_ALL ? run->end - 1 : who));
}

static bool take_chunk(struct parser *parser)
{
	uint64_t number, count = parser->piece_count;
	struct plan_piece piece = {0};

	if (!scan_number(&parser->scan, "the number of a chunk", &number))
		return false;
	if (number != count)
		return plan_scan_fail(&parser->scan, "chunk %llu stands where chunk %llu belongs", (unsigned long long)number,
		                      (unsigned long long)count);
	if (!take_piece(parser, &piece) || !plan_parse_rows_fit(parser, count + 1) ||
	    !side_fits(parser, &parser->input, piece.from, "in", piece.in_at, piece.bytes) ||
	    !side_fits(parser, &parser->output, piece.to, "out", piece.out_at, piece.bytes) ||
	    !plan_parse_skip_rows(parser, count * parser->plan->nodes) ||
	    !plan_parse_grow(parser, &parser->pieces, count + 1, &parser->piece_capacity, sizeof(piece)))
		return false;
	parser->pieces[parser->piece_count++] = piece;
	return true;
}

static bool take_end(struct parser *parser)
{
	struct scan *scan = &parser->scan;

	if (!plan_scan_end_line(scan))
		return false;
	if (plan_scan_line(scan))
		return plan_scan_expected(scan, "nothing after 'end'");
	if (plan_lap(parser->plan) > 1 && parser->plan->lap > parser->piece_count) {
		scan->line = parser->lap_line;
		return plan_scan_fail(scan, "lap %u: the plan has %llu chunks", parser->plan->lap,
		                      (unsigned long long)parser->piece_count);
	}
	/* The tables of nodes count like those of rows. And no list is NULL, not even an empty one. */
	return plan_parse_rows_fit(parser, parser->piece_count ? parser->piece_count : 1) &&
	       plan_parse_skip_rows(parser, parser->piece_count * parser->plan->nodes) &&
	       plan_parse_grow(parser, &parser->plan->row_at, parser->row_count + 1, &parser->row_capacity,
	                       sizeof(*parser->plan->row_at)) &&
	       plan_parse_grow(parser, &parser->pieces, parser->piece_count + 1, &parser->piece_capacity,
	                       sizeof(*parser->pieces));
}

/* The part behind the head; the scan stands at the beginning of a line. */
static bool take_body(struct parser *parser)
{
	struct scan *scan = &parser->scan;

	do {
		if (scan_is_digit(*scan->at)) {
			if (!plan_parse_row(parser))
				return false;
		} else if (scan_is(scan, "chunk")) {
			if (!take_chunk(parser))
				return false;
		} else if (scan_is(scan, "end")) {
			return take_end(parser);
		} else {
			return plan_scan_expected(scan, parser->piece_count ? "chunk, end, or the number of a node"
			                                                    : "a key of the head, chunk, or end");
		}
	} while (plan_scan_line(scan));
	return plan_scan_fail(scan, "the text ends before its 'end'");
}

/* ---- the plan ---- */

/* Gives back what growing took too much; a plan may be kept for long. */
static void *trim(void *items, uint64_t count, size_t size)
{
	void *fitting = realloc(items, (count ? count : 1) * size);

	/* cppcheck-suppress memleak ; it is returned */
	return fitting ? fitting : items;
}

/* The values of a list, run by run, one by one. */
static uint64_t *expand(const struct parse_list *list, uint32_t count)
{
	uint64_t *values = calloc(count, sizeof(*values)), at = 0;

	for (uint64_t run = 0; values && run < list->count; run++) {
		while (at < list->runs[run].end)
			values[at++] = list->runs[run].value;
	}
	return values;
}

static bool finish(struct parser *parser)
{
	struct plan *plan = parser->plan;
	struct chunks_spec spec = {
		.collective = plan->chunks.collective,
		.workers = plan->workers,
		.root = plan->chunks.root,
	};

	parser->pieces = trim(parser->pieces, parser->piece_count, sizeof(*parser->pieces));
	plan->steps = trim(plan->steps, plan->step_count, sizeof(*plan->steps));
	plan->row_at = trim(plan->row_at, parser->row_count, sizeof(*plan->row_at));
	if (plan->turns)
		plan->turns = trim(plan->turns, plan->step_count, sizeof(*plan->turns));
	plan_chunks_init_list(&plan->chunks, &spec, parser->pieces, parser->piece_count);
	parser->pieces = NULL; /* taken */
	plan->chunks.declared_in = expand(&parser->input, plan->workers);
	plan->chunks.declared_out = expand(&parser->output, plan->workers);
	return (plan->chunks.declared_in && plan->chunks.declared_out) ||
	       plan_scan_stop(&parser->scan, ESP_ENOMEM, "no memory for the sizes of %u nodes", plan->workers);
}

enum esp_status plan_parse(const char *text, size_t length, struct plan **out, struct error *err)
{
	struct parser parser = {
		.row_limit = PLAN_TEXT_ROWS + (uint64_t)length * PLAN_TEXT_ROWS_PER_BYTE,
		.plan = calloc(1, sizeof(*parser.plan)),
	};

	if (!parser.plan)
		return error_set(err, ESP_ENOMEM, "no memory for a plan");
	plan_scan_init(&parser.scan, text, length, err);
	if (plan_parse_first_row(&parser) && plan_parse_head(&parser) && take_body(&parser) && finish(&parser))
		*out = parser.plan;
	else
		plan_close(parser.plan);
	free(parser.input.runs);
	free(parser.output.runs);
	free(parser.pieces);
	free(parser.known);
	free(parser.sent);
	free(parser.sent_order);
	return parser.scan.status;
}
