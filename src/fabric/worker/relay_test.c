/*
 * Models that workers pass on to each other: as they come, whole or not at all, with the version of the first one.
 */
#include "fabric/worker/relay_fetch.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"

#define WORKERS 4u
#define BYTES UINT64_C(1000003)
#define EPOCH 7u

static struct ticket ticket;
static struct peer_port *ports[WORKERS];
static uint8_t model[BYTES];

static void open_ports(void)
{
	struct error err;

	ticket = (struct ticket){.job = 5, .workers = WORKERS, .has_scheduler = true, .name = "job"};
	CHECK(address_parse("127.0.0.1:9", "scheduler", &ticket.scheduler, &err) == ESP_OK);
	memset(ticket.key, 3, sizeof(ticket.key));
	for (uint32_t i = 0; i < WORKERS; i++) {
		const struct peer_port_config config = {.ticket = &ticket, .worker = i, .bytes = BYTES};

		CHECK(peer_port_open(&config, &ports[i], NULL) == ESP_OK);
	}
	for (uint64_t i = 0; i < BYTES; i++)
		model[i] = (uint8_t)(i * 7 + i / 251);
}

struct fetch {
	pthread_t thread;
	uint32_t worker, source;
	uint64_t tree, rate, patience_ns, bytes, version;
	enum esp_status status;
};

static void *fetch_main(void *argument)
{
	static const uint8_t loopback[FABRIC_HOST] = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	struct fetch *fetch = argument;
	struct sched_link_model decision = {
		.epoch = EPOCH,
		.model = {.tree = fetch->tree, .source = fetch->source, .rate = fetch->rate,
		          .port = peer_port_number(ports[fetch->source])}};

	memcpy(decision.model.host, loopback, sizeof(loopback));
	struct relay_model *into = relay_open(ports[fetch->worker], EPOCH, fetch->tree);
	CHECK(into);
	const struct relay_fetching fetching = {.ticket = &ticket,
	                                        .worker = fetch->worker,
	                                        .decision = &decision,
	                                        .port = ports[fetch->worker],
	                                        .model = into,
	                                        .bytes = fetch->bytes ? fetch->bytes : BYTES,
	                                        .until_ns = clock_now_ns() + fetch->patience_ns};
	fetch->status = relay_fetch(&fetching, &fetch->version, NULL);
	if (fetch->status == ESP_OK) {
		CHECK(memcmp(relay_data(into), model, BYTES) == 0);
		relay_finish(ports[fetch->worker], into, fetch->version);
	}
	relay_put(ports[fetch->worker], into);
	return NULL;
}

static void start(struct fetch *fetch, uint32_t worker, uint32_t source, uint64_t tree)
{
	*fetch = (struct fetch){.worker = worker, .source = source, .tree = tree, .patience_ns = 60 * NS_PER_S};
	CHECK(pthread_create(&fetch->thread, NULL, fetch_main, fetch) == 0);
}

static enum esp_status end(struct fetch *fetch)
{
	pthread_join(fetch->thread, NULL);
	return fetch->status;
}

/* Worker 0 gets the model in parts. */
static void give(struct relay_model *to, uint64_t from, uint64_t until)
{
	for (uint64_t at = from; at < until; at += 10000) {
		uint64_t some = until - at < 10000 ? until - at : 10000;

		memcpy(relay_data(to) + at, model + at, some);
		relay_advance(ports[0], to, at + some);
	}
}

/* 0 -> 1 -> 2, and 0 -> 3: some ask before there is anything, one when all is there. */
static void passes_on(uint64_t tree, uint64_t rate)
{
	struct fetch fetches[3];

	start(&fetches[0], 1, 0, tree);
	start(&fetches[1], 2, 1, tree);
	struct relay_model *first = relay_open(ports[0], EPOCH, tree);
	CHECK(first);
	give(first, 0, BYTES);
	relay_finish(ports[0], first, 40 + tree);
	fetches[2] = (struct fetch){.worker = 3, .source = 0, .tree = tree, .rate = rate, .patience_ns = 60 * NS_PER_S};
	CHECK(pthread_create(&fetches[2].thread, NULL, fetch_main, &fetches[2]) == 0);
	for (uint32_t i = 0; i < 3; i++)
		CHECK(end(&fetches[i]) == ESP_OK && fetches[i].version == 40 + tree);
	relay_put(ports[0], first);
}

/* The first one fails half-way: all behind it end, and none has a model. */
static void fails(uint64_t tree)
{
	struct fetch fetches[2];
	struct relay_model *first = relay_open(ports[0], EPOCH, tree);

	start(&fetches[0], 1, 0, tree);
	start(&fetches[1], 2, 1, tree);
	give(first, 0, BYTES / 2);
	relay_put(ports[0], first);
	CHECK(end(&fetches[0]) < 0 && end(&fetches[1]) < 0);
}

/* The model that is wanted is not there any more, never comes, or has another size. */
static void is_refused(uint64_t tree)
{
	struct relay_model *first = relay_open(ports[0], EPOCH, tree);
	struct fetch fetch = {.worker = 1, .source = 0, .tree = tree - 1, .patience_ns = 60 * NS_PER_S};

	give(first, 0, BYTES);
	relay_finish(ports[0], first, 1);
	relay_put(ports[0], first);
	fetch_main(&fetch);
	CHECK(fetch.status == ESP_ELINK);
	fetch.tree = tree;
	fetch.bytes = BYTES - 1;
	fetch_main(&fetch);
	CHECK(fetch.status == ESP_ELINK);
	fetch = (struct fetch){.worker = 1, .source = 0, .tree = tree + 1, .patience_ns = 100 * NS_PER_MS};
	fetch_main(&fetch);
	CHECK(fetch.status == ESP_ETIMEOUT);
}

int main(void)
{
	uint64_t tree = 1;

	open_ports();
	for (; tree <= 20; tree++)
		passes_on(tree, tree % 2 ? 0 : 20000000);
	for (; tree <= 30; tree++)
		fails(tree);
	is_refused(tree + 1);
	for (uint32_t i = 0; i < WORKERS; i++)
		peer_port_close(ports[i]);
	return 0;
}
