/*
 * Links of four members, a switch that loses packets, and a flow of few numbers: the flow number changes again and
 * again while sums are under way, at the same sum on all members, and no sum is wrong.
 */
#include <semaphore.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "switch/server/switch_server.h"
#include "switch/worker/switch_link.h"

#define MEMBERS 4u
#define WORDS 60000u
#define SUMS 24u
#define AT_ONCE 3u
#define ANSWER_NS (60 * NS_PER_S)

static sem_t ended;
static uint32_t in[AT_ONCE][MEMBERS][WORDS], out[AT_ONCE][MEMBERS][WORDS];

static uint16_t free_port(void)
{
	union trains_address address = {.v4 = {.sin_family = AF_INET}};
	socklen_t length = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0 && bind(fd, &address.any, sizeof(address.v4)) == 0 && getsockname(fd, &address.any, &length) == 0);
	close(fd);
	return ntohs(address.v4.sin_port);
}

/* In a process of its own, until it is told to end. */
static pid_t start_switch(uint16_t port, double loss)
{
	struct switch_config config = {.slots = 600, .words_max = ATP_WORDS_MAX, .quota = 600, .flow_quota = 16, .age_ns = NS_PER_S,
	                               .impair = {.seed = 5, .loss = loss, .repeat = loss, .reorder = loss},
	                               .version = "test"};
	struct switch_server *server;
	struct error err;
	char text[32];

	pid_t child = fork();
	CHECK(child >= 0);
	if (child > 0)
		return child;
	snprintf(text, sizeof(text), "127.0.0.1:%u", port);
	CHECK(address_parse(text, "test", &config.listen, &err) == ESP_OK);
	CHECK_MSG(switch_server_open(&config, &server, &err) == ESP_OK, "%s", err.text);
	switch_server_run(server);
	switch_server_close(server);
	_exit(0);
}

static void done(struct switch_sum *sum, enum esp_status status)
{
	sum->status = status;
	sem_post(&ended);
}

struct bench {
	struct switch_link *links[MEMBERS];
	struct switch_flow *flows[MEMBERS];
	union trains_address addresses[MEMBERS];
	uint32_t refused; /* rounds in which some member had no numbers */
};

static void bench_open(struct bench *bench, uint16_t port)
{
	union trains_address server = {.v4 = {.sin_family = AF_INET, .sin_port = htons(port)}};
	struct error err;

	*bench = (struct bench){0};
	server.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		CHECK_MSG(switch_link_open(&server, &bench->links[i], &err) == ESP_OK, "%s", err.text);
		bench->addresses[i] = *switch_link_address(bench->links[i]);
	}
	for (uint16_t i = 0; i < MEMBERS; i++) {
		uint16_t words = 400; /* 150 elements of a sum, so two sums and no third fit */
		struct switch_flow_config config = {.secret = {9, 1, 2, 3}, .self = i, .members = MEMBERS,
		                                    .addresses = bench->addresses, .words = words, .limit = 400};
		CHECK_MSG(switch_flow_open(bench->links[i], &config, &bench->flows[i], &err) == ESP_OK, "%s", err.text);
	}
	for (uint32_t i = 0; i < MEMBERS; i++)
		CHECK(switch_flow_await(bench->flows[i], clock_now_ns() + ANSWER_NS));
}

static void bench_close(struct bench *bench)
{
	for (uint32_t i = 0; i < MEMBERS; i++)
		switch_link_stop(bench->links[i]);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		switch_flow_close(bench->flows[i]);
		switch_link_close(bench->links[i]);
	}
}

static void start(struct bench *bench, uint32_t number, struct switch_piece pieces[MEMBERS],
                  struct switch_sum sums[MEMBERS])
{
	uint32_t slot = number % AT_ONCE;
	bool all = true;

	for (uint32_t member = 0; member < MEMBERS; member++) {
		for (uint32_t k = 0; k < WORDS; k++)
			in[slot][member][k] = 1000 * member + 7 * k + number;
		pieces[member] = (struct switch_piece){.in = in[slot][member], .out = out[slot][member], .words = WORDS};
		sums[member] = (struct switch_sum){
			.pieces = &pieces[member], .piece_count = 1, .kind = ATP_SIGNED, .call = 40 + number, .done = done};
		all = switch_flow_has_numbers(bench->flows[member], WORDS, 1) && all;
	}
	/* Ranks would take an ordinary plan then; here the link has to open the generation by itself. */
	bench->refused += !all;
	for (uint32_t member = 0; member < MEMBERS; member++)
		CHECK(switch_flow_start(bench->flows[member], &sums[member]));
}

static void check(uint32_t number, const struct switch_sum sums[MEMBERS])
{
	for (uint32_t member = 0; member < MEMBERS; member++) {
		CHECK(sums[member].status == ESP_OK);
		for (uint32_t k = 0; k < WORDS; k++)
			CHECK_U64(out[number % AT_ONCE][member][k], 6000 + MEMBERS * (7 * k + number));
	}
}

static void run_sums(struct bench *bench)
{
	struct switch_piece pieces[AT_ONCE][MEMBERS];
	struct switch_sum sums[AT_ONCE][MEMBERS];

	for (uint32_t first = 0; first < SUMS; first += AT_ONCE) {
		for (uint32_t i = 0; i < AT_ONCE; i++)
			start(bench, first + i, pieces[i], sums[i]);
		for (uint32_t i = 0; i < AT_ONCE * MEMBERS; i++)
			while (sem_wait(&ended) != 0)
				;
		for (uint32_t i = 0; i < AT_ONCE; i++)
			check(first + i, sums[i]);
	}
}

static void test_rollover(double loss)
{
	uint16_t port = free_port();
	pid_t server = start_switch(port, loss);
	struct bench bench;
	int status;

	bench_open(&bench, port);
	run_sums(&bench);
	for (uint32_t member = 0; member < MEMBERS; member++) {
		struct switch_flow_stats stats;
		switch_flow_stats(bench.flows[member], &stats);
		CHECK_U64(stats.sums, SUMS);
		CHECK_U64(stats.generations, SUMS / 2);
		CHECK(stats.originals > 0);
		printf("loss %g, member %u: %" PRIu64 " generations, %" PRIu64 " packets through the switch, %" PRIu64
		       " straight, %" PRIu64 " again\n", loss, member, stats.generations, stats.originals, stats.direct,
		       stats.resends + stats.bypasses);
	}
	printf("%u of %u sums began before all members had numbers for them\n", bench.refused, SUMS);
	bench_close(&bench);
	CHECK(kill(server, SIGTERM) == 0 && waitpid(server, &status, 0) == server && status == 0);
}

int main(void)
{
	CHECK(sem_init(&ended, 0, 0) == 0);
	test_rollover(0);
	test_rollover(0.03);
	sem_destroy(&ended);
	return 0;
}
