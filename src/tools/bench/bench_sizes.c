#include "tools/bench/bench_sizes.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"

/* True for digits with an optional unit, even if the number is out of range. */
static bool is_number(const char *text, size_t length)
{
	size_t digits = 0;

	while (digits < length && text[digits] >= '0' && text[digits] <= '9')
		digits++;
	return digits > 0 && (digits == length || (digits + 1 == length && strchr("KMGTkmgt", text[digits])));
}

static enum esp_status parse_size(const char *text, size_t length, uint64_t *out, struct error *err)
{
	char shown[QUOTE_TEXT], most[NUMBER_BYTES_TEXT];
	bool is_size = is_number(text, length);
	uint64_t bytes;

	if (number_parse_bytes(text, length, &bytes) && bytes > 0 && bytes <= BENCH_SIZE_MAX) {
		*out = bytes;
		return ESP_OK;
	}
	if (is_size)
		return error_set(err, ESP_EINVAL, "%s is not from 1 byte to %s", quote(text, length, shown),
		                 number_format_bytes(BENCH_SIZE_MAX, most));
	return error_set(err, ESP_EINVAL, "%s is neither a size such as 64K nor a range such as 4:128M (K, M, G and T: "
	                 "powers of 1024)", quote(text, length, shown));
}

/* 0: the next size is too large to be measured. */
static uint64_t next_size(uint64_t bytes, struct bench_step step)
{
	if (step.factor)
		return bytes > BENCH_SIZE_MAX / step.factor ? 0 : bytes * step.factor;
	return step.bytes > BENCH_SIZE_MAX - bytes ? 0 : bytes + step.bytes;
}

static enum esp_status add_range(struct bench_sizes *sizes, uint64_t from, uint64_t to, struct bench_step step,
                                 struct error *err)
{
	sizes->end = to > sizes->end ? to : sizes->end;
	for (uint64_t bytes = from; bytes != 0 && bytes <= to; bytes = next_size(bytes, step)) {
		if (sizes->count == BENCH_SIZES_MAX)
			return error_set(err, ESP_ELIMIT, "these are more than %u sizes: take a larger step", BENCH_SIZES_MAX);
		sizes->bytes[sizes->count++] = bytes;
		sizes->least = bytes < sizes->least ? bytes : sizes->least;
		sizes->most = bytes > sizes->most ? bytes : sizes->most;
	}
	return ESP_OK;
}

/* "64K", or "4:128M" */
static enum esp_status add_item(struct bench_sizes *sizes, const char *text, size_t length, struct bench_step step,
                                struct error *err)
{
	const char *colon = memchr(text, ':', length);
	size_t first = colon ? (size_t)(colon - text) : length;
	char shown[QUOTE_TEXT];
	uint64_t from = 0, to = 0;
	enum esp_status status = parse_size(text, first, &from, err);

	if (status == ESP_OK)
		status = colon ? parse_size(colon + 1, length - first - 1, &to, err) : ESP_OK;
	if (status != ESP_OK)
		return status;
	to = colon ? to : from;
	if (from > to)
		return error_set(err, ESP_EINVAL, "%s begins above its end", quote(text, length, shown));
	return add_range(sizes, from, to, step, err);
}

enum esp_status bench_sizes_parse(const char *text, struct bench_step step, struct bench_sizes *out, struct error *err)
{
	struct bench_sizes sizes = {.least = UINT64_MAX};
	enum esp_status status = ESP_OK;

	assert(step.factor >= 2 || (step.factor == 0 && step.bytes > 0));
	if (strchr(text, ':') && !strchr(text, ','))
		sizes.step = step;
	for (const char *end; status == ESP_OK; text = end + 1) {
		end = text + strcspn(text, ",");
		status = add_item(&sizes, text, (size_t)(end - text), step, err);
		if (*end == '\0')
			break;
	}
	if (status == ESP_OK)
		*out = sizes;
	return status;
}
