#include "sim/workload/accelerator.h"

#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "base/word.h"

/*
 * Published training runs of this decade reach about half of the peak without matrix units and four tenths with
 * them, give or take a third; nothing here depends on more than the order of magnitude.
 */
#define PLAIN 0.5
#define MATRIX 0.4

static const struct accelerator accelerators[] = {
	{"gtx1080ti-fp32", "NVIDIA GeForce GTX 1080 Ti, float32", 11.3e12, PLAIN},
	{"p100-fp32", "NVIDIA P100 (SXM2), float32", 10.6e12, PLAIN},
	{"v100-fp32", "NVIDIA V100 (SXM2), float32", 15.7e12, PLAIN},
	{"v100-fp16", "NVIDIA V100 (SXM2), float16 on matrix units", 125e12, MATRIX},
	{"a100-fp32", "NVIDIA A100 (SXM4), float32", 19.5e12, PLAIN},
	{"a100-tf32", "NVIDIA A100 (SXM4), TF32 on matrix units", 156e12, MATRIX},
	{"a100-bf16", "NVIDIA A100 (SXM4), bfloat16 on matrix units", 312e12, MATRIX},
	{"h100-tf32", "NVIDIA H100 (SXM5), TF32 on matrix units", 494e12, MATRIX},
	{"h100-bf16", "NVIDIA H100 (SXM5), bfloat16 on matrix units", 989e12, MATRIX},
};
#define ACCELERATOR_COUNT (sizeof accelerators / sizeof accelerators[0])

const struct accelerator *workload_accelerator_at(size_t index)
{
	return index < ACCELERATOR_COUNT ? &accelerators[index] : NULL;
}

static const char *name_at(const void *list, size_t index)
{
	(void)list;
	return index < ACCELERATOR_COUNT ? accelerators[index].name : NULL;
}

static bool parse_rate(const char *text, double *out)
{
	static const char units[] = "KMGTP";
	size_t length = strlen(text);
	double factor = 1;
	const char *unit = length > 1 ? strchr(units, text[length - 1]) : NULL;
	if (unit && *unit) {
		for (const char *at = units; at <= unit; at++)
			factor *= 1000;
		length--;
	}
	double number;
	if (!number_parse_double(text, length, &number) || !(number * factor >= 1) || number * factor > 1e24)
		return false;
	*out = number * factor;
	return true;
}

enum esp_status workload_accelerator_rate(const char *text, double *out_flops, struct error *err)
{
	char shown[QUOTE_TEXT];
	for (size_t i = 0; i < ACCELERATOR_COUNT; i++)
		if (strcmp(accelerators[i].name, text) == 0) {
			*out_flops = accelerators[i].peak * accelerators[i].reached;
			return ESP_OK;
		}
	if (parse_rate(text, out_flops))
		return ESP_OK;
	const char *near = word_nearest(text, name_at, NULL);
	return error_set(err, ESP_EINVAL, "%s is neither an accelerator nor a number of operations per second such as "
	                                  "45T%s%s%s", quote(text, strlen(text), shown), near ? "; did you mean " : "",
	                 near ? near : "", near ? "?" : "");
}
