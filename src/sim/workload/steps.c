#include "sim/workload/steps.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload/steps_period.h"

/* One rank's calls by step, each step's in the order of its parameters; NULL where a step has none. */
struct grid {
	const struct steps_call **calls; /* [step * length + parameter] */
	uint32_t steps, length;
	uint32_t usual; /* number of calls of the most frequent key */
};

static int by_number(const void *a, const void *b)
{
	const struct steps_call *x = a, *y = b;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->from_s < y->from_s ? -1 : x->from_s > y->from_s;
}

static int by_key(const void *a, const void *b)
{
	const struct steps_call *x = a, *y = b;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->from_s < y->from_s ? -1 : x->from_s > y->from_s;
}

/* ---- calls with keys ---- */

static bool has_keys(const struct steps_rank *rank)
{
	for (uint32_t i = 0; i < rank->count; i++)
		if (rank->calls[i].has_key)
			return true;
	return false;
}

/* Moves the calls of one kind to the front and drops the others; returns their number. */
static uint32_t keep_calls(struct steps_rank *rank, bool keyed)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < rank->count; i++)
		if (rank->calls[i].has_key == keyed)
			rank->calls[kept++] = rank->calls[i];
	return rank->count = kept;
}

/*
 * Sorted by key: there are as many steps as the rarest of the usual keys has calls. A key with less than half
 * of the most frequent one's calls is not of the steps.
 */
static void count_keys(const struct steps_rank *rank, uint32_t *out_keys, uint32_t *out_steps, uint32_t *out_usual)
{
	uint32_t most = 0, least = UINT32_MAX, keys = 0;
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0, run = 0; i < rank->count; i++) {
			run = i > 0 && rank->calls[i - 1].key == rank->calls[i].key ? run + 1 : 1;
			bool is_last = i + 1 == rank->count || rank->calls[i + 1].key != rank->calls[i].key;
			if (pass == 0)
				most = run > most ? run : most;
			else if (is_last && 2 * run >= most) {
				keys++;
				least = run < least ? run : least;
			}
		}
	*out_keys = keys;
	*out_steps = keys ? least : 0;
	*out_usual = most;
}

static enum esp_status grid_by_key(const struct steps_rank *rank, struct grid *grid, struct error *err)
{
	uint32_t parameter = 0;
	for (uint32_t i = 0; i < rank->count;) {
		uint32_t run = 1;
		while (i + run < rank->count && rank->calls[i + run].key == rank->calls[i].key)
			run++;
		if (2 * run >= grid->usual) {
			if (parameter == grid->length || run < grid->steps)
				return error_set(err, ESP_EINVAL, "rank %" PRIu32
				                 " used other keys than rank 0, or used them less often", rank->rank);
			for (uint32_t step = 0; step < grid->steps; step++)
				grid->calls[(size_t)step * grid->length + parameter] = &rank->calls[i + step];
			parameter++;
		}
		i += run;
	}
	if (parameter != grid->length)
		return error_set(err, ESP_EINVAL, "rank %" PRIu32 " used other keys than rank 0", rank->rank);
	return ESP_OK;
}

/* ---- calls in order ---- */

static enum esp_status grid_by_number(const struct steps_rank *rank, const struct steps_rank *first,
                                      const uint32_t *starts, struct grid *grid, struct error *err)
{
	for (uint32_t step = 0; step < grid->steps; step++)
		for (uint32_t i = 0; i < grid->length; i++) {
			const struct steps_call *wanted = &first->calls[starts[step] + i];
			const struct steps_call *call = bsearch(&(struct steps_call){.number = wanted->number, .from_s = NAN},
			                                        rank->calls, rank->count, sizeof(*rank->calls), by_number);
			if (!call || call->bytes != wanted->bytes)
				return error_set(err, ESP_EINVAL, "rank %" PRIu32 " has no call %" PRIu64 " of %" PRIu64
				                 " bytes, as rank 0 has; are these traces of one run?", rank->rank, wanted->number,
				                 wanted->bytes);
			grid->calls[(size_t)step * grid->length + i] = call;
		}
	return ESP_OK;
}

/* ---- traces ---- */

/* The calls of a step by the time at which they were started. */
static int by_time(const void *a, const void *b)
{
	const struct steps_call *const *x = a, *const *y = b;
	if ((*x)->from_s != (*y)->from_s)
		return (*x)->from_s < (*y)->from_s ? -1 : 1;
	return *x < *y ? -1 : *x > *y;
}

struct writing {
	const struct steps_options *options;
	struct traces *traces;
	double *pauses; /* before each step of each rank, if there is one */
	uint32_t pause_count;
	uint32_t overlapping, calls;
};

static void parameter_name(const struct steps_call *call, uint32_t parameter, char text[48])
{
	if (call->has_key)
		snprintf(text, 48, "key-%" PRIu64, call->key);
	else
		snprintf(text, 48, "tensor-%" PRIu32, parameter);
}

static enum esp_status write_step(struct writing *writing, const struct grid *grid, uint32_t rank, uint32_t step,
                                  uint32_t iteration, const struct steps_call **order, struct error *err)
{
	const struct steps_call **row = &grid->calls[(size_t)step * grid->length];
	struct traces_worker *worker = workload_traces_add_worker(writing->traces, rank, iteration);
	char source[24], server[] = "server0", name[48];
	double inside = 0, busy_until = -INFINITY;
	enum esp_status status = worker ? ESP_OK : error_set(err, ESP_ELIMIT,
	                                                     "too many ranks and steps for one folder: write fewer steps");
	snprintf(source, sizeof source, "worker%" PRIu32, rank);
	memcpy(order, row, grid->length * sizeof(const struct steps_call *));
	qsort(order, grid->length, sizeof(const struct steps_call *), by_time);
	for (uint32_t i = 0; i < grid->length && status == ESP_OK; i++) {
		uint32_t parameter = 0;
		while (row[parameter] != order[i])
			parameter++;
		parameter_name(order[i], parameter, name);
		double at = order[i]->from_s - order[0]->from_s - (writing->options->blocking ? inside : 0);
		at = round(fmax(at, 0) * 1e9) / 1e9; /* the resolution of clocks */
		status = workload_trace_add(&worker->trace, &(struct trace_event){at, name, order[i]->bytes, source, server, 0},
		                            err);
		writing->overlapping += order[i]->from_s < busy_until;
		writing->calls++;
		inside += order[i]->to_s - order[i]->from_s;
		busy_until = fmax(busy_until, order[i]->to_s);
	}
	return status;
}

/* From the end of the previous step to the first call of this one. */
static void note_pause(struct writing *writing, const struct grid *grid, uint32_t step)
{
	double ended = -INFINITY, begun = INFINITY;
	for (uint32_t i = 0; i < grid->length; i++) {
		ended = fmax(ended, grid->calls[(size_t)(step - 1) * grid->length + i]->to_s);
		begun = fmin(begun, grid->calls[(size_t)step * grid->length + i]->from_s);
	}
	if (begun > ended)
		writing->pauses[writing->pause_count++] = begun - ended;
}

static enum esp_status write_rank(struct writing *writing, const struct grid *grid, uint32_t rank,
                                  const struct steps_found *found, struct error *err)
{
	const struct steps_call **order = calloc((size_t)grid->length + 1, sizeof(const struct steps_call *));
	enum esp_status status = ESP_OK;
	if (!order)
		return error_set(err, ESP_ENOMEM, "no memory for traces");
	for (uint32_t i = 0; i < found->used && status == ESP_OK; i++) {
		uint32_t step = found->steps - found->used + i;
		status = write_step(writing, grid, rank, step, i, order, err);
		if (step > 0)
			note_pause(writing, grid, step);
	}
	free(order);
	return status;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* The forward pass and its order: the reverse of the first rank's first step. */
static enum esp_status write_model(struct writing *writing, struct error *err)
{
	struct traces *traces = writing->traces;
	const struct trace *first = &traces->workers[0].trace;
	qsort(writing->pauses, writing->pause_count, sizeof(*writing->pauses), by_value);
	traces->forward_s = writing->options->forward_s > 0 ? writing->options->forward_s
	                    : writing->pause_count > 0      ? round(writing->pauses[writing->pause_count / 2] * 1e9) / 1e9
	                                                    : 0;
	traces->name = strdup(writing->options->name);
	if (!traces->name)
		return error_set(err, ESP_ENOMEM, "no memory for traces");
	for (uint32_t i = first->count; i-- > 0 && !writing->options->without_order;)
		if (!workload_traces_add_layer(traces, first->events[i].parameter, -1))
			return error_set(err, ESP_ENOMEM, "no memory for traces");
	return ESP_OK;
}

/* ---- the whole ---- */

/* Rank 0's steps: their number, length, and (without keys) their first calls. */
static enum esp_status find_steps(struct steps_rank *first, const struct steps_options *options,
                                  struct steps_found *found, uint32_t **out_starts, uint32_t *out_usual,
                                  struct error *err)
{
	found->by_key = has_keys(first);
	if (keep_calls(first, found->by_key) == 0)
		return error_set(err, ESP_EINVAL, "rank %" PRIu32
		                 " reduced nothing: there is no allreduce, reduce or reduce-scatter of all ranks", first->rank);
	qsort(first->calls, first->count, sizeof(*first->calls), found->by_key ? by_key : by_number);
	if (found->by_key) {
		count_keys(first, &found->length, &found->steps, out_usual);
		return ESP_OK;
	}
	return workload_steps_period(first, options->length, &found->length, out_starts, &found->steps, err);
}

/* starts NULL: by key. */
static enum esp_status make_grid(struct steps_rank *rank, const struct steps_rank *first, const uint32_t *starts,
                                 const struct steps_found *found, struct grid *grid, struct error *err)
{
	if (rank != first) {
		keep_calls(rank, found->by_key);
		qsort(rank->calls, rank->count, sizeof(*rank->calls), found->by_key ? by_key : by_number);
	}
	return !starts ? grid_by_key(rank, grid, err) : grid_by_number(rank, first, starts, grid, err);
}

/* Once rank 0's steps are known. */
static enum esp_status write_ranks(struct steps_rank *ranks, uint32_t rank_count, const uint32_t *starts,
                                   struct grid *grid, struct writing *writing, struct steps_found *found,
                                   struct error *err)
{
	enum esp_status status = ESP_OK;
	for (uint32_t r = 0; r < rank_count && status == ESP_OK; r++) {
		status = make_grid(&ranks[r], &ranks[0], starts, found, grid, err);
		if (status == ESP_OK)
			status = write_rank(writing, grid, ranks[r].rank, found, err);
	}
	if (status == ESP_OK)
		status = write_model(writing, err);
	if (status != ESP_OK)
		return status;
	const struct trace *trace = &writing->traces->workers[0].trace;
	for (uint32_t i = 0; i < trace->count; i++)
		found->bytes += trace->events[i].bytes;
	found->overlap = (double)writing->overlapping / writing->calls;
	return workload_traces_finish(writing->traces, err);
}

enum esp_status workload_steps_find(struct steps_rank *ranks, uint32_t rank_count, const struct steps_options *options,
                                    struct traces *out, struct steps_found *found, struct error *err)
{
	uint32_t *starts = NULL, usual = 0;
	*out = (struct traces){0};
	*found = (struct steps_found){0};
	enum esp_status status = find_steps(&ranks[0], options, found, &starts, &usual, err);
	if (status == ESP_OK && found->steps <= options->skip)
		status = error_set(err, ESP_EINVAL, "there are %" PRIu32 " steps, of which the first %" PRIu32
		                   " are left out: train longer, or leave out fewer", found->steps, options->skip);
	if (status == ESP_OK) {
		found->used = found->steps - options->skip < options->most ? found->steps - options->skip : options->most;
		struct grid grid = {calloc((size_t)found->steps * found->length + 1, sizeof(const struct steps_call *)),
		                    found->steps, found->length, usual};
		struct writing writing = {.options = options, .traces = out,
		                          .pauses = calloc((size_t)rank_count * found->used + 1, sizeof(double))};
		status = grid.calls && writing.pauses ? write_ranks(ranks, rank_count, starts, &grid, &writing, found, err)
		                                      : error_set(err, ESP_ENOMEM, "no memory for traces");
		free(grid.calls);
		free(writing.pauses);
	}
	free(starts);
	return status;
}
