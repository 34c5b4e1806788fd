/*
 * grow_place_test.c - where all join anew when a job grows: nobody else gets the place, and if one member cannot join, or the one that
 * all go to dies, then all members hear that at once, newcomers too.
 */
#include <arpa/inet.h>
#include <errno.h>
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
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "job.h"

enum { RANKS = 4, RANGE = 3, FDS = 1024 };

/* What the processes of a trial share. */
struct board {
	char doors[RANKS][64];
	atomic_uint ready; /* whose doors are known */
	atomic_bool is_placed;
	pid_t leader;
};

static struct board *board;

static void begin_trial(void)
{
	memset(board, 0, sizeof(*board));
	fflush(NULL);
}

/* Who process number `place` of a trial is; it does not return. */
typedef void people_fn(uint32_t place, const char *leader, void *argument);

enum { PEOPLE = 6 };

/* Starts the processes of a trial, whose leader is at this host. */
static void start_trial(const char *host, uint32_t count, people_fn *be, void *argument, pid_t children[PEOPLE])
{
	char leader[64];

	snprintf(leader, sizeof(leader), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, job_free_port());
	begin_trial();
	for (uint32_t i = 0; i < count; i++) {
		children[i] = job_fork();
		if (children[i] == 0)
			be(i, leader, argument);
		if (i == 0)
			board->leader = children[0];
	}
}

/* The same, and waits until they have ended well, but for the victim, which was killed. */
static void run_trial(const char *host, uint32_t count, uint32_t victim, people_fn *be, void *argument)
{
	pid_t children[PEOPLE];

	start_trial(host, count, be, argument, children);
	job_wait(children, count, victim);
}

/* port: a setting; leader NULL: a newcomer, which may be turned away. */
static enum esp_status try_init(uint32_t rank, uint32_t size, const char *leader, const char *port, struct esp_context **out)
{
	const char *const settings[] = {"linger_seconds=1", "log=off", "join_seconds=60", "liveness_ms=2000", port, NULL};
	struct esp_options options = ESP_OPTIONS_INIT;

	options.rank = rank;
	options.size = size;
	options.leader = leader;
	options.job = "growing";
	options.settings = settings;
	return esp_init(&options, out);
}

static struct esp_context *be_rank(uint32_t rank, uint32_t size, const char *leader, const char *port)
{
	struct esp_context *context;

	OK(try_init(rank, size, leader, port, &context));
	OK(esp_door(context, board->doors[rank], sizeof(board->doors[rank])));
	atomic_fetch_add(&board->ready, 1);
	return context;
}

static void await_newcomer(struct esp_context *context)
{
	while (esp_newcomers(context) == 0)
		sched_yield();
}

/* Nobody opens its door before all have. */
static const char *await_door(uint32_t rank, uint32_t size)
{
	while (atomic_load(&board->ready) < size)
		sched_yield();
	return board->doors[rank];
}

static void end(struct esp_context *context)
{
	OK(esp_fini(context));
	exit(0);
}

static void check_and_close(struct esp_context *context, uint32_t size)
{
	int64_t mine = 1, sum = 0;

	OK(esp_allreduce(esp_world(context), &mine, &sum, 1, ESP_I64, ESP_SUM));
	CHECK_U64(sum, size);
	OK(esp_fini(context));
}

static void be_newcomer(uint32_t door_of, uint32_t ranks, uint32_t size)
{
	struct esp_context *context;

	CHECK(setenv("ESP_DOOR", await_door(door_of, ranks), 1) == 0);
	OK(try_init(0, 0, NULL, NULL, &context));
	check_and_close(context, size);
	exit(0);
}

/* ---- somebody else is after the place ---- */

/* A socket that is bound to the port, or -1 and errno. */
static int bind_to(const char *host, uint16_t port)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	bool is_v6 = inet_pton(AF_INET6, host, &v6.sin6_addr) == 1;
	int fd = socket(is_v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	CHECK(is_v6 || inet_pton(AF_INET, host, &v4.sin_addr) == 1);
	if (fd < 0)
		return -1;
	CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
	if (is_v6 ? bind(fd, (struct sockaddr *)&v6, sizeof(v6)) == 0 : bind(fd, (struct sockaddr *)&v4, sizeof(v4)) == 0)
		return fd;
	close(fd);
	return -1;
}

static unsigned count_bound(uint16_t port)
{
	unsigned count = 0;

	for (int fd = 0; fd < FDS; fd++) {
		struct sockaddr_storage name = {0};
		socklen_t length = sizeof(name);

		if (getsockname(fd, (struct sockaddr *)&name, &length) != 0)
			continue;
		if ((name.ss_family == AF_INET && ((struct sockaddr_in *)&name)->sin_port == htons(port)) ||
		    (name.ss_family == AF_INET6 && ((struct sockaddr_in6 *)&name)->sin6_port == htons(port)))
			count++;
	}
	return count;
}

struct thief {
	const char *host;
	uint16_t port;
	unsigned bound_before;
};

/* As soon as this process has the place, somebody else tries to listen there. As it may: another job that grows does. */
static void *steal(void *argument)
{
	const struct thief *thief = argument;

	while (count_bound(thief->port) == thief->bound_before)
		sched_yield();
	int fd = bind_to(thief->host, thief->port);
	if (fd >= 0)
		(void)listen(fd, 1);
	atomic_store(&board->is_placed, true);
	return NULL;
}

static void be_robbed(uint32_t rank, const char *leader, const char *host, uint16_t first, uint16_t last)
{
	char port[32];
	struct thief thief = {host, last, count_bound(last)};
	struct esp_context *grown = NULL;
	pthread_t thread;

	snprintf(port, sizeof(port), "port=%u-%u", first, last);
	struct esp_context *context = be_rank(rank, 2, leader, rank == 0 ? port : NULL);
	if (rank == 0) {
		await_newcomer(context);
		CHECK(pthread_create(&thread, NULL, steal, &thief) == 0);
	}
	while (rank == 1 && !atomic_load(&board->is_placed))
		sched_yield();
	OK(esp_grow(esp_world(context), 0, 0, &grown));
	CHECK(grown != NULL);
	if (rank == 0)
		CHECK(pthread_join(thread, NULL) == 0);
	check_and_close(grown, 3);
	end(context);
}

struct robbery {
	const char *host;
	uint16_t first;
};

static void be_at_robbery(uint32_t place, const char *leader, void *argument)
{
	const struct robbery *robbery = argument;

	if (place < 2)
		be_robbed(place, leader, robbery->host, robbery->first, robbery->first + RANGE - 1);
	be_newcomer(0, 2, 3);
}

static void robbed(const char *host)
{
	struct robbery robbery = {host, job_free_ports(RANGE)};

	run_trial(host, 3, JOB_NOBODY, be_at_robbery, &robbery);
}

/* ---- a member that has no port for a second context ---- */

/* The first port of a range will be the rank's own. So many are left besides, and the others are taken. */
struct range {
	uint16_t first;
	uint32_t left;
	int taken[RANGE];
	char setting[32];
};

static const char *fill_range(struct range *range)
{
	for (uint32_t i = 1 + range->left; i < RANGE; i++) {
		range->taken[i] = bind_to("127.0.0.1", (uint16_t)(range->first + i));
		CHECK(range->taken[i] >= 0 && listen(range->taken[i], 1) == 0);
	}
	snprintf(range->setting, sizeof(range->setting), "port=%u-%u", range->first, range->first + RANGE - 1u);
	return range->setting;
}

static void empty_range(const struct range *range)
{
	for (uint32_t i = 1 + range->left; i < RANGE; i++)
		close(range->taken[i]);
}

static void expect_full(struct esp_group *group, uint32_t full)
{
	struct esp_context *grown = NULL;
	struct esp_error error = ESP_ERROR_INIT;

	EXPECT(esp_grow(group, 0, 0, &grown), ESP_ELINK);
	OK(esp_last_error(&error));
	CHECK_MSG(error.rank == (int32_t)full && strstr(error.text, "are taken on"), "%s (rank %d)", error.text, error.rank);
	OK(esp_barrier(group));
}

/* All hear of it at once; and when there are ports again, they let in who waits still, or comes again. */
static void be_full(uint32_t rank, uint32_t full, const char *leader, struct range *range)
{
	struct esp_context *grown = NULL, *context = be_rank(rank, 3, leader, rank == full ? fill_range(range) : NULL);

	if (rank == 2)
		await_newcomer(context);
	expect_full(esp_world(context), full);
	if (rank == full)
		empty_range(range);
	if (rank == 2)
		await_newcomer(context);
	OK(esp_barrier(esp_world(context)));
	OK(esp_grow(esp_world(context), 0, 0, &grown));
	CHECK(grown != NULL);
	check_and_close(grown, 4);
	end(context);
}

static void expect_turned_away(uint32_t door_of, uint32_t ranks, const char *why)
{
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_context *context;

	CHECK(setenv("ESP_DOOR", await_door(door_of, ranks), 1) == 0);
	enum esp_status status = try_init(0, 0, NULL, NULL, &context);
	OK(esp_last_error(&error));
	CHECK_MSG((status == ESP_ELINK || status == ESP_EPEER) && strstr(error.text, why), "%s: %s", esp_status_name(status), error.text);
}

struct shortage {
	struct range range;
	uint32_t full;
};

static void be_short(uint32_t place, const char *leader, void *argument)
{
	struct shortage *shortage = argument;

	if (place < 3)
		be_full(place, shortage->full, leader, &shortage->range);
	if (shortage->full != 0 || shortage->range.left > 0) /* otherwise there was no place to join at, and nobody was let in */
		expect_turned_away(2, 3, "are taken on this host");
	be_newcomer(2, 3, 4);
}

static void no_port(uint32_t full, uint32_t left)
{
	struct shortage shortage = {.range = {.first = job_free_ports(RANGE), .left = left}, .full = full};

	run_trial("127.0.0.1", 4, JOB_NOBODY, be_short, &shortage);
}

/* ---- a group without the first rank, of which one may listen on one port alone ---- */

static void be_fixed(uint32_t rank, const char *leader, uint16_t port)
{
	enum { FIXED = 2 };
	struct esp_error error = ESP_ERROR_INIT;
	char setting[32];

	snprintf(setting, sizeof(setting), "port=%u", port);
	struct esp_context *grown = NULL, *context = be_rank(rank, 3, leader, rank == FIXED ? setting : NULL);
	struct esp_group *part;

	OK(esp_group_split(esp_world(context), rank > 0, 0, &part));
	if (rank > 0) {
		if (rank == 1)
			await_newcomer(context);
		EXPECT(esp_grow(part, 0, 0, &grown), ESP_ELIMIT);
		OK(esp_last_error(&error));
		CHECK_MSG(error.rank == FIXED && strstr(error.text, "rank 2 may listen on port "), "%s (rank %d)", error.text, error.rank);
	}
	OK(esp_barrier(esp_world(context)));
	end(context);
}

static void be_at_fixed(uint32_t place, const char *leader, void *port)
{
	if (place < 3)
		be_fixed(place, leader, *(uint16_t *)port);
	be_newcomer(1, 3, 0); /* it waits until it is killed */
}

static void fixed_port(void)
{
	uint16_t port = job_free_ports(1);
	pid_t children[PEOPLE];

	start_trial("127.0.0.1", 4, be_at_fixed, &port, children);
	job_wait(children, 3, JOB_NOBODY);
	CHECK(kill(children[3], SIGKILL) == 0);
	job_wait(children + 3, 1, 0);
}

/* ---- two groups of a job at once, of which one cannot ---- */

static void be_of_two(uint32_t rank, const char *leader, struct range *range)
{
	enum { FULL = 3 };
	struct esp_context *grown = NULL, *context = be_rank(rank, 4, leader, rank == FULL ? fill_range(range) : NULL);
	struct esp_group *half;

	OK(esp_group_split(esp_world(context), rank / 2, 0, &half));
	if (rank % 2 == 0)
		await_newcomer(context);
	OK(esp_barrier(esp_world(context)));
	if (rank < 2) {
		OK(esp_grow(half, 0, 0, &grown));
		CHECK(grown != NULL);
		check_and_close(grown, 3);
	} else {
		expect_full(half, FULL);
	}
	OK(esp_barrier(esp_world(context)));
	if (rank == FULL)
		empty_range(range);
	end(context);
}

static void be_at_two(uint32_t place, const char *leader, void *range)
{
	if (place < 4)
		be_of_two(place, leader, range);
	if (place == 4)
		be_newcomer(0, 4, 3);
	expect_turned_away(2, 4, "are taken on this host");
	exit(0);
}

static void two_groups(void)
{
	struct range range = {.first = job_free_ports(RANGE)};

	run_trial("127.0.0.1", 6, JOB_NOBODY, be_at_two, &range);
}

/* ---- a newcomer dies that has the number of another rank ---- */

static void die_when_joined(void *context, int level, const char *line)
{
	(void)context;
	(void)level;
	if (strstr(line, "joined 3 ranks"))
		raise(SIGKILL);
}

static void be_mortal(void)
{
	static const char *const settings[] = {"log=info", "join_seconds=60", "liveness_ms=2000", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *context;

	CHECK(setenv("ESP_DOOR", await_door(0, 3), 1) == 0);
	options.job = "growing";
	options.settings = settings;
	options.log = die_when_joined;
	(void)esp_init(&options, &context);
	exit(1);
}

/* Rank 2 of the old job is well; rank 2 of the new one would have been the newcomer. */
static void be_confused(uint32_t rank, const char *leader)
{
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_context *grown = NULL, *context = be_rank(rank, 3, leader, NULL);
	struct esp_group *part;

	OK(esp_group_split(esp_world(context), rank < 2, 0, &part));
	if (rank == 0)
		await_newcomer(context);
	if (rank < 2) {
		enum esp_status status = esp_grow(part, 0, 0, &grown);
		OK(esp_last_error(&error));
		CHECK_MSG((status == ESP_EPEER || status == ESP_ELINK) && error.rank == -1 && strstr(error.text, "the newcomer that was to become rank 2: "), "%s (rank %d)", error.text, error.rank);
	}
	OK(esp_barrier(esp_world(context)));
	end(context);
}

static void be_at_death(uint32_t place, const char *leader, void *unused)
{
	(void)unused;
	if (place < 3)
		be_confused(place, leader);
	be_mortal();
}

static void newcomer_dies(void)
{
	run_trial("127.0.0.1", 4, 3, be_at_death, NULL);
}

/* ---- the one that all go to dies ---- */

/* The key is mentioned once when a newcomer comes to a door, and once more when it is invited and begins to join. */
static void kill_when_invited(void *context, int level, const char *line)
{
	unsigned *mentions = context;

	(void)level;
	if (strstr(line, "the job's key") && ++*mentions == 2)
		CHECK(kill(board->leader, SIGKILL) == 0);
}

static void be_killer(void)
{
	static const char *const settings[] = {"log=info", "join_seconds=60", "liveness_ms=2000", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_context *context;
	unsigned mentions = 0;

	CHECK(setenv("ESP_DOOR", await_door(1, 3), 1) == 0);
	options.job = "growing";
	options.settings = settings;
	options.log = kill_when_invited;
	options.log_context = &mentions;
	EXPECT(esp_init(&options, &context), ESP_EPEER);
	OK(esp_last_error(&error));
	CHECK_MSG(strstr(error.text, "rank 0"), "%s", error.text);
	exit(0);
}

static void be_left(uint32_t rank, const char *leader)
{
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_context *grown = NULL, *context = be_rank(rank, 3, leader, NULL);
	struct esp_group *left;

	if (rank == 1)
		await_newcomer(context);
	EXPECT(esp_grow(esp_world(context), 0, 0, &grown), ESP_EPEER);
	OK(esp_last_error(&error));
	CHECK_MSG(error.rank == 0, "%s (rank %d)", error.text, error.rank);
	OK(esp_group_shrink(esp_world(context), NULL, &left));
	CHECK_U64(esp_size(left), 2);
	OK(esp_barrier(left));
	end(context);
}

static void be_at_murder(uint32_t place, const char *leader, void *unused)
{
	(void)unused;
	if (place < 3)
		be_left(place, leader);
	be_killer();
}

static void leader_dies(void)
{
	run_trial("127.0.0.1", 4, 0, be_at_murder, NULL);
}

int main(void)
{
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(board != MAP_FAILED);
	robbed("127.0.0.1");
	int v6 = bind_to("::1", 0);
	if (v6 >= 0) {
		close(v6);
		robbed("::1");
	}
	no_port(0, 0);
	no_port(0, 1);
	no_port(1, 0);
	fixed_port();
	two_groups();
	newcomer_dies();
	leader_dies();
	munmap(board, sizeof(*board));
	return 0;
}
