/*
 * grow_test.c - newcomers are let in at any rank's door, after some have died too; everybody has the same world then.
 *
 *     job_grow_test [--seed N] [--count N]
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"
#include "job.h"

enum { RANKS_MOST = 8, NEWCOMERS_MOST = 4, STEPS = 30 };

/* What the processes of a trial share. */
struct board {
	char doors[RANKS_MOST][64]; /* by rank, once it has joined */
};

struct trial {
	uint32_t size, newcomers, victim; /* victim: dies before the newcomers come; size: nobody does */
	const char *transport;
	struct board *board;
};

static void check_world(struct esp_context *context, uint32_t size)
{
	struct esp_group *world = esp_world(context);
	int64_t mine = 1, sum = 0;

	CHECK_U64(esp_size(world), size);
	for (int i = 0; i < STEPS; i++) {
		OK(esp_allreduce(world, &mine, &sum, 1, ESP_I64, ESP_SUM));
		CHECK(sum == (int64_t)size);
	}
}

/* The group in which all of them are who are left, once the victim is gone. */
static struct esp_group *after_death(struct esp_context *context, const struct trial *trial)
{
	struct esp_group *left = esp_world(context);

	if (trial->victim == trial->size)
		return left;
	while (esp_barrier(esp_world(context)) == ESP_OK)
		;
	OK(esp_group_shrink(esp_world(context), NULL, &left));
	CHECK_U64(esp_size(left), trial->size - 1);
	return left;
}

static void be_rank(uint32_t rank, const struct trial *trial, const char *leader, int ready_fd)
{
	struct esp_options options = ESP_OPTIONS_INIT;
	const char *settings[] = {"linger_seconds=2", "log=off", trial->transport, NULL};
	struct esp_context *context, *grown = NULL;
	uint32_t left_size = trial->size - (trial->victim < trial->size), let_in = 0;

	options.rank = rank;
	options.size = trial->size;
	options.leader = leader;
	options.job = "growing";
	options.settings = settings;
	OK(esp_init(&options, &context));
	OK(esp_door(context, trial->board->doors[rank], sizeof(trial->board->doors[rank])));
	CHECK(write(ready_fd, "r", 1) == 1);
	if (rank == trial->victim)
		raise(SIGKILL);
	struct esp_group *group = after_death(context, trial);
	/* They come when they come: some with this turn, some with the next. */
	while (let_in < trial->newcomers) {
		OK(esp_grow(group, 0, 0, &grown));
		if (!grown)
			continue;
		let_in = esp_size(esp_world(grown)) - left_size;
		check_world(grown, left_size + let_in);
		CHECK_U64(esp_rank(esp_world(grown)), rank - (rank > trial->victim));
		OK(esp_fini(context));
		context = grown;
		group = esp_world(context);
	}
	OK(esp_fini(context));
	exit(0);
}

/* The number that tells newcomers from each other is the world's: they go on as any rank, and let the next ones in. */
static void be_newcomer(const struct trial *trial, const char *doors)
{
	struct esp_options options = ESP_OPTIONS_INIT;
	const char *settings[] = {"linger_seconds=2", "log=off", trial->transport, NULL};
	struct esp_context *context, *grown;
	uint32_t whole = trial->size - (trial->victim < trial->size) + trial->newcomers;

	CHECK(setenv("ESP_DOOR", doors, 1) == 0);
	options.job = "growing";
	options.settings = settings;
	OK(esp_init(&options, &context));
	uint32_t size = esp_size(esp_world(context));
	check_world(context, size);
	while (size < whole) {
		OK(esp_grow(esp_world(context), 0, 0, &grown));
		if (!grown)
			continue;
		size = esp_size(esp_world(grown));
		check_world(grown, size);
		OK(esp_fini(context));
		context = grown;
	}
	OK(esp_fini(context));
	exit(0);
}

/* One whose settings do not fit is told so at the door: it must not spoil the joining of all others. */
static void knock_with_other_settings(const char *door)
{
	static const char *const settings[] = {"chunk_bytes=65536", "log=off", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_context *context;
	char self[64];

	CHECK(setenv("ESP_DOOR", door, 1) == 0);
	options.job = "growing";
	options.settings = settings;
	EXPECT(esp_init(&options, &context), ESP_EMISMATCH);
	OK(esp_last_error(&error));
	snprintf(self, sizeof(self), "process %d on ", (int)getpid());
	CHECK_MSG(strstr(error.text, self) && strstr(error.text, " has chunk_bytes=64K") && strstr(error.text, ", but rank ") && strstr(error.text, " has chunk_bytes=0"),
	          "%s", error.text);
	options.settings = NULL;
	options.job = "shrinking";
	EXPECT(esp_init(&options, &context), ESP_EMISMATCH);
	OK(esp_last_error(&error));
	CHECK_MSG(strstr(error.text, self) && strstr(error.text, "'shrinking'") && strstr(error.text, "'growing'"), "%s", error.text);
	exit(0);
}

/* One that has another key is told what may be wrong, when its time is over; which is longer where the door is slow to answer. */
static void knock_with_other_key(const char *door)
{
	char patience[32];
	const char *const settings[] = {patience, "log=off", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_context *context;

	CHECK(setenv("ESP_DOOR", door, 1) == 0 && setenv("ESP_KEY", "0123456789abcdef0123456789abcdef", 1) == 0);
	options.job = "growing";
	options.settings = settings;
	for (unsigned seconds = 1; seconds <= 32 && !strstr(error.text, "another key"); seconds *= 2) {
		snprintf(patience, sizeof(patience), "join_seconds=%u", seconds);
		EXPECT(esp_init(&options, &context), ESP_ETIMEOUT);
		OK(esp_last_error(&error));
	}
	CHECK_MSG(strstr(error.text, "another key") != NULL, "%s", error.text);
	exit(0);
}

static void run_trial(const struct trial *trial, struct rng *rng)
{
	char leader[32], byte, doors[NEWCOMERS_MOST][256];
	pid_t children[RANKS_MOST + NEWCOMERS_MOST];
	int ready[2], status;

	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	CHECK(pipe(ready) == 0);
	fflush(NULL);
	for (uint32_t i = 0; i < trial->size; i++) {
		children[i] = job_fork();
		if (children[i] == 0)
			be_rank(i, trial, leader, ready[1]);
	}
	for (uint32_t i = 0; i < trial->size; i++)
		CHECK(read(ready[0], &byte, 1) == 1);
	for (unsigned i = 0; i < 2; i++) {
		pid_t stranger = job_fork();
		if (stranger == 0)
			(i ? knock_with_other_settings : knock_with_other_key)(trial->board->doors[trial->victim == 0]);
		CHECK(waitpid(stranger, &status, 0) == stranger && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	/* Two doors each, perhaps those of the dead and of the living. */
	for (uint32_t i = 0; i < trial->newcomers; i++) {
		uint32_t one = (uint32_t)rng_below(rng, trial->size), other = (one + 1) % trial->size;

		snprintf(doors[i], sizeof(doors[i]), "%s,%s", trial->board->doors[one], trial->board->doors[other]);
		children[trial->size + i] = job_fork();
		if (children[trial->size + i] == 0)
			be_newcomer(trial, doors[i]);
	}
	for (uint32_t i = 0; i < trial->size + trial->newcomers; i++) {
		CHECK(waitpid(children[i], &status, 0) == children[i]);
		bool is_good = i < trial->size && i == trial->victim ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0;
		CHECK_MSG(is_good, "process %u of %u ranks and %u newcomers, victim %u: %x", i, trial->size, trial->newcomers, trial->victim,
		          (unsigned)status);
	}
	close(ready[0]);
	close(ready[1]);
}

/* ---- who is let in ---- */

enum { IN_LINE = 3 };

static void init(uint32_t rank, uint32_t size, const char *leader, struct esp_context **out)
{
	static const char *const settings[] = {"linger_seconds=1", "log=info", "join_seconds=20", "liveness_ms=2000", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;

	options.rank = rank;
	options.size = size;
	options.leader = leader;
	options.job = "growing";
	options.settings = settings;
	OK(esp_init(&options, out));
}

/* The last rank of the world, which is the newcomer, tells which one it is. */
static void check_newcomer(struct esp_context *context, int32_t number, int32_t expected)
{
	struct esp_group *world = esp_world(context);

	CHECK_U64(esp_size(world), 3);
	OK(esp_broadcast(world, &number, 1, ESP_I32, 2));
	CHECK_MSG(number == expected, "newcomer %d was let in, and not %d", number, expected);
	OK(esp_fini(context));
}

/* Rank 0 says whenever one more waits at its door; when all do, and the test says so, one is let in. */
static void be_host(uint32_t rank, const char *leader, int32_t expected, struct board *board, int ready_fd, int go_fd)
{
	struct esp_context *context, *grown = NULL;
	char byte;

	init(rank, 2, leader, &context);
	if (rank == 0) {
		OK(esp_door(context, board->doors[0], sizeof(board->doors[0])));
		for (uint32_t i = 0; i <= IN_LINE; i++) {
			while (esp_newcomers(context) < i)
				sched_yield();
			CHECK(write(ready_fd, "r", 1) == 1);
		}
		CHECK(read(go_fd, &byte, 1) == 1);
	}
	OK(esp_grow(esp_world(context), 1, 0, &grown));
	CHECK(grown != NULL);
	check_newcomer(grown, -1, expected);
	OK(esp_fini(context));
	exit(0);
}

static void be_in_line(int32_t number, const char *door, int32_t expected)
{
	struct esp_context *context;

	CHECK(setenv("ESP_DOOR", door, 1) == 0);
	init(0, 0, NULL, &context);
	check_newcomer(context, number, expected);
	exit(0);
}

/* A newcomer that nobody lets in: it waits until it is killed, as it has to be there for as long as the others take to see it. */
static void be_left_waiting(const char *door)
{
	static const char *const settings[] = {"join_seconds=1000", "log=off", "liveness_ms=2000", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *context;

	CHECK(setenv("ESP_DOOR", door, 1) == 0);
	options.job = "growing";
	options.settings = settings;
	(void)esp_init(&options, &context);
	exit(1);
}

/* ---- one that is let in, and stops ---- */

/* The key is mentioned once when a newcomer comes to a door, and once more when it is invited and begins to join. */
static void stop_when_invited(void *context, int level, const char *line)
{
	unsigned *mentions = context;

	(void)level;
	if (strstr(line, "the job's key") && ++*mentions == 2)
		raise(SIGSTOP);
}

static void be_stopped(const char *door)
{
	static const char *const settings[] = {"log=info", "join_seconds=1000", "liveness_ms=2000", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_context *context;
	unsigned mentions = 0;

	CHECK(setenv("ESP_DOOR", door, 1) == 0);
	options.job = "growing";
	options.settings = settings;
	options.log = stop_when_invited;
	options.log_context = &mentions;
	/* When it goes on it finds that it has been given up, and does not wait for its time to be over. */
	EXPECT(esp_init(&options, &context), ESP_EPEER);
	OK(esp_last_error(&error));
	CHECK_MSG(strstr(error.text, "has given it up"), "%s", error.text);
	exit(0);
}

/* All members name it when the interval is over, long before join_seconds are, and go on. */
static void be_left_alone(uint32_t rank, const char *leader, struct board *board, int ready_fd, int pid_fd)
{
	static const char *const settings[] = {"linger_seconds=1", "log=off", "join_seconds=1000", "liveness_ms=2000", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_context *context, *grown = NULL;
	char expected[64];
	pid_t newcomer = 0;

	options.rank = rank;
	options.size = 2;
	options.leader = leader;
	options.job = "growing";
	options.settings = settings;
	OK(esp_init(&options, &context));
	if (rank == 1) {
		OK(esp_door(context, board->doors[0], sizeof(board->doors[0])));
		CHECK(write(ready_fd, "r", 1) == 1);
		while (esp_newcomers(context) == 0)
			sched_yield();
	}
	CHECK(read(pid_fd, &newcomer, sizeof(newcomer)) == sizeof(newcomer));
	OK(esp_barrier(esp_world(context)));
	EXPECT(esp_grow(esp_world(context), 0, 0, &grown), ESP_EPEER);
	OK(esp_last_error(&error));
	snprintf(expected, sizeof(expected), "process %d on ", (int)newcomer);
	CHECK_MSG(strstr(error.text, expected) && strstr(error.text, "which rank 1 has let in to become rank 2, has not answered since"), "%s",
	          error.text);
	OK(esp_barrier(esp_world(context)));
	OK(esp_fini(context));
	exit(0);
}

static void stopped_when_let_in(struct board *board)
{
	char leader[32], byte;
	pid_t hosts[2], newcomer;
	int ready[2], pids[2], status;

	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	CHECK(pipe(ready) == 0 && pipe(pids) == 0);
	fflush(NULL);
	for (uint32_t i = 0; i < 2; i++) {
		hosts[i] = job_fork();
		if (hosts[i] == 0)
			be_left_alone(i, leader, board, ready[1], pids[0]);
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	newcomer = job_fork();
	if (newcomer == 0)
		be_stopped(board->doors[0]);
	for (uint32_t i = 0; i < 2; i++)
		CHECK(write(pids[1], &newcomer, sizeof(newcomer)) == sizeof(newcomer));
	CHECK(waitpid(newcomer, &status, WUNTRACED) == newcomer && WIFSTOPPED(status));
	for (uint32_t i = 0; i < 2; i++)
		CHECK(waitpid(hosts[i], &status, 0) == hosts[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(kill(newcomer, SIGCONT) == 0 && waitpid(newcomer, &status, 0) == newcomer && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (unsigned i = 0; i < 2; i++) {
		close(ready[i]);
		close(pids[i]);
	}
}

/* ---- a rank at whose door a newcomer waits stops ---- */

static void be_survivor(uint32_t rank, const char *leader, struct board *board, int ready_fd)
{
	struct esp_context *context, *grown = NULL;
	struct esp_group *left;

	init(rank, 3, leader, &context);
	OK(esp_door(context, board->doors[rank], sizeof(board->doors[rank])));
	CHECK(write(ready_fd, "r", 1) == 1);
	if (rank == 2) {
		while (esp_newcomers(context) == 0)
			sched_yield();
		raise(SIGSTOP);
	}
	while (esp_barrier(esp_world(context)) == ESP_OK)
		;
	OK(esp_group_shrink(esp_world(context), NULL, &left));
	while (!grown)
		OK(esp_grow(left, 0, 0, &grown));
	check_newcomer(grown, -1, 7);
	OK(esp_fini(context));
	exit(0);
}

/* It does not wait there for ever, but goes to the next door. */
static void stopped_door(struct board *board)
{
	char leader[32], doors[256], byte;
	pid_t children[4];
	int ready[2], status;

	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	CHECK(pipe(ready) == 0);
	fflush(NULL);
	for (uint32_t i = 0; i < 3; i++) {
		children[i] = job_fork();
		if (children[i] == 0)
			be_survivor(i, leader, board, ready[1]);
	}
	for (uint32_t i = 0; i < 3; i++)
		CHECK(read(ready[0], &byte, 1) == 1);
	snprintf(doors, sizeof(doors), "%s,%s", board->doors[2], board->doors[1]);
	children[3] = job_fork();
	if (children[3] == 0)
		be_in_line(7, doors, 7);
	for (uint32_t i = 0; i < 4; i++) {
		if (i != 2)
			CHECK(waitpid(children[i], &status, 0) == children[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	CHECK(kill(children[2], SIGKILL) == 0 && waitpid(children[2], &status, 0) == children[2] && WIFSIGNALED(status));
	close(ready[0]);
	close(ready[1]);
}

enum { RANGE = 10 };

/* One that may listen on one port alone, or on a range, which is enough. */
static void be_fixed(uint32_t rank, const char *leader, uint16_t port, bool is_range, int door_fd)
{
	char setting[2][32], door[64] = "";
	const char *settings[] = {"linger_seconds=1", "log=off", "liveness_ms=2000", setting[rank], NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_error error = ESP_ERROR_INIT;
	struct esp_context *context, *grown = NULL;

	snprintf(setting[0], sizeof(setting[0]), is_range ? "port=%u-%u" : "port=%u", port, port + RANGE - 1);
	snprintf(setting[1], sizeof(setting[1]), "port=0");
	options.rank = rank;
	options.size = 2;
	options.leader = leader;
	options.job = "growing";
	options.settings = settings;
	OK(esp_init(&options, &context));
	if (rank == 0) {
		OK(esp_door(context, door, sizeof(door)));
		CHECK(write(door_fd, door, sizeof(door)) == sizeof(door));
		while (esp_newcomers(context) == 0)
			sched_yield();
	}
	enum esp_status status = esp_grow(esp_world(context), 0, 0, &grown);
	OK(esp_last_error(&error));
	if (is_range) {
		CHECK_MSG(status == ESP_OK, "%s", error.text);
		check_newcomer(grown, -1, 0);
	} else {
		CHECK_MSG(status == ESP_ELIMIT && error.rank == 0 && strstr(error.text, "set a range"), "%s", error.text);
	}
	OK(esp_barrier(esp_world(context)));
	OK(esp_fini(context));
	exit(0);
}

/* With one fixed port for rank 0 there is none for a second context beside the first: all are told so, at once. */
static void fixed_port(bool is_range)
{
	char leader[32], door[64];
	uint16_t port = job_free_ports(RANGE);
	pid_t children[3];
	int doors[2], status;

	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	CHECK(pipe(doors) == 0);
	fflush(NULL);
	for (uint32_t i = 0; i < 2; i++) {
		children[i] = job_fork();
		if (children[i] == 0)
			be_fixed(i, leader, port, is_range, doors[1]);
	}
	CHECK(read(doors[0], door, sizeof(door)) == sizeof(door));
	children[2] = job_fork();
	if (children[2] == 0 && is_range)
		be_in_line(0, door, 0);
	if (children[2] == 0)
		be_left_waiting(door);
	for (uint32_t i = 0; i < 3; i++) {
		bool is_waiting = i == 2 && !is_range;

		CHECK(!is_waiting || kill(children[i], SIGKILL) == 0);
		CHECK(waitpid(children[i], &status, 0) == children[i]);
		CHECK(is_waiting ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	close(doors[0]);
	close(doors[1]);
}

/* Newcomers stand in line at one door, and one of them is let in: the first, but for one that is stopped and does not answer. */
static void in_line(bool is_stopped, struct board *board)
{
	char leader[32], byte;
	pid_t hosts[2], line[IN_LINE];
	int ready[2], go[2], status;

	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	CHECK(pipe(ready) == 0 && pipe(go) == 0);
	fflush(NULL);
	for (uint32_t i = 0; i < 2; i++) {
		hosts[i] = job_fork();
		if (hosts[i] == 0)
			be_host(i, leader, is_stopped, board, ready[1], go[0]);
	}
	CHECK(read(ready[0], &byte, 1) == 1);
	for (int32_t i = 0; i < IN_LINE; i++) {
		line[i] = job_fork();
		if (line[i] == 0)
			be_in_line(i, board->doors[0], is_stopped);
		CHECK(read(ready[0], &byte, 1) == 1);
	}
	if (is_stopped)
		CHECK(kill(line[0], SIGSTOP) == 0 && waitpid(line[0], &status, WUNTRACED) == line[0] && WIFSTOPPED(status));
	CHECK(write(go[1], "g", 1) == 1);
	for (uint32_t i = 0; i < 2; i++)
		CHECK(waitpid(hosts[i], &status, 0) == hosts[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(waitpid(line[is_stopped], &status, 0) == line[is_stopped] && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	for (int32_t i = 0; i < IN_LINE; i++) { /* the others wait still */
		if (i != is_stopped)
			CHECK(kill(line[i], SIGKILL) == 0 && waitpid(line[i], &status, 0) == line[i] && WIFSIGNALED(status));
	}
	for (unsigned i = 0; i < 2; i++) {
		close(ready[i]);
		close(go[i]);
	}
}

/* Who has nobody to let in, or lets in others than the others do, is told so. */
static void refused(struct job_rank *rank)
{
	struct esp_context *out = NULL;
	char door[64], tiny[4];

	OK(esp_door(rank->context, door, sizeof(door)));
	EXPECT(esp_door(rank->context, tiny, sizeof(tiny)), ESP_ELIMIT);
	CHECK_U64(esp_newcomers(rank->context), 0);
	OK(esp_grow(rank->world, 0, 0, &out));
	CHECK(out == NULL);
	EXPECT(esp_grow(rank->world, 0, 0, NULL), ESP_EINVAL);
	EXPECT(esp_grow(rank->world, rank->rank == 1 ? 1 : 2, 0, &out), ESP_EMISMATCH);
	OK(esp_barrier(rank->world));
}

int main(int argc, char **argv)
{
	static const char *const transports[] = {"transport=auto", "transport=tcp"};
	uint64_t seed = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 6);
	struct board *board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(board != MAP_FAILED);
	for (uint64_t i = 0; i < count; i++) {
		struct rng rng;

		rng_init(&rng, seed + i);
		struct trial trial = {.size = 2 + (uint32_t)rng_below(&rng, 4), .newcomers = 1 + (uint32_t)rng_below(&rng, NEWCOMERS_MOST)};
		trial.victim = rng_chance(&rng, 1, 2) ? (uint32_t)rng_below(&rng, trial.size) : trial.size;
		trial.transport = transports[rng_below(&rng, 2)];
		trial.board = board;
		printf("--seed %llu --count 1\n", (unsigned long long)seed + i);
		run_trial(&trial, &rng);
	}
	in_line(false, board);
	in_line(true, board);
	stopped_when_let_in(board);
	stopped_door(board);
	fixed_port(false);
	fixed_port(true);
	munmap(board, sizeof(*board));
	job_run(3, NULL, refused, NULL);
	return 0;
}
