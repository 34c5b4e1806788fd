/*
 * told_test.c - a rank dies while it tells the others of the topology, or is told: the others have joined, and go on without it.
 *
 *     job_told_test [--seed N] [--count N]
 *
 * Some of them know the topology then and others do not, or only half of it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "job.h"

enum { RANKS = 5, FILLING = 8 << 20, COUNT = 100000 };

struct trial {
	char leader[32];
	const char *topology;
	uint32_t victim;
};

/* A long text: some have heard all of it when others have not. */
static void write_topology(int fd)
{
	static char comment[1 << 16];
	char name[65] = "", text[256];

	CHECK(gethostname(name, sizeof(name) - 1) == 0);
	int n = snprintf(text, sizeof(text), "topology 1\nswitch core\nhost %s under core rate 1gbit\nhost other under core rate 1gbit\n", name);
	CHECK(write(fd, text, (size_t)n) == n);
	memset(comment, '#', sizeof(comment));
	for (size_t i = 63; i < sizeof(comment); i += 64)
		comment[i] = '\n';
	for (size_t i = 0; i < FILLING; i += sizeof(comment))
		CHECK(write(fd, comment, sizeof(comment)) == sizeof(comment));
}

/* It knows the topology now. */
static void die_when_told(void *context, int level, const char *line)
{
	const bool *dies = context;

	(void)level;
	if (*dies && strstr(line, "of them in this job"))
		raise(SIGKILL);
}

static void check_sum(struct esp_group *group)
{
	int32_t *data = calloc(COUNT, sizeof(*data));

	CHECK(data != NULL);
	for (int i = 0; i < COUNT; i++)
		data[i] = i;
	OK(esp_allreduce(group, data, data, COUNT, ESP_I32, ESP_SUM));
	for (int i = 0; i < COUNT; i++)
		CHECK(data[i] == i * (int32_t)esp_size(group));
	free(data);
}

static void be_rank(uint32_t rank, const struct trial *trial)
{
	char topology[64];
	const char *settings[] = {"transport=tcp", "linger_seconds=2", "log=trace", topology, NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *context;
	struct esp_group *left;
	bool dies = rank == trial->victim;

	snprintf(topology, sizeof(topology), "topology=%s", trial->topology);
	options.rank = rank;
	options.size = RANKS;
	options.leader = trial->leader;
	options.job = "told";
	options.settings = settings;
	options.log = die_when_told;
	options.log_context = &dies;
	OK(esp_init(&options, &context));
	CHECK(!dies);
	while (esp_barrier(esp_world(context)) == ESP_OK)
		;
	OK(esp_group_shrink(esp_world(context), NULL, &left));
	CHECK_U64(esp_size(left), RANKS - 1);
	check_sum(left);
	OK(esp_group_free(left));
	OK(esp_fini(context));
	exit(0);
}

static void run_trial(struct trial *trial)
{
	pid_t children[RANKS];

	snprintf(trial->leader, sizeof(trial->leader), "127.0.0.1:%u", job_free_port());
	for (uint32_t i = 0; i < RANKS; i++) {
		children[i] = job_fork();
		if (children[i] == 0)
			be_rank(i, trial);
	}
	job_wait(children, RANKS, trial->victim);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 12);
	char path[] = "/tmp/told_test.XXXXXX";
	int fd = mkstemp(path);

	CHECK(fd >= 0);
	write_topology(fd);
	close(fd);
	for (uint64_t i = 0; i < count; i++) {
		struct rng rng;

		rng_init(&rng, seed + i);
		struct trial trial = {.topology = path, .victim = rng_chance(&rng, 1, 2) ? 0 : (uint32_t)rng_below(&rng, RANKS)};
		printf("--seed %llu --count 1: victim %u\n", (unsigned long long)seed + i, trial.victim);
		run_trial(&trial);
	}
	unlink(path);
	return 0;
}
