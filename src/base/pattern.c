#include "base/pattern.h"

#include <stdio.h>
#include <string.h>

struct builder {
	char *out;
	size_t used, size; /* used may exceed size: it is then cut off */
};

static void add(struct builder *builder, const char *text, char slash)
{
	for (; *text; text++, builder->used++)
		if (builder->used < builder->size)
			builder->out[builder->used] = *text == '/' ? slash : *text;
}

static enum esp_status add_value(struct builder *builder, char letter, const struct pattern_values *values,
                                 struct error *err)
{
	char number[24];
	switch (letter) {
	case 'h':
		add(builder, values->host, '_');
		return ESP_OK;
	case 'j':
		add(builder, values->job, '_');
		return ESP_OK;
	case 'r':
		snprintf(number, sizeof number, "%u", values->rank);
		add(builder, number, '_');
		return ESP_OK;
	case 'p':
		snprintf(number, sizeof number, "%ld", values->pid);
		add(builder, number, '_');
		return ESP_OK;
	case '%':
		add(builder, "%", '_');
		return ESP_OK;
	default:
		return error_set(err, ESP_EINVAL,
		                 "after %% in a file name stands h (host), j (job), p (process), r (rank) or %%");
	}
}

enum esp_status pattern_expand(const char *pattern, const struct pattern_values *values, char *out, size_t size,
                               struct error *err)
{
	struct builder builder = {out, 0, size};
	enum esp_status status = ESP_OK;
	for (const char *at = pattern; *at && status == ESP_OK; at++) {
		char plain[2] = {*at, '\0'};
		if (*at == '%')
			status = add_value(&builder, *++at, values, err);
		else
			add(&builder, plain, '/');
		if (*at == '\0') /* behind the last % */
			break;
	}
	if (status == ESP_OK && builder.used >= size)
		status = error_set(err, ESP_ELIMIT, "the file name %.150s is too long", pattern);
	out[status == ESP_OK ? builder.used : 0] = '\0';
	return status;
}
