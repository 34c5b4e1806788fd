/*
 * load_test.c - layers, orders and speeds of a load.
 */
#include "sim/workload/load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/*
 * Three layers; the middle one has two parameters, the last one weights and biases, which are the only
 * aggregated ones.
 */
static struct model_parameter parameters[] = {
	{.name = "a/w", .bytes = 100, .forward_order = 10, .distributed = true, .variable = 0, .forward_share = 0.5,
	 .grad_ready = 1.0, .aggregated = true},
	{.name = "b/w", .bytes = 300, .forward_order = 20, .distributed = true, .variable = 1, .forward_share = 0.25,
	 .grad_ready = 0.5, .aggregated = true},
	{.name = "b/b", .bytes = 10, .forward_order = 20, .distributed = true, .variable = 2, .grad_ready = 0.5,
	 .aggregated = true},
	{.name = "side", .bytes = 70, .forward_order = 25, .distributed = true, .variable = 3},
	{.name = "c/b", .bytes = 20, .forward_order = 30, .distributed = true, .variable = 4, .aggregated = true},
	{.name = "c/w", .bytes = 900, .forward_order = 30, .distributed = true, .variable = 5, .forward_share = 0.25,
	 .aggregated = true},
};
#define COUNT (sizeof(parameters) / sizeof(parameters[0]))

static struct model toy(void)
{
	return (struct model){
		.name = (char *)(uintptr_t)"toy",
		.parameters = parameters,
		.parameter_count = COUNT,
		.forward_s = 2,
		.backward_s = 4,
		.slowest_factor = 3,
		.distribution_factor = 1.5,
	};
}

static void test_forward_order(void)
{
	struct model model = toy();
	struct load load;

	CHECK(workload_load_init(&load, &model, 3, 0, NULL) == ESP_OK);
	CHECK(load.item_count == COUNT && load.gradient_count == 5 && load.layer_count == 4);
	CHECK(load.layer_s[0] == 1 && load.layer_s[1] == 0.5 && load.layer_s[2] == 0 && load.layer_s[3] == 0.5);
	for (uint32_t i = 0; i < COUNT; i++)
		CHECK(load.items[i].source == i && load.items[i].bytes == parameters[i].bytes);
	/* The last layer's gradients first; equal times in the order of the model. */
	CHECK(load.gradients[0].bytes == 20 && load.gradients[1].bytes == 900 && load.gradients[2].bytes == 300);
	CHECK(load.gradients[2].ready_s == 2 && load.gradients[4].ready_s == 4 && load.gradients[4].item == 0);
	CHECK(workload_load_item_bytes(&load) == 1400 && workload_load_gradient_bytes(&load) == 1330);
	/* The profile: most workers nearly equal, the last one slow. */
	CHECK(load.worker_factor[0] == 1 && load.worker_factor[1] == 1.25 && load.worker_factor[2] == 3);
	CHECK(load.distribution_factor == 1.5 && load.workers == 3);
	workload_load_fini(&load);
}

static void test_own_order(void)
{
	uint32_t order[COUNT] = {3, 5, 0, 1, 4, 2};
	double factors[] = {1.5, 2.5};
	struct model model = toy();
	struct load load;

	model.distribution_order = order;
	model.worker_factors = factors;
	model.worker_factor_count = 2;
	CHECK(workload_load_init(&load, &model, 5, 0, NULL) == ESP_OK);
	for (uint32_t i = 0; i < COUNT; i++)
		CHECK(load.items[i].source == order[i]);
	CHECK(load.gradients[4].item == 2);
	CHECK(load.worker_factor[0] == 1.5 && load.worker_factor[1] == 2.5);
	for (uint32_t i = 2; i < 5; i++)
		CHECK(load.worker_factor[i] == 1.5 || load.worker_factor[i] == 2.5);
	workload_load_fini(&load);
}

static void check_drawn(const struct load *load)
{
	uint32_t seen = 0, slow = 0;

	for (uint32_t i = 0; i < COUNT; i++)
		seen |= 1u << load->items[i].source;
	CHECK(seen == (1u << COUNT) - 1);
	CHECK(load->items[COUNT - 1].source == 5); /* the last layer's weights */
	for (uint32_t i = 0; i < load->workers; i++) {
		CHECK(load->worker_factor[i] >= 1 && load->worker_factor[i] <= 3);
		slow += load->worker_factor[i] == 3;
	}
	CHECK(slow == 1);
}

static void test_seeds(void)
{
	uint32_t order[COUNT] = {3, 5, 0, 1, 4, 2}, differ = 0;
	struct model model = toy();

	model.distribution_order = order;
	for (uint64_t seed = 1; seed <= 50; seed++) {
		struct load load, same;

		CHECK(workload_load_init(&load, &model, 8, seed, NULL) == ESP_OK);
		CHECK(workload_load_init(&same, &model, 8, seed, NULL) == ESP_OK);
		for (uint32_t i = 0; i < COUNT; i++)
			CHECK(load.items[i].source == same.items[i].source);
		for (uint32_t i = 0; i < 8; i++)
			CHECK(load.worker_factor[i] == same.worker_factor[i]);
		check_drawn(&load);
		differ += load.worker_factor[0] != 1;
		workload_load_fini(&load);
		workload_load_fini(&same);
	}
	CHECK(differ > 10);
}

static void test_refused(void)
{
	struct model model = toy();
	struct load load;
	struct error err = {0};

	CHECK(workload_load_init(&load, &model, 0, 0, &err) == ESP_EINVAL);
	workload_load_fini(&load);
	model.parameters = &parameters[3];
	model.parameter_count = 1;
	CHECK(workload_load_init(&load, &model, 2, 0, &err) == ESP_EINVAL);
	CHECK(strstr(err.text, "no gradient"));
	workload_load_fini(&load);
}

int main(void)
{
	test_forward_order();
	test_own_order();
	test_seeds();
	test_refused();
	return 0;
}
