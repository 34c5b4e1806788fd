#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "rank/comm/call_record.h"

static void fill(const struct tally_cell *cell, uint32_t kind, uint32_t class, struct esp_call_stats *out)
{
	*out = (struct esp_call_stats){
		.struct_size = sizeof(*out),
		.least_bytes = class == 0 ? 0 : tally_class_most(class - 1) + 1,
		.most_bytes = tally_class_most(class),
		.calls = cell->count,
		.failed = cell->failed,
		.bytes = cell->bytes,
		.bus_bytes = cell->bus_bytes,
		.time_ns = cell->time_ns,
		.waited_ns = cell->waited_ns,
		.min_ns = cell->least_ns,
		.p50_ns = tally_quantile(cell, 0.5),
		.p99_ns = tally_quantile(cell, 0.99),
		.max_ns = cell->most_ns,
	};
	snprintf(out->operation, sizeof(out->operation), "%s", record_kind_name(kind));
}

/* Elements are as large as the caller's version has them. */
static enum esp_status write_stats(const char *who, const struct tally *tally, struct esp_call_stats *stats,
                                   uint32_t capacity, uint32_t *out_count)
{
	uint32_t count = 0;
	enum esp_status status = ESP_OK;
	size_t size = 0;

	if (capacity > 0)
		memcpy(&size, stats, sizeof(size));
	for (uint32_t i = 0; i < RECORD_KINDS * TALLY_CLASSES && status == ESP_OK; i++) {
		const struct tally_cell *cell = &tally->cells[i / TALLY_CLASSES][i % TALLY_CLASSES];
		struct esp_call_stats full;

		if (tally_is_empty(cell))
			continue;
		fill(cell, i / TALLY_CLASSES, i % TALLY_CLASSES, &full);
		if (count < capacity)
			status = api_write(who, (char *)stats + count * size, &full, sizeof(full));
		count++;
	}
	if (status == ESP_OK)
		*out_count = count;
	return status;
}

enum esp_status esp_get_call_stats(struct esp_context *context, struct esp_call_stats *stats, uint32_t capacity,
                                   uint32_t *out_count)
{
	enum esp_status status = api_check_context(__func__, context);

	if (status == ESP_OK && capacity > 0)
		status = api_check_out(__func__, stats, "stats");
	if (status == ESP_OK)
		status = api_check_out(__func__, out_count, "out_count");
	if (status != ESP_OK)
		return status;
	struct tally *tally = malloc(sizeof(*tally));
	if (!tally)
		return api_refuse_with(__func__, ESP_ENOMEM, "no memory for a copy of the statistics");
	call_record_copy(api_context(context), NULL, tally);
	status = write_stats(__func__, tally, stats, capacity, out_count);
	free(tally);
	return status;
}
