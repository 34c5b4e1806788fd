#include "node/observe/record.h"

#include "espalier/types.h"

/* The values of enum esp_collective, which the public header defines. */
enum { ALLREDUCE, REDUCE_SCATTER, ALLGATHER, BROADCAST, REDUCE, GATHER, SCATTER, ALLTOALL, BARRIER };

static const char *const names[RECORD_KINDS] = {
	[ALLREDUCE] = "allreduce", [REDUCE_SCATTER] = "reduce-scatter", [ALLGATHER] = "allgather",
	[BROADCAST] = "broadcast", [REDUCE] = "reduce",                 [GATHER] = "gather",
	[SCATTER] = "scatter",     [ALLTOALL] = "alltoall",             [BARRIER] = "barrier",
	[RECORD_SEND] = "send",    [RECORD_RECEIVE] = "receive",        [RECORD_GROUP] = "group",
};

const char *record_kind_name(uint32_t kind)
{
	return kind < RECORD_KINDS ? names[kind] : "unknown";
}

bool record_is_meeting(const struct record *record)
{
	bool has_data = record->bytes > 0;
	if (record->status != ESP_OK || record->ended_ns == 0)
		return false;
	switch (record->kind) {
	case ALLREDUCE:
	case ALLGATHER:
	case REDUCE_SCATTER:
	case ALLTOALL:
		return has_data && record->note.shape == 0; /* a rank whose blocks are empty waits for no peer */
	case BARRIER:
	case RECORD_GROUP:
		return true;
	default:
		return false;
	}
}

uint64_t record_bus_bytes(const struct record *record)
{
	double share = record->members > 0 ? (double)(record->members - 1) / record->members : 0;
	switch (record->kind) {
	case ALLREDUCE:
		return (uint64_t)(2 * share * (double)record->bytes);
	case BROADCAST:
	case REDUCE:
	case RECORD_SEND:
	case RECORD_RECEIVE:
		return record->bytes;
	case BARRIER:
	case RECORD_GROUP:
		return 0;
	default:
		return (uint64_t)(share * (double)record->bytes);
	}
}
