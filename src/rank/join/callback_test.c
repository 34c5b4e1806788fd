/* Joining through the program's own all-gather: here, one among threads. */
#include <pthread.h>
#include <stdio.h>

#include "base/check.h"
#include "rank/join/join.h"
#include "wire/hello.h"

#define SIZE 4u

struct rank {
	struct join_config config;
	struct roster roster;
	struct error err;
	enum esp_status status;
	pthread_t thread;
};

static struct rank ranks[SIZE];
static uint8_t shared[4096];
static pthread_barrier_t barrier;

static enum esp_status gather(void *context, const void *mine, void *all, size_t bytes)
{
	const struct rank *rank = context;

	memcpy(shared + (size_t)(rank - ranks) * bytes, mine, bytes);
	pthread_barrier_wait(&barrier);
	memcpy(all, shared, SIZE * bytes);
	pthread_barrier_wait(&barrier);
	return ESP_OK;
}

static void *run_rank(void *argument)
{
	struct rank *rank = argument;
	rank->status = join_by_callback(&rank->config, gather, rank, &rank->roster, &rank->err);
	return NULL;
}

static void ranks_init(void)
{
	struct conf conf;

	conf_init(&conf);
	for (uint32_t i = 0; i < SIZE; i++) {
		ranks[i] = (struct rank){.config.launch = {.rank = i, .size = SIZE}};
		join_prepare(&ranks[i].config, &conf);
		ranks[i].config.info.port = (uint16_t)(5000 + i);
	}
}

static void run_all(void)
{
	CHECK(pthread_barrier_init(&barrier, NULL, SIZE) == 0);
	for (uint32_t i = 0; i < SIZE; i++)
		CHECK(pthread_create(&ranks[i].thread, NULL, run_rank, &ranks[i]) == 0);
	for (uint32_t i = 0; i < SIZE; i++)
		CHECK(pthread_join(ranks[i].thread, NULL) == 0);
	pthread_barrier_destroy(&barrier);
}

/* All ranks get the same result. */
static void check_all_failed(const char *text)
{
	run_all();
	for (uint32_t i = 0; i < SIZE; i++) {
		CHECK(ranks[i].status == ESP_EMISMATCH && !ranks[i].roster.nodes);
		CHECK_STR(ranks[i].err.text, text);
	}
}

static void joined(void)
{
	ranks_init();
	run_all();
	for (uint32_t i = 0; i < SIZE; i++) {
		CHECK_MSG(ranks[i].status == ESP_OK, "%s", ranks[i].err.text);
		CHECK_U64(ranks[i].roster.size, SIZE);
		for (uint32_t k = 0; k < SIZE; k++)
			CHECK(ranks[i].roster.nodes[k].rank == k && ranks[i].roster.nodes[k].port == 5000 + k);
		roster_fini(&ranks[i].roster);
	}
}

static void unfit(void)
{
	struct conf conf;

	ranks_init();
	ranks[3].config.key[5] ^= 1;
	check_all_failed("rank 3 has another key, job or epoch than rank 0");
	ranks_init();
	ranks[1].config.launch.epoch = 1;
	check_all_failed("rank 1 has another key, job or epoch than rank 0");
	ranks_init();
	conf_init(&conf);
	conf.lanes = 3;
	join_prepare(&ranks[2].config, &conf);
	snprintf(ranks[2].config.info.host_name, NODE_INFO_HOST_NAME, "b");
	snprintf(ranks[0].config.info.host_name, NODE_INFO_HOST_NAME, "a");
	check_all_failed("rank 2 on b has lanes=3, but the leader, rank 0 on a, has lanes=0");
	ranks_init();
	ranks[2].config.info.settings[0] ^= 1;
	check_all_failed("rank 2 has other settings than rank 0: compare what `espalier conf` prints on both");
	ranks_init();
	ranks[2].config.info.rank = 1;
	check_all_failed("the node info of rank 1 stands where that of rank 2 should");
	ranks_init();
	char text[128];
	ranks[2].config.info.version = HELLO_VERSION + 1;
	snprintf(text, sizeof(text), "rank 2 speaks version %u of the protocol, rank 0 version %u", HELLO_VERSION + 1,
	         HELLO_VERSION);
	check_all_failed(text);
}

static enum esp_status no_gather(void *context, const void *mine, void *all, size_t bytes)
{
	(void)context, (void)mine, (void)all, (void)bytes;
	return ESP_ELINK;
}

static void callback_fails(void)
{
	struct roster roster;
	struct error err;

	ranks_init();
	CHECK(join_by_callback(&ranks[0].config, no_gather, NULL, &roster, &err) == ESP_ELINK);
	CHECK_STR(err.text, "the caller's all-gather failed");
}

int main(void)
{
	joined();
	unfit();
	callback_fails();
	return 0;
}
