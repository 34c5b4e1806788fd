/*
 * train_calls.c - the collectives of an iteration: their plans, and the streams that run them.
 */
#include <stdlib.h>
#include <string.h>

#include "plan/rows.h"
#include "sim/train_state.h"

/* Bytes; smaller pieces make the paper's rings less than 0.2 % faster, and five times as many messages. */
#define PIECE_LEAST (256u << 10)

/* ---- plans, each made once ---- */

struct train_plan {
	struct plan *plan;
	struct plan_rows *rows; /* of this plan, which others share; NULL: it shares another's */
	const struct planner *planner;
	enum plan_collective collective;
	uint64_t bytes;
	uint32_t pieces;
	uint32_t server_group; /* with a root */
	struct train_plan *next;
};

/* The groups of a plan are numbered without gaps: a server in a rack without workers has the next number. */
static uint32_t group_in_plan(const struct train *train, uint32_t group)
{
	return group < train->worker_groups ? group : train->worker_groups;
}

static enum esp_status plan_make(struct train *train, const struct train_plan *wanted, struct plan **out,
                                 struct error *err)
{
	uint32_t workers = train->load->workers;
	bool has_root = wanted->collective != PLAN_ALLREDUCE;
	bool has_groups =
		plan_planner_needs_groups(wanted->planner) || (train->config.mechanism->uses_switch && train->groups > 1);

	train->plan_group_of[workers] = group_in_plan(train, wanted->server_group);
	const struct plan_spec spec = {
		.chunks = {.collective = wanted->collective,
	                   .workers = has_root ? workers + 1 : workers,
	                   .root = has_root ? workers : 0,
	                   .bytes = wanted->bytes,
	                   .chunk_bytes = (wanted->bytes + wanted->pieces - 1) / wanted->pieces},
		.group_of = has_groups ? train->plan_group_of : NULL,
	};

	return plan_open(wanted->planner, &spec, out, err);
}

/* Layers have plans that differ in their bytes: their rows are worked out once for all of them. */
static enum esp_status rows_get(struct train *train, struct train_plan *wanted, struct error *err)
{
	for (const struct train_plan *kept = train->plans; kept; kept = kept->next) {
		if (kept->rows && plan_rows_share(wanted->plan, kept->rows))
			return ESP_OK;
	}
	enum esp_status status = plan_rows_open(wanted->plan, &wanted->rows, err);
	if (status == ESP_OK)
		(void)plan_rows_share(wanted->plan, wanted->rows);
	return status;
}

static enum esp_status plan_get(struct train *train, struct train_plan wanted, const struct plan **out,
                                struct error *err)
{
	for (const struct train_plan *kept = train->plans; kept; kept = kept->next) {
		if (kept->bytes == wanted.bytes && kept->collective == wanted.collective && kept->pieces == wanted.pieces &&
		    kept->server_group == wanted.server_group) {
			*out = kept->plan;
			return ESP_OK;
		}
	}
	enum esp_status status = plan_make(train, &wanted, &wanted.plan, err);
	if (status == ESP_OK)
		status = rows_get(train, &wanted, err);
	if (status != ESP_OK) {
		plan_close(wanted.plan);
		return status;
	}
	struct train_plan *kept = malloc(sizeof(*kept));
	if (!kept) {
		plan_rows_close(wanted.rows);
		plan_close(wanted.plan);
		return error_set(err, ESP_ENOMEM, "no memory for a plan");
	}
	wanted.next = train->plans;
	*kept = wanted;
	train->plans = kept;
	*out = wanted.plan;
	return ESP_OK;
}

static uint32_t pieces_of(const struct train *train, uint64_t bytes)
{
	enum mechanism_pieces pieces = train->config.mechanism->pieces;
	uint64_t most = (bytes + PIECE_LEAST - 1) / PIECE_LEAST;

	if (train->config.split)
		return train->config.split;
	if (pieces == MECHANISM_WHOLE)
		return 1;
	return pieces == MECHANISM_AROUND && most < train->load->workers ? (uint32_t)most : train->load->workers;
}

/* ---- what each call carries ---- */

/* The part of a parameter that a server holds, or 0. */
static uint64_t part_bytes(const struct train *train, uint64_t bytes, uint32_t variable, uint32_t server)
{
	uint32_t servers = train->servers;

	if (!train->config.even_split)
		return variable % servers == server ? bytes : 0;
	return bytes / servers + (server < bytes % servers);
}

static enum esp_status add_call(struct train *train, struct train_calls *list, struct train_call call, uint64_t bytes,
                                struct error *err)
{
	struct train_plan wanted = {.bytes = bytes, .pieces = pieces_of(train, bytes)};
	const struct mechanism *mechanism = train->config.mechanism;

	wanted.collective = !call.is_sum ? PLAN_BROADCAST : train->servers ? PLAN_REDUCE : PLAN_ALLREDUCE;
	wanted.planner = plan_planner_find(call.is_sum ? mechanism->sum : mechanism->spread);
	if (!wanted.planner)
		return error_set(err, ESP_EUNSUPPORTED, "there is no planner %s",
		                 call.is_sum ? mechanism->sum : mechanism->spread);
	if (train->servers)
		wanted.server_group = train->group_of[train->load->workers + call.server];
	call.waits = train->load->workers;
	enum esp_status status = plan_get(train, wanted, &call.plan, err);
	if (status == ESP_OK)
		list->calls[list->count++] = call;
	return status;
}

static uint64_t sent_bytes(const struct train *train, uint64_t bytes)
{
	double factor = train->servers == 1 ? train->load->distribution_factor : 1;

	return (uint64_t)((double)bytes * factor + 0.5);
}

static enum esp_status make_spreads(struct train *train, struct error *err)
{
	const struct load *load = train->load;
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; i < load->item_count; i++) {
		for (uint32_t server = 0; server < train->servers && status == ESP_OK; server++) {
			const struct load_item *item = &load->items[i];
			uint64_t bytes = part_bytes(train, sent_bytes(train, item->bytes), item->variable, server);
			struct train_call call = {
				.first = i, .count = 1, .owner = load->workers, .server = server, .is_fixed = true};

			if (bytes > 0)
				status = add_call(train, &train->spreads, call, bytes, err);
		}
	}
	return status;
}

/* How many gradients from this one on are ready at the same moment. */
static uint32_t ready_together(const struct load *load, uint32_t first)
{
	uint32_t count = 1;

	while (first + count < load->gradient_count &&
	       load->gradients[first + count].ready_s == load->gradients[first].ready_s)
		count++;
	return count;
}

/*
 * A gradient to each server that has a part of it. Where all servers have a part of everything, the parts of what is
 * ready together are one message, unless each goes its own way afterwards.
 */
static enum esp_status make_reduces(struct train *train, struct error *err)
{
	const struct load *load = train->load;
	bool fuses = train->config.even_split && !train->config.no_barrier && !load->seen_s;
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0, count; i < load->gradient_count && status == ESP_OK; i += count) {
		count = fuses ? ready_together(load, i) : 1;
		for (uint32_t server = 0; server < train->servers && status == ESP_OK; server++) {
			struct train_call call = {
				.first = i, .count = count, .owner = load->workers, .server = server, .is_sum = true};
			uint64_t bytes = 0;

			for (uint32_t k = i; k < i + count; k++)
				bytes += part_bytes(train, load->gradients[k].bytes, load->gradients[k].variable, server);
			if (bytes > 0)
				status = add_call(train, &train->sums, call, bytes, err);
		}
	}
	return status;
}

static enum esp_status make_allreduces(struct train *train, struct error *err)
{
	const struct load *load = train->load;
	const struct mechanism *mechanism = train->config.mechanism;
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0, count; i < load->gradient_count && status == ESP_OK; i += count) {
		uint64_t bytes = 0;

		count = mechanism->fuses ? ready_together(load, i) : 1;
		for (uint32_t k = i; k < i + count; k++)
			bytes += load->gradients[k].bytes;
		struct train_call call = {.first = i, .count = count, .owner = PLAN_NONE, .is_sum = true};
		if (mechanism->rotates)
			call.rotation = train->sums.count % load->workers;
		status = add_call(train, &train->sums, call, bytes, err);
	}
	return status;
}

/* Which spread follows which sum. */
static void pair_calls(struct train *train)
{
	uint32_t servers = train->servers;
	uint32_t *spread_at = calloc((size_t)train->load->item_count * servers + 1, sizeof(*spread_at));

	if (!spread_at) {
		train->status = ESP_ENOMEM;
		return;
	}
	for (uint32_t i = 0; i < train->spreads.count; i++)
		spread_at[train->spreads.calls[i].first * servers + train->spreads.calls[i].server] = i;
	for (uint32_t i = 0; i < train->sums.count; i++) {
		struct train_call *sum = &train->sums.calls[i];
		uint32_t item = train->load->gradients[sum->first].item;

		sum->next = LOAD_NONE;
		if (item == LOAD_NONE)
			continue;
		sum->next = spread_at[item * servers + sum->server];
		train->spreads.calls[sum->next].is_fixed = false;
	}
	free(spread_at);
}

/* ---- streams ---- */

/* The streams of one server or one rotation, as they fill up. */
struct bundle {
	uint32_t stream;
	uint64_t room; /* messages that the stream may have yet */
};

/* The node of a plan's extra node number i. */
static uint32_t extra_node(const struct train *train, const struct train_call *call, uint32_t i)
{
	uint32_t count = call->plan->nodes - call->plan->workers, first = train->load->workers + train->servers;

	if (!train->config.mechanism->uses_switch || i < train->worker_groups)
		return first + i;
	/* A switch of the server's rack, which has no workers; or the one above. */
	return first + (i + 1 < count ? train->group_of[train->load->workers + call->server] : train->extras - 1);
}

/* The members of a call: the workers from its rotation on, its server, its extra nodes. */
static uint32_t call_members(const struct train *train, const struct train_call *call, uint32_t *out)
{
	uint32_t workers = train->load->workers, count = workers;

	for (uint32_t i = 0; i < workers; i++)
		out[i] = (i + call->rotation) % workers;
	if (train->servers)
		out[count++] = workers + call->server;
	for (uint32_t i = 0; i < call->plan->nodes - call->plan->workers; i++)
		out[count++] = extra_node(train, call, i);
	return count;
}

static enum esp_status bundle_take(struct train *train, struct bundle *bundle, struct train_call *call,
                                   uint32_t *members, struct error *err)
{
	uint64_t messages = call->plan->chunks.chunk_count * train_ways(train);

	if (bundle->room < messages) {
		uint32_t count = call_members(train, call, members);

		bundle->stream = sim_cluster_stream(train->cluster, members, count, err);
		if (bundle->stream == UINT32_MAX)
			return ESP_ENOMEM;
		bundle->room = messages < TRAIN_CREDITS ? TRAIN_CREDITS : messages;
		train->streams++;
	}
	bundle->room -= messages;
	call->stream = bundle->stream;
	call->members = call->plan->nodes;
	return ESP_OK;
}

static enum esp_status make_streams(struct train *train, struct train_calls *list, struct error *err)
{
	uint32_t bundles = train->servers ? train->servers : train->load->workers;
	struct bundle *bundle = calloc(bundles, sizeof(*bundle));
	uint32_t *members = calloc((size_t)train->load->workers + train->servers + train->extras, sizeof(*members));
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; bundle && members && i < list->count && status == ESP_OK; i++) {
		struct train_call *call = &list->calls[i];

		status = bundle_take(train, &bundle[train->servers ? call->server : call->rotation], call, members, err);
	}
	if (!bundle || !members)
		status = error_set(err, ESP_ENOMEM, "no memory for streams");
	free(bundle);
	free(members);
	return status;
}

/* ---- all of it ---- */

static bool reserve(struct train_calls *list, uint64_t count)
{
	list->calls = calloc(count + 1, sizeof(*list->calls));
	return list->calls != NULL;
}

enum esp_status sim_train_make_calls(struct train *train, struct error *err)
{
	const struct load *load = train->load;
	uint64_t parts = train->config.even_split && train->servers ? train->servers : 1;

	if (!reserve(&train->spreads, load->item_count * parts) || !reserve(&train->sums, load->gradient_count * parts))
		return error_set(err, ESP_ENOMEM, "no memory for the calls of an iteration");
	if (!train->servers)
		return make_allreduces(train, err);
	enum esp_status status = make_spreads(train, err);
	if (status == ESP_OK)
		status = make_reduces(train, err);
	if (status == ESP_OK)
		pair_calls(train);
	return status != ESP_OK ? status : train->status;
}

/* Counts the calls of each stream, then puts each in its place. */
static enum esp_status list_calls(struct train *train, struct error *err)
{
	const struct train_calls *lists[] = {&train->spreads, &train->sums};
	uint32_t count = train->spreads.count + train->sums.count;

	train->listed = calloc((size_t)count + 1, sizeof(struct train_call *));
	train->listed_first = calloc((size_t)train->streams + 2, sizeof(*train->listed_first));
	if (!train->listed || !train->listed_first)
		return error_set(err, ESP_ENOMEM, "no memory for a list of calls");
	for (uint32_t i = 0; i < count; i++) {
		const struct train_calls *list = lists[i >= train->spreads.count];

		train->listed_first[list->calls[i < train->spreads.count ? i : i - train->spreads.count].stream + 2]++;
	}
	for (uint32_t i = 2; i < train->streams + 2; i++)
		train->listed_first[i] += train->listed_first[i - 1];
	for (uint32_t i = 0; i < count; i++) {
		const struct train_calls *list = lists[i >= train->spreads.count];
		struct train_call *call = &list->calls[i < train->spreads.count ? i : i - train->spreads.count];

		train->listed[train->listed_first[call->stream + 1]++] = call;
	}
	return ESP_OK;
}

struct train_cargo sim_train_cargo(const struct train *train, uint32_t stream, uint64_t call)
{
	uint32_t first = train->listed_first[stream], count = train->listed_first[stream + 1] - first;
	const struct train_call *found = train->listed[first + call % count];
	struct train_cargo cargo = {found->is_sum, LOAD_NONE, found->count};

	if (found->is_sum)
		cargo.parameter = train->load->gradients[found->first].source;
	else if (!train->config.no_barrier || call < count) /* later ones go out as their sums come in */
		cargo.parameter = train->load->items[found->first].source;
	return cargo;
}

enum esp_status sim_train_make_streams(struct train *train, struct error *err)
{
	enum esp_status status = make_streams(train, &train->spreads, err);

	if (status == ESP_OK)
		status = make_streams(train, &train->sums, err);
	return status == ESP_OK && train->config.watch.moved ? list_calls(train, err) : status;
}

void sim_train_drop_calls(struct train *train)
{
	while (train->plans) {
		struct train_plan *kept = train->plans;

		train->plans = kept->next;
		plan_rows_close(kept->rows);
		plan_close(kept->plan);
		free(kept);
	}
	free(train->spreads.calls);
	free(train->sums.calls);
	free(train->listed);
	free(train->listed_first);
}
