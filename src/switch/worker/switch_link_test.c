/*
 * Links of several members in one process, with a switch that never answers: sums go straight to owners; the budget of
 * what they keep; flows that fail.
 */
#include "switch/worker/switch_link.h"

#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

#define MEMBERS 4u
#define WORDS 100000u
#define SUMS 3u

static sem_t ended;
static uint32_t in[SUMS][MEMBERS][WORDS], out[SUMS][MEMBERS][WORDS];

static void done(struct switch_sum *sum, enum esp_status status)
{
	sum->status = status;
	sem_post(&ended);
}

/* A port that takes packets and answers none. */
static int silent_port(union trains_address *address)
{
	socklen_t length = sizeof(*address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*address = (union trains_address){.v4 = {.sin_family = AF_INET}};
	address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0 && bind(fd, &address->any, sizeof(address->v4)) == 0 &&
	      getsockname(fd, &address->any, &length) == 0);
	return fd;
}

struct bench {
	int port;
	struct switch_link *links[MEMBERS];
	struct switch_flow *flows[MEMBERS];
	union trains_address addresses[MEMBERS];
};

static struct switch_flow_config config_of(const struct bench *bench, uint16_t self, uint8_t secret)
{
	return (struct switch_flow_config){.secret = {secret, 1, 2, 3}, .self = self, .members = MEMBERS,
	                                   .addresses = bench->addresses, .words = switch_link_words(bench->links[self])};
}

static void bench_open(struct bench *bench)
{
	union trains_address server;
	struct error err;

	bench->port = silent_port(&server);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		CHECK_MSG(switch_link_open(&server, &bench->links[i], &err) == ESP_OK, "%s", err.text);
		bench->addresses[i] = *switch_link_address(bench->links[i]);
	}
	for (uint16_t i = 0; i < MEMBERS; i++) {
		struct switch_flow_config config = config_of(bench, i, 7);
		CHECK_MSG(switch_flow_open(bench->links[i], &config, &bench->flows[i], &err) == ESP_OK, "%s", err.text);
	}
}

static void bench_close(struct bench *bench)
{
	for (uint32_t i = 0; i < MEMBERS; i++)
		switch_link_stop(bench->links[i]);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		switch_flow_close(bench->flows[i]);
		switch_link_close(bench->links[i]);
	}
	close(bench->port);
}

static void await(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		while (sem_wait(&ended) != 0)
			;
}

static struct switch_sum sum_of(uint32_t number, uint32_t member, struct switch_piece *piece)
{
	*piece = (struct switch_piece){.in = in[number][member], .out = out[number][member], .words = WORDS - number};
	return (struct switch_sum){
		.pieces = piece, .piece_count = 1, .kind = ATP_SIGNED, .call = 40 + number, .done = done};
}

static void test_straight(struct bench *bench)
{
	struct switch_piece pieces[SUMS][MEMBERS];
	struct switch_sum sums[SUMS][MEMBERS];

	for (uint32_t i = 0; i < SUMS; i++)
		for (uint32_t member = 0; member < MEMBERS; member++) {
			for (uint32_t k = 0; k < WORDS; k++)
				in[i][member][k] = 1000 * member + 7 * k + i;
			sums[i][member] = sum_of(i, member, &pieces[i][member]);
			CHECK(switch_flow_start(bench->flows[member], &sums[i][member]));
		}
	await(SUMS * MEMBERS);
	for (uint32_t i = 0; i < SUMS; i++)
		for (uint32_t member = 0; member < MEMBERS; member++) {
			CHECK(sums[i][member].status == ESP_OK);
			for (uint32_t k = 0; k < WORDS - i; k++)
				CHECK_U64(out[i][member][k], 6000 + MEMBERS * (7 * k + i));
		}
	for (uint32_t member = 0; member < MEMBERS; member++)
		CHECK(!switch_flow_helps(bench->flows[member]));
}

/* Flows keep no more than the budget, and what closed flows kept is free again. */
static void test_budget(const struct bench *bench)
{
	struct switch_flow *flows[256] = {NULL};
	enum esp_status status = ESP_OK;
	uint32_t count = 0, first = 0;
	struct error err;

	for (int round = 0; round < 2; round++) {
		for (count = 0, status = ESP_OK; status == ESP_OK; count += status == ESP_OK) {
			struct switch_flow_config config = config_of(bench, 0, (uint8_t)(100 + count));
			CHECK(count < sizeof(flows) / sizeof(flows[0]));
			status = switch_flow_open(bench->links[0], &config, &flows[count], &err);
		}
		CHECK(status == ESP_ELIMIT && count > 0);
		CHECK_MSG(round == 0 || count == first, "%u flows, then %u", first, count);
		first = count;
		while (count > 0)
			switch_flow_close(flows[--count]);
	}
	/* two windows of 512 elements, shared by the members: with the one that is open, no more than 64 MiB */
	CHECK((uint64_t)(first + 1) * (1024 / MEMBERS) * 4 * switch_link_words(bench->links[0]) <= 64u << 20);
}

/* A sum that cannot end, as a member is missing, ends when its flow fails; later ones are refused. */
static void test_failure(struct bench *bench)
{
	struct switch_piece piece, later;
	struct switch_sum sum = sum_of(0, 1, &piece), next = sum_of(1, 1, &later);

	CHECK(switch_flow_start(bench->flows[1], &sum));
	switch_flow_fail(bench->flows[1], ESP_EPEER);
	await(1);
	CHECK(sum.status == ESP_EPEER && !switch_flow_start(bench->flows[1], &next));
	CHECK(!switch_flow_has_numbers(bench->flows[1], WORDS, 1));
}

int main(void)
{
	struct bench bench;

	CHECK(sem_init(&ended, 0, 0) == 0);
	bench_open(&bench);
	test_straight(&bench);
	test_budget(&bench);
	test_failure(&bench);
	bench_close(&bench);
	sem_destroy(&ended);
	return 0;
}
