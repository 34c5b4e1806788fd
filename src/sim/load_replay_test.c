/* load_replay_test.c - a replay of a model's traces takes as long as the model. */
#include "sim/workload/load_replay.h"

#include <math.h>
#include <stdio.h>

#include "base/check.h"
#include "sim/trial.h"
#include "sim/workload/traces_edit.h"

static double seconds(const struct load *load, const char *mechanism, uint32_t servers)
{
	struct trial trial = {
		.gbps = 25,
		.train = {.load = load, .mechanism = workload_mechanism_find(mechanism), .servers = servers, .iterations = 2}};
	struct train_result result;
	struct error err = {0};

	CHECK_MSG(sim_trial_run(&trial, &result, &err) == ESP_OK, "%s: %s", mechanism, err.text);
	return result.iteration_s;
}

static void test_same(const char *name, uint32_t workers, uint32_t servers)
{
	static const char *const mechanisms[] = {"server", "multicast+aggregation", "ring"};
	char path[512];
	struct model model;
	struct traces traces;
	struct replay replay;
	struct load direct, replayed;
	struct error err = {0};

	snprintf(path, sizeof(path), "%s/%s.json", MODELS_FOLDER, name);
	CHECK_MSG(workload_model_load(&model, path, &(struct model_options){.set = MODEL_CALIBRATED}, &err) == ESP_OK, "%s",
	          err.text);
	CHECK(workload_traces_make(&traces, &model,
	                           &(struct traces_make){.workers = workers, .iterations = 2, .servers = servers},
	                           &err) == ESP_OK);
	CHECK_MSG(workload_replay_init(&replay, &traces, &err) == ESP_OK, "%s", err.text);
	CHECK(workload_load_init(&direct, &model, workers, 0, &err) == ESP_OK);
	CHECK_MSG(workload_load_init_replay(&replayed, &replay, workers, 7, &err) == ESP_OK, "%s", err.text);
	CHECK(replayed.iterations == 2 && replayed.gradient_count == direct.gradient_count);
	for (size_t i = 0; i < 3; i++) {
		double a = seconds(&direct, mechanisms[i], servers), b = seconds(&replayed, mechanisms[i], servers);

		CHECK_MSG(fabs(a / b - 1) < 1e-3, "%s %s: %.9g from the model, %.9g from its traces", name, mechanisms[i], a,
		          b);
	}
	workload_load_fini(&direct);
	workload_load_fini(&replayed);
	/* More workers than were seen. */
	CHECK(workload_load_init_replay(&replayed, &replay, workers * 2, 7, &err) == ESP_OK);
	for (uint32_t w = 0; w < workers * 2; w++) {
		for (uint32_t i = 1; i < replayed.gradient_count; i++)
			CHECK(load_ready_s(&replayed, w, 3, i) >= load_ready_s(&replayed, w, 3, i - 1));
	}
	CHECK(seconds(&replayed, "ring", servers) > 0);
	workload_load_fini(&replayed);
	workload_replay_fini(&replay);
	workload_traces_fini(&traces);
	workload_model_fini(&model);
}

/* A worker that has its gradients in another order than the others: what is early waits for its turn. */
static void test_other_order(void)
{
	struct model_parameter parameters[] = {
		{.name = (char *)(uintptr_t) "a",
	     .bytes = 8,
	     .forward_order = 0,
	     .variable = 0,
	     .forward_share = 1,
	     .grad_ready = 0.25,
	     .aggregated = true,
	     .distributed = true},
		{.name = (char *)(uintptr_t) "b",
	     .bytes = 8,
	     .forward_order = 1,
	     .variable = 1,
	     .grad_ready = 0.5,
	     .aggregated = true,
	     .distributed = true},
	};
	double usual[] = {1, 2}, other[] = {3, 1};
	struct replay_file files[] = {{0, 0, usual}, {1, 0, other}};
	struct replay replay = {.model = {.name = (char *)(uintptr_t) "m",
	                                  .parameters = parameters,
	                                  .parameter_count = 2,
	                                  .forward_s = 1,
	                                  .backward_s = 4,
	                                  .slowest_factor = 1,
	                                  .distribution_factor = 1},
	                        .files = files,
	                        .file_count = 2,
	                        .server_count = 1};
	struct load load;

	CHECK(workload_load_init_replay(&load, &replay, 2, 0, NULL) == ESP_OK);
	CHECK(load.gradients[0].source == 0 && load.gradients[1].source == 1);
	CHECK(load_ready_s(&load, 0, 0, 0) == 1 && load_ready_s(&load, 0, 0, 1) == 2);
	CHECK(load_ready_s(&load, 1, 0, 0) == 3 && load_ready_s(&load, 1, 0, 1) == 3);
	workload_load_fini(&load);
}

int main(void)
{
	test_other_order();
	test_same("vgg-16", 8, 1);
	test_same("resnet-101", 8, 3);
	test_same("inception-v3", 4, 2);
	return 0;
}
