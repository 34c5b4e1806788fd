/*
 * Plan central with servers of their own is the specification of hubs: real runs, over TCP, carry the bytes of its messages and
 * a frame's head for each, add in its order, and have its servers' chunks.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "hub/control/hub_dial.h"
#include "hub/control/msg_socket.h"
#include "hub/server/hub.h"
#include "hub/worker/hub_link.h"
#include "node/net/listen.h"
#include "plan/check.h"
#include "wire/frame.h"
#include "wire/hub_frame.h"

#define PATIENCE (60 * NS_PER_S)
#define WORKERS 8u
#define HUBS 4u
#define CHUNK 1024u
#define CHUNKS 12u
#define ELEMENTS (CHUNKS * CHUNK / sizeof(float))

struct server {
	struct hub *hub;
	pthread_t thread;
};

struct trainer {
	pthread_t thread;
	const struct ticket *ticket;
	uint32_t worker;
	float gradient[ELEMENTS], weights[ELEMENTS];
	uint64_t sent, received; /* of the second round */
};

static uint8_t hub_key[HANDSHAKE_KEY_BYTES];
static struct server servers[HUBS];
static struct address addresses[HUBS];
static struct trainer trainers[WORKERS];

/* ---- hubs ---- */

static void *serve(void *argument)
{
	hub_run(((struct server *)argument)->hub);
	return NULL;
}

static void open_hub(uint32_t number)
{
	struct hub_config config = {.lanes = 1 + number % 2, .memory_bytes = 64 << 20, .jobs = 64, .version = "test"};
	struct sockaddr_storage name = {0};
	struct sockaddr_in *loopback = (struct sockaddr_in *)(void *)&name;
	char text[32];
	struct error err;

	loopback->sin_family = AF_INET;
	loopback->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = listen_at(&name, 0, false, 0); /* a port that is free now */
	CHECK(fd >= 0);
	snprintf(text, sizeof(text), "127.0.0.1:%u", (unsigned)listen_port(fd));
	close(fd);
	CHECK(address_parse(text, "test", &addresses[number], &err) == ESP_OK);
	config.listen = addresses[number];
	memcpy(config.key, hub_key, sizeof(config.key));
	CHECK_MSG(hub_open(&config, &servers[number].hub, &err) == ESP_OK, "%s", err.text);
	CHECK(pthread_create(&servers[number].thread, NULL, serve, &servers[number]) == 0);
}

static void create_at(uint32_t number, uint32_t workers, uint32_t hubs, struct ticket *ticket)
{
	const struct optimizer avg = {.kind = OPTIMIZER_AVG};
	const struct hub_dial dial = {.hub = &addresses[number], .key = hub_key, .job = hub_dial_own_job(hub_key),
	                              .workers = HUB_OPERATORS, .purpose = HELLO_CONTROL, .until_ns = clock_now_ns() + PATIENCE};
	struct hub_msg msg = {.type = HUB_MSG_CREATE,
	                      .create = {.workers = workers, .chunk_bytes = CHUNK, .weight = 1, .replaces = true,
	                                 .job = ticket->job, .hubs = (uint16_t)hubs, .own = (uint16_t)number}};
	struct msg_socket operator;
	struct error err;

	snprintf(msg.create.name, sizeof(msg.create.name), "%s", ticket->name);
	optimizer_encode(&avg, msg.create.optimizer);
	CHECK_MSG(msg_socket_open(&operator, &dial, &err) == ESP_OK, "%s", err.text);
	CHECK(msg_socket_put(&operator, &msg, dial.until_ns, &err) == ESP_OK);
	CHECK_MSG(msg_socket_take(&operator, HUB_MSG_TICKET, dial.until_ns, &msg, &err) == ESP_OK, "%s", err.text);
	ticket->job = msg.ticket.job;
	memcpy(ticket->key, msg.ticket.key, sizeof(ticket->key));
	ticket->hubs[ticket->hub_count++] = addresses[number];
	msg_socket_close(&operator);
}

/* ---- workers ---- */

/* Numbers whose sum depends on the order. */
static float gradient_of(uint32_t worker, uint64_t element)
{
	uint64_t hash = (element + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (worker * 977u + 1);

	hash ^= hash >> 29;
	hash *= UINT64_C(0xbf58476d1ce4e5b9);
	return (float)(int32_t)(hash >> 32) * (hash & 1 ? 1e-9f : 1e-5f);
}

static void call(struct hub_link *link, struct trainer *trainer, uint8_t kind)
{
	const struct hub_op_call call = {.kind = kind, .gradient = trainer->gradient, .deadline_ns = PATIENCE,
	                                 .weights = kind == HUB_PUSHPULL ? trainer->weights : NULL};
	struct hub_op *op;
	struct error err;

	CHECK_MSG(hub_op_start(link, &call, &op, &err) == ESP_OK, "%s", err.text);
	CHECK_MSG(hub_op_wait(op, UINT64_MAX) == ESP_OK, "%s", (hub_op_failure(op, &err), err.text));
	hub_op_put(op);
}

static void *train(void *argument)
{
	struct trainer *trainer = argument;
	const struct hub_link_config config = {.ticket = trainer->ticket, .worker = trainer->worker,
	                                       .workers = trainer->ticket->workers, .join_ns = PATIENCE};
	const struct layout_tensor tensor = {.name = 1, .elements = ELEMENTS, .type = ESP_F32};
	struct hub_link *link;
	struct error err;

	for (uint32_t i = 0; i < ELEMENTS; i++)
		trainer->gradient[i] = gradient_of(trainer->worker, i);
	CHECK_MSG(hub_link_open(&config, &link, &err) == ESP_OK, "%s", err.text);
	CHECK_MSG(hub_link_declare(link, &tensor, 1, &err) == ESP_OK, "%s", err.text);
	if (trainer->worker == 0)
		call(link, trainer, HUB_SET);
	call(link, trainer, HUB_PUSHPULL);
	struct hub_link_stats before = hub_link_stats(link);
	call(link, trainer, HUB_PUSHPULL);
	struct hub_link_stats after = hub_link_stats(link);
	trainer->sent = after.sent_bytes - before.sent_bytes;
	trainer->received = after.received_bytes - before.received_bytes;
	hub_link_close(link);
	return NULL;
}

/* ---- the specification ---- */

struct counted {
	uint64_t sent[WORKERS + HUBS], received[WORKERS + HUBS];
};

static void count(void *context, uint64_t chunk, uint32_t from, uint32_t to, uint32_t round, uint64_t bytes, bool reduced)
{
	struct counted *counted = context;

	(void)chunk, (void)round, (void)reduced;
	counted->sent[from] += bytes;
	counted->received[to] += bytes;
}

/* The element as the server of this row computes it: its terms in the order of the row's fold. */
static float sum_of(const struct plan_row *row, uint32_t workers, uint64_t element)
{
	float sum = 0;
	uint32_t terms = 0;

	for (uint32_t i = 0; i < row->count; i++) {
		if (row->steps[i].verb != PLAN_TERM && row->steps[i].verb != PLAN_RECV)
			continue;
		CHECK(row->steps[i].node < workers);
		float term = gradient_of(row->steps[i].node, element);
		sum = terms++ > 0 ? sum + term : term;
	}
	CHECK_U64(terms, workers);
	return sum / (float)workers;
}

static void check_chunk(const struct plan *plan, uint32_t workers, uint32_t hub, uint32_t chunk, bool is_own)
{
	struct plan_row row = {0};

	CHECK(plan_row(plan, workers + hub, chunk, &row) == ESP_OK);
	CHECK_MSG((row.count > 0) == is_own, "chunk %u and hub %u", chunk, hub);
	for (uint64_t i = 0; is_own && i < CHUNK / sizeof(float); i++) {
		uint64_t element = chunk * (CHUNK / sizeof(float)) + i;
		float expected = sum_of(&row, workers, element);

		for (uint32_t worker = 0; worker < workers; worker++)
			CHECK_MSG(memcmp(&trainers[worker].weights[element], &expected, sizeof(expected)) == 0,
			          "element %" PRIu64 " is %.9g, the plan's %.9g", element, (double)trainers[worker].weights[element],
			          (double)expected);
	}
	plan_row_fini(&row);
}

static void check_hub(const struct plan *plan, uint32_t workers, uint32_t hubs, uint32_t hub)
{
	const struct layout_tensor tensor = {.name = 1, .elements = ELEMENTS, .type = ESP_F32};
	uint32_t lanes[HUBS] = {1, 1, 1, 1};
	const struct layout_split split = {.hubs = hubs, .own = hub, .lanes = lanes};
	struct hub_layout layout;

	CHECK(hub_layout_split(&tensor, 1, CHUNK, &split, &layout, NULL) == ESP_OK && layout.chunks == CHUNKS);
	for (uint32_t c = 0; c < CHUNKS; c++)
		check_chunk(plan, workers, hub, c, layout.chunk[c].lane != LAYOUT_NO_LANE);
	hub_layout_fini(&layout);
}

static void check_run(uint32_t workers, uint32_t hubs)
{
	const struct plan_spec spec = {.chunks = {.collective = PLAN_ALLREDUCE, .workers = workers,
	                                          .bytes = ELEMENTS * sizeof(float), .chunk_bytes = CHUNK, .align = sizeof(float)},
	                               .servers = hubs};
	struct counted counted = {0};
	const struct plan_observer observer = {.message = count, .context = &counted};
	struct plan_report report;
	struct plan *plan;
	struct error err;

	CHECK_MSG(plan_open(&planner_central, &spec, &plan, &err) == ESP_OK, "%s", err.text);
	CHECK_U64(plan->chunks.chunk_count, CHUNKS);
	CHECK_MSG(plan_check(plan, &observer, &report, NULL, &err) == ESP_OK, "%s", err.text);
	for (uint32_t worker = 0; worker < workers; worker++) {
		CHECK_U64(trainers[worker].sent, counted.sent[worker] + CHUNKS * FRAME_BYTES);
		CHECK_U64(trainers[worker].received, counted.received[worker] + CHUNKS * FRAME_BYTES);
	}
	for (uint32_t hub = 0; hub < hubs; hub++)
		check_hub(plan, workers, hubs, hub);
	plan_close(plan);
}

static void run(uint32_t workers, uint32_t hubs)
{
	struct ticket ticket = {.name = "plan", .workers = workers};

	for (uint32_t i = 0; i < hubs; i++)
		create_at(i, workers, hubs, &ticket);
	for (uint32_t i = 0; i < workers; i++) {
		trainers[i].ticket = &ticket;
		trainers[i].worker = i;
		CHECK(pthread_create(&trainers[i].thread, NULL, train, &trainers[i]) == 0);
	}
	for (uint32_t i = 0; i < workers; i++)
		pthread_join(trainers[i].thread, NULL);
	check_run(workers, hubs);
}

int main(void)
{
	static const uint32_t sizes[][2] = {{1, 1}, {2, 1}, {3, 1}, {8, 1}, {2, 2}, {5, 3}, {4, 4}, {8, 2}};

	CHECK(sodium_init() >= 0);
	randombytes_buf(hub_key, sizeof(hub_key));
	for (uint32_t i = 0; i < HUBS; i++)
		open_hub(i);
	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		run(sizes[i][0], sizes[i][1]);
	for (uint32_t i = 0; i < HUBS; i++) {
		hub_stop(servers[i].hub);
		pthread_join(servers[i].thread, NULL);
		hub_close(servers[i].hub);
	}
	return 0;
}
