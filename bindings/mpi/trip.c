#include "trip.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void trip_begin(struct trip *trip, MPI_Comm comm, struct comm *known, enum esp_collective collective)
{
	memset(trip, 0, sizeof(*trip));
	trip->call.struct_size = sizeof(trip->call);
	trip->call.collective = collective;
	trip->call.type = ESP_BYTES;
	trip->comm = comm;
	trip->known = known;
}

void trip_trouble(struct trip *trip, const char *format, ...)
{
	va_list arguments;

	if (trip->trouble[0])
		return;
	va_start(arguments, format);
	(void)vsnprintf(trip->trouble, sizeof(trip->trouble), format, arguments);
	va_end(arguments);
}

int trip_refuse(struct trip *trip, const char *function)
{
	struct esp_error error = ESP_ERROR_INIT;

	(void)snprintf(error.text, sizeof(error.text), "%s", trip->trouble);
	esp_abort(trip->known->group, trip->trouble);
	return comm_fail_as(trip->comm, function, &error);
}

size_t layout_elements(const struct layout *layout)
{
	size_t sum = layout->count;

	if (layout->blocks > 0)
		sum = 0;
	for (int i = 0; i < layout->blocks; i++)
		sum += (size_t)layout->counts[i];
	return sum;
}

/* Where the data begins if it lies in one piece and in order; NULL: it does not. */
static void *find_piece(const struct layout *layout)
{
	MPI_Aint at = 0;

	if (!layout->type.dense)
		return NULL;
	if (layout->blocks == 0)
		return layout->base;
	bool is_first = true;
	MPI_Aint begin = 0;
	for (int i = 0; i < layout->blocks; i++) {
		if (layout->counts[i] == 0)
			continue;
		if (is_first)
			begin = at = layout->displs[i];
		is_first = false;
		if (layout->displs[i] != at)
			return NULL;
		at += layout->counts[i];
	}
	return (uint8_t *)layout->base + begin * layout->type.extent;
}

static uint8_t *block_at(const struct layout *layout, int i)
{
	return (uint8_t *)layout->base + (layout->blocks > 0 ? layout->displs[i] * layout->type.extent : 0);
}

static size_t block_count(const struct layout *layout, int i)
{
	return layout->blocks > 0 ? (size_t)layout->counts[i] : layout->count;
}

/* Both directions: named types are copied, others taken apart or put together by MPI. */
static bool copy_block(const struct layout *layout, int i, uint8_t *piece, bool out_of_piece, MPI_Comm comm)
{
	size_t count = block_count(layout, i), each = layout->type.bytes;
	uint8_t *block = block_at(layout, i);

	if (count * each == 0)
		return true;
	if (layout->type.dense) {
		memcpy(out_of_piece ? block : piece, out_of_piece ? piece : block, count * each);
		return true;
	}
	/* Sizes are ints in MPI: as many elements at a time as fit. */
	size_t most = each < INT_MAX ? INT_MAX / each : 1;
	for (size_t done = 0; done < count;) {
		size_t n = count - done < most ? count - done : most;
		int position = 0, code;

		if (out_of_piece)
			code = PMPI_Unpack(piece, (int)(n * each), &position, block, (int)n, layout->type.handle, comm);
		else
			code = PMPI_Pack(block, (int)n, layout->type.handle, piece, (int)(n * each), &position, comm);
		if (code != MPI_SUCCESS)
			return false;
		done += n;
		piece += n * each;
		block += (MPI_Aint)n * layout->type.extent;
	}
	return true;
}

static bool copy_all(const struct layout *layout, uint8_t *piece, bool out_of_piece, MPI_Comm comm)
{
	int blocks = layout->blocks > 0 ? layout->blocks : 1;

	for (int i = 0; i < blocks; i++) {
		if (!copy_block(layout, i, piece, out_of_piece, comm))
			return false;
		piece += block_count(layout, i) * layout->type.bytes;
	}
	return true;
}

static void *take_memory(struct trip *trip, size_t bytes)
{
	void *memory = malloc(bytes > 0 ? bytes : 1);

	if (!memory)
		trip_trouble(trip, "no memory for %zu bytes of a call", bytes);
	return memory;
}

/* MPI takes elements apart whose size is an int, and no others. */
static bool can_pack(struct trip *trip, const struct layout *layout)
{
	if (layout->type.dense || layout->type.bytes <= INT_MAX)
		return true;
	trip_trouble(trip, "elements of %zu bytes with gaps cannot be packed", layout->type.bytes);
	return false;
}

const void *trip_source(struct trip *trip, const struct layout *layout)
{
	void *piece = find_piece(layout);

	if (piece)
		trip->reads = (struct piece){piece, layout_elements(layout) * layout->type.bytes};
	return piece || layout_elements(layout) == 0 ? piece : trip_put_aside(trip, layout);
}

const void *trip_put_aside(struct trip *trip, const struct layout *layout)
{
	if (!can_pack(trip, layout))
		return NULL;
	trip->source = take_memory(trip, layout_elements(layout) * layout->type.bytes);
	if (trip->source && !copy_all(layout, trip->source, false, trip->comm))
		trip_trouble(trip, "MPI cannot pack this type");
	return trip->source;
}

static int *copy_numbers(struct trip *trip, const int *numbers, int count)
{
	int *copy = take_memory(trip, (size_t)count * sizeof(*copy));

	if (copy)
		memcpy(copy, numbers, (size_t)count * sizeof(*copy));
	return copy;
}

void *trip_target(struct trip *trip, const struct layout *layout)
{
	void *piece = find_piece(layout);

	if (piece)
		trip->writes = (struct piece){piece, layout_elements(layout) * layout->type.bytes};
	if (piece || layout_elements(layout) == 0 || !can_pack(trip, layout))
		return piece;
	trip->target = take_memory(trip, layout_elements(layout) * layout->type.bytes);
	trip->result = *layout;
	/* Types, like arrays, may be freed before a non-blocking call has ended. */
	if (!layout->type.dense && PMPI_Type_dup(layout->type.handle, &trip->result.type.handle) != MPI_SUCCESS) {
		trip->result.type.dense = true; /* nothing to free */
		trip_trouble(trip, "MPI cannot copy this type");
	}
	if (layout->blocks > 0) { /* the caller's arrays may go before a non-blocking call has ended */
		trip->result.counts = copy_numbers(trip, layout->counts, layout->blocks);
		trip->result.displs = copy_numbers(trip, layout->displs, layout->blocks);
	}
	return trip->target;
}

static bool lies_in(const struct piece *part, const struct piece *whole)
{
	uintptr_t from = (uintptr_t)part->at, base = (uintptr_t)whole->at;

	return from >= base && from - base <= whole->bytes && part->bytes <= whole->bytes - (from - base);
}

static void share_piece(const struct piece *piece)
{
	if (piece->bytes >= SHARE_LEAST_BYTES)
		share_see((void *)(uintptr_t)piece->at, piece->bytes);
}

void trip_share(const struct trip *trip)
{
	/* A communicator that is a job of its own has other shared memory. */
	if (!trip->known->is_worlds || trip->trouble[0])
		return;
	/* In place, one of them has it all. */
	if (!lies_in(&trip->reads, &trip->writes))
		share_piece(&trip->reads);
	if (!lies_in(&trip->writes, &trip->reads) || trip->reads.bytes == trip->writes.bytes)
		share_piece(&trip->writes);
}

void trip_counts(struct trip *trip, const int *counts, uint32_t n, size_t element_bytes)
{
	trip->counts = take_memory(trip, n * sizeof(*trip->counts));
	for (uint32_t i = 0; trip->counts && i < n; i++)
		trip->counts[i] = (uint64_t)counts[i] * element_bytes;
	trip->call.counts = trip->counts;
}

bool trip_arrive(struct trip *trip)
{
	if (trip->target && !copy_all(&trip->result, trip->target, true, trip->comm))
		return false;
	if (trip->move_to)
		memmove(trip->move_to, trip->move_from, trip->move_bytes);
	return true;
}

void trip_end(struct trip *trip)
{
	free(trip->source);
	free(trip->counts);
	free(trip->expected);
	if (trip->target && !trip->result.type.dense)
		PMPI_Type_free(&trip->result.type.handle);
	free(trip->target);
	if (trip->result.blocks > 0) {
		free((void *)(uintptr_t)trip->result.counts);
		free((void *)(uintptr_t)trip->result.displs);
	}
}

int trip_run(struct trip *trip, const char *function)
{
	int code = MPI_SUCCESS;

	trip_share(trip);
	if (trip->trouble[0]) {
		code = trip_refuse(trip, function);
	} else if (esp_run(trip->known->group, &trip->call) != ESP_OK) {
		code = comm_fail(trip->comm, function);
	} else if (!trip_arrive(trip)) {
		code = MPI_ERR_TYPE;
	}
	trip_end(trip);
	return code;
}
