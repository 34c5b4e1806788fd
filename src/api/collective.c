#include "api/api.h"

enum esp_status api_run(const char *who, struct esp_group *group, struct call *call)
{
	struct failure failure;
	enum esp_status status = api_check_group(who, group);

	if (status != ESP_OK)
		return status;
	struct comm *inner = api_group(group);
	call->numerics = api_numerics(inner, call->numerics, false);
	status = call_check(call, inner->rank, inner->size, &failure);
	if (status == ESP_OK)
		status = comm_run(inner, call, &(struct work_options){0}, &failure);
	return status == ESP_OK ? ESP_OK : api_refuse(who, inner->context, &failure);
}

enum esp_status esp_allreduce(struct esp_group *group, const void *in, void *out, uint64_t count, enum esp_type type,
                              enum esp_op op)
{
	return api_run(__func__, group, &(struct call){.collective = PLAN_ALLREDUCE, .in = in, .out = out, .count = count,
	                                               .type = type, .op = op});
}

enum esp_status esp_reduce_scatter(struct esp_group *group, const void *in, void *out, uint64_t count,
                                   enum esp_type type, enum esp_op op)
{
	return api_run(
		__func__, group,
		&(struct call){
			.collective = PLAN_REDUCE_SCATTER, .in = in, .out = out, .count = count, .type = type, .op = op});
}

enum esp_status esp_allgather(struct esp_group *group, const void *in, void *out, uint64_t count, enum esp_type type)
{
	return api_run(__func__, group,
	               &(struct call){.collective = PLAN_ALLGATHER, .in = in, .out = out, .count = count, .type = type});
}

enum esp_status esp_broadcast(struct esp_group *group, void *data, uint64_t count, enum esp_type type, uint32_t root)
{
	return api_run(
		__func__, group,
		&(struct call){
			.collective = PLAN_BROADCAST, .in = data, .out = data, .count = count, .type = type, .root = root});
}

enum esp_status esp_reduce(struct esp_group *group, const void *in, void *out, uint64_t count, enum esp_type type,
                           enum esp_op op, uint32_t root)
{
	return api_run(
		__func__, group,
		&(struct call){
			.collective = PLAN_REDUCE, .in = in, .out = out, .count = count, .type = type, .op = op, .root = root});
}

enum esp_status esp_gather(struct esp_group *group, const void *in, void *out, uint64_t count, enum esp_type type,
                           uint32_t root)
{
	return api_run(
		__func__, group,
		&(struct call){.collective = PLAN_GATHER, .in = in, .out = out, .count = count, .type = type, .root = root});
}

enum esp_status esp_scatter(struct esp_group *group, const void *in, void *out, uint64_t count, enum esp_type type,
                            uint32_t root)
{
	return api_run(
		__func__, group,
		&(struct call){.collective = PLAN_SCATTER, .in = in, .out = out, .count = count, .type = type, .root = root});
}

enum esp_status esp_alltoall(struct esp_group *group, const void *in, void *out, uint64_t count, enum esp_type type)
{
	return api_run(__func__, group,
	               &(struct call){.collective = PLAN_ALLTOALL, .in = in, .out = out, .count = count, .type = type});
}

enum esp_status esp_barrier(struct esp_group *group)
{
	return api_run(__func__, group, &(struct call){.collective = PLAN_BARRIER, .type = ESP_BYTES});
}

const char *esp_collective_name(enum esp_collective collective)
{
	return (unsigned)collective < PLAN_COLLECTIVE_COUNT ? plan_collective_name((enum plan_collective)collective) : NULL;
}
