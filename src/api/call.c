#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/hub_work.h"
#include "rank/comm/work.h"

_Static_assert((int)ESP_ALLREDUCE == (int)PLAN_ALLREDUCE && (int)ESP_REDUCE_SCATTER == (int)PLAN_REDUCE_SCATTER &&
               (int)ESP_ALLGATHER == (int)PLAN_ALLGATHER && (int)ESP_BROADCAST == (int)PLAN_BROADCAST &&
               (int)ESP_REDUCE == (int)PLAN_REDUCE && (int)ESP_GATHER == (int)PLAN_GATHER &&
               (int)ESP_SCATTER == (int)PLAN_SCATTER && (int)ESP_ALLTOALL == (int)PLAN_ALLTOALL &&
               (int)ESP_BARRIER == (int)PLAN_BARRIER, "public and internal numbers of collectives are the same");

static enum esp_status read_buffer(const char *who, const struct esp_buffer *from, struct memory_part *out)
{
	struct esp_buffer buffer;
	enum esp_status status = api_read(who, from, &buffer, sizeof(buffer), "esp_buffer");

	if (status != ESP_OK)
		return status;
	if (buffer.memory != ESP_HOST || buffer.device != 0)
		return api_refuse_with(who, ESP_EUNSUPPORTED,
		                       "memory of kind %d, device %d: this version moves host memory only", (int)buffer.memory,
		                       buffer.device);
	if (buffer.registration)
		return api_refuse_with(who, ESP_EUNSUPPORTED, "this version knows no registrations: leave it NULL");
	*out = (struct memory_part){buffer.data, buffer.bytes};
	return ESP_OK;
}

/* All elements have the size of the first one. */
static enum esp_status read_buffers(const char *who, const struct esp_buffer *from, uint32_t count,
                                    struct memory_part *out)
{
	size_t stride;

	for (uint32_t i = 0; i < count; i++) {
		const struct esp_buffer *at;

		memcpy(&stride, from, sizeof(stride));
		at = (const struct esp_buffer *)(const void *)((const uint8_t *)from + i * stride);
		if (at->struct_size != stride)
			return api_refuse_with(who, ESP_EINVAL, "buffer %u has another struct_size than the first", i);
		enum esp_status status = read_buffer(who, at, &out[i]);
		if (status != ESP_OK)
			return status;
	}
	return ESP_OK;
}

static enum esp_status read_parts(const char *who, const struct esp_call *from, struct api_call *out)
{
	uint32_t in = from->in_buffers ? from->in_buffer_count : 0, others = from->out_buffers ? from->out_buffer_count : 0;
	enum esp_status status;

	if (!from->in_buffers && !from->out_buffers)
		return ESP_OK;
	out->parts = calloc((size_t)in + others + 1, sizeof(*out->parts));
	if (!out->parts)
		return api_refuse_with(who, ESP_ENOMEM, "no memory for %u buffers", in + others);
	status = read_buffers(who, from->in_buffers, in, out->parts);
	if (status == ESP_OK)
		status = read_buffers(who, from->out_buffers, others, out->parts + in);
	if (from->in_buffers) {
		out->call.in_parts = out->parts;
		out->call.in_part_count = in;
	}
	if (from->out_buffers) {
		out->call.out_parts = out->parts + in;
		out->call.out_part_count = others;
	}
	/* A broadcast's data is where it is to be, on root too. */
	if (from->collective == ESP_BROADCAST && !from->in_buffers) {
		out->call.in_parts = out->call.out_parts;
		out->call.in_part_count = out->call.out_part_count;
	}
	return status;
}

static enum esp_status read_plan(const char *who, const struct esp_call *from, struct call *call)
{
	if (!from->plan)
		return ESP_OK;
	call->planner = plan_planner_find(from->plan);
	if (call->planner && plan_planner_has_extra(call->planner))
		return api_refuse_with(
			who, ESP_EINVAL,
			"the planner \"%s\" needs hubs or switches beside the ranks: it is for espalier plan and "
			"espalier sim",
			plan_planner_name(call->planner));
	if (call->planner)
		return ESP_OK;
	return api_refuse_with(who, ESP_EINVAL, "there is no planner \"%.64s\": espalier plan make --help names them",
	                       from->plan);
}

_Static_assert((int)ESP_NUMERICS_FLOAT == (int)CONF_NUMERICS_FLOAT + 1 &&
               (int)ESP_NUMERICS_FIXED == (int)CONF_NUMERICS_FIXED + 1 &&
               (int)ESP_NUMERICS_FIXED16 == (int)CONF_NUMERICS_FIXED16 + 1, "the setting has the order of the header");

enum esp_numerics api_numerics(const struct comm *group, enum esp_numerics asked, bool is_keyed)
{
	if (asked != ESP_NUMERICS_DEFAULT)
		return asked;
	return is_keyed ? ESP_NUMERICS_FLOAT : (enum esp_numerics)(group->context->conf.numerics + 1);
}

enum esp_status api_call_read(const char *who, const struct comm *group, const struct esp_call *given,
                              struct api_call *out)
{
	struct esp_call from;
	struct failure failure;

	*out = (struct api_call){0};
	if (!given)
		return api_refuse_with(who, ESP_EINVAL, "call is NULL");
	enum esp_status status = api_read(who, given, &from, sizeof(from), "esp_call");
	if (status != ESP_OK)
		return status;
	if (!esp_collective_name(from.collective))
		return api_refuse_with(who, ESP_EINVAL, "collective is %d, which is none of enum esp_collective",
		                       (int)from.collective);
	if (from.flags & ~(uint32_t)ESP_KEYED)
		return api_refuse_with(who, ESP_EUNSUPPORTED, "flags 0x%x: this version knows ESP_KEYED only", from.flags);
	if ((unsigned)from.numerics > ESP_NUMERICS_FIXED16)
		return api_refuse_with(who, ESP_EINVAL, "numerics is %d, which is none of enum esp_numerics",
		                       (int)from.numerics);
	if (from.collective == ESP_BROADCAST && (from.in_buffers || (from.in && from.in != from.out)))
		return api_refuse_with(who, ESP_EINVAL,
		                       "a broadcast has one buffer, out, on root too: leave in and in_buffers NULL");
	status = api_check_deadline(who, from.deadline_ns, "deadline_seconds");
	if (status != ESP_OK)
		return status;
	out->call = (struct call){
		.collective = (enum plan_collective)from.collective,
		.type = from.type,
		.op = from.op,
		.numerics = api_numerics(group, from.numerics, from.flags & ESP_KEYED),
		.keyed = from.flags & ESP_KEYED,
		.factor = from.factor,
		.root = from.root,
		.count = from.count,
		.counts = from.counts,
		.in = from.in,
		.out = from.out,
		.key = from.key,
	};
	if (from.collective == ESP_BROADCAST && !from.in)
		out->call.in = from.out;
	out->options = (struct work_options){
		.deadline_ns = from.deadline_ns,
		.gate = (const _Atomic uint64_t *)(const void *)from.gate,
		.gate_value = from.gate_value,
		.signal = (_Atomic uint64_t *)(void *)from.signal,
		.signal_value = from.signal_value,
		.done = (work_done_fn *)(void (*)(void))from.done,
		.done_context = from.done_context,
	};
	status = read_parts(who, &from, out);
	if (status == ESP_OK)
		status = read_plan(who, &from, &out->call);
	if (status == ESP_OK) {
		status = call_check(&out->call, group->rank, group->size, &failure);
		if (status != ESP_OK)
			api_refuse(who, group->context, &failure);
	}
	if (status != ESP_OK)
		api_call_fini(out);
	return status;
}

void api_call_fini(struct api_call *call)
{
	free(call->parts);
	call->parts = NULL;
}

enum esp_status esp_run(struct esp_group *group, const struct esp_call *given)
{
	struct api_call call;
	struct failure failure;
	enum esp_status status = api_check_group(__func__, group);

	if (status == ESP_OK)
		status = api_call_read(__func__, api_group(group), given, &call);
	if (status != ESP_OK)
		return status;
	status = comm_run(api_group(group), &call.call, &call.options, &failure);
	api_call_fini(&call);
	return status == ESP_OK ? ESP_OK : api_refuse(__func__, api_group(group)->context, &failure);
}

static enum esp_status make(const char *who, struct esp_group *group, const struct esp_call *given,
                            struct esp_work **out, struct work **out_work)
{
	struct api_call call;
	struct failure failure;
	enum esp_status status = api_check_group(who, group);

	if (status == ESP_OK)
		status = api_check_out(who, out, "out");
	if (status == ESP_OK)
		status = api_call_read(who, api_group(group), given, &call);
	if (status != ESP_OK)
		return status;
	status = work_make(api_group(group), &call.call, &call.options, out_work, &failure);
	api_call_fini(&call);
	return status == ESP_OK ? ESP_OK : api_refuse(who, api_group(group)->context, &failure);
}

static enum esp_status start(const char *who, struct work *work)
{
	struct failure failure;
	enum esp_status status = work_start(work, false, &failure);

	return status == ESP_OK ? ESP_OK : api_refuse(who, work->group->context, &failure);
}

enum esp_status esp_start(struct esp_group *group, const struct esp_call *call, struct esp_work **out)
{
	struct work *work;
	enum esp_status status = make(__func__, group, call, out, &work);

	if (status != ESP_OK)
		return status;
	/* Before it starts: a callback may come at once, and may want to know. */
	struct esp_work *before = *out;
	*out = (struct esp_work *)(void *)work;
	status = start(__func__, work);
	if (status != ESP_OK) {
		*out = before;
		work_put(work);
	}
	return status;
}

enum esp_status esp_prepare(struct esp_group *group, const struct esp_call *call, struct esp_work **out)
{
	struct work *work;
	enum esp_status status = make(__func__, group, call, out, &work);

	if (status != ESP_OK)
		return status;
	work->persistent = true;
	*out = (struct esp_work *)(void *)work;
	return ESP_OK;
}

enum esp_status esp_restart(struct esp_work *work)
{
	if (api_is_hub_work(work))
		return api_refuse_with(__func__, ESP_EUNSUPPORTED, "the work is a call on a hub, and runs once only");
	enum esp_status status = api_check_work(__func__, work);

	if (status != ESP_OK)
		return status;
	if (!api_work(work)->persistent)
		return api_refuse_with(__func__, ESP_ESTATE, "the work was not made by esp_prepare(), and runs once only");
	return start(__func__, api_work(work));
}

void esp_poke(struct esp_context *context)
{
	if (context && api_check_context(__func__, context) == ESP_OK)
		rank_poke(api_context(context));
}
