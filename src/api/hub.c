/*
 * hub.c - the functions of espalier/hub.h.
 */
#include "espalier/hub.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/hub_update.h"
#include "api/hub_work.h"
#include "base/clock.h"
#include "base/conf.h"
#include "base/fnv.h"
#include "hub/worker/hub_link.h"
#include "rank/join/launch.h"
#include "wire/hub_frame.h"

#define GROUPS_MOST 4096u
/* Rank and size are taken from the launcher, the leader is not needed; launch_find() wants one. */
#define NO_LEADER "localhost:1"

struct esp_hub {
	struct hub_link *link;
	struct conf conf;
	uint32_t tensors;
	uint32_t groups;
	struct optimizer *values;        /* by parameter group */
	char (*texts)[OPTIMIZER_TEXT];   /* the same as text */
	struct api_updates *updates;     /* hub_update.c; owned; NULL: the job trains in rounds, or no model is declared */
};

static enum esp_status refuse(const char *who, const struct error *err)
{
	return api_refuse_with(who, err->status, "%s", err->text);
}

static enum esp_status check(const char *who, const struct esp_hub *hub)
{
	if (!hub)
		return api_refuse_with(who, ESP_EINVAL, "the hub is NULL: it comes from esp_hub_connect()");
	if (hub_link_is_forked(hub->link))
		return api_refuse_with(who, ESP_EFORKED, "this process was made by fork(), and the hub is its parent's: call "
		                                         "esp_hub_connect() in the process that uses it");
	return ESP_OK;
}

/* ---- connecting ---- */

static enum esp_status read_settings(const struct esp_hub_options *options, struct conf *out, struct error *err)
{
	enum esp_status status = conf_load(out, NULL, NULL, err);

	for (const char *const *at = options->settings; status == ESP_OK && at && *at; at++) {
		const char *equals = strchr(*at, '=');

		if (!equals)
			return error_set(err, ESP_EINVAL, "settings are NAME=VALUE, not \"%.100s\"", *at);
		status = conf_set(out, *at, (size_t)(equals - *at), equals + 1, strlen(equals + 1), CONF_COMMAND_LINE, err);
	}
	return status;
}

static enum esp_status find_worker(const struct esp_hub_options *options, struct hub_link_config *out,
                                   struct error *err)
{
	const struct launch_surroundings around = {.lookup = conf_environment, .fact = launch_system_fact};
	struct launch_arguments arguments = {-1, -1, NO_LEADER, NULL};
	struct launch launch;

	if (options->workers > 0) {
		out->worker = options->worker;
		out->workers = options->workers;
	} else if (!launch_is_told(conf_environment, NULL)) {
		out->worker = 0;
		out->workers = 1;
	} else {
		enum esp_status status = launch_find(&arguments, &around, &launch, err);

		if (status != ESP_OK)
			return status;
		out->worker = launch.rank;
		out->workers = launch.size;
	}
	if (out->worker >= out->workers)
		return error_set(err, ESP_EINVAL, "there is no worker %u of %u: they are counted from 0", out->worker,
		                 out->workers);
	return ESP_OK;
}

static enum esp_status find_ticket(const struct esp_hub_options *options, struct ticket *out, struct error *err)
{
	const char *path = options->ticket ? options->ticket : conf_environment(NULL, "ESP_HUB_TICKET");

	if (!path || !path[0])
		return error_set(err, ESP_EINVAL,
		                 "no ticket: set ESP_HUB_TICKET to the file that 'espalier hub create' has written");
	return ticket_read(path, out, err);
}

static enum esp_status connect_hub(const struct esp_hub_options *options, struct esp_hub *hub, struct error *err)
{
	struct hub_link_config config = {0};
	struct ticket ticket;
	enum esp_status status = read_settings(options, &hub->conf, err);

	if (status == ESP_OK)
		status = find_ticket(options, &ticket, err);
	if (status != ESP_OK)
		return status;
	config.ticket = &ticket;
	config.join_ns = hub->conf.join_seconds * NS_PER_S;
	config.shares = hub->conf.transport != CONF_TRANSPORT_TCP;
	status = find_worker(options, &config, err);
	if (status == ESP_OK)
		status = hub_link_open(&config, &hub->link, err);
	explicit_bzero(&ticket, sizeof(ticket));
	return status;
}

enum esp_status esp_hub_connect(const struct esp_hub_options *given, struct esp_hub **out)
{
	struct esp_hub_options options = {sizeof(options)};
	struct error err = {0};
	enum esp_status status = api_check_out(__func__, out, "out");

	if (status == ESP_OK && given)
		status = api_read(__func__, given, &options, sizeof(options), "esp_hub_options");
	if (status != ESP_OK)
		return status;
	struct esp_hub *hub = calloc(1, sizeof(*hub));
	if (!hub)
		return api_refuse_with(__func__, ESP_ENOMEM, "no memory");
	status = connect_hub(&options, hub, &err);
	if (status != ESP_OK) {
		free(hub);
		err.status = status;
		return refuse(__func__, &err);
	}
	*out = hub;
	return ESP_OK;
}

enum esp_status esp_hub_close(struct esp_hub *hub)
{
	if (!hub)
		return ESP_OK;
	enum esp_status status = check(__func__, hub);
	if (status != ESP_OK)
		return status;
	api_updates_close(hub->updates);
	hub_link_close(hub->link);
	free(hub->values);
	free(hub->texts);
	free(hub);
	return ESP_OK;
}

/* ---- the model ---- */

static enum esp_status read_tensor(const struct esp_hub_tensor *tensor, uint32_t index, struct layout_tensor *out,
                                   struct error *err)
{
	if (!tensor->name || !tensor->name[0])
		return error_set(err, ESP_EINVAL, "tensor %u has no name", index);
	if ((unsigned)tensor->type >= ESP_TYPE_COUNT)
		return error_set(err, ESP_EINVAL, "tensor %u (%.60s) has no type: %u is none", index, tensor->name,
		                 (unsigned)tensor->type);
	if (tensor->type != ESP_F32 && tensor->type != ESP_F16 && tensor->type != ESP_BF16)
		return error_set(err, ESP_EUNSUPPORTED, "tensor %u (%.60s) is of type %s: the hub trains f32, f16 and bf16",
		                 index, tensor->name, esp_type_name(tensor->type));
	if (tensor->group >= GROUPS_MOST)
		return error_set(err, ESP_EINVAL, "tensor %u (%.60s) is in parameter group %u: there are %u at most", index,
		                 tensor->name, tensor->group, GROUPS_MOST);
	if (tensor->count > LAYOUT_ELEMENTS_MOST)
		return error_set(err, ESP_ELIMIT, "tensor %u (%.60s) has %" PRIu64 " elements: a job has %" PRIu64 " at most",
		                 index, tensor->name, tensor->count, (uint64_t)LAYOUT_ELEMENTS_MOST);
	*out = (struct layout_tensor){
		.name = fnv_add(FNV_START, tensor->name, strlen(tensor->name)),
		.elements = tensor->count,
		.type = (uint8_t)tensor->type,
		.group = (uint16_t)tensor->group,
	};
	return ESP_OK;
}

/* The caller's array, whose elements may be of another version's size; *out is to be freed. */
static enum esp_status read_tensors(const struct esp_hub_tensor *given, uint32_t count, struct esp_hub_tensor **out)
{
	const uint8_t *at = (const uint8_t *)given;
	struct esp_hub_tensor *read = calloc(count + 1u, sizeof(*read));
	enum esp_status status = ESP_OK;

	if (!read)
		return api_refuse_with("esp_hub_init", ESP_ENOMEM, "no memory for %u tensors", count);
	for (uint32_t i = 0; status == ESP_OK && i < count; i++) {
		size_t size;

		memcpy(&size, at, sizeof(size));
		status = api_read("esp_hub_init", at, &read[i], sizeof(read[i]), "esp_hub_tensor");
		at += size;
	}
	if (status != ESP_OK) {
		free(read);
		return status;
	}
	*out = read;
	return ESP_OK;
}

static enum esp_status make_values(struct esp_hub *hub, const struct esp_hub_tensor *tensors, uint32_t count,
                                   struct error *err)
{
	uint32_t groups = 0;

	for (uint32_t i = 0; i < count; i++)
		groups = tensors[i].group + 1 > groups ? tensors[i].group + 1 : groups;
	hub->values = calloc(groups + 1u, sizeof(*hub->values));
	hub->texts = calloc(groups + 1u, sizeof(*hub->texts));
	if (!hub->values || !hub->texts)
		return error_set(err, ESP_ENOMEM, "no memory for %u parameter groups", groups);
	for (uint32_t i = 0; i < groups; i++) {
		hub->values[i] = *hub_link_optimizer(hub->link);
		optimizer_print(&hub->values[i], hub->texts[i]);
	}
	hub->groups = groups;
	return ESP_OK;
}

static uint64_t deadline_of(const struct esp_hub *hub, int64_t deadline_ns)
{
	if (deadline_ns > 0)
		return (uint64_t)deadline_ns;
	return hub->conf.deadline_seconds > 0 ? hub->conf.deadline_seconds * NS_PER_S : UINT64_MAX;
}

/* Worker 0 sets the first weights, or leaves zeros to be set; the others get them. */
static enum esp_status start_weights(struct esp_hub *hub, const struct esp_hub_tensor *tensor, uint32_t index,
                                     const void *zeros, struct hub_op **out, struct error *err)
{
	bool sets = hub_link_worker(hub->link) == 0;
	const struct hub_op_call call = {
		.kind = sets ? HUB_SET : HUB_PULL,
		.tensor = index,
		.gradient = sets ? tensor->weights ? tensor->weights : zeros : NULL,
		.weights = sets            ? NULL
		           : tensor->weights ? tensor->weights
		                             : hub_link_weights(hub->link, index),
		.deadline_ns = hub->conf.join_seconds * NS_PER_S,
	};

	if (!sets && !call.weights)
		return ESP_OK;
	return hub_op_start(hub->link, &call, out, err);
}

static enum esp_status end_weights(struct hub_op **ops, uint32_t count, struct error *err)
{
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; i < count; i++) {
		if (!ops[i])
			continue;
		enum esp_status one = hub_op_wait(ops[i], UINT64_MAX);
		if (one != ESP_OK && status == ESP_OK)
			status = hub_op_failure(ops[i], err);
		hub_op_put(ops[i]);
	}
	return status;
}

static uint64_t most_elements_without_weights(const struct esp_hub_tensor *tensors, uint32_t count)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < count; i++) {
		if (!tensors[i].weights && tensors[i].count > most)
			most = tensors[i].count;
	}
	return most;
}

static enum esp_status spread_weights(struct esp_hub *hub, const struct esp_hub_tensor *tensors, uint32_t count,
                                      struct error *err)
{
	bool sets = hub_link_worker(hub->link) == 0;
	struct hub_op **ops = calloc(count + 1u, sizeof(struct hub_op *));
	void *zeros = sets ? calloc(most_elements_without_weights(tensors, count) + 1u, sizeof(float)) : NULL;
	enum esp_status status = ESP_OK;

	if (!ops || (sets && !zeros))
		status = error_set(err, ESP_ENOMEM, "no memory for the first weights");
	for (uint32_t i = 0; status == ESP_OK && i < count; i++)
		status = start_weights(hub, &tensors[i], i, zeros, &ops[i], err);
	if (ops) {
		struct error ended = {0};
		enum esp_status end = end_weights(ops, count, &ended);

		if (status == ESP_OK && end != ESP_OK) {
			*err = ended;
			status = end;
		}
	}
	free(ops);
	free(zeros);
	return status;
}

static enum esp_status init(struct esp_hub *hub, const struct esp_hub_tensor *tensors, uint32_t count,
                            struct error *err)
{
	struct layout_tensor *rows = calloc(count + 1u, sizeof(*rows));
	enum esp_status status = rows ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for %u tensors", count);

	for (uint32_t i = 0; status == ESP_OK && i < count; i++)
		status = read_tensor(&tensors[i], i, &rows[i], err);
	if (status == ESP_OK)
		status = make_values(hub, tensors, count, err);
	if (status == ESP_OK)
		status = hub_link_declare(hub->link, rows, count, err);
	if (status == ESP_OK)
		status = spread_weights(hub, tensors, count, err);
	if (status == ESP_OK && hub_link_delay_bound(hub->link) > 0)
		status = api_updates_open(hub->link, &hub->updates, err);
	free(rows);
	if (status == ESP_OK)
		hub->tensors = count;
	return status;
}

enum esp_status esp_hub_init(struct esp_hub *hub, const struct esp_hub_tensor *given, uint32_t count)
{
	struct esp_hub_tensor *tensors = NULL;
	struct error err = {0};
	enum esp_status status = check(__func__, hub);

	if (status != ESP_OK)
		return status;
	if (hub_link_layout(hub->link) || hub->values)
		return api_refuse_with(__func__, ESP_ESTATE, "the model is declared already: a job has one");
	if (!given && count > 0)
		return api_refuse_with(__func__, ESP_EINVAL, "tensors is NULL, and count is %u", count);
	if (count > LAYOUT_TENSORS_MOST)
		return api_refuse_with(__func__, ESP_ELIMIT, "%u tensors: a job has %u at most", count, LAYOUT_TENSORS_MOST);
	status = read_tensors(given, count, &tensors);
	if (status != ESP_OK)
		return status;
	status = init(hub, tensors, count, &err);
	free(tensors);
	if (status == ESP_OK)
		return ESP_OK;
	err.status = status;
	return refuse(__func__, &err);
}

/* ---- for hub_update.c ---- */

enum esp_status api_hub_check(const char *who, const struct esp_hub *hub)
{
	return check(who, hub);
}

struct hub_link *api_hub_link(const struct esp_hub *hub)
{
	return hub->link;
}

struct api_updates *api_hub_updates(const struct esp_hub *hub)
{
	return hub->updates;
}

uint64_t api_hub_deadline(const struct esp_hub *hub, int64_t deadline_ns)
{
	return deadline_of(hub, deadline_ns);
}

/* ---- calls ---- */

static enum esp_status check_call(const char *who, const struct esp_hub *hub, const struct hub_op_call *call)
{
	bool pushes = call->kind != HUB_PULL && !hub_kind_is_read(call->kind);
	bool pulls = call->kind != HUB_PUSH && !hub_kind_is_write(call->kind);

	if (!hub_link_layout(hub->link))
		return api_refuse_with(who, ESP_ESTATE, "no model is declared: call esp_hub_init() first");
	if (hub_link_delay_bound(hub->link) > 0 && call->kind != HUB_PULL)
		return api_refuse_with(who, ESP_EUNSUPPORTED,
		                       "job %s is asynchronous: its workers read by esp_hub_model() and push by "
		                       "esp_hub_update(), and its optimizer's state stays in the hub",
		                       hub_link_job(hub->link));
	if (call->tensor >= hub->tensors)
		return api_refuse_with(who, ESP_EINVAL, "there is no tensor %u: %u were declared", call->tensor, hub->tensors);
	if (hub_link_layout(hub->link)->tensor[call->tensor].elements == 0)
		return ESP_OK;
	if (pushes && !call->gradient)
		return api_refuse_with(who, ESP_EINVAL, "gradient is NULL");
	if (pulls && !call->weights)
		return api_refuse_with(who, ESP_EINVAL, "weights is NULL");
	return ESP_OK;
}

static enum esp_status start(const char *who, struct esp_hub *hub, const struct hub_op_call *call, struct hub_op **out)
{
	struct error err = {0};
	enum esp_status status = check(who, hub);

	if (status == ESP_OK)
		status = check_call(who, hub, call);
	if (status != ESP_OK)
		return status;
	status = hub_op_start(hub->link, call, out, &err);
	return status == ESP_OK ? ESP_OK : refuse(who, &err);
}

static enum esp_status run(const char *who, struct esp_hub *hub, struct hub_op_call *call)
{
	struct hub_op *op;
	struct error err = {0};

	if (hub)
		call->deadline_ns = deadline_of(hub, 0);
	enum esp_status status = start(who, hub, call, &op);
	if (status != ESP_OK)
		return status;
	status = hub_op_wait(op, UINT64_MAX);
	if (status != ESP_OK)
		status = hub_op_failure(op, &err);
	hub_op_put(op);
	return status == ESP_OK ? ESP_OK : refuse(who, &err);
}

enum esp_status esp_hub_push(struct esp_hub *hub, uint32_t tensor, const void *gradient)
{
	struct hub_op_call call = {.kind = HUB_PUSH, .tensor = tensor, .gradient = gradient};

	return run(__func__, hub, &call);
}

enum esp_status esp_hub_pull(struct esp_hub *hub, uint32_t tensor, void *weights)
{
	struct hub_op_call call = {.kind = HUB_PULL, .tensor = tensor, .weights = weights};

	return run(__func__, hub, &call);
}

enum esp_status esp_hub_pushpull(struct esp_hub *hub, uint32_t tensor, const void *gradient, void *weights)
{
	struct hub_op_call call = {.kind = HUB_PUSHPULL, .tensor = tensor, .gradient = gradient, .weights = weights};

	return run(__func__, hub, &call);
}

static enum esp_status check_shared(const char *who, const struct esp_hub *hub, uint32_t tensor, void *out)
{
	const struct hub_op_call call = {.kind = HUB_PULL, .tensor = tensor, .weights = out};
	enum esp_status status = check(who, hub);

	if (status == ESP_OK)
		status = api_check_out(who, out, "the place for the address");
	if (status == ESP_OK)
		status = check_call(who, hub, &call);
	if (status != ESP_OK)
		return status;
	if (!hub_link_map(hub->link, tensor))
		return api_refuse_with(who, ESP_EUNSUPPORTED,
		                       "this worker pushes by itself and has no weights in shared memory: it is the only one "
		                       "of its host, the model has tensors of 16 bits, the job is asynchronous, or transport "
		                       "is tcp");
	return ESP_OK;
}

enum esp_status esp_hub_map(struct esp_hub *hub, uint32_t tensor, const void **weights)
{
	enum esp_status status = check_shared(__func__, hub, tensor, (void *)weights);

	if (status == ESP_OK)
		*weights = hub_link_map(hub->link, tensor);
	return status;
}

enum esp_status esp_hub_gradient(struct esp_hub *hub, uint32_t tensor, void **gradient)
{
	enum esp_status status = check_shared(__func__, hub, tensor, (void *)gradient);

	if (status == ESP_OK)
		*gradient = hub_link_gradient(hub->link, tensor);
	return status;
}

/* The kind of a request for the optimizer's state. */
static enum esp_status check_state(const struct esp_hub *hub, const struct esp_hub_call *call, uint8_t *out)
{
	static const char who[] = "esp_hub_start";
	uint32_t states = optimizer_states(hub_link_optimizer(hub->link));

	if (call->state > states)
		return api_refuse_with(who, ESP_EINVAL, "there is no state %u: the job's optimizer keeps %u arrays beside the "
		                       "weights, which are state 0", call->state, states);
	*out = (uint8_t)(HUB_READ + call->state);
	if (call->kind == ESP_HUB_READ_STATE)
		return ESP_OK;
	*out = (uint8_t)(HUB_WRITE + call->state);
	if (hub_link_worker(hub->link) != 0)
		return api_refuse_with(who, ESP_EINVAL, "worker %u writes an optimizer's state: worker 0 does, for all",
		                       hub_link_worker(hub->link));
	if (!hub_link_layout(hub->link) || call->tensor >= hub->tensors)
		return ESP_OK; /* refused later */
	if (call->state == 0 && hub_link_layout(hub->link)->tensor[call->tensor].type == ESP_F32)
		return api_refuse_with(who, ESP_EINVAL, "tensor %u is of type f32: its weights are written by esp_hub_init()",
		                       call->tensor);
	if (hub_link_has_pushed(hub->link, call->tensor))
		return api_refuse_with(who, ESP_ESTATE, "tensor %u was pushed already: an optimizer's state is written before",
		                       call->tensor);
	return ESP_OK;
}

enum esp_status esp_hub_start(struct esp_hub *hub, const struct esp_hub_call *given, struct esp_work **out)
{
	static const uint8_t kinds[] = {
		[ESP_HUB_PUSH] = HUB_PUSH, [ESP_HUB_PULL] = HUB_PULL, [ESP_HUB_PUSHPULL] = HUB_PUSHPULL};
	struct esp_hub_call full;
	struct hub_op *op;
	enum esp_status status = check(__func__, hub);

	if (status == ESP_OK)
		status = api_check_out(__func__, out, "out");
	if (status == ESP_OK && !given)
		status = api_refuse_with(__func__, ESP_EINVAL, "call is NULL");
	if (status == ESP_OK)
		status = api_read(__func__, given, &full, sizeof(full), "esp_hub_call");
	if (status == ESP_OK)
		status = api_check_deadline(__func__, full.deadline_ns, "deadline_seconds");
	if (status != ESP_OK)
		return status;
	uint8_t kind = 0;
	if (full.kind >= ESP_HUB_PUSH && full.kind <= ESP_HUB_PUSHPULL)
		kind = kinds[full.kind];
	else if (full.kind == ESP_HUB_READ_STATE || full.kind == ESP_HUB_WRITE_STATE)
		status = check_state(hub, &full, &kind);
	else
		status = api_refuse_with(__func__, ESP_EINVAL, "kind is %u, and no enum esp_hub_kind", (unsigned)full.kind);
	if (status != ESP_OK)
		return status;
	const struct hub_op_call call = {
		.kind = kind,
		.tensor = full.tensor,
		.before = full.rounds,
		.gradient = full.gradient,
		.weights = full.weights,
		.deadline_ns = deadline_of(hub, full.deadline_ns),
	};
	status = start(__func__, hub, &call, &op);
	if (status == ESP_OK)
		*out = (struct esp_work *)(void *)op;
	return status;
}

/* ---- work, for work.c ---- */

enum esp_status hub_work_wait(const char *who, struct esp_work *work, uint64_t until_ns)
{
	struct hub_op *op = api_hub_op(work);
	enum esp_status status = hub_op_wait(op, until_ns);
	struct error err = {0};

	return status >= 0 ? status : (hub_op_failure(op, &err), refuse(who, &err));
}

enum esp_status hub_work_error(const char *who, struct esp_work *work, struct esp_error *out)
{
	struct failure failure = FAILURE_NONE;
	struct error err;

	failure.status = hub_op_failure(api_hub_op(work), &err);
	snprintf(failure.text, sizeof(failure.text), "%s", err.text);
	return api_error(who, NULL, &failure, out);
}

void hub_work_free(struct esp_work *work)
{
	hub_op_put(api_hub_op(work));
}

/* ---- the optimizer ---- */

enum esp_status esp_hub_set(struct esp_hub *hub, uint32_t group, const char *values, uint64_t *out_version)
{
	struct optimizer changed;
	struct error err = {0};
	uint64_t version;
	enum esp_status status = check(__func__, hub);

	if (status != ESP_OK)
		return status;
	if (!values)
		return api_refuse_with(__func__, ESP_EINVAL, "values is NULL");
	if (hub_link_delay_bound(hub->link) > 0)
		return api_refuse_with(__func__, ESP_EUNSUPPORTED,
		                       "job %s is asynchronous: its optimizer keeps the values that it was created with",
		                       hub_link_job(hub->link));
	if (group >= hub->groups)
		return api_refuse_with(__func__, ESP_EINVAL, "there is no parameter group %u: %u were declared", group,
		                       hub->groups);
	changed = hub->values[group];
	status = optimizer_change(&changed, values, &err);
	if (status == ESP_OK)
		status = hub_link_set_optimizer(hub->link, (uint16_t)group, &changed, &version, &err);
	if (status != ESP_OK)
		return refuse(__func__, &err);
	hub->values[group] = changed;
	optimizer_print(&changed, hub->texts[group]);
	if (out_version)
		*out_version = version;
	return ESP_OK;
}

const char *esp_hub_optimizer(struct esp_hub *hub, uint32_t group)
{
	return hub && group < hub->groups ? hub->texts[group] : NULL;
}

/* ---- what is known ---- */

uint32_t esp_hub_worker(const struct esp_hub *hub)
{
	return hub ? hub_link_worker(hub->link) : 0;
}

uint32_t esp_hub_workers(const struct esp_hub *hub)
{
	return hub ? hub_link_workers(hub->link) : 0;
}

enum esp_status esp_hub_get_stats(struct esp_hub *hub, struct esp_hub_stats *stats)
{
	enum esp_status status = check(__func__, hub);

	if (status == ESP_OK)
		status = api_check_out(__func__, stats, "stats");
	if (status != ESP_OK)
		return status;
	struct hub_link_stats inner = hub_link_stats(hub->link);
	const struct esp_hub_stats full = {
		.struct_size = sizeof(full),
		.calls = inner.calls,
		.pushed_bytes = inner.pushed_bytes,
		.pulled_bytes = inner.pulled_bytes,
		.sent_bytes = inner.sent_bytes,
		.received_bytes = inner.received_bytes,
	};
	return api_write(__func__, stats, &full, sizeof(full));
}
