/*
 * print.c - a plan as text. docs/plan-text.md has the grammar; parse.c reads it.
 *
 * A plan of a thousand nodes is a text of a hundred megabytes, so numbers and words go
 * into a buffer by hand and to the file in large writes.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/planner.h"
#include "plan/text.h"

#define TOKEN_MAX 32 /* no word or number of the language is longer */

/* Count of sends of a row to a node so far. */
struct sent_to {
	uint64_t row; /* the number of the row; another's counts nothing */
	uint32_t count;
};

struct printer {
	const struct plan *plan;
	FILE *file; /* borrowed */
	struct plan_row row;
	uint64_t row_number; /* from 1, in the order of the text */
	uint64_t chunk;
	uint32_t node;
	struct sent_to *sent_to; /* by node; NULL: no laps, or no plan at hand, so no turns are printed */
	bool failed; /* a write came back short */
	size_t used;
	char buffer[1 << 16];
};

/* ---- words and numbers ---- */

static void flush(struct printer *printer)
{
	if (fwrite(printer->buffer, 1, printer->used, printer->file) != printer->used)
		printer->failed = true;
	printer->used = 0;
}

/* Where the next bytes go; there is room for TOKEN_MAX of them. */
static char *room(struct printer *printer)
{
	if (sizeof(printer->buffer) - printer->used < TOKEN_MAX)
		flush(printer);
	return printer->buffer + printer->used;
}

static void put(struct printer *printer, const char *word)
{
	size_t length = strlen(word);

	assert(length <= TOKEN_MAX);
	memcpy(room(printer), word, length);
	printer->used += length;
}

static void put_number(struct printer *printer, uint64_t value)
{
	char digits[20], *to = room(printer);
	size_t count = 0;

	do
		digits[count++] = (char)('0' + value % 10);
	while (value /= 10);
	printer->used += count;
	while (count)
		*to++ = digits[--count];
}

static void put_place(struct printer *printer, uint32_t place)
{
	if (place >= PLAN_TMP) {
		put(printer, "tmp");
		put_number(printer, place - PLAN_TMP);
	} else {
		put(printer, place == PLAN_IN ? "in" : "out");
	}
}

/* ---- the head ---- */

static void put_run(struct printer *printer, uint64_t value, uint32_t count)
{
	put(printer, " ");
	put_number(printer, value);
	if (count > 1) {
		put(printer, "*");
		put_number(printer, count);
	}
}

static void put_list(struct printer *printer, const char *key, const uint64_t *values, uint32_t count)
{
	put(printer, key);
	for (uint32_t i = 0, end; i < count; i = end) {
		for (end = i + 1; end < count && values[end] == values[i];)
			end++;
		put_run(printer, values[i], end - i);
	}
	put(printer, "\n");
}

static void put_groups(struct printer *printer)
{
	const struct plan *plan = printer->plan;

	put(printer, "groups");
	for (uint32_t i = 0, end; i < plan->nodes; i = end) {
		for (end = i + 1; end < plan->nodes && plan->group_of[end] == plan->group_of[i];)
			end++;
		put_run(printer, plan->group_of[i], end - i);
	}
	put(printer, "\n");
}

static void put_count(struct printer *printer, const char *key, uint32_t count)
{
	put(printer, key);
	put_number(printer, count);
	put(printer, "\n");
}

static void put_head(struct printer *printer)
{
	const struct plan *plan = printer->plan;

	put(printer, "espalier-plan 1\nplanner ");
	put(printer, plan_planner_name(plan->planner));
	put(printer, "\ncollective ");
	put(printer, plan_collective_name(plan->chunks.collective));
	if (plan->chunks.root > 0) {
		put(printer, "\nroot ");
		put_number(printer, plan->chunks.root);
	}
	put(printer, "\nnodes ");
	put_number(printer, plan->workers);
	if (plan->nodes > plan->workers) {
		put(printer, "\nextra ");
		put_number(printer, plan->nodes - plan->workers);
	}
	if (plan->switches > 0) {
		put(printer, "\nswitches ");
		put_number(printer, plan->switches);
	}
	put(printer, plan->in_place ? "\nin-place yes\n" : "\n");
	if (plan->group_of)
		put_groups(printer);
	if (plan_lap(plan) > 1)
		put_count(printer, "lap ", plan->lap);
	if (plan->abreast > 0)
		put_count(printer, "abreast ", plan->abreast);
}

/* ---- sizes ---- */

/* One side of one piece: `worker` uses the bytes up to `end`. *every: the bytes that all workers use. */
static void reach(uint64_t *of_worker, uint64_t *every, uint32_t worker, uint64_t end)
{
	uint64_t *most = worker == PLAN_ALL ? every : &of_worker[worker];

	if (end > *most)
		*most = end;
}

/*
 * As plan_chunks_input_bytes() of each worker, but in one walk over the chunks: that function
 * walks them for every worker.
 */
static void measure(const struct plan *plan, uint64_t *in, uint64_t *out)
{
	uint64_t every_in = 0, every_out = 0;

	if (plan->chunks.declared_in) {
		memcpy(in, plan->chunks.declared_in, plan->workers * sizeof(*in));
		memcpy(out, plan->chunks.declared_out, plan->workers * sizeof(*out));
		return;
	}
	for (uint64_t c = 0; c < plan->chunks.chunk_count; c++) {
		struct plan_piece piece = plan_chunks_piece(&plan->chunks, c);

		reach(in, &every_in, piece.from, piece.in_at + piece.bytes);
		reach(out, &every_out, piece.to, piece.out_at + piece.bytes);
	}
	for (uint32_t i = 0; i < plan->workers; i++) {
		if (in[i] < every_in)
			in[i] = every_in;
		if (out[i] < every_out)
			out[i] = every_out;
	}
}

static enum esp_status put_sizes(struct printer *printer, struct error *err)
{
	const struct plan *plan = printer->plan;
	uint64_t *in = calloc(plan->workers, sizeof(*in));
	uint64_t *out = calloc(plan->workers, sizeof(*out));
	bool enough = in && out;

	if (enough) {
		measure(plan, in, out);
		put_list(printer, "input", in, plan->workers);
		put_list(printer, "output", out, plan->workers);
	}
	free(in);
	free(out);
	return enough ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for the sizes of %u nodes", plan->workers);
}

/* ---- rows ---- */

static void put_terms(struct printer *printer, const struct plan_step *terms, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		put(printer, " ");
		if (terms[i].verb == PLAN_LOCAL)
			put_place(printer, terms[i].place);
		else
			put_number(printer, terms[i].node);
	}
}

static void put_turn(struct printer *printer, uint32_t turn)
{
	put(printer, " @");
	put_number(printer, turn);
}

/* The turn of the next message to this node. */
static uint32_t next_turn(struct printer *printer, uint32_t to)
{
	struct sent_to *sent = &printer->sent_to[to];

	if (sent->row != printer->row_number)
		*sent = (struct sent_to){.row = printer->row_number};
	return plan_turn(printer->plan, printer->chunk, printer->node, to, sent->count++);
}

/*
 * Sends of one place in a row are one word to a reader, however many steps they are. Returns how many. Sends of one
 * turn that follow each other say it once, behind the last.
 */
static uint32_t put_sends(struct printer *printer, const struct plan_step *steps, uint32_t count)
{
	uint32_t used = 0, turn = 0;

	put(printer, "send ");
	put_place(printer, steps->place);
	put(printer, " >");
	while (used < count && steps[used].verb == PLAN_SEND && steps[used].place == steps->place) {
		uint32_t next = printer->sent_to ? next_turn(printer, steps[used].node) : 0;

		if (used > 0 && next != turn)
			put_turn(printer, turn);
		put(printer, " ");
		put_number(printer, steps[used++].node);
		turn = next;
	}
	if (printer->sent_to)
		put_turn(printer, turn);
	return used;
}

/* Prints what begins at steps[0] and returns how many steps that was. */
static uint32_t put_step(struct printer *printer, const struct plan_step *steps, uint32_t count)
{
	switch ((enum plan_verb)steps->verb) {
	case PLAN_FETCH:
		put(printer, "fetch");
		return 1;
	case PLAN_SEND:
		return put_sends(printer, steps, count);
	case PLAN_RECV:
		put(printer, "recv= ");
		put_place(printer, steps->place);
		put(printer, " < ");
		put_number(printer, steps->node);
		return 1;
	case PLAN_FOLD:
		put(printer, "recv+ ");
		put_place(printer, steps->place);
		put(printer, " <");
		put_terms(printer, steps + 1, steps->count);
		return 1 + steps->count;
	case PLAN_COPY:
		put(printer, "copy ");
		put_place(printer, steps->place);
		put(printer, " < ");
		put_place(printer, steps->source);
		return 1;
	case PLAN_UPDATE:
		put(printer, "update ");
		put_place(printer, steps->place);
		return 1;
	case PLAN_DELIVER:
		put(printer, "deliver");
		return 1;
	case PLAN_TERM:
	case PLAN_LOCAL:
		break; /* only after a fold, which prints them */
	}
	assert(false);
	return 1;
}

/* How many steps the statement that begins at steps[0] has: what put_step() would print as one. */
static uint32_t statement_steps(const struct plan_step *steps, uint32_t count)
{
	uint32_t used = 1;

	if (steps->verb == PLAN_FOLD)
		return steps->count < count ? 1 + steps->count : count;
	while (steps->verb == PLAN_SEND && used < count && steps[used].verb == PLAN_SEND &&
	       steps[used].place == steps->place)
		used++;
	return used;
}

/* A row that is not well-formed may hold anything; such a statement is counted but not printed. */
static bool is_printable(const struct plan_step *steps, uint32_t length)
{
	if (steps->verb > PLAN_DELIVER || steps->verb == PLAN_TERM || steps->verb == PLAN_LOCAL || length > 1000)
		return false;
	for (uint32_t i = 1; steps->verb == PLAN_FOLD && i < length; i++) {
		if (steps[i].verb != PLAN_TERM && steps[i].verb != PLAN_LOCAL)
			return false;
	}
	return steps->verb != PLAN_FOLD || length == 1 + steps->count;
}

uint32_t plan_statement(const struct plan_step *steps, uint32_t count, uint32_t step, char *out, size_t bytes)
{
	uint32_t number = 1, first = 0, length = count ? statement_steps(steps, count) : 0;
	struct printer *printer = calloc(1, sizeof(*printer));

	for (; first + length <= step && first + length < count; number++) {
		first += length;
		length = statement_steps(steps + first, count - first);
	}
	if (bytes > 0)
		out[0] = '\0';
	if (printer && bytes > 0 && length > 0 && is_printable(steps + first, length)) {
		put_step(printer, steps + first, length);
		int used = (int)(printer->used < bytes ? printer->used : bytes - 1);
		snprintf(out, bytes, "%.*s", used, printer->buffer);
	}
	free(printer);
	return number;
}

static enum esp_status put_row(struct printer *printer, uint32_t node, uint64_t chunk, struct error *err)
{
	struct plan_row *row = &printer->row;
	enum esp_status status = plan_row(printer->plan, node, chunk, row);

	if (status != ESP_OK)
		return error_set(err, status, "no memory for what node %u does with chunk %llu", node,
		                 (unsigned long long)chunk);
	if (row->count == 0)
		return ESP_OK;
	printer->row_number++;
	printer->chunk = chunk;
	printer->node = node;
	put(printer, "  ");
	put_number(printer, node);
	put(printer, ":");
	for (uint32_t i = 0; i < row->count;) {
		put(printer, i == 0 ? " " : "; ");
		i += put_step(printer, &row->steps[i], row->count - i);
	}
	put(printer, "\n");
	return ESP_OK;
}

/* ---- chunks ---- */

static void put_side(struct printer *printer, const char *words, uint32_t side)
{
	put(printer, words);
	if (side == PLAN_ALL)
		put(printer, "*");
	else
		put_number(printer, side);
}

static void put_piece(struct printer *printer, uint64_t chunk, const struct plan_piece *piece)
{
	put(printer, "chunk ");
	put_number(printer, chunk);
	put(printer, ": ");
	put_number(printer, piece->bytes);
	put(printer, " bytes, in+");
	put_number(printer, piece->in_at);
	put(printer, ", out+");
	put_number(printer, piece->out_at);
	put_side(printer, ", from ", piece->from);
	put_side(printer, ", to ", piece->to);
	put(printer, "\n");
}

static enum esp_status put_chunk(struct printer *printer, uint64_t chunk, struct error *err)
{
	const struct plan *plan = printer->plan;
	struct plan_piece piece = plan_chunks_piece(&plan->chunks, chunk);
	/* An all-to-all need not ask N nodes about N^2 chunks. */
	uint32_t pair[2], ends = plan_pair(plan, &piece, pair), rows = ends ? ends : plan->nodes;
	enum esp_status status = ESP_OK;

	put_piece(printer, chunk, &piece);
	for (uint32_t i = 0; status == ESP_OK && i < rows; i++)
		status = put_row(printer, ends ? pair[i] : i, chunk, err);
	return status;
}

static enum esp_status put_plan(struct printer *printer, struct error *err)
{
	put_head(printer);
	enum esp_status status = put_sizes(printer, err);

	for (uint64_t c = 0; status == ESP_OK && !printer->failed && c < printer->plan->chunks.chunk_count; c++)
		status = put_chunk(printer, c, err);
	if (status == ESP_OK)
		put(printer, "end\n");
	flush(printer);
	return status;
}

enum esp_status plan_print(const struct plan *plan, FILE *file, struct error *err)
{
	struct printer *printer = calloc(1, sizeof(*printer));
	bool has_laps = plan_lap(plan) > 1;

	if (printer && has_laps)
		printer->sent_to = calloc(plan->nodes, sizeof(*printer->sent_to));
	if (!printer || (has_laps && !printer->sent_to)) {
		free(printer);
		return error_set(err, ESP_ENOMEM, "no memory to print a plan");
	}
	printer->plan = plan;
	printer->file = file;
	enum esp_status status = put_plan(printer, err);
	if (status == ESP_OK && (fflush(file) != 0 || printer->failed))
		status = error_set(err, ESP_EIO, "cannot write the plan");
	plan_row_fini(&printer->row);
	free(printer->sent_to);
	free(printer);
	return status;
}
