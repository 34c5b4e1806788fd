#include "cli/bench_sizes.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"

static bool parse_size(const char *text, size_t length, uint64_t *out)
{
	uint64_t bytes;

	if (!number_parse_bytes(text, length, &bytes) || bytes == 0 || bytes > BENCH_SIZE_MAX)
		return false;
	*out = bytes;
	return true;
}

static enum esp_status add_range(struct bench_sizes *sizes, uint64_t from, uint64_t to, uint64_t factor,
                                 struct error *err)
{
	for (uint64_t bytes = from; bytes <= to; bytes *= factor) {
		if (sizes->count == BENCH_SIZES_MAX)
			return error_set(err, ESP_ELIMIT, "these are more than %u sizes", BENCH_SIZES_MAX);
		sizes->bytes[sizes->count++] = bytes;
		sizes->least = bytes < sizes->least ? bytes : sizes->least;
		sizes->most = bytes > sizes->most ? bytes : sizes->most;
		if (bytes > BENCH_SIZE_MAX / factor)
			break;
	}
	return ESP_OK;
}

/* "64K", or "4:128M" */
static enum esp_status add_item(struct bench_sizes *sizes, const char *text, size_t length, uint64_t factor,
                                struct error *err)
{
	const char *colon = memchr(text, ':', length);
	size_t first = colon ? (size_t)(colon - text) : length;
	char shown[QUOTE_TEXT];
	uint64_t from, to;

	if (!parse_size(text, first, &from) || !(colon ? parse_size(colon + 1, length - first - 1, &to) : (to = from, true)))
		return error_set(err, ESP_EINVAL, "%s is neither a size such as 64K nor a range such as 4:128M (K, M, G and T: "
		                 "powers of 1024)", quote(text, length, shown));
	if (from > to)
		return error_set(err, ESP_EINVAL, "%s begins above its end", quote(text, length, shown));
	return add_range(sizes, from, to, factor, err);
}

enum esp_status bench_sizes_parse(const char *text, uint64_t factor, struct bench_sizes *out, struct error *err)
{
	struct bench_sizes sizes = {.least = UINT64_MAX, .factor = strchr(text, ':') && !strchr(text, ',') ? factor : 0};
	enum esp_status status = ESP_OK;

	assert(factor >= 2);
	for (const char *end; status == ESP_OK; text = end + 1) {
		end = text + strcspn(text, ",");
		status = add_item(&sizes, text, (size_t)(end - text), factor, err);
		if (*end == '\0')
			break;
	}
	if (status == ESP_OK)
		*out = sizes;
	return status;
}
