/*
 * A hub with its threads and two workers over TCP: once rounds are warm, the lane threads and the workers' threads
 * allocate nothing, take no page fault, and copy nothing in user space but what is read ahead with the header of a frame.
 */
#include <dirent.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "count_copies.h"
#include "hub/control/msg_socket.h"
#include "hub/server/hub.h"
#include "hub/worker/hub_link.h"
#include "node/net/listen.h"
#include "transport/tcp/conn.h"
#include "wire/hub_frame.h"

#define PATIENCE (60 * NS_PER_S) /* until something is wrong */
#define ELEMENTS (256u << 10)
#define WORKERS 2u
#define WINDOW 10u  /* rounds that are looked at together */
#define CHUNK 32768u
#define FRAMES (2 * WORKERS * WINDOW * (ELEMENTS * 4 / CHUNK)) /* with data, in a window: gradients and weights */
#define WINDOWS 40u /* at most: slots for terms that come early are touched as they are needed */

static struct hub *hub;
static struct address address;
static uint8_t hub_key[HANDSHAKE_KEY_BYTES];
static pthread_barrier_t window; /* of the workers and main() */
static atomic_bool is_over;

static uint64_t in_time(void)
{
	return clock_now_ns() + PATIENCE;
}

static void create_job(const char *name, uint32_t workers, struct ticket *out)
{
	const struct optimizer avg = {.kind = OPTIMIZER_AVG};
	const struct hub_dial dial = {.hub = &address, .key = hub_key, .job = hub_dial_own_job(hub_key), .workers = HUB_OPERATORS,
	                              .purpose = HELLO_CONTROL, .until_ns = in_time()};
	struct hub_msg msg = {.type = HUB_MSG_CREATE, .create = {.workers = workers, .chunk_bytes = CHUNK, .weight = 1, .hubs = 1}};
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

/* ---- workers ---- */

struct trainer {
	pthread_t thread;
	const struct ticket *ticket;
	uint32_t worker;
	float gradient[ELEMENTS], weights[ELEMENTS];
};

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

static void train_round(struct hub_link *link, struct trainer *trainer, uint32_t round)
{
	for (uint32_t i = 0; i < ELEMENTS; i++)
		trainer->gradient[i] = (float)(round + i % 1000 + trainer->worker);
	call(link, trainer, HUB_PUSHPULL);
	for (uint32_t i = 0; i < ELEMENTS; i++)
		CHECK(trainer->weights[i] == (float)(round + i % 1000) + 0.5f);
}

static void *train(void *argument)
{
	struct trainer *trainer = argument;
	const struct hub_link_config config = {.ticket = trainer->ticket, .worker = trainer->worker, .workers = WORKERS,
	                                       .join_ns = PATIENCE};
	const struct layout_tensor tensor = {.name = 1, .elements = ELEMENTS, .type = ESP_F32};
	struct hub_link *link;
	struct error err;

	CHECK_MSG(hub_link_open(&config, &link, &err) == ESP_OK, "%s", err.text);
	CHECK_MSG(hub_link_declare(link, &tensor, 1, &err) == ESP_OK, "%s", err.text);
	if (trainer->worker == 0)
		call(link, trainer, HUB_SET);
	for (uint32_t round = 0;; round++) {
		if (round % WINDOW == 0) {
			pthread_barrier_wait(&window); /* all are here: main() looks */
			pthread_barrier_wait(&window);
			if (atomic_load(&is_over))
				break;
		}
		train_round(link, trainer, round);
	}
	hub_link_close(link);
	return NULL;
}

/* ---- what threads did ---- */

/* The tenth field of stat; the name, which is the second, has no blanks in threads that count. 0: another thread. */
static uint64_t faults_of(const char *thread)
{
	char path[64], text[512], name[32];
	uint64_t faults = 0;

	snprintf(path, sizeof(path), "/proc/self/task/%.16s/stat", thread);
	FILE *file = fopen(path, "re");
	if (!file)
		return 0;
	if (!fgets(text, sizeof(text), file) ||
	    sscanf(text, "%*d (%31[^)]) %*c %*d %*d %*d %*d %*d %*u %" SCNu64, name, &faults) != 2 ||
	    strncmp(name, "esp-hub", 7) != 0)
		faults = 0;
	fclose(file);
	return faults;
}

static uint64_t count_faults(void)
{
	DIR *threads = opendir("/proc/self/task");
	const struct dirent *entry;
	uint64_t faults = 0;

	CHECK(threads);
	while ((entry = readdir(threads)))
		faults += faults_of(entry->d_name);
	closedir(threads);
	return faults;
}

/* A window of rounds. True: no thread of the hub or a link has allocated or taken a fault. */
static bool is_warm(void)
{
	uint64_t faults = count_faults();

	atomic_store(&count_copies_bytes, 0);
	atomic_store(&count_copies_allocations, 0);
	atomic_store(&count_copies_on, true);
	pthread_barrier_wait(&window);
	pthread_barrier_wait(&window);
	atomic_store(&count_copies_on, false);
	faults = count_faults() - faults;
	uint64_t allocations = atomic_load(&count_copies_allocations);
	printf("%u rounds: %" PRIu64 " bytes copied, %" PRIu64 " allocations, %" PRIu64 " page faults\n", WINDOW,
	       atomic_load(&count_copies_bytes), allocations, faults);
	return allocations == 0 && faults == 0;
}

static void watch(void)
{
	bool warm = false;

	pthread_barrier_wait(&window);
	for (uint32_t i = 0; i < WINDOWS && !warm; i++)
		warm = is_warm();
	atomic_store(&is_over, true);
	pthread_barrier_wait(&window);
	CHECK_MSG(warm, "every window has an allocation or a page fault");
	CHECK(atomic_load(&count_copies_bytes) <= FRAMES * CONN_AHEAD_HEAD);
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

int main(void)
{
	static struct trainer trainers[WORKERS];
	struct ticket ticket;
	pthread_t thread;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	printf("skipped: a sanitizer has its own malloc() and memcpy()\n");
	return 77;
#endif
	CHECK(sodium_init() >= 0);
	CHECK(pthread_barrier_init(&window, NULL, WORKERS + 1) == 0);
	open_hub(&thread);
	create_job("warm", WORKERS, &ticket);
	for (uint32_t i = 0; i < WORKERS; i++) {
		trainers[i].ticket = &ticket;
		trainers[i].worker = i;
		CHECK(pthread_create(&trainers[i].thread, NULL, train, &trainers[i]) == 0);
	}
	watch();
	for (uint32_t i = 0; i < WORKERS; i++)
		pthread_join(trainers[i].thread, NULL);
	hub_stop(hub);
	pthread_join(thread, NULL);
	hub_close(hub);
	return 0;
}
