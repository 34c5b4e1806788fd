#include "tools/bench/lab_weather.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "tools/lab/client.h"

enum esp_status bench_lab_weather_open(struct lab_weather *weather, const char *name, const struct fabric_plan *plan,
                                       uint64_t rate_bits, struct error *err)
{
	const struct lab *lab;
	enum esp_status status = lab_client_map(name, &lab, err);

	if (status != ESP_OK)
		return status;
	*weather = (struct lab_weather){.plan = plan, .lab = name, .rate_bits = rate_bits};
	for (uint32_t worker = 0; worker < plan->workers; worker++) {
		snprintf(weather->hosts[worker], sizeof(weather->hosts[worker]), "%s", lab_host(lab, worker)->name);
		weather->parts[worker] = 1;
	}
	lab_client_unmap(lab);
	return ESP_OK;
}

static enum esp_status set_rate(struct lab_weather *weather, uint32_t worker, double part, struct error *err)
{
	char rate[32];
	char *words[] = {weather->hosts[worker], (char[]){"rate"}, rate, NULL};

	snprintf(rate, sizeof(rate), "%.0fbit", (double)weather->rate_bits * part);
	enum esp_status status = lab_client_set(weather->lab, LAB_BOTH_WAYS, words, err);
	if (status == ESP_OK)
		weather->parts[worker] = part;
	return status;
}

static enum esp_status set_period(struct lab_weather *weather, uint64_t period, struct error *err)
{
	enum esp_status status = ESP_OK;

	for (uint32_t worker = 0; worker < weather->plan->workers && status == ESP_OK; worker++) {
		double part = bench_fabric_plan_part(weather->plan, worker, period);

		if (part < weather->parts[worker] || part > weather->parts[worker])
			status = set_rate(weather, worker, part, err);
	}
	return status;
}

/* False: it has to end before. */
static bool wait_until(struct lab_weather *weather, uint64_t ns)
{
	const struct timespec until = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};

	pthread_mutex_lock(&weather->lock);
	while (!weather->has_to_end && clock_now_ns() < ns)
		pthread_cond_timedwait(&weather->changed, &weather->lock, &until);
	bool goes_on = !weather->has_to_end;
	pthread_mutex_unlock(&weather->lock);
	return goes_on;
}

static void *run(void *context)
{
	struct lab_weather *weather = context;
	uint64_t period = 1;

	while (weather->status == ESP_OK && wait_until(weather, weather->start_ns + period * weather->plan->period_ns))
		weather->status = set_period(weather, period++, &weather->err);
	return NULL;
}

enum esp_status bench_lab_weather_begin(struct lab_weather *weather, uint64_t start_ns, struct error *err)
{
	pthread_condattr_t monotonic;
	enum esp_status status = set_period(weather, 0, err);

	assert(!weather->is_running);
	if (status != ESP_OK)
		return status;
	weather->start_ns = start_ns;
	weather->has_to_end = false;
	weather->status = ESP_OK;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_mutex_init(&weather->lock, NULL);
	pthread_cond_init(&weather->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (pthread_create(&weather->thread, NULL, run, weather) != 0)
		return error_set(err, ESP_ELIMIT, "cannot start a thread for the weather");
	weather->is_running = true;
	return ESP_OK;
}

enum esp_status bench_lab_weather_end(struct lab_weather *weather, struct error *err)
{
	if (!weather->is_running)
		return ESP_OK;
	pthread_mutex_lock(&weather->lock);
	weather->has_to_end = true;
	pthread_cond_signal(&weather->changed);
	pthread_mutex_unlock(&weather->lock);
	pthread_join(weather->thread, NULL);
	pthread_cond_destroy(&weather->changed);
	pthread_mutex_destroy(&weather->lock);
	weather->is_running = false;
	if (weather->status != ESP_OK)
		return error_set(err, weather->status, "the weather: %s", weather->err.text);
	return ESP_OK;
}
