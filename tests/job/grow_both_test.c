/*
 * grow_both_test.c - two groups with the same ranks grow at the same time: each newcomer is let in by one of them, and what becomes of one
 * group's newcomers is not the other's business.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "job.h"

enum { RANKS = 2, FDS = 1024 };

/* What the processes of a trial share. */
struct board {
	char doors[RANKS][64];
	atomic_uint ready;  /* ranks whose doors are known                            */
	atomic_uint placed; /* growths whose first member has counted its newcomers   */
	atomic_uint failed; /* ranks on which the first group could not grow          */
};

static struct board *board;

static struct esp_context *be_rank(uint32_t rank, const char *leader)
{
	static const char *const settings[] = {"linger_seconds=1", "log=off", "join_seconds=60", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *context;

	options.rank = rank;
	options.size = RANKS;
	options.leader = leader;
	options.job = "growing";
	options.settings = settings;
	OK(esp_init(&options, &context));
	OK(esp_door(context, board->doors[rank], sizeof(board->doors[rank])));
	atomic_fetch_add(&board->ready, 1);
	return context;
}

static void await(atomic_uint *number, unsigned wanted)
{
	while (atomic_load(number) < wanted)
		sched_yield();
}

static enum esp_status knock(uint32_t door_of, void (*log)(void *, int, const char *), struct esp_context **out)
{
	static const char *const settings[] = {"linger_seconds=1", "log=info", "join_seconds=60", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	unsigned mentions = 0;

	await(&board->ready, RANKS);
	CHECK(setenv("ESP_DOOR", board->doors[door_of], 1) == 0);
	options.job = "growing";
	options.settings = settings;
	options.log = log;
	options.log_context = &mentions;
	return esp_init(&options, out);
}

static void check_and_close(struct esp_context *context, uint32_t size)
{
	int64_t mine = 1, sum = 0;

	OK(esp_allreduce(esp_world(context), &mine, &sum, 1, ESP_I64, ESP_SUM));
	CHECK_U64(sum, size);
	OK(esp_fini(context));
}

/* One more when the first member of a group that grows has counted who waits at its door. */
static unsigned count_listening(void)
{
	unsigned count = 0;

	for (int fd = 0; fd < FDS; fd++) {
		int listens = 0, domain = 0;
		socklen_t length = sizeof(listens);

		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) == 0 && domain == AF_INET &&
		    getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0)
			count += listens != 0;
	}
	return count;
}

struct growth {
	struct esp_group *group;
	enum esp_status status;
	struct esp_context *out;
	pthread_t thread;
};

static void *grow(void *argument)
{
	struct growth *growth = argument;

	growth->status = esp_grow(growth->group, 0, 0, &growth->out);
	return NULL;
}

static void start(struct growth *growth)
{
	CHECK(pthread_create(&growth->thread, NULL, grow, growth) == 0);
}

/* This rank is the group's first, and the others have not begun. */
static void start_and_count(struct growth *growth)
{
	unsigned before = count_listening();

	start(growth);
	while (count_listening() == before)
		sched_yield();
	atomic_fetch_add(&board->placed, 1);
}

static void start_trial(char leader[64])
{
	memset(board, 0, sizeof(*board));
	snprintf(leader, 64, "127.0.0.1:%u", job_free_port());
	fflush(NULL);
}

/* ---- one newcomer for both ---- */

static void be_shared(uint32_t rank, const char *leader)
{
	struct esp_context *context = be_rank(rank, leader);
	struct growth one = {.group = esp_world(context)}, other = {0};

	OK(esp_group_split(esp_world(context), 0, 0, &other.group));
	if (rank == 0) {
		while (esp_newcomers(context) == 0)
			sched_yield();
		start_and_count(&one);
		start_and_count(&other);
	} else {
		await(&board->placed, 2);
		start(&one);
		start(&other);
	}
	CHECK(pthread_join(one.thread, NULL) == 0 && pthread_join(other.thread, NULL) == 0);
	CHECK_MSG(one.status == ESP_OK && one.out, "the first group: %s", esp_status_name(one.status));
	CHECK_MSG(other.status == ESP_OK && !other.out, "the other group: %s", esp_status_name(other.status));
	check_and_close(one.out, RANKS + 1);
	OK(esp_fini(context));
	exit(0);
}

static void one_for_both(void)
{
	struct esp_context *context;
	pid_t children[RANKS + 1];
	char leader[64];

	start_trial(leader);
	for (uint32_t i = 0; i < RANKS + 1; i++) {
		children[i] = job_fork();
		if (children[i] != 0)
			continue;
		if (i < RANKS)
			be_shared(i, leader);
		OK(knock(0, NULL, &context));
		check_and_close(context, RANKS + 1);
		exit(0);
	}
	job_wait(children, RANKS + 1, JOB_NOBODY);
}

/* ---- one for each, and one dies ---- */

/* The key is mentioned once when a newcomer comes to a door, and once more when it is invited and begins to join. */
static bool is_invited(unsigned *mentions, const char *line)
{
	return strstr(line, "the job's key") && ++*mentions == 2;
}

static void die_when_invited(void *context, int level, const char *line)
{
	(void)level;
	if (is_invited(context, line)) {
		await(&board->placed, RANKS + 1); /* until the other one has been invited, too */
		raise(SIGKILL);
	}
}

static void pause_when_invited(void *context, int level, const char *line)
{
	(void)level;
	if (is_invited(context, line)) {
		atomic_fetch_add(&board->placed, 1);
		await(&board->failed, RANKS);
	}
}

/* The first member of the one group is rank 0, and of the other one rank 1: each has counted its own newcomer before anybody else counts. */
static void be_apart(uint32_t rank, const char *leader)
{
	struct esp_context *context = be_rank(rank, leader);
	struct growth one = {.group = esp_world(context)}, other = {0};
	struct esp_error error = ESP_ERROR_INIT;

	OK(esp_group_split(esp_world(context), 0, (int32_t)(RANKS - rank), &other.group));
	while (esp_newcomers(context) == 0)
		sched_yield();
	start_and_count(rank == 0 ? &one : &other);
	await(&board->placed, 2);
	start(rank == 0 ? &other : &one);
	CHECK(pthread_join(one.thread, NULL) == 0);
	CHECK_MSG(one.status == ESP_EPEER, "the first group: %s", esp_status_name(one.status));
	atomic_fetch_add(&board->failed, 1);
	CHECK(pthread_join(other.thread, NULL) == 0);
	OK(esp_last_error(&error));
	CHECK_MSG(other.status == ESP_OK && other.out, "the other group: %s", esp_status_name(other.status));
	check_and_close(other.out, RANKS + 1);
	OK(esp_barrier(esp_world(context)));
	OK(esp_fini(context));
	exit(0);
}

static void one_for_each(void)
{
	struct esp_context *context;
	pid_t children[RANKS + 2];
	char leader[64];

	start_trial(leader);
	for (uint32_t i = 0; i < RANKS + 2; i++) {
		children[i] = job_fork();
		if (children[i] != 0)
			continue;
		if (i < RANKS)
			be_apart(i, leader);
		if (i == RANKS)
			(void)knock(0, die_when_invited, &context);
		OK(knock(1, pause_when_invited, &context));
		check_and_close(context, RANKS + 1);
		exit(0);
	}
	job_wait(children, RANKS + 2, RANKS);
}

int main(void)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(board != MAP_FAILED);
	one_for_both();
	one_for_each();
	munmap(board, sizeof(*board));
	return 0;
}
