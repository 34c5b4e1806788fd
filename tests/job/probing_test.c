/*
 * probing_test.c - jobs that measure their network when they start: the program's world is untouched by it, whoever dies meanwhile.
 *
 *     job_probing_test [--seed N] [--count N]
 *
 * Every rank is a process on a host of its own: other namespaces for names and for memory are enough for that, and loopback is the network.
 * Where such namespaces cannot be made the test is skipped.
 */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "job.h"

enum { RANKS = 4, SKIPPED = 77, COUNT = 100000 };

/* This process is on a host of its own from now on. False: it may not. */
static bool move_out(const char *name)
{
	if (unshare(CLONE_NEWUTS | CLONE_NEWIPC) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWUTS | CLONE_NEWIPC) != 0)
		return false;
	return sethostname(name, strlen(name)) == 0;
}

static bool can_move_out(void)
{
	int status;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0)
		_exit(move_out("other") ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- what ranks do ---- */

struct trial {
	char leader[32];
	uint32_t victim;  /* RANKS: nobody dies */
	uint64_t late_ns; /* how long it probes before */
};

/* Large enough for plans that follow a topology. */
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

static bool has_datagrams(void)
{
	DIR *folder = opendir("/proc/self/fd");
	bool has = false;

	CHECK(folder != NULL);
	for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
		int type = 0, family = 0, fd = (int)strtol(entry->d_name, NULL, 10);
		socklen_t length = sizeof(type);

		has = has || (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_DGRAM &&
		              getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length) == 0 && (family == AF_INET || family == AF_INET6));
	}
	closedir(folder);
	return has;
}

/* Only who probes has a socket for datagrams. */
static void *die_while_probing(void *argument)
{
	const struct trial *trial = argument;
	struct timespec nap = {(time_t)(trial->late_ns / 1000000000), (long)(trial->late_ns % 1000000000)};

	while (!has_datagrams())
		sched_yield();
	nanosleep(&nap, NULL);
	raise(SIGKILL);
	return NULL;
}

/* size 0: a newcomer. */
static struct esp_context *start(uint32_t rank, uint32_t size, const char *leader)
{
	static const char *const settings[] = {"topology=probe", "linger_seconds=2", "log=off", "join_seconds=60", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *context;

	options.rank = rank;
	options.size = size;
	options.leader = leader;
	options.job = "probing";
	options.settings = settings;
	OK(esp_init(&options, &context));
	CHECK_U64(esp_group_calls(esp_world(context)), 0);
	return context;
}

/* Those who are left of the world, as the program has it: it has not been shrunk before. */
static void go_on(struct esp_group *world, const struct trial *trial)
{
	struct esp_shrink shrink = ESP_SHRINK_INIT;
	struct esp_group *left = NULL;
	uint32_t lost = RANKS;

	while (esp_barrier(world) == ESP_OK)
		;
	shrink.lost = &lost;
	shrink.lost_room = 1;
	OK(esp_group_shrink(world, &shrink, &left));
	CHECK(shrink.lost_count == 1 && lost == trial->victim);
	CHECK_U64(esp_size(left), RANKS - 1);
	check_sum(left);
	check_sum(left);
	CHECK_U64(esp_group_calls(left), 2);
	OK(esp_group_free(left));
}

static void be_rank(uint32_t rank, struct trial *trial)
{
	pthread_t thread;
	char name[16];

	snprintf(name, sizeof(name), "host%u", rank);
	CHECK(move_out(name));
	if (rank == trial->victim)
		CHECK(pthread_create(&thread, NULL, die_while_probing, trial) == 0);
	struct esp_context *context = start(rank, RANKS, trial->leader);
	struct esp_group *world = esp_world(context);
	if (trial->victim < RANKS) {
		go_on(world, trial);
	} else {
		check_sum(world);
		CHECK_U64(esp_group_calls(world), 1);
	}
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

/* ---- equal names ---- */

/* How many hosts it is told to be on. */
static void hear(void *context, int level, const char *line)
{
	atomic_bool *is_good = context;

	(void)level;
	if (strstr(line, "topology that was probed: 4 hosts, 4 of them in this job"))
		*is_good = true;
}

static void be_twin(uint32_t rank, const char *leader)
{
	static const char *const settings[] = {"topology=probe", "linger_seconds=2", "log=trace", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *context;
	atomic_bool is_good = false;

	CHECK(move_out("localhost"));
	options.rank = rank;
	options.size = RANKS;
	options.leader = leader;
	options.job = "probing";
	options.settings = settings;
	options.log = hear;
	options.log_context = &is_good;
	OK(esp_init(&options, &context));
	CHECK(is_good);
	check_sum(esp_world(context));
	OK(esp_fini(context));
	exit(0);
}

/* Machines that nobody has named are several machines all the same. */
static void twins(void)
{
	char leader[32];
	pid_t children[RANKS];

	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	for (uint32_t i = 0; i < RANKS; i++) {
		children[i] = job_fork();
		if (children[i] == 0)
			be_twin(i, leader);
	}
	job_wait(children, RANKS, JOB_NOBODY);
}

/* ---- a job that grows ---- */

enum { MEMBERS = 2 };

static void be_member(uint32_t rank, const char *leader, int door_fd)
{
	CHECK(move_out(rank ? "one" : "zero"));
	struct esp_context *context = start(rank, MEMBERS, leader), *grown = NULL;
	char door[64] = "";

	if (rank == 0) {
		OK(esp_door(context, door, sizeof(door)));
		CHECK(write(door_fd, door, sizeof(door)) == sizeof(door));
		while (esp_newcomers(context) == 0)
			sched_yield();
	}
	OK(esp_grow(esp_world(context), 0, 0, &grown));
	CHECK(grown != NULL);
	CHECK_U64(esp_size(esp_world(grown)), MEMBERS + 1);
	CHECK_U64(esp_group_calls(esp_world(grown)), 0);
	check_sum(esp_world(grown));
	OK(esp_fini(context));
	OK(esp_fini(grown));
	exit(0);
}

static void be_newcomer(const char *door)
{
	CHECK(move_out("newcomer") && setenv("ESP_DOOR", door, 1) == 0);
	struct esp_context *context = start(0, 0, NULL);
	CHECK_U64(esp_size(esp_world(context)), MEMBERS + 1);
	check_sum(esp_world(context));
	OK(esp_fini(context));
	exit(0);
}

/* The world that has grown is probed by all who are in it, before anybody's first call. */
static void growing(void)
{
	char leader[32], door[64];
	pid_t children[MEMBERS + 1];
	int doors[2];

	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	CHECK(pipe(doors) == 0);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		children[i] = job_fork();
		if (children[i] == 0)
			be_member(i, leader, doors[1]);
	}
	CHECK(read(doors[0], door, sizeof(door)) == sizeof(door));
	children[MEMBERS] = job_fork();
	if (children[MEMBERS] == 0)
		be_newcomer(door);
	job_wait(children, MEMBERS + 1, JOB_NOBODY);
	close(doors[0]);
	close(doors[1]);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 4);

	if (!can_move_out()) {
		printf("namespaces cannot be made here\n");
		return SKIPPED;
	}
	for (uint64_t i = 0; i < count; i++) {
		struct rng rng;

		rng_init(&rng, seed + i);
		struct trial trial = {.victim = i == 0 ? RANKS : (uint32_t)rng_below(&rng, RANKS)};
		trial.late_ns = rng_chance(&rng, 1, 3) ? 0 : rng_below(&rng, 3500000000);
		printf("--seed %llu --count 1: rank %u dies after %.3f s\n", (unsigned long long)seed + i, trial.victim, (double)trial.late_ns * 1e-9);
		run_trial(&trial);
	}
	twins();
	growing();
	return 0;
}
