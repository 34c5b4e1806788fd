/*
 * cores.c - how far two cores are from each other: nanoseconds that a cache line takes there and back.
 *
 * The cores of a virtual machine may lie in one cache or in two, and that changes while it runs: 50 ns here, 330 there, for seconds
 * or minutes. Sums between ranks in caches then take two to five times as long, whoever's they are (see cores.py).
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

enum { TURNS = 10000, BATCHES = 3 };

static _Alignas(64) atomic_int turn;
static atomic_bool is_there, is_over;
static cpu_set_t second;

static void *answer(void *argument)
{
	sched_setaffinity(0, sizeof(second), &second);
	atomic_store(&is_there, true);
	while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
		if (atomic_load_explicit(&turn, memory_order_acquire) == 1)
			atomic_store_explicit(&turn, 0, memory_order_release);
	}
	return argument;
}

static double now_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static double measure(void)
{
	double begin = now_ns();

	for (int i = 0; i < TURNS; i++) {
		atomic_store_explicit(&turn, 1, memory_order_release);
		while (atomic_load_explicit(&turn, memory_order_acquire) == 1)
			;
	}
	return (now_ns() - begin) / TURNS;
}

int main(void)
{
	cpu_set_t allowed, first;
	pthread_t thread;
	double least = 0;
	int found = 0;

	CPU_ZERO(&first);
	CPU_ZERO(&second);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) < 2)
		return 1;
	for (size_t i = 0; found < 2; i++) {
		if (CPU_ISSET(i, &allowed))
			CPU_SET(i, found++ == 0 ? &first : &second);
	}
	if (sched_setaffinity(0, sizeof(first), &first) != 0 || pthread_create(&thread, NULL, answer, NULL) != 0)
		return 1;
	while (!atomic_load(&is_there))
		;
	for (int i = 0; i < BATCHES; i++) {
		double ns = measure();

		least = i == 0 || ns < least ? ns : least;
	}
	atomic_store(&is_over, true);
	pthread_join(thread, NULL);
	printf("%.0f\n", least);
	return 0;
}
