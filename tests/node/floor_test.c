/*
 * floor_test.c - nodes that are no ranks stand on node alone: they prove themselves, exchange messages and chunks, lose each
 * other and are adopted again.
 *
 * One of them is a hub: it holds no data of its own, and its update step runs an optimizer of the caller's.
 */
#include <string.h>

#include "base/check.h"
#include "node.h"

#define CHUNK 16384u
#define BYTES (5u * CHUNK)
#define VALUES (BYTES / sizeof(float))
#define ROUNDS 3

static const uint8_t roles[] = {NODE_SCHEDULER, NODE_SWITCH, NODE_HUB};
enum { HUB = 2, NODES = 3 }; /* an extra node of the plan stands behind those with data */

/* ---- messages ---- */

struct said {
	uint32_t by, to;
	uint8_t byte;
};

static bool is_heard(const struct fleet *fleet, const void *argument)
{
	const struct said *said = argument;

	return fleet->nodes[said->to].heard[said->by] > 0 && fleet->nodes[said->to].last[said->by] == said->byte;
}

static void exchange_messages(struct fleet *fleet, uint8_t byte)
{
	for (uint32_t by = 0; by < fleet->count; by++) {
		for (uint32_t to = 0; to < fleet->count; to++) {
			struct said said = {by, to, (uint8_t)(byte + by)};

			if (by == to)
				continue;
			node_say(&fleet->nodes[by], to, said.byte); /* a connection is made if there is none */
			fleet_await(fleet, is_heard, &said, "a message");
		}
	}
}

/* ---- chunks ---- */

static void halve(void *context, uint64_t chunk, void *sum, uint64_t bytes)
{
	atomic_uint *runs = context;
	float *values = sum;

	(void)chunk;
	for (uint64_t i = 0; i < bytes / sizeof(*values); i++)
		values[i] /= 2;
	atomic_fetch_add(runs, 1);
}

static struct plan *hub_plan(void)
{
	static const uint32_t group_of[] = {0, 0};
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = NODES - 1, .bytes = BYTES, .chunk_bytes = CHUNK, .align = 4},
		.group_of = group_of,
	};
	struct plan *plan;
	struct error err;

	CHECK_MSG(plan_open(plan_planner_find("hub"), &spec, &plan, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(plan->nodes, NODES);
	return plan;
}

/* Two nodes hand their values in, the hub sums and halves, both get the result. */
static void run_calls(struct fleet *fleet, uint16_t channel)
{
	static float in[NODES][VALUES], out[NODES][VALUES];
	static struct node_call calls[NODES];
	atomic_uint runs = 0;
	const struct exec_update update = {halve, &runs};
	struct plan *plan = hub_plan();
	struct error err;

	for (uint32_t i = 0; i < NODES; i++)
		CHECK_MSG(node_open_stream(&fleet->nodes[i], channel, &err) == ESP_OK, "%s", err.text);
	for (unsigned round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i < NODES; i++) {
			for (uint32_t k = 0; k < VALUES; k++)
				in[i][k] = (float)(k % 1000 + 10 * i + round);
			memset(out[i], 0, sizeof(out[i]));
			calls[i].exec = (struct exec_call){.plan = plan, .in = i == HUB ? NULL : in[i], .out = i == HUB ? NULL : out[i],
			                                   .type = ESP_F32, .op = ESP_SUM, .digest = 7 + round};
			if (i == HUB) {
				calls[i].exec.has_update = true;
				calls[i].exec.update = &update;
			}
			node_start(&fleet->nodes[i], channel, &calls[i]);
		}
		for (uint32_t i = 0; i < NODES; i++) {
			node_wait(&fleet->nodes[i], &calls[i]);
			CHECK_U64((uint64_t)-calls[i].status, 0);
		}
		CHECK_U64(atomic_load(&runs), (round + 1) * BYTES / CHUNK);
		for (uint32_t i = 0; i < HUB; i++) {
			for (uint32_t k = 0; k < VALUES; k++)
				CHECK_MSG(out[i][k] == (in[0][k] + in[1][k]) / 2, "node %u, value %u: %g", i, k, (double)out[i][k]);
		}
	}
	plan_close(plan);
}

/* ---- loss ---- */

static bool have_all_failed(const struct fleet *fleet, const void *unused)
{
	(void)unused;
	for (uint32_t i = 0; i < fleet->count; i++) {
		if (fleet->nodes[i].failed == 0)
			return false;
	}
	return true;
}

static bool has_closed(const struct fleet *fleet, const void *unused)
{
	(void)unused;
	return fleet->nodes[HUB].closed[0] > 0;
}

/* Node 0 gives the hub up: its lane drops it, and all connections for control are closed. The other node is innocent. */
static void lose(struct fleet *fleet, uint16_t channel)
{
	struct node *node = &fleet->nodes[0];
	struct error err;

	progress_send(&node->progress.lanes[0], &(struct progress_cmd){.kind = PROGRESS_DROP, .peer = HUB, .status = ESP_EPEER});
	control_forget(node->control, HUB);
	fleet_await(fleet, has_closed, NULL, "the hub notices that its connection has ended");
	/* No thread drives an idle lane: the control connection tells that the peer has gone. */
	progress_send(&fleet->nodes[HUB].progress.lanes[0], &(struct progress_cmd){.kind = PROGRESS_DROP, .peer = 0, .status = ESP_EPEER});
	progress_post(&fleet->nodes[1].progress.lanes[0],
	              &(struct progress_cmd){.kind = PROGRESS_FAIL, .is_embedded = true, .channel = channel, .peer = HUB, .status = ESP_EPEER}, BY_LANE_THREAD);
	fleet_await(fleet, have_all_failed, NULL, "the streams of all nodes fail");
	CHECK(node_open_stream(node, (uint16_t)(channel + 1), &err) == ESP_EPEER);
}

static void take_back(struct fleet *fleet, uint16_t channel)
{
	for (uint32_t i = 0; i < NODES; i++)
		node_close_stream(&fleet->nodes[i], channel);
	node_readmit(&fleet->nodes[0], HUB);
	node_readmit(&fleet->nodes[HUB], 0);
	if (fleet->kind == FLEET_SHM) {
		node_adopt_memory(&fleet->nodes[0], HUB);
		node_adopt_memory(&fleet->nodes[HUB], 0);
	}
}

static void stands(enum fleet_kind kind)
{
	static struct fleet fleet;

	fleet_open(&fleet, kind, roles, NODES);
	exchange_messages(&fleet, 10);
	run_calls(&fleet, 8);
	for (uint16_t channel = 8; channel < 8 + 3 * 8; channel = (uint16_t)(channel + 8)) {
		pthread_mutex_lock(&fleet.lock);
		for (uint32_t i = 0; i < NODES; i++)
			fleet.nodes[i].failed = fleet.nodes[i].closed[0] = 0;
		pthread_mutex_unlock(&fleet.lock);
		lose(&fleet, channel);
		take_back(&fleet, channel);
		exchange_messages(&fleet, (uint8_t)(20 + channel));
		run_calls(&fleet, (uint16_t)(channel + 8));
	}
	fleet_close(&fleet);
}

int main(void)
{
	stands(FLEET_TCP);
	stands(FLEET_SHM);
	return 0;
}
