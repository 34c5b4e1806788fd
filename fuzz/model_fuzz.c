/*
 * model_fuzz.c - descriptions of models: what is accepted keeps every promise of model.h, in each set.
 */
#include "fuzz.h"

#include <math.h>

#include "sim/workload/model.h"

static void check(const struct model *model)
{
	double forward = 0, backward = 0;
	FUZZ_CHECK(model->parameter_count > 0 && model->forward_s >= 0 && model->backward_s >= 0 && model->batch > 0);
	FUZZ_CHECK(model->name && model->about && model->time_source);
	for (uint32_t i = 0; i < model->parameter_count; i++) {
		const struct model_parameter *parameter = &model->parameters[i];
		FUZZ_CHECK(parameter->name && parameter->bytes > 0);
		FUZZ_CHECK(parameter->grad_ready >= 0 && parameter->grad_ready <= 1 && parameter->backward_share >= 0);
		forward += parameter->forward_share;
		backward += parameter->backward_share;
	}
	FUZZ_CHECK(fabs(forward - 1) < 1e-2 && backward < 1 + 1e-6);
	FUZZ_CHECK(workload_model_aggregated_bytes(model) > 0 &&
	           workload_model_aggregated_bytes(model) <= workload_model_bytes(model));
	for (uint32_t i = 0; model->distribution_order && i < model->parameter_count; i++)
		FUZZ_CHECK(model->distribution_order[i] < model->parameter_count);
	for (uint32_t i = 0; i < model->worker_factor_count; i++)
		FUZZ_CHECK(model->worker_factors[i] > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct model_options options[] = {
		{.set = MODEL_PUBLIC}, {.set = MODEL_FACTORS}, {.set = MODEL_CALIBRATED}, {.flops = 1e13, .batch = 7, .value_bytes = 2},
	};
	for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
		struct model model;
		struct error err = {0};
		if (workload_model_parse(&model, "fuzz", (const char *)data, size, &options[i], &err) == ESP_OK)
			check(&model);
		else
			FUZZ_CHECK(err.status != ESP_OK && err.text[0]);
		workload_model_fini(&model);
	}
	return 0;
}
