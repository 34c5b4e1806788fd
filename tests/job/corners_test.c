/*
 * corners_test.c - uses that are allowed, or refused, and easily forgotten.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "job.h"
#include "rank/comm/work.h"

/* ---- buffers ---- */

static struct esp_buffer buffer_of(void *data, uint64_t bytes)
{
	struct esp_buffer buffer = ESP_BUFFER_INIT;

	buffer.data = data;
	buffer.bytes = bytes;
	return buffer;
}

/* Many buffers on one side, one on the other, again and again. */
static void mixed_buffers(struct job_rank *rank)
{
	int32_t n = (int32_t)rank->size;

	for (uint64_t count = 6; count <= 60000; count *= 100) {
		int32_t *in = malloc(count * 4), *out = calloc(count, 4);
		uint64_t half = count / 2 * 4;
		struct esp_buffer ins[2] = {buffer_of(in, half), buffer_of(in + count / 2, half)};
		struct esp_buffer outs[2] = {buffer_of(out, half), buffer_of(out + count / 2, half)};
		struct esp_call call = ESP_CALL_INIT;
		struct esp_work *work;

		for (uint64_t i = 0; i < count; i++)
			in[i] = (int32_t)i;
		call.type = ESP_I32;
		call.count = count;
		call.in_buffers = ins;
		call.in_buffer_count = 2;
		call.out = out;
		OK(esp_run(rank->world, &call));
		for (uint64_t i = 0; i < count; i++)
			CHECK(out[i] == n * (int32_t)i);
		call.in_buffers = NULL;
		call.in = in;
		call.out = NULL;
		call.out_buffers = outs;
		call.out_buffer_count = 2;
		OK(esp_prepare(rank->world, &call, &work));
		for (int again = 0; again < 3; again++) {
			memset(out, 0, count * 4);
			OK(esp_restart(work));
			OK(esp_wait(work, -1));
			for (uint64_t i = 0; i < count; i++)
				CHECK(out[i] == n * (int32_t)i);
		}
		esp_work_free(work);
		/* What a role leaves unused may be given all the same. */
		call.collective = ESP_BROADCAST;
		call.in = NULL;
		call.root = rank->size - 1;
		for (uint64_t i = 0; i < count; i++)
			out[i] = (int32_t)(rank->rank + i);
		OK(esp_run(rank->world, &call));
		for (uint64_t i = 0; i < count; i++)
			CHECK(out[i] == (int32_t)(rank->size - 1 + i));
		call.collective = ESP_REDUCE;
		call.in = in;
		OK(esp_run(rank->world, &call));
		free(in);
		free(out);
	}
}

static enum esp_status run_on(struct job_rank *rank, enum esp_collective collective, struct esp_buffer *ins, uint32_t in_count,
                              struct esp_buffer *outs, uint32_t out_count, uint64_t count)
{
	struct esp_call call = ESP_CALL_INIT;

	call.collective = collective;
	call.type = ESP_I32;
	call.count = count;
	call.in_buffers = ins;
	call.in_buffer_count = in_count;
	call.out_buffers = outs;
	call.out_buffer_count = out_count;
	return esp_run(rank->world, &call);
}

/* Many buffers share memory only where they are one place of the call; their order in memory is free. */
static void overlapping_buffers(struct job_rank *rank)
{
	uint32_t n = rank->size;
	int32_t *data = calloc(40 * n, 4);
	struct esp_buffer a = buffer_of(data, 16), b = buffer_of(data + 4, 16), c = buffer_of(data + 8, 16);
	struct esp_buffer off_a = buffer_of(data + 1, 16);

	/* In place: also the other way round in memory, cut on one side only, or with nothing in between. */
	OK(run_on(rank, ESP_ALLREDUCE, (struct esp_buffer[]){b, a}, 2, (struct esp_buffer[]){b, a}, 2, 8));
	OK(run_on(rank, ESP_ALLREDUCE, (struct esp_buffer[]){a, buffer_of(data, 0), b}, 3,
	          (struct esp_buffer[]){a, buffer_of(data + 1, 0), b}, 3, 8));
	OK(run_on(rank, ESP_ALLREDUCE, (struct esp_buffer[]){a, a}, 2, (struct esp_buffer[]){c, b}, 2, 8));
	OK(run_on(rank, ESP_BROADCAST, NULL, 0, (struct esp_buffer[]){c, a}, 2, 8));
	struct esp_call call = ESP_CALL_INIT;
	call.type = ESP_I32;
	call.count = 8;
	call.in = data;
	call.out_buffers = (struct esp_buffer[]){a, b};
	call.out_buffer_count = 2;
	OK(esp_run(rank->world, &call));
	call.in = data + 4; /* its first half is the second buffer */
	EXPECT(esp_run(rank->world, &call), ESP_EINVAL);
	/* Not in place. */
	EXPECT(run_on(rank, ESP_ALLREDUCE, (struct esp_buffer[]){a, b}, 2, (struct esp_buffer[]){b, a}, 2, 8), ESP_EINVAL);
	EXPECT(run_on(rank, ESP_ALLREDUCE, (struct esp_buffer[]){off_a, c}, 2, (struct esp_buffer[]){a, c}, 2, 8), ESP_EINVAL);
	/* Two results in one place. */
	EXPECT(run_on(rank, ESP_ALLREDUCE, (struct esp_buffer[]){a, b}, 2, (struct esp_buffer[]){c, c}, 2, 8), ESP_EINVAL);
	EXPECT(run_on(rank, ESP_BROADCAST, NULL, 0, (struct esp_buffer[]){off_a, a}, 2, 8), ESP_EINVAL);
	/* A broadcast has one buffer; naming it twice is harmless. */
	EXPECT(run_on(rank, ESP_BROADCAST, (struct esp_buffer[]){c}, 1, (struct esp_buffer[]){a}, 1, 4), ESP_EINVAL);
	struct esp_call broadcast = ESP_CALL_INIT;
	broadcast.collective = ESP_BROADCAST;
	broadcast.type = ESP_I32;
	broadcast.count = 4;
	broadcast.in = broadcast.out = data;
	OK(esp_run(rank->world, &broadcast));
	broadcast.in = data + 4;
	EXPECT(esp_run(rank->world, &broadcast), ESP_EINVAL);
	/* Blocks: this rank's is its place in the whole. */
	struct esp_buffer whole[] = {buffer_of(data, 8 * n), buffer_of(data + 2 * n, 8 * n)};
	struct esp_buffer own = buffer_of(data + 4 * rank->rank, 16), other = buffer_of(data + 4 * rank->rank + 1, 16);
	OK(run_on(rank, ESP_ALLGATHER, &own, 1, whole, 2, 4));
	OK(run_on(rank, ESP_REDUCE_SCATTER, whole, 2, &own, 1, 4));
	EXPECT(run_on(rank, ESP_ALLGATHER, &other, 1, (struct esp_buffer[]){whole[0], whole[1]}, 2, 4), ESP_EINVAL);
	EXPECT(run_on(rank, ESP_REDUCE_SCATTER, whole, 2, &other, 1, 4), ESP_EINVAL);
	EXPECT(run_on(rank, ESP_ALLTOALL, whole, 2, whole, 2, 4), ESP_EINVAL);
	OK(esp_barrier(rank->world));
	free(data);
}

static void unequal_counts(struct job_rank *rank)
{
	uint64_t counts[8], all = 0, before = 0;
	int32_t *in, *out;
	struct esp_call call = ESP_CALL_INIT;

	for (uint32_t i = 0; i < rank->size; i++) {
		counts[i] = 1000 * i + 1;
		all += counts[i];
	}
	CHECK(all > 0);
	in = malloc(counts[rank->rank] * 4);
	out = malloc(all * 4);
	for (uint64_t i = 0; i < counts[rank->rank]; i++)
		in[i] = (int32_t)(rank->rank * 100000 + i);
	call.collective = ESP_ALLGATHER;
	call.type = ESP_I32;
	call.count = rank->rank * 77; /* is ignored */
	call.counts = counts;
	call.in = in;
	call.out = out;
	OK(esp_run(rank->world, &call));
	for (uint32_t r = 0; r < rank->size; r++) {
		for (uint64_t i = 0; i < counts[r]; i++)
			CHECK(out[before + i] == (int32_t)(r * 100000 + i));
		before += counts[r];
	}
	free(in);
	free(out);
}

/* ---- work ---- */

static void count_up(void *argument, struct esp_work *work, enum esp_status status)
{
	_Atomic int *times = argument;

	(void)work;
	CHECK(status == ESP_OK);
	(*times)++;
}

/* Restarted at once after each wait, whether or not the callback has been told. */
static void restarts(struct job_rank *rank)
{
	static const uint64_t counts[] = {4, 40000};

	for (unsigned i = 0; i < 2; i++) {
		_Atomic int times = 0;
		int32_t *data = calloc(counts[i], 4);
		struct esp_call call = ESP_CALL_INIT;
		struct esp_work *work;

		call.type = ESP_I32;
		call.count = counts[i];
		call.in = call.out = data;
		call.done = count_up;
		call.done_context = &times;
		OK(esp_prepare(rank->world, &call, &work));
		for (int again = 0; again < 300; again++) {
			OK(esp_restart(work));
			OK(esp_wait(work, -1));
		}
		while (times < 300)
			;
		esp_work_free(work);
		free(data);
	}
}

static void work_outlives_its_group(struct job_rank *rank)
{
	struct esp_group *group;
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *work;
	float data[4] = {0};
	int fd;

	OK(esp_group_split(rank->world, 0, 0, &group));
	call.count = 4;
	call.in = call.out = data;
	OK(esp_prepare(group, &call, &work));
	OK(esp_restart(work));
	OK(esp_wait(work, -1));
	OK(esp_group_free(group));
	OK(esp_test(work));
	OK(esp_wait(work, -1));
	OK(esp_work_descriptor(work, &fd));
	esp_work_free(work);
}

static void refused(struct job_rank *rank)
{
	struct esp_group *group;
	struct esp_call call = ESP_CALL_INIT;
	int32_t data[4] = {0};
	char *memory;

	EXPECT(esp_group_create(rank->world, NULL, 2, &group), ESP_EINVAL);
	call.type = ESP_I32;
	call.op = ESP_SCALED;
	call.factor = 0.5;
	call.count = 4;
	call.in = call.out = data;
	EXPECT(esp_run(rank->world, &call), ESP_EINVAL);
	OK(esp_alloc(rank->context, 10000, (void **)&memory));
	EXPECT(esp_free(rank->context, memory + 1), ESP_EINVAL);
	EXPECT(esp_free(rank->context, data), ESP_EINVAL);
	OK(esp_free(rank->context, memory));
	EXPECT(esp_free(rank->context, memory), ESP_EINVAL);
	EXPECT(esp_keep(rank->context, data), ESP_EINVAL);
	EXPECT(esp_keep(NULL, data), ESP_EINVAL);
	EXPECT(esp_free(NULL, data), ESP_EINVAL);
	OK(esp_keep(rank->context, NULL));
	OK(esp_free(NULL, NULL));
	EXPECT(esp_share(NULL, data, 4), ESP_EINVAL);
	EXPECT(esp_share(rank->context, NULL, 4), ESP_EINVAL);
	EXPECT(esp_unshare(rank->context, data), ESP_EINVAL);
	OK(esp_share(rank->context, NULL, 0));
	OK(esp_unshare(rank->context, NULL));
	OK(esp_barrier(rank->world));
}

static void expect_sentence(enum esp_status status, enum esp_status expected, const char *sentence)
{
	struct esp_error error = ESP_ERROR_INIT;

	job_expect(status, expected, sentence);
	OK(esp_last_error(&error));
	CHECK_STR(error.text, sentence);
}

/* What is wrong with the arguments of a function is told with its name, and with what would be right. */
static void sentences(struct job_rank *rank)
{
	struct esp_context *grown;
	struct esp_shrink shrink = ESP_SHRINK_INIT;
	struct esp_group *world = rank->world, *group;
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *work;
	float data[8] = {0};

	expect_sentence(esp_allreduce(world, NULL, data, 5, ESP_F64, ESP_SUM), ESP_EINVAL,
	                "esp_allreduce: in is NULL, and this rank gives 40 bytes");
	expect_sentence(esp_allreduce(world, data, data + 1, 4, ESP_F32, ESP_SUM), ESP_EINVAL,
	                "esp_allreduce: in and out overlap: give the same buffer, or two that share nothing");
	expect_sentence(esp_allreduce(world, data, data, 4, ESP_F32, ESP_BAND), ESP_EUNSUPPORTED,
	                "esp_allreduce: band is not defined for f32");
	expect_sentence(esp_broadcast(world, data, 4, ESP_F32, 2), ESP_EINVAL,
	                "esp_broadcast: root is 2, and the last rank of the group is 1");
	expect_sentence(esp_allgather(world, data, data, UINT64_MAX / 4, ESP_F32), ESP_EINVAL,
	                "esp_allgather: count is 4611686018427387903, and elements have 4 bytes: the buffers would be larger than "
	                "memory can be");
	expect_sentence(esp_barrier(NULL), ESP_EINVAL, "esp_barrier: the group is NULL: it comes from esp_world(), "
	                "esp_group_create() or esp_group_split(), which give NULL to ranks outside");
	expect_sentence(esp_run(world, NULL), ESP_EINVAL, "esp_run: call is NULL");
	expect_sentence(esp_start(world, &call, NULL), ESP_EINVAL, "esp_start: out is NULL: there is no place for the result");
	call.deadline_ns = -1;
	expect_sentence(esp_run(world, &call), ESP_EINVAL,
	                "esp_run: deadline_ns is -1: it is a time from now on, or 0 for the setting deadline_seconds");
	call.deadline_ns = 0;
	call.plan = "rings";
	expect_sentence(esp_run(world, &call), ESP_EINVAL,
	                "esp_run: there is no planner \"rings\": espalier plan make --help names them");
	call.plan = "switch";
	expect_sentence(esp_run(world, &call), ESP_EINVAL,
	                "esp_run: the planner \"switch\" needs hubs or switches beside the ranks: it is for espalier plan and espalier sim");
	call.plan = NULL;
	call.struct_size = 0;
	expect_sentence(esp_prepare(world, &call, &work), ESP_EINVAL,
	                "esp_prepare: struct esp_call says that it has 0 bytes: begin with its INIT macro");
	call.struct_size = sizeof(call);
	OK(esp_prepare(world, &call, &work));
	expect_sentence(esp_wait(work, 0), ESP_ESTATE,
	                "esp_wait: the work was prepared and never started: call esp_restart() first");
	expect_sentence(esp_test(work), ESP_ESTATE,
	                "esp_test: the work was prepared and never started: call esp_restart() first");
	expect_sentence(esp_work_received(work, NULL, NULL), ESP_ESTATE,
	                "esp_work_received: the work is no receive: esp_recv_start() makes those");
	esp_work_free(work);
	expect_sentence(esp_send(world, data, 4, 7, 0), ESP_EINVAL, "esp_send: rank 7 is not in the group, whose last rank is 1");
	expect_sentence(esp_group_create(world, (uint32_t[]){1, 1}, 2, &group), ESP_EINVAL,
	                "esp_group_create: rank 1 is in the list twice");
	shrink.deadline_ns = -1;
	expect_sentence(esp_group_shrink(world, &shrink, &group), ESP_EINVAL,
	                "esp_group_shrink: deadline_ns is -1: it is a time from now on, or 0 for the setting deadline_seconds");
	shrink.deadline_ns = 0;
	shrink.lost_room = 4;
	expect_sentence(esp_group_shrink(world, &shrink, &group), ESP_EINVAL, "esp_group_shrink: lost is NULL, and lost_room is 4");
	expect_sentence(esp_grow(world, 0, -1, &grown), ESP_EINVAL,
	                "esp_grow: deadline_ns is -1: it is a time from now on, or 0 for the setting join_seconds");
	expect_sentence(esp_group_free(world), ESP_ESTATE, "esp_group_free: this is the world, which esp_fini() frees");
	OK(esp_barrier(world));
}

/* Small calls are counted as such, whoever waits for them. */
static void counted(struct job_rank *rank)
{
	struct esp_stats before = ESP_STATS_INIT, after = ESP_STATS_INIT;
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *work;
	int32_t data[4] = {0};
	bool has_board = rank->size > 1 && strcmp(esp_setting(rank->context, "transport"), "tcp") != 0;

	call.type = ESP_I32;
	call.count = 4;
	call.in = call.out = data;
	OK(esp_get_stats(rank->context, &before));
	OK(esp_run(rank->world, &call));
	for (int i = 0; i < 5; i++) {
		OK(esp_start(rank->world, &call, &work));
		OK(esp_wait(work, -1));
		esp_work_free(work);
	}
	OK(esp_get_stats(rank->context, &after));
	CHECK_U64(after.calls - before.calls, 6);
	CHECK_U64(after.small_calls - before.small_calls, has_board ? 6 : 0);
}

static enum esp_status copy_all(void *context, const void *mine, void *all, size_t bytes)
{
	(void)context;
	memcpy(all, mine, bytes);
	return ESP_OK;
}

/* Whoever brings a channel along says how many there are: otherwise every rank would be a job of its own. */
static void channel_without_size(void)
{
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *context;
	struct esp_error error = ESP_ERROR_INIT;

	options.allgather = copy_all;
	EXPECT(esp_init(&options, &context), ESP_EINVAL);
	OK(esp_last_error(&error));
	CHECK_MSG(strstr(error.text, "needs rank and size"), "%s", error.text);
	options.rank = options.size = 1;
	EXPECT(esp_init(&options, &context), ESP_EINVAL);
	OK(esp_last_error(&error));
	CHECK_MSG(strstr(error.text, "no rank 1 of 1"), "%s", error.text);
	options.rank = 0;
	OK(esp_init(&options, &context));
	OK(esp_fini(context));
}

/* Failures of what needs no job can be asked about, too. */
static void local_errors(void)
{
	struct esp_error error = ESP_ERROR_INIT;
	float data[8] = {0};

	EXPECT(esp_reduce_local(data, data, data, 8, (enum esp_type)99, ESP_SUM), ESP_EINVAL);
	OK(esp_last_error(&error));
	CHECK(error.status == ESP_EINVAL && strstr(error.text, "99"));
	EXPECT(esp_reduce_local(data, data, data, 8, ESP_F32, ESP_BAND), ESP_EUNSUPPORTED);
	OK(esp_last_error(&error));
	CHECK_MSG(error.status == ESP_EUNSUPPORTED && strstr(error.text, "f32"), "%s", error.text);
	EXPECT(esp_reduce_local(data + 1, data + 1, data, 4, ESP_F32, ESP_SUM), ESP_EINVAL);
	OK(esp_last_error(&error));
	CHECK_MSG(strstr(error.text, "overlaps b"), "%s", error.text);
	EXPECT(esp_reduce_local(data, NULL, data, 4, ESP_F32, ESP_SUM), ESP_EINVAL);
	OK(esp_last_error(&error));
	CHECK_MSG(strstr(error.text, "a is NULL"), "%s", error.text);
}

/* What a reason holds stays within its line, here and elsewhere. */
static void harmless_reason(struct job_rank *rank)
{
	struct esp_error error = ESP_ERROR_INIT;
	int32_t data = 0;

	OK(esp_barrier(rank->world));
	job_meet(rank);
	if (rank->rank == 0)
		OK(esp_abort(rank->world, "two\nlines\t\033[31mred\302\233m\177 caf\303\251"));
	EXPECT(esp_allreduce(rank->world, &data, &data, 1, ESP_I32, ESP_SUM), ESP_EABORTED);
	OK(esp_last_error(&error));
	CHECK_MSG(strstr(error.text, "two lines  [31mred  m  caf\303\251"), "%s", error.text);
}

/* ---- deadlines and leaving ---- */

/* Nobody waits for it, and it ends all the same: on a board, and behind a gate that stays closed. */
static void deadlines_in_the_background(struct job_rank *rank)
{
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *work = NULL;
	int32_t data[4] = {0};
	uint64_t gate = 0;
	bool is_gated = *(bool *)rank->argument;

	OK(esp_barrier(rank->world));
	job_meet(rank);
	call.type = ESP_I32;
	call.count = 4;
	call.in = call.out = data;
	call.deadline_ns = 50000000;
	if (is_gated) {
		call.gate = &gate;
		call.gate_value = 1;
	}
	if (rank->rank == 0) {
		OK(esp_start(rank->world, &call, &work));
		while (esp_test(work) == ESP_PENDING)
			;
		EXPECT(esp_test(work), ESP_ETIMEOUT);
		esp_work_free(work);
	}
	job_meet(rank);
}

/* Closed with a call under way that nobody else makes. */
static void closed_too_early(struct job_rank *rank)
{
	static int32_t data[2][100000];
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *work;

	OK(esp_barrier(rank->world));
	call.type = ESP_I32;
	call.count = *(uint64_t *)rank->argument;
	call.in = call.out = data[0];
	if (rank->rank == 0)
		OK(esp_start(rank->world, &call, &work));
	job_meet(rank);
}

static char warned[1000];

static void keep_warnings(void *argument, int level, const char *line)
{
	(void)argument;
	CHECK(level == 1 && strlen(line) + strlen(warned) + 1 < sizeof(warned));
	strcat(warned, line);
}

/* What was kept stays, also the result of a call; the rest goes with the context, and only it can be freed without one. */
static void kept(void)
{
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *context;
	int32_t *first, *second, *other;

	options.size = 1;
	OK(esp_init(&options, &context));
	OK(esp_alloc(context, 40000, (void **)&first));
	OK(esp_alloc(context, 40000, (void **)&second));
	OK(esp_alloc(context, 40000, (void **)&other));
	OK(esp_keep(context, first));
	OK(esp_keep(context, second));
	OK(esp_free(NULL, second));
	EXPECT(esp_free(NULL, other), ESP_EINVAL);
	for (int32_t i = 0; i < 10000; i++)
		other[i] = i;
	OK(esp_allreduce(esp_world(context), other, first, 10000, ESP_I32, ESP_SUM));
	OK(esp_fini(context));
	for (int32_t i = 0; i < 10000; i++)
		CHECK(first[i] == i);
	first[0] = 1;
	OK(esp_free(NULL, first));
	EXPECT(esp_free(NULL, first), ESP_EINVAL);
}

/* Prepared once, on memory that is shared only then, and is private again, since this process has forked. The child has what was there. */
static void shared_and_forked(struct job_rank *rank)
{
	enum { COUNT = 100000, OFF = 3 };
	struct esp_call call = ESP_CALL_INIT;
	struct esp_work *work;
	int32_t *memory = malloc((COUNT + OFF) * sizeof(*memory)), *data;
	int status, go[2];
	char word = 0;

	CHECK(memory && pipe(go) == 0);
	data = memory + OFF;
	call.type = ESP_I32;
	call.count = COUNT;
	call.in = call.out = data;
	OK(esp_prepare(rank->world, &call, &work));
	for (int turn = 0; turn < 4; turn++) {
		pid_t child = -1;

		for (int i = 0; i < COUNT; i++)
			data[i] = i + turn;
		if (turn == 1)
			OK(esp_share(rank->context, data, COUNT * sizeof(*data)));
		if (turn == 2 && rank->rank == 0) {
			fflush(NULL);
			child = fork();
			CHECK(child >= 0);
		}
		if (child == 0) {
			close(go[1]); /* so that a parent that fails is noticed */
			bool is_right = read(go[0], &word, 1) == 1;

			for (int i = 0; i < COUNT; i++)
				is_right = is_right && data[i] == i + turn;
			_exit(is_right ? 0 : 1);
		}
		OK(esp_restart(work));
		OK(esp_wait(work, -1));
		for (int i = 0; i < COUNT; i++)
			CHECK(data[i] == (i + turn) * (int)rank->size);
		if (child > 0) {
			CHECK(write(go[1], &word, 1) == 1 && waitpid(child, &status, 0) == child);
			CHECK_U64(status, 0);
		}
	}
	EXPECT(esp_share(rank->context, data + COUNT - 1, sizeof(*data)), ESP_EINVAL);
	esp_work_free(work);
	OK(esp_unshare(rank->context, data));
	free(memory);
	close(go[0]);
	close(go[1]);
}

/* What is dropped by leaving is told; nothing is said of what has ended. */
static void dropped(uint32_t receives, const char *expected)
{
	static const char *const settings[] = {"log=warn", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *context;
	struct esp_work *work;
	char data[2];

	warned[0] = '\0';
	options.size = 1;
	options.settings = settings;
	options.log = keep_warnings;
	OK(esp_init(&options, &context));
	OK(esp_barrier(esp_world(context)));
	for (uint32_t i = 0; i < receives; i++)
		OK(esp_recv_start(esp_world(context), &data[i], 1, ESP_ANY_RANK, 40 + i, 0, &work));
	OK(esp_fini(context));
	CHECK_MSG(expected ? strstr(warned, expected) != NULL : warned[0] == '\0', "%s", warned);
}

/* Small calls with another root: everybody is told, those too who only give. */
static void other_root(struct job_rank *rank)
{
	static const enum esp_collective rooted[] = {ESP_BROADCAST, ESP_REDUCE, ESP_GATHER, ESP_SCATTER};
	int32_t data[64] = {0}, out[64] = {0};

	for (unsigned i = 0; i < 4; i++) {
		struct esp_group *group;
		struct esp_call call = ESP_CALL_INIT;

		OK(esp_group_split(rank->world, 0, 0, &group));
		call.collective = rooted[i];
		call.type = ESP_I32;
		call.count = 4;
		call.root = rank->rank == 1 ? 1 : 0;
		call.in = data;
		call.out = rooted[i] == ESP_BROADCAST ? data : out;
		job_meet(rank);
		EXPECT(esp_run(group, &call), ESP_EMISMATCH);
		OK(esp_group_free(group));
	}
}

/* The last rank has done its part and leaves; the others finish without it. */
static void done_and_gone(struct job_rank *rank)
{
	int32_t data[100] = {1}, sum[100];

	OK(esp_barrier(rank->world));
	job_meet(rank);
	OK(esp_reduce(rank->world, data, sum, 100, ESP_I32, ESP_SUM, 0));
	if (rank->rank == 0)
		CHECK(sum[0] == (int32_t)rank->size);
}

/* A rank that never comes is the one that the error names. Nothing is at the leader's port but us. */
static void missing_rank(void)
{
	static const char *const settings[] = {"join_seconds=1", "log=off", NULL};
	struct esp_options options = ESP_OPTIONS_INIT;
	struct esp_context *job = NULL;
	struct esp_error error = ESP_ERROR_INIT;
	char leader[32];

	snprintf(leader, sizeof(leader), "127.0.0.1:%u", job_free_port());
	options.size = 2;
	options.leader = leader;
	options.settings = settings;
	CHECK(esp_init(&options, &job) == ESP_ETIMEOUT && !job);
	esp_last_error(&error);
	CHECK_MSG(error.rank == 1 && strstr(error.text, "1 of 2 ranks have not arrived: 1"), "%d: %s", error.rank, error.text);
}

int main(void)
{
	static const char *const memory[] = {"linger_seconds=0", NULL};
	static const char *const sockets[] = {"linger_seconds=0", "transport=tcp", NULL};
	static const char *const *const all[] = {memory, sockets};
	bool gated[] = {false, true};
	uint64_t counts[] = {4, 100000};

	for (unsigned i = 0; i < 2; i++) {
		const char *const *orderly = all[i] + 1;

		for (uint32_t size = 1; size <= 3; size++) {
			job_run(size, orderly, mixed_buffers, NULL);
			job_run(size, orderly, unequal_counts, NULL);
			job_run(size, orderly, restarts, NULL);
			job_run(size, orderly, work_outlives_its_group, NULL);
			job_run(size, orderly, refused, NULL);
			job_run(size, orderly, overlapping_buffers, NULL);
			job_run(size, orderly, counted, NULL);
			job_run(size, orderly, shared_and_forked, NULL);
		}
		for (unsigned k = 0; k < 2; k++) {
			job_run(2, all[i], deadlines_in_the_background, &gated[k]);
			job_run(2, all[i], closed_too_early, &counts[k]);
		}
		job_run(2, orderly, sentences, NULL);
		job_run(3, orderly, done_and_gone, NULL);
		job_run(2, all[i], harmless_reason, NULL);
	}
	job_run(4, NULL, other_root, NULL);
	local_errors();
	channel_without_size();
	dropped(0, NULL);
	kept();
	dropped(1, "esp_fini: a call has not ended, and is dropped: receive of up to 1 bytes from any rank with tag 40");
	dropped(2, "esp_fini: 2 calls have not ended, and are dropped, the oldest: receive of up to 1 bytes from any rank with tag 40");
	missing_rank();
	return 0;
}
