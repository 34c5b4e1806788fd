#include "plan/check_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "plan/text.h"

/* "chunk 3, node 0, step 4 (update out): the sum is updated twice" */
enum esp_status check_fail(struct check_run *run, uint32_t node, uint32_t step, const char *format, ...)
{
	const struct check_node *state = &run->nodes[node];
	char why[160], statement[64];
	uint32_t number = PLAN_NONE;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, sizeof(why), format, arguments);
	va_end(arguments);
	if (step != PLAN_NONE) {
		/* While its row is loaded it stands in run->row, afterwards among the steps. */
		const struct plan_step *steps = run->loading ? run->row.steps : &run->steps[state->first_step];
		uint32_t count = run->loading ? run->row.count : state->step_count;

		number = plan_statement(steps, count, step, statement, sizeof(statement));
	}
	run->fault = (struct plan_fault){.chunk = run->chunk, .node = node, .step = number};
	if (number == PLAN_NONE)
		return error_set(run->err, ESP_EPLAN, "chunk %llu, node %u: %s", (unsigned long long)run->chunk, node, why);
	return error_set(run->err, ESP_EPLAN, "chunk %llu, node %u, step %u%s%s%s: %s", (unsigned long long)run->chunk,
	                 node, number, statement[0] ? " (" : "", statement, statement[0] ? ")" : "", why);
}

static enum esp_status out_of_memory(struct check_run *run)
{
	return error_set(run->err, ESP_ENOMEM, "no memory to check %u nodes", run->plan->nodes);
}

enum esp_status plan_check_run_init(struct check_run *run, const struct plan *plan,
                                    const struct plan_observer *observer, struct error *err)
{
	size_t n = plan->nodes;

	*run = (struct check_run){.plan = plan, .observer = observer, .err = err};
	plan_sets_init(&run->sets, plan->workers);
	run->nodes = calloc(n, sizeof(*run->nodes));
	run->ready = calloc(n, sizeof(*run->ready));
	run->involved = calloc(n, sizeof(*run->involved));
	run->seen = calloc(n, sizeof(*run->seen));
	run->seen_epoch = calloc(n, sizeof(*run->seen_epoch));
	run->sent_bytes = calloc(n, sizeof(*run->sent_bytes));
	run->received_bytes = calloc(n, sizeof(*run->received_bytes));
	if (!run->nodes || !run->ready || !run->involved || !run->seen || !run->seen_epoch || !run->sent_bytes ||
	    !run->received_bytes)
		return out_of_memory(run);
	return ESP_OK;
}

void plan_check_run_fini(struct check_run *run)
{
	plan_row_fini(&run->row);
	plan_sets_fini(&run->sets);
	free(run->steps);
	free(run->places);
	free(run->messages);
	free(run->pairs);
	free(run->nodes);
	free(run->ready);
	free(run->involved);
	free(run->seen);
	free(run->seen_epoch);
	free(run->search);
	free(run->sent_bytes);
	free(run->received_bytes);
}

/* ---- loading the rows of a chunk ---- */

static bool place_exists(const struct check_run *run, uint32_t place)
{
	return place < PLAN_TMP + run->row.tmp_count && place < PLAN_PLACE_COUNT;
}

static bool peer_exists(const struct check_run *run, uint32_t node, uint32_t peer)
{
	return peer < run->plan->nodes && peer != node;
}

/* Is the row made of whole steps that name nodes and places that exist? */
static enum esp_status check_form(struct check_run *run, uint32_t node)
{
	const struct plan_row *row = &run->row;
	uint32_t terms = 0; /* of the fold we are in that are still to come */

	for (uint32_t i = 0; i < row->count; i++) {
		const struct plan_step *step = &row->steps[i];
		bool is_term = step->verb == PLAN_TERM || step->verb == PLAN_LOCAL;
		bool names_peer = step->verb == PLAN_SEND || step->verb == PLAN_RECV || step->verb == PLAN_TERM;

		if (is_term != (terms > 0))
			return check_fail(run, node, i, is_term ? "a term outside of a sum" : "a sum lacks terms");
		if (step->verb > PLAN_DELIVER || !place_exists(run, step->place) ||
		    (step->verb == PLAN_COPY && !place_exists(run, step->source)))
			return check_fail(run, node, i, "there is no such step or place");
		if (names_peer && !peer_exists(run, node, step->node))
			return check_fail(run, node, i, "node %u is %s", step->node,
			                  step->node == node ? "this node itself" : "not in the plan");
		if (step->verb == PLAN_FOLD && step->count < 2)
			return check_fail(run, node, i, "a sum needs two terms or more");
		terms = is_term ? terms - 1 : step->verb == PLAN_FOLD ? step->count : 0;
	}
	return terms ? check_fail(run, node, row->count - 1, "a sum lacks terms") : ESP_OK;
}

static enum esp_status load_row(struct check_run *run, uint32_t node)
{
	const struct plan *plan = run->plan;
	struct plan_row *row = &run->row;

	if (plan_row(plan, node, run->chunk, row) != ESP_OK)
		return out_of_memory(run);
	run->loading = true;
	enum esp_status status = check_form(run, node);
	run->loading = false;
	if (status != ESP_OK)
		return status;
	uint32_t place_count = row->count ? PLAN_TMP + row->tmp_count : 0;
	if (!vec_reserve(&run->steps, &run->steps_capacity, run->steps_used + row->count, sizeof(*run->steps)) ||
	    !vec_reserve(&run->places, &run->places_capacity, run->places_used + place_count, sizeof(*run->places)))
		return out_of_memory(run);
	run->nodes[node] = (struct check_node){
		.first_step = run->steps_used,
		.step_count = row->count,
		.waits_for = PLAN_NONE,
		.last_taken = PLAN_NONE,
		.first_place = run->places_used,
		.aliased = plan_aliases(plan, &run->piece, node, PLAN_IN, PLAN_OUT),
	};
	if (row->count == 0)
		return ESP_OK;
	memcpy(&run->steps[run->steps_used], row->steps, row->count * sizeof(*row->steps));
	run->steps_used += row->count;
	for (uint32_t i = 0; i < place_count; i++)
		run->places[run->places_used++] = (struct check_place){PLAN_NONE, PLAN_NONE};
	run->report.rows++;
	run->report.steps += row->count;
	if (row->count > run->report.row_steps)
		run->report.row_steps = row->count;
	if (row->tmp_count > run->report.scratch_slots)
		run->report.scratch_slots = row->tmp_count;
	return ESP_OK;
}

/* ---- places ---- */

static struct check_place *place_of(struct check_run *run, uint32_t node, uint32_t place)
{
	const struct check_node *state = &run->nodes[node];

	if (state->aliased && place == PLAN_OUT)
		place = PLAN_IN;
	return &run->places[state->first_place + place];
}

static enum esp_status may_read(struct check_run *run, uint32_t node, uint32_t place)
{
	if (place_of(run, node, place)->set != PLAN_NONE)
		return ESP_OK;
	return check_fail(run, node, run->nodes[node].step, place == PLAN_IN ? "the input is read before it is fetched"
	                                                                     : "a place is read that was never written");
}

/* May the place be overwritten now, `news` having just arrived? */
static enum esp_status may_write(struct check_run *run, uint32_t node, uint32_t place, uint32_t news)
{
	const struct check_node *state = &run->nodes[node];
	struct check_place *target = place_of(run, node, place);

	if (place == PLAN_IN)
		return check_fail(run, node, state->step, "the input is written");
	if (place == PLAN_OUT && !piece_wants(&run->plan->chunks, &run->piece, node))
		return check_fail(run, node, state->step, "the output is written, but this node does not want the chunk");
	if (place == PLAN_OUT && state->delivered)
		return check_fail(run, node, state->step, "the output is written after it was delivered");
	for (; target->sent != PLAN_NONE; target->sent = run->messages[target->sent].same_place) {
		if (!plan_mail_consumed(run, node, target->sent, news))
			return check_fail(run, node, state->step,
			                  "what is overwritten may still be on its way to node %u",
			                  run->messages[target->sent].to);
	}
	return ESP_OK;
}

/* ---- steps: each returns ESP_PENDING while it waits ---- */

static const struct plan_step *step_at(const struct check_run *run, uint32_t node)
{
	return &run->steps[run->nodes[node].first_step + run->nodes[node].step];
}

static enum esp_status do_fetch(struct check_run *run, uint32_t node)
{
	struct check_node *state = &run->nodes[node];
	struct check_place *input = place_of(run, node, PLAN_IN);

	if (!piece_gives(&run->plan->chunks, &run->piece, node))
		return check_fail(run, node, state->step, "this node has nothing to give to the chunk");
	if (state->fetched || input->set != PLAN_NONE)
		return check_fail(run, node, state->step, "the input is fetched twice, or after it was overwritten");
	state->fetched = true;
	input->set = plan_sets_make_lone(&run->sets, node);
	return ESP_OK;
}

static enum esp_status do_send(struct check_run *run, uint32_t node)
{
	const struct plan_step *step = step_at(run, node);
	struct check_place *place = place_of(run, node, step->place);
	enum esp_status status = may_read(run, node, step->place);

	if (status != ESP_OK)
		return status;
	uint32_t to = step->node, set = place->set;
	status = plan_mail_send(run, node, to, place);
	if (status != ESP_OK)
		return status;
	uint64_t bytes = run->piece.bytes;
	uint32_t round = run->nodes[node].round + 1;
	run->sent_bytes[node] += bytes;
	run->received_bytes[to] += bytes;
	run->report.wire_bytes += bytes;
	if (run->plan->group_of && run->plan->group_of[node] != run->plan->group_of[to])
		run->report.cross_bytes += bytes;
	if (run->observer) {
		bool is_final = run->piece.from != PLAN_ALL || sets_count(&run->sets, set) == run->plan->workers;

		run->observer->message(run->observer->context, run->chunk, node, to, round, bytes, is_final);
	}
	struct check_node *peer = &run->nodes[to];
	if (peer->waits_for == node && !peer->woken) {
		peer->woken = true;
		run->ready[run->ready_count++] = to;
	}
	return ESP_OK;
}

static uint32_t take_or_wait(struct check_run *run, uint32_t node, uint32_t from)
{
	uint32_t message = plan_mail_take(run, node, from);

	run->nodes[node].waits_for = message == PLAN_NONE ? from : PLAN_NONE;
	return message;
}

static enum esp_status do_recv(struct check_run *run, uint32_t node)
{
	const struct plan_step *step = step_at(run, node);
	uint32_t message = take_or_wait(run, node, step->node);

	if (message == PLAN_NONE)
		return ESP_PENDING;
	enum esp_status status = may_write(run, node, step->place, message);
	place_of(run, node, step->place)->set = run->messages[message].set;
	return status;
}

static enum esp_status add_term(struct check_run *run, uint32_t node, uint32_t set)
{
	struct check_node *state = &run->nodes[node];

	if (sets_updated(&run->sets, set))
		return check_fail(run, node, state->step, "something is added to a sum that was updated");
	uint32_t twice = plan_sets_add(&run->sets, state->sum, set);
	if (twice != PLAN_NONE)
		return check_fail(run, node, state->step, "the contribution of node %u is counted twice", twice);
	return ESP_OK;
}

/*
 * The first two terms are combined in one pass into the target, so that the target may be
 * one of them; it is first written when the data of that pass is there.
 */
static enum esp_status fold_term(struct check_run *run, uint32_t node, const struct plan_step *fold)
{
	struct check_node *state = &run->nodes[node];
	const struct plan_step *term = fold + 1 + state->term;
	uint32_t message = PLAN_NONE, set;
	enum esp_status status;

	if (term->verb == PLAN_TERM) {
		message = take_or_wait(run, node, term->node);
		if (message == PLAN_NONE)
			return ESP_PENDING;
		set = run->messages[message].set;
	} else {
		status = may_read(run, node, term->place);
		if (status != ESP_OK)
			return status;
		if (state->term >= 2 && place_of(run, node, term->place) == place_of(run, node, fold->place))
			return check_fail(run, node, state->step, "a term is overwritten before it is added");
		set = place_of(run, node, term->place)->set;
	}
	bool first_news = message != PLAN_NONE && (state->term == 0 || (state->term == 1 && term[-1].verb == PLAN_LOCAL));
	bool no_news = state->term == 1 && term->verb == PLAN_LOCAL && term[-1].verb == PLAN_LOCAL;
	if (first_news || no_news) {
		status = may_write(run, node, fold->place, message);
		if (status != ESP_OK)
			return status;
	}
	return add_term(run, node, set);
}

static enum esp_status do_fold(struct check_run *run, uint32_t node)
{
	struct check_node *state = &run->nodes[node];
	/* While a fold runs and waits, step is at its term. */
	bool begins = step_at(run, node)->verb == PLAN_FOLD;
	uint32_t first = begins ? state->step : state->step - 1 - state->term;
	const struct plan_step *fold = &run->steps[state->first_step + first];

	if (begins)
		state->sum = plan_sets_make_empty(&run->sets);
	for (; state->term < fold->count; state->term++) {
		state->step = first + 1 + state->term;
		enum esp_status status = fold_term(run, node, fold);
		if (status != ESP_OK)
			return status;
	}
	struct check_place *place = place_of(run, node, fold->place);
	place->set = state->sum;
	state->step = first + fold->count;
	state->term = 0;
	return ESP_OK;
}

static enum esp_status do_copy(struct check_run *run, uint32_t node)
{
	const struct plan_step *step = step_at(run, node);
	enum esp_status status = may_read(run, node, step->source);

	if (status == ESP_OK)
		status = may_write(run, node, step->place, PLAN_NONE);
	if (status == ESP_OK)
		place_of(run, node, step->place)->set = place_of(run, node, step->source)->set;
	return status;
}

/* Does the set hold all that the chunk is the sum of? */
static enum esp_status check_complete(struct check_run *run, uint32_t node, uint32_t set)
{
	uint32_t step = run->nodes[node].step;

	if (run->piece.from == PLAN_ALL) {
		if (sets_count(&run->sets, set) != run->plan->workers)
			return check_fail(run, node, step, "the contribution of node %u is missing",
			                  plan_sets_lacks(&run->sets, set));
	} else if (sets_count(&run->sets, set) != 1 || !plan_sets_has(&run->sets, set, run->piece.from)) {
		return check_fail(run, node, step, "this is not what node %u contributed", run->piece.from);
	}
	return ESP_OK;
}

static enum esp_status do_update(struct check_run *run, uint32_t node)
{
	const struct plan_step *step = step_at(run, node);
	struct check_place *place = place_of(run, node, step->place);
	enum esp_status status = may_read(run, node, step->place);

	if (status == ESP_OK)
		status = check_complete(run, node, place->set);
	if (status != ESP_OK)
		return status;
	if (!plan_collective_reduces(run->plan->chunks.collective))
		return check_fail(run, node, run->nodes[node].step, "%s takes no sum that could be updated",
		                  plan_collective_name(run->plan->chunks.collective));
	if (sets_updated(&run->sets, place->set))
		return check_fail(run, node, run->nodes[node].step, "the sum is updated twice");
	status = may_write(run, node, step->place, PLAN_NONE);
	if (status == ESP_OK)
		place->set = plan_sets_make_updated(&run->sets, place->set);
	return status;
}

static enum esp_status do_deliver(struct check_run *run, uint32_t node)
{
	struct check_node *state = &run->nodes[node];
	enum esp_status status = may_read(run, node, PLAN_OUT);

	if (!piece_wants(&run->plan->chunks, &run->piece, node))
		return check_fail(run, node, state->step, "this node does not want the chunk");
	if (state->delivered)
		return check_fail(run, node, state->step, "the chunk is delivered twice");
	if (status == ESP_OK)
		status = check_complete(run, node, place_of(run, node, PLAN_OUT)->set);
	if (status != ESP_OK)
		return status;
	if (sets_updated(&run->sets, place_of(run, node, PLAN_OUT)->set) !=
	    plan_collective_reduces(run->plan->chunks.collective))
		return check_fail(run, node, state->step, "the sum is delivered without having been updated");
	uint64_t order = sets_order(&run->sets, place_of(run, node, PLAN_OUT)->set);
	if (run->order != 0 && run->order != order)
		return check_fail(run, node, state->step, "the sum was added in another order than on other nodes");
	run->order = order;
	state->delivered = true;
	return ESP_OK;
}

static enum esp_status do_step(struct check_run *run, uint32_t node)
{
	switch (step_at(run, node)->verb) {
	case PLAN_FETCH:
		return do_fetch(run, node);
	case PLAN_SEND:
		return do_send(run, node);
	case PLAN_RECV:
		return do_recv(run, node);
	case PLAN_COPY:
		return do_copy(run, node);
	case PLAN_UPDATE:
		return do_update(run, node);
	case PLAN_DELIVER:
		return do_deliver(run, node);
	default: /* PLAN_FOLD, or one of its terms where it waited */
		return do_fold(run, node);
	}
}

static enum esp_status run_node(struct check_run *run, uint32_t node)
{
	struct check_node *state = &run->nodes[node];

	state->woken = false;
	while (state->step < state->step_count) {
		enum esp_status status = do_step(run, node);

		if (status == ESP_PENDING)
			return ESP_OK;
		if (run->sets.failed)
			return out_of_memory(run);
		if (status != ESP_OK)
			return status;
		state->step++;
	}
	return ESP_OK;
}

/* ---- the end of a chunk ---- */

/* Nodes wait although none can go on: for a message that never comes, or for each other in a cycle. */
static enum esp_status explain_wait(struct check_run *run, uint32_t node)
{
	for (uint32_t hops = 0; hops <= run->plan->nodes; hops++) {
		const struct check_node *state = &run->nodes[node], *peer = &run->nodes[state->waits_for];

		if (peer->step == peer->step_count)
			return check_fail(run, node, state->step, "waits for a message that node %u never sends",
			                  state->waits_for);
		node = state->waits_for;
	}
	/* After as many hops as there are nodes, the walk is inside the cycle. */
	char circle[112];
	size_t used = (size_t)snprintf(circle, sizeof(circle), "%u", node);
	for (uint32_t at = run->nodes[node].waits_for; used < sizeof(circle) - 24; at = run->nodes[at].waits_for) {
		used += (size_t)snprintf(circle + used, sizeof(circle) - used, " waits for %u", at);
		if (at == node)
			return check_fail(run, node, run->nodes[node].step, "a deadlock: %s", circle);
	}
	return check_fail(run, node, run->nodes[node].step, "a deadlock: %s ...", circle);
}

static enum esp_status check_end(struct check_run *run)
{
	const struct plan *plan = run->plan;

	for (uint32_t i = 0; i < run->involved_count; i++) {
		uint32_t node = run->involved[i];

		if (run->nodes[node].step < run->nodes[node].step_count)
			return explain_wait(run, node);
	}
	uint32_t left = plan_mail_left(run);
	if (left != PLAN_NONE)
		return check_fail(run, run->messages[left].from, run->messages[left].from_step,
		                  "node %u never receives this", run->messages[left].to);
	uint32_t late = plan_mail_out_of_turn(run);
	if (late != PLAN_NONE)
		return check_fail(run, run->messages[late].to, run->messages[late].taken_step,
		                  "takes a message of turn %u after one of a later turn", run->messages[late].turn);
	for (uint32_t i = 0; i < run->involved_count; i++) {
		uint32_t node = run->involved[i];

		if (!run->nodes[node].delivered && piece_wants(&plan->chunks, &run->piece, node))
			return check_fail(run, node, PLAN_NONE, "wants the chunk and never delivers it");
		if (run->nodes[node].round > run->report.rounds)
			run->report.rounds = run->nodes[node].round;
	}
	return ESP_OK;
}

/*
 * Nodes that may have a row of this chunk: all, or the two ends of a chunk that passes no third. The state that others
 * have left from the chunks before is not read.
 */
static void list_involved(struct check_run *run)
{
	uint32_t pair[2], count = plan_pair(run->plan, &run->piece, pair);

	run->involved_count = count ? count : run->plan->nodes;
	for (uint32_t i = 0; i < run->involved_count; i++)
		run->involved[i] = count ? pair[i] : i;
}

enum esp_status plan_check_run_chunk(struct check_run *run, uint64_t chunk)
{
	run->chunk = chunk;
	run->piece = plan_chunks_piece(&run->plan->chunks, chunk);
	list_involved(run);
	run->order = 0;
	run->steps_used = 0;
	run->places_used = 0;
	plan_sets_clear(&run->sets);
	plan_mail_clear(run);
	for (uint32_t i = 0; i < run->involved_count; i++) {
		enum esp_status status = load_row(run, run->involved[i]);

		if (status != ESP_OK)
			return status;
	}
	for (uint32_t i = 0; i < run->involved_count; i++) {
		run->ready_count = 0;
		run->ready[run->ready_count++] = run->involved[i];
		while (run->ready_count > 0) {
			enum esp_status status = run_node(run, run->ready[--run->ready_count]);

			if (status != ESP_OK)
				return status;
		}
	}
	run->report.messages += run->message_count;
	run->report.chunks++;
	run->report.order = run->report.order * UINT64_C(0x9e3779b97f4a7c15) + run->order;
	return check_end(run);
}
