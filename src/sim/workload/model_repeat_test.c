/*
 * model_repeat_test.c - copies of layers: their number, times and order.
 */
#include "sim/workload/model_repeat.h"

#include <math.h>
#include <stdio.h>

#include "base/check.h"

static void load(struct model *model, enum model_set set)
{
	char path[512];
	struct error err = {0};

	snprintf(path, sizeof(path), "%s/inception-v3.json", MODELS_FOLDER);
	CHECK_MSG(workload_model_load(model, path, &(struct model_options){.set = set}, &err) == ESP_OK, "%s", err.text);
}

static bool is_of(const struct model_parameter *parameter, const char *prefix)
{
	return strncmp(parameter->name, prefix, strlen(prefix)) == 0;
}

static void check_sums(const struct model *model)
{
	double forward = 0, backward = 0, last = 0;

	for (uint32_t i = 0; i < model->parameter_count; i++) {
		forward += model->parameters[i].forward_share;
		backward += model->parameters[i].backward_share;
		last = fmax(last, model->parameters[i].grad_ready);
		CHECK(model->parameters[i].grad_ready >= 0);
	}
	CHECK(fabs(forward - 1) < 1e-6 && fabs(backward - 1) < 1e-6 && fabs(last - 1) < 1e-6);
}

/* A later position in the forward pass is an earlier one in the backward pass, for aggregated parameters. */
static void check_order(const struct model *model)
{
	for (uint32_t i = 0; i < model->parameter_count; i++) {
		for (uint32_t k = 0; k < model->parameter_count; k++) {
			const struct model_parameter *a = &model->parameters[i], *b = &model->parameters[k];

			if (a->aggregated && b->aggregated && a->forward_order < b->forward_order)
				CHECK_MSG(a->grad_ready >= b->grad_ready - 1e-9, "%s and %s", a->name, b->name);
			CHECK(i == k || a->variable != b->variable);
		}
	}
}

static void test_copies(const char *prefix, enum model_set set, uint32_t copies)
{
	struct model model, out;
	struct error err = {0};
	uint32_t in_module = 0, found = 0;
	double forward_s = 0, backward_s = 0;
	uint64_t bytes = 0;

	load(&model, set);
	for (uint32_t i = 0; i < model.parameter_count; i++) {
		const struct model_parameter *parameter = &model.parameters[i];

		if (!is_of(parameter, prefix))
			continue;
		in_module++;
		bytes += parameter->bytes;
		forward_s += parameter->forward_share * model.forward_s;
		backward_s += parameter->backward_share * model.backward_s;
	}
	CHECK_MSG(workload_model_repeat(&model, prefix, copies, &out, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(out.parameter_count, model.parameter_count + copies * in_module);
	CHECK_U64(workload_model_bytes(&out), workload_model_bytes(&model) + copies * bytes);
	CHECK(fabs(out.forward_s - model.forward_s - copies * forward_s) < 1e-9);
	CHECK(fabs(out.backward_s - model.backward_s - copies * backward_s) < 1e-9);
	for (uint32_t i = 0; i < out.parameter_count; i++)
		found += is_of(&out.parameters[i], prefix);
	CHECK_U64(found, (copies + 1) * in_module);
	check_sums(&out);
	check_order(&out);
	if (set == MODEL_CALIBRATED) {
		uint64_t sum = 0;

		for (uint32_t i = 0; i < out.parameter_count; i++)
			sum += out.distribution_order[i];
		CHECK_U64(sum, (uint64_t)out.parameter_count * (out.parameter_count - 1) / 2);
	}
	workload_model_fini(&out);
	workload_model_fini(&model);
}

static void test_refused(void)
{
	struct model model, out;
	struct error err = {0};

	load(&model, MODEL_PUBLIC);
	CHECK(workload_model_repeat(&model, "no_such", 1, &out, &err) == ESP_EINVAL && strstr(err.text, "no_such"));
	workload_model_fini(&out);
	CHECK(workload_model_repeat(&model, "aux_logits", 1, &out, &err) == ESP_EINVAL);
	workload_model_fini(&out);
	CHECK(workload_model_repeat(&model, "mixed_35x35x288b", 1u << 30, &out, &err) == ESP_ELIMIT);
	workload_model_fini(&out);
	workload_model_fini(&model);
}

int main(void)
{
	test_copies("mixed_35x35x288b", MODEL_PUBLIC, 3);
	test_copies("mixed_17x17x768e", MODEL_CALIBRATED, 25);
	test_copies("mixed_17x17x768e", MODEL_FACTORS, 0);
	test_refused();
	return 0;
}
