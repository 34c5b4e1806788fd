/*
 * lab_weather.h - a thread that gives the links of a lab's workers other rates, period by period, as a plan has drawn
 * them.
 */
#ifndef TOOLS_BENCH_LAB_WEATHER_H
#define TOOLS_BENCH_LAB_WEATHER_H

#include <pthread.h>
#include <stdbool.h>

#include "tools/bench/fabric_plan.h"

struct lab_weather {
	const struct fabric_plan *plan; /* borrowed, as lab */
	const char *lab;
	uint64_t rate_bits;             /* of a worker's link in the best weather */
	uint64_t start_ns;              /* of clock_now_ns(): the first period begins */
	double parts[FABRIC_WORKERS_MOST];
	char hosts[FABRIC_WORKERS_MOST][32];
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool is_running, has_to_end; /* has_to_end: under the lock */
	enum esp_status status;      /* of the thread, when it has ended */
	struct error err;
};

/* Looks up the lab's hosts: the first ones are the workers'. */
ESP_CHECKED enum esp_status bench_lab_weather_open(struct lab_weather *weather, const char *lab,
                                                   const struct fabric_plan *plan, uint64_t rate_bits,
                                                   struct error *err);
/* The first period's rates now; the others from the start on, until the end. */
ESP_CHECKED enum esp_status bench_lab_weather_begin(struct lab_weather *weather, uint64_t start_ns, struct error *err);
/* Errors of the thread meanwhile. */
ESP_CHECKED enum esp_status bench_lab_weather_end(struct lab_weather *weather, struct error *err);

#endif
