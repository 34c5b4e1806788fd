#include "hearer.h"

#include "base/check.h"

static void start(struct hearer *hearer, uint16_t channel, void *out)
{
	struct exec_call call = {.plan = hearer->plan, .out = out, .type = ESP_BYTES, .digest = CALL};

	CHECK(lane_start(hearer->lane, channel, &call, NULL) == ESP_OK);
}

void hearer_open(struct hearer *hearer)
{
	struct plan_spec spec = {
		.chunks = {
			.collective = PLAN_BROADCAST,
			.workers = 2,
			.bytes = CHUNK * CHUNKS,
			.chunk_bytes = CHUNK,
			.align = 1,
		},
	};
	struct lane_config config = {
		.exec = {.credits = CREDITS, .active_chunks = 8, .slot_bytes = SLOT},
		.peers = 2,
		.ports = 1,
	};

	*hearer = (struct hearer){0};
	CHECK(plan_open(plan_planner_find("flat"), &spec, &hearer->plan, NULL) == ESP_OK);
	CHECK(lane_open(&config, &hearer->lane, NULL) == ESP_OK);
	for (uint16_t channel = 0; channel < 2; channel++) {
		struct lane_stream_config stream = {.channel = channel, .node = 1, .members = 2};

		CHECK(lane_stream_open(hearer->lane, &stream, NULL) == ESP_OK);
	}
	start(hearer, 0, hearer->out);
}

void hearer_close(struct hearer *hearer)
{
	lane_close(hearer->lane);
	plan_close(hearer->plan);
}

void hearer_start_other(struct hearer *hearer, void *out)
{
	start(hearer, 1, out);
}

void hearer_fill(uint8_t data[CHUNK * CHUNKS])
{
	for (uint32_t i = 0; i < CHUNK * CHUNKS; i++)
		data[i] = (uint8_t)(i * 37 + 1);
}
