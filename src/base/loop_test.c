/*
 * loop_test.c - order and time by a clock that the test moves; descriptors that go away while they are told; many
 * threads.
 */
#include "base/loop.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"

static uint64_t now_ns;

static uint64_t tell_time(void *unused)
{
	(void)unused;
	return now_ns;
}

static const struct loop_clock test_clock = {tell_time, NULL};

/* ---- timers ---- */

#define TIMERS 50u

struct alarm {
	struct loop_timer timer;
	struct loop *loop;
	uint64_t rang_ns;
	uint64_t again_ns; /* 0: once */
	unsigned rings;
};

static uint64_t last_ring_ns;

static void ring(struct loop_timer *timer, uint64_t now)
{
	struct alarm *alarm = (struct alarm *)(void *)timer;

	CHECK(timer->when_ns <= now && timer->when_ns >= last_ring_ns); /* in order of their times */
	last_ring_ns = timer->when_ns;
	alarm->rings++;
	alarm->rang_ns = now;
	if (alarm->again_ns)
		loop_at(alarm->loop, timer, now + alarm->again_ns);
}

static void timers(struct rng *rng)
{
	static struct alarm alarms[TIMERS];
	struct loop loop;
	struct error err;

	now_ns = last_ring_ns = 0;
	CHECK(loop_init(&loop, &test_clock, &err) == ESP_OK);
	for (unsigned i = 0; i < TIMERS; i++) {
		alarms[i] = (struct alarm){.timer.due = ring, .loop = &loop};
		loop_at(&loop, &alarms[i].timer, 1000);
		loop_at(&loop, &alarms[i].timer, 1 + rng_below(rng, 100)); /* moved */
	}
	loop_cancel(&loop, &alarms[7].timer);
	loop_cancel(&loop, &alarms[7].timer);
	for (now_ns = 0; now_ns <= 100; now_ns++) {
		loop_turn(&loop, UINT64_MAX); /* with a clock of its own it does not sleep */
		for (unsigned i = 0; i < TIMERS; i++)
			CHECK_U64(alarms[i].rings, i != 7 && alarms[i].timer.when_ns <= now_ns);
	}
	alarms[0].again_ns = 10;
	alarms[0].rings = 0;
	loop_at(&loop, &alarms[0].timer, 110);
	for (; now_ns <= 200; now_ns++)
		loop_turn(&loop, UINT64_MAX);
	CHECK_U64(alarms[0].rings, 10);
	loop_cancel(&loop, &alarms[0].timer);
	loop_fini(&loop);
}

/* ---- descriptors ---- */

struct end {
	struct loop_fd watched;
	struct loop *loop;
	struct end *victim; /* that it removes when it is told */
	unsigned told;
};

static void on_ready(struct loop_fd *fd, uint32_t events)
{
	struct end *end = (struct end *)(void *)fd;

	CHECK(events & EPOLLIN);
	end->told++;
	if (end->victim)
		loop_remove(end->loop, &end->victim->watched);
}

/* Both are readable, and each removes the other: only the first one is told. */
static void removed_while_told(void)
{
	struct end ends[2] = {{.watched.ready = on_ready}, {.watched.ready = on_ready}};
	int pairs[2][2];
	struct loop loop;
	struct error err;

	CHECK(loop_init(&loop, NULL, &err) == ESP_OK);
	for (int i = 0; i < 2; i++) {
		CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]) == 0 && write(pairs[i][1], "x", 1) == 1);
		ends[i].loop = &loop;
		ends[i].victim = &ends[1 - i];
		CHECK(loop_add(&loop, &ends[i].watched, pairs[i][0], EPOLLIN, &err) == ESP_OK);
	}
	loop_turn(&loop, 0);
	CHECK_U64(ends[0].told + ends[1].told, 1);
	unsigned winner = ends[1].told;
	loop_change(&loop, &ends[winner].watched, 0);
	loop_turn(&loop, 0);
	CHECK_U64(ends[winner].told, 1);
	loop_change(&loop, &ends[winner].watched, EPOLLIN);
	ends[winner].victim = NULL;
	loop_turn(&loop, 0);
	CHECK_U64(ends[winner].told, 2);
	loop_remove(&loop, &ends[winner].watched);
	loop_remove(&loop, &ends[winner].watched);
	loop_turn(&loop, 0);
	CHECK_U64(ends[winner].told, 2);
	for (int i = 0; i < 2; i++) {
		close(pairs[i][0]);
		close(pairs[i][1]);
	}
	loop_fini(&loop);
}

/* ---- tasks ---- */

struct count {
	struct loop_task task;
	struct loop *loop;
	unsigned runs;
	bool posts_again;
};

static void count_up(struct loop_task *task)
{
	struct count *count = (struct count *)(void *)task;

	count->runs++;
	if (count->posts_again)
		loop_post(count->loop, task);
}

static void tasks_once_a_turn(void)
{
	struct count one = {.task.run = count_up, .posts_again = true}, other = {.task.run = count_up};
	struct loop loop;
	struct error err;

	CHECK(loop_init(&loop, &test_clock, &err) == ESP_OK);
	one.loop = other.loop = &loop;
	loop_post(&loop, &one.task);
	loop_post(&loop, &one.task); /* is posted already */
	loop_post(&loop, &other.task);
	for (unsigned turn = 1; turn < 5; turn++) {
		loop_turn(&loop, UINT64_MAX);
		CHECK_U64(one.runs, turn);
		CHECK_U64(other.runs, 1);
	}
	loop_fini(&loop);
}

#define THREADS 4
#define POSTS 2000u

static atomic_uint total;

struct poster {
	struct loop *loop;
	pthread_t thread;
};

static void add_one(void *argument)
{
	(void)argument;
	atomic_fetch_add(&total, 1);
}

static void *post_many(void *argument)
{
	struct poster *poster = argument;

	for (unsigned i = 0; i < POSTS; i++)
		loop_call(poster->loop, add_one, NULL); /* waits for its end */
	return NULL;
}

static void *run_loop(void *loop)
{
	loop_run(loop);
	return NULL;
}

static void many_threads(void)
{
	struct poster posters[THREADS];
	struct loop loop;
	struct error err;
	pthread_t thread;

	CHECK(loop_init(&loop, NULL, &err) == ESP_OK);
	loop_call(&loop, add_one, NULL); /* no thread runs it yet */
	CHECK(pthread_create(&thread, NULL, run_loop, &loop) == 0);
	for (int i = 0; i < THREADS; i++) {
		posters[i].loop = &loop;
		CHECK(pthread_create(&posters[i].thread, NULL, post_many, &posters[i]) == 0);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(posters[i].thread, NULL);
	CHECK_U64(atomic_load(&total), THREADS * POSTS + 1);
	loop_stop(&loop);
	pthread_join(thread, NULL);
	loop_fini(&loop);
}

/* ---- the hook ---- */

static unsigned hooked;

static uint64_t hook(void *context, uint64_t now)
{
	CHECK(context == &hooked && now == now_ns);
	hooked++;
	return now + 5;
}

static void hook_before_each_sleep(void)
{
	struct loop loop;
	struct error err;

	CHECK(loop_init(&loop, &test_clock, &err) == ESP_OK);
	loop_set_hook(&loop, hook, &hooked);
	for (unsigned i = 1; i < 4; i++) {
		loop_turn(&loop, UINT64_MAX);
		CHECK_U64(hooked, i);
	}
	loop_fini(&loop);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	timers(&rng);
	removed_while_told();
	tasks_once_a_turn();
	many_threads();
	hook_before_each_sleep();
	return 0;
}
