/*
 * A hub beside which processes with a key do what no worker does: each field of each message and frame at its edges, on
 * control and data connections of their own job, while another job trains. Their connections end, and the other job
 * does not notice.
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/rng.h"
#include "hub/control/msg_socket.h"
#include "hub/server/hub.h"
#include "hub/worker/hub_link.h"
#include "node/net/listen.h"
#include "wire/frame.h"
#include "wire/hub_frame.h"

#define PATIENCE (30 * NS_PER_S) /* until something is wrong */
#define ELEMENTS 5000u
#define GOOD_WORKERS 2u

static struct hub *hub;
static struct address address;
static uint8_t hub_key[HANDSHAKE_KEY_BYTES];

static uint64_t in_time(void)
{
	return clock_now_ns() + PATIENCE;
}

/* ---- jobs ---- */

static void create_job(const char *name, uint32_t workers, struct ticket *out)
{
	const struct optimizer avg = {.kind = OPTIMIZER_AVG};
	const struct hub_dial dial = {.hub = &address, .key = hub_key, .job = hub_dial_own_job(hub_key), .workers = HUB_OPERATORS,
	                              .purpose = HELLO_CONTROL, .until_ns = in_time()};
	struct hub_msg msg = {.type = HUB_MSG_CREATE, .create = {.workers = workers, .chunk_bytes = 1024, .weight = 1, .hubs = 1}};
	struct msg_socket operator;
	struct error err;

	snprintf(msg.create.name, sizeof(msg.create.name), "%s", name);
	optimizer_encode(&avg, msg.create.optimizer);
	CHECK_MSG(msg_socket_open(&operator, &dial, &err) == ESP_OK, "%s", err.text);
	CHECK(msg_socket_put(&operator, &msg, in_time(), &err) == ESP_OK);
	CHECK_MSG(msg_socket_take(&operator, HUB_MSG_TICKET, in_time(), &msg, &err) == ESP_OK, "%s", err.text);
	*out = (struct ticket){.hubs = {address}, .hub_count = 1, .job = msg.ticket.job, .workers = workers};
	snprintf(out->name, sizeof(out->name), "%s", name);
	memcpy(out->key, msg.ticket.key, sizeof(out->key));
	msg_socket_close(&operator);
}

/* ---- the job that trains ---- */

struct trainer {
	pthread_t thread;
	const struct ticket *ticket;
	uint32_t worker;
	_Atomic uint64_t rounds;
};

static void train_round(struct hub_link *link, float *gradient, float *weights, uint64_t round)
{
	const struct hub_op_call call = {.kind = HUB_PUSHPULL, .gradient = gradient, .weights = weights, .deadline_ns = PATIENCE};
	struct hub_op *op;
	struct error err;

	for (uint32_t i = 0; i < ELEMENTS; i++)
		gradient[i] = (float)(round % 1000 + i) + (float)hub_link_worker(link);
	CHECK_MSG(hub_op_start(link, &call, &op, &err) == ESP_OK, "%s", err.text);
	CHECK_MSG(hub_op_wait(op, UINT64_MAX) == ESP_OK, "%s", (hub_op_failure(op, &err), err.text));
	hub_op_put(op);
	for (uint32_t i = 0; i < ELEMENTS; i++)
		CHECK(weights[i] == (float)(round % 1000 + i) + 0.5f);
}

static _Atomic uint64_t last_round = UINT64_MAX; /* that all workers train */

static void *train(void *argument)
{
	struct trainer *trainer = argument;
	const struct hub_link_config config = {.ticket = trainer->ticket, .worker = trainer->worker, .workers = GOOD_WORKERS,
	                                       .join_ns = PATIENCE};
	const struct layout_tensor tensor = {.name = 1, .elements = ELEMENTS, .type = ESP_F32};
	static float memory[GOOD_WORKERS][2][ELEMENTS];
	float(*own)[ELEMENTS] = memory[trainer->worker];
	struct hub_link *link;
	struct error err;

	CHECK_MSG(hub_link_open(&config, &link, &err) == ESP_OK, "%s", err.text);
	CHECK_MSG(hub_link_declare(link, &tensor, 1, &err) == ESP_OK, "%s", err.text);
	if (trainer->worker == 0) {
		const struct hub_op_call set = {.kind = HUB_SET, .gradient = own[0], .deadline_ns = PATIENCE};
		struct hub_op *op;

		CHECK(hub_op_start(link, &set, &op, &err) == ESP_OK && hub_op_wait(op, UINT64_MAX) == ESP_OK);
		hub_op_put(op);
	}
	for (uint64_t round = 0; round <= atomic_load(&last_round); round++) {
		train_round(link, own[0], own[1], round);
		atomic_store(&trainer->rounds, round + 1);
	}
	hub_link_close(link);
	return NULL;
}

/* ---- the other one ---- */

static struct msg_socket join(const struct ticket *ticket, uint64_t *out_session)
{
	const struct hub_dial dial = {.hub = &address, .key = ticket->key, .job = ticket->job, .workers = 1,
	                              .purpose = HELLO_CONTROL, .until_ns = in_time()};
	struct hub_msg msg = {.type = HUB_MSG_JOIN, .join = {.workers = 1, .host = "elsewhere"}};
	struct msg_socket control;
	struct error err;
	enum esp_status status;

	do { /* the former session may not have ended yet */
		CHECK_MSG(msg_socket_open(&control, &dial, &err) == ESP_OK, "%s", err.text);
		CHECK(msg_socket_put(&control, &msg, in_time(), &err) == ESP_OK);
		status = msg_socket_take(&control, HUB_MSG_WELCOME, in_time(), &msg, &err);
		if (status != ESP_OK)
			msg_socket_close(&control);
		msg.type = status == ESP_OK ? msg.type : HUB_MSG_JOIN;
		msg.join = status == ESP_OK ? msg.join : (struct hub_msg_join){.workers = 1, .host = "elsewhere"};
	} while (status == ESP_ESTATE);
	CHECK_MSG(status == ESP_OK, "%s", err.text);
	*out_session = msg.welcome.session;
	return control;
}

/* A model of one tensor, of two chunks. */
static void declare(struct msg_socket *control)
{
	uint8_t row[HUB_MSG_TENSOR_BYTES];
	struct hub_msg msg = {.type = HUB_MSG_TENSORS, .tensors = {.total = 1, .count = 1, .rows = row}};
	const struct hub_msg_tensor tensor = {.name = 7, .elements = 512, .type = ESP_F32};
	struct error err;

	hub_msg_tensor_put(row, &tensor);
	CHECK(msg_socket_put(control, &msg, in_time(), &err) == ESP_OK);
	CHECK_MSG(msg_socket_take(control, HUB_MSG_READY, in_time(), &msg, &err) == ESP_OK, "%s", err.text);
}

/* The hub ends the connection: what it still says is read. */
static void await_end(int fd)
{
	uint8_t bytes[4096];
	uint64_t until = in_time();
	ssize_t got = 1;

	while (got > 0) {
		struct pollfd one = {.fd = fd, .events = POLLIN};

		CHECK_MSG(clock_now_ns() < until && poll(&one, 1, 30000) > 0, "the hub keeps a connection that breaks the protocol");
		got = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	}
}

/* ---- control messages ---- */

static uint64_t edge(struct rng *rng)
{
	static const uint64_t edges[] = {0, 1, 2, 63, 64, 65, 255, 256, 65535, 65536, INT32_MAX, UINT32_MAX, UINT64_MAX};

	return rng_chance(rng, 1, 4) ? rng_next(rng) : edges[rng_below(rng, sizeof(edges) / sizeof(edges[0]))];
}

/* Of any type, with any values; out of order in any case, or of a type that no worker sends. */
static void draw_msg(struct rng *rng, uint8_t type, struct hub_msg *out, uint8_t *row)
{
	const struct hub_msg_tensor tensor = {edge(rng), edge(rng), (uint8_t)rng_below(rng, ESP_TYPE_COUNT), (uint16_t)edge(rng)};

	*out = (struct hub_msg){.type = type};
	hub_msg_tensor_put(row, &tensor);
	switch ((enum hub_msg_type)type) {
	case HUB_MSG_TENSORS:
		out->tensors = (struct hub_msg_tensors){.total = (uint32_t)edge(rng), .first = 0, .count = 1, .rows = row};
		out->tensors.total += out->tensors.total == 0;
		out->tensors.first = (uint32_t)rng_below(rng, out->tensors.total);
		break;
	case HUB_MSG_ASK:
		out->ask = (uint32_t)edge(rng) | 1;
		break;
	case HUB_MSG_OFFER:
		out->offer = (struct hub_msg_offer){edge(rng), edge(rng), edge(rng), edge(rng), edge(rng)};
		break;
	case HUB_MSG_WHY:
		out->why = (struct hub_msg_why){.status = ESP_EPEER, .worker = (uint32_t)edge(rng) | 1};
		break;
	case HUB_MSG_JOIN:
		out->join = (struct hub_msg_join){(uint32_t)edge(rng), (uint32_t)edge(rng), (uint32_t)edge(rng), "", edge(rng), edge(rng)};
		break;
	default:
		break;
	}
}

/* A message at a time at which no worker sends it: before or after the model is declared. */
static void bad_control(const struct ticket *ticket, struct rng *rng, uint8_t type, bool is_declared)
{
	uint8_t row[HUB_MSG_TENSOR_BYTES];
	uint64_t session;
	struct msg_socket control = join(ticket, &session);
	struct hub_msg msg;
	struct error err;

	if (is_declared)
		declare(&control);
	draw_msg(rng, type, &msg, row);
	CHECK(msg_socket_put(&control, &msg, in_time(), &err) == ESP_OK);
	if (type == HUB_MSG_PING || type == HUB_MSG_PONG || (type == HUB_MSG_TENSORS && !is_declared))
		shutdown(control.fd, SHUT_WR); /* a worker may send these */
	await_end(control.fd);
	msg_socket_close(&control);
}

/* Bytes that are no message; more of them than the hub takes. */
static void bad_bytes(const struct ticket *ticket, struct rng *rng)
{
	uint64_t session;
	struct msg_socket control = join(ticket, &session);
	uint8_t bytes[4096];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rng_next(rng);
	(void)!send(control.fd, bytes, 1 + rng_below(rng, sizeof(bytes)), MSG_NOSIGNAL);
	shutdown(control.fd, SHUT_WR);
	await_end(control.fd);
	msg_socket_close(&control);
}

/* ---- data connections ---- */

static int connect_lane(const struct ticket *ticket, uint64_t session, uint32_t lane, enum esp_status expected)
{
	const struct hub_dial dial = {.hub = &address, .key = ticket->key, .job = ticket->job, .workers = 1, .lane = lane,
	                              .session = session, .purpose = HELLO_LANE, .until_ns = in_time()};
	uint8_t key[HANDSHAKE_KEY_BYTES];
	struct error err;
	int fd = -1;

	CHECK_MSG(hub_dial(&dial, &fd, key, &err) == expected, "%s", err.text);
	return fd;
}

static void send_frame(int fd, const struct frame *frame, uint32_t data_bytes)
{
	uint8_t bytes[FRAME_BYTES + 4096] = {0};

	CHECK(data_bytes <= 4096);
	frame_encode(frame, bytes);
	(void)!send(fd, bytes, FRAME_BYTES + data_bytes, MSG_NOSIGNAL);
}

/* A good first request but for one field. */
static void bad_frame(const struct ticket *ticket, struct rng *rng, uint32_t field)
{
	uint64_t session;
	struct msg_socket control = join(ticket, &session);
	struct frame frame = {.type = FRAME_DATA, .channel = HUB_SET, .bytes = 1024};

	declare(&control);
	int fd = connect_lane(ticket, session, 0, ESP_OK);
	switch (field) {
	case 0: frame.type = (uint8_t)(FRAME_DATA + 1 + rng_below(rng, 255)); break;
	case 1: frame.channel = (uint16_t)(HUB_FRAME_KINDS + edge(rng) % 60000); break;
	case 2: frame.channel = HUB_WEIGHTS + (uint16_t)rng_below(rng, 3); break;
	case 3: frame.index = (uint32_t)edge(rng) | 1; break;
	case 4: frame.ack = (uint32_t)edge(rng) | 1; break;
	case 5: frame.call = (uint32_t)edge(rng) | 2; break;
	case 6: frame.bytes = 1024 ^ (1u << rng_below(rng, 32)); break;
	case 7: frame.channel = HUB_PUSH; break;             /* before the first weights */
	case 8: frame.flags = FRAME_CHECKED; frame.data_crc = 1; break;
	case 9: frame.channel = HUB_HYPER; frame.bytes = 64; break; /* zeros: of another kind, or none */
	default: frame.flags = (uint8_t)(2 + rng_below(rng, 254)); break;
	}
	send_frame(fd, &frame, 1024);
	shutdown(fd, SHUT_WR); /* a frame that says to be longer is cut off */
	await_end(fd);
	await_end(control.fd); /* and the session has ended */
	close(fd);
	msg_socket_close(&control);
}
#define FRAME_FIELDS 11u

/* Connections for sessions, lanes and jobs that are not theirs. */
static void bad_lane(const struct ticket *ticket, const struct ticket *other)
{
	struct ticket mixed = *ticket;
	uint64_t session;
	struct msg_socket control = join(ticket, &session);

	declare(&control);
	for (uint64_t wrong = 0; wrong < 3; wrong++) {
		int fd = connect_lane(ticket, session + wrong - 1 + (wrong == 1 ? 100 : 0), 0, ESP_OK);

		await_end(fd);
		close(fd);
	}
	memcpy(mixed.key, other->key, sizeof(mixed.key));
	CHECK(connect_lane(&mixed, session, 0, ESP_EPEER) == -1);
	mixed = *ticket;
	mixed.job = other->job;
	CHECK(connect_lane(&mixed, session, 0, ESP_EPEER) == -1);
	msg_socket_close(&control);
}

/* A request that comes byte by byte, and never whole, ends with its connection. */
static void slow_frame(const struct ticket *ticket)
{
	const struct frame frame = {.type = FRAME_DATA, .channel = HUB_SET, .bytes = 1024};
	uint8_t bytes[FRAME_BYTES];
	uint64_t session;
	struct msg_socket control = join(ticket, &session);

	declare(&control);
	int fd = connect_lane(ticket, session, 0, ESP_OK);
	frame_encode(&frame, bytes);
	for (size_t i = 0; i < FRAME_BYTES - 1; i++)
		CHECK(send(fd, bytes + i, 1, MSG_NOSIGNAL) == 1);
	close(fd);
	await_end(control.fd);
	msg_socket_close(&control);
}

/* Connections that prove a ticket and join nothing: those beyond the job's quota are refused, with both numbers. */
static void crowd(const struct ticket *ticket)
{
	enum { MANY = 64 };
	const struct hub_dial dial = {.hub = &address, .key = ticket->key, .job = ticket->job, .workers = 1,
	                              .purpose = HELLO_CONTROL, .until_ns = in_time()};
	static struct msg_socket controls[MANY];
	struct hub_msg msg;
	struct error err;
	uint32_t refused = 0;

	for (uint32_t i = 0; i < MANY; i++)
		CHECK_MSG(msg_socket_open(&controls[i], &dial, &err) == ESP_OK, "%s", err.text);
	CHECK(msg_socket_take(&controls[MANY - 1], HUB_MSG_WELCOME, in_time(), &msg, &err) == ESP_ELIMIT);
	CHECK_MSG(strstr(err.text, "has 18 control connections") && strstr(err.text, "takes 18 at most"), "%s", err.text);
	for (uint32_t i = 0; i + 1 < MANY; i++)
		refused += msg_socket_take(&controls[i], HUB_MSG_WELCOME, 0, &msg, &err) == ESP_ELIMIT;
	CHECK_MSG(refused >= MANY - 18 - 1, "%u connections were refused", refused + 1);
	for (uint32_t i = 0; i < MANY; i++)
		msg_socket_close(&controls[i]);
}

/* A model whose layout alone is more than the hub's memory: refused before any of it is taken. */
static void big_model(const struct ticket *ticket)
{
	const struct hub_msg_tensor tensor = {.name = 7, .elements = (UINT64_C(1) << 32) - 8192, .type = ESP_F32};
	uint8_t row[HUB_MSG_TENSOR_BYTES];
	struct hub_msg msg = {.type = HUB_MSG_TENSORS, .tensors = {.total = 1, .count = 1, .rows = row}};
	struct rusage before, after;
	uint64_t session;
	struct msg_socket control = join(ticket, &session);
	struct error err;

	hub_msg_tensor_put(row, &tensor);
	getrusage(RUSAGE_SELF, &before);
	CHECK(msg_socket_put(&control, &msg, in_time(), &err) == ESP_OK);
	CHECK(msg_socket_take(&control, HUB_MSG_READY, in_time(), &msg, &err) == ESP_ELIMIT);
	getrusage(RUSAGE_SELF, &after);
	CHECK_MSG(after.ru_maxrss - before.ru_maxrss < 64 << 10, "%ld KiB more", after.ru_maxrss - before.ru_maxrss);
	msg_socket_close(&control);
}

/* A connection that answers, and joins nothing. */
static struct msg_socket idler(const struct ticket *ticket)
{
	const struct hub_dial dial = {.hub = &address, .key = ticket->key, .job = ticket->job, .workers = 1,
	                              .purpose = HELLO_CONTROL, .until_ns = in_time()};
	struct msg_socket control;
	struct error err;

	CHECK_MSG(msg_socket_open(&control, &dial, &err) == ESP_OK, "%s", err.text);
	return control;
}

static void end_idler(struct msg_socket *control)
{
	struct hub_msg msg;
	struct error err;

	CHECK(msg_socket_take(control, HUB_MSG_WELCOME, in_time(), &msg, &err) == ESP_ETIMEOUT);
	CHECK_MSG(strstr(err.text, "joins its job within"), "%s", err.text);
	msg_socket_close(control);
}

/* More connections than the hub keeps without a proof: it ends the oldest. */
static void flood(void)
{
	enum { MANY = 400 };
	int fds[MANY];
	struct ticket ticket = {.hubs = {address}, .hub_count = 1};

	for (uint32_t i = 0; i < MANY; i++) {
		struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(ticket.hubs[0].port), .sin_addr = {htonl(INADDR_LOOPBACK)}};

		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(fds[i] >= 0 && connect(fds[i], (struct sockaddr *)&name, sizeof(name)) == 0);
	}
	await_end(fds[0]);
	for (uint32_t i = 0; i < MANY; i++)
		close(fds[i]);
}

/* ---- all of it ---- */

static void *serve(void *unused)
{
	hub_run(hub);
	return unused;
}

static void open_hub(pthread_t *thread)
{
	struct hub_config config = {.lanes = 2, .memory_bytes = 64 << 20, .jobs = 8, .version = "test"};
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
	CHECK(address_parse(text, "test", &address, &err) == ESP_OK);
	config.listen = address;
	randombytes_buf(hub_key, sizeof(hub_key));
	memcpy(config.key, hub_key, sizeof(config.key));
	CHECK_MSG(hub_open(&config, &hub, &err) == ESP_OK, "%s", err.text);
	CHECK(pthread_create(thread, NULL, serve, NULL) == 0);
}

static void attack(const struct ticket *bad, const struct ticket *good, uint64_t seed)
{
	struct rng rng;

	struct msg_socket idle = idler(bad);

	big_model(bad);
	rng_init(&rng, seed);
	for (uint8_t type = 1; type < HUB_MSG_TYPES; type++) {
		bad_control(bad, &rng, type, true);
		bad_control(bad, &rng, type, false);
	}
	for (uint32_t i = 0; i < 8 * FRAME_FIELDS; i++)
		bad_frame(bad, &rng, i % FRAME_FIELDS);
	for (uint32_t i = 0; i < 8; i++)
		bad_bytes(bad, &rng);
	bad_lane(bad, good);
	slow_frame(bad);
	end_idler(&idle);
	crowd(bad);
	flood();
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1);
	struct trainer trainers[GOOD_WORKERS];
	struct ticket good, bad;
	pthread_t thread;

	CHECK(sodium_init() >= 0);
	open_hub(&thread);
	create_job("good", GOOD_WORKERS, &good);
	create_job("bad", 1, &bad);
	for (uint32_t i = 0; i < GOOD_WORKERS; i++) {
		trainers[i] = (struct trainer){.ticket = &good, .worker = i};
		CHECK(pthread_create(&trainers[i].thread, NULL, train, &trainers[i]) == 0);
	}
	attack(&bad, &good, seed);
	uint64_t most = 0;
	for (uint32_t i = 0; i < GOOD_WORKERS; i++)
		most = atomic_load(&trainers[i].rounds) > most ? atomic_load(&trainers[i].rounds) : most;
	atomic_store(&last_round, most + 10); /* no worker is further than one round ahead */
	for (uint32_t i = 0; i < GOOD_WORKERS; i++)
		pthread_join(trainers[i].thread, NULL);
	printf("%" PRIu64 " rounds of the good job\n", atomic_load(&trainers[0].rounds));
	hub_stop(hub);
	pthread_join(thread, NULL);
	hub_close(hub);
	return 0;
}
