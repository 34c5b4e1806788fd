#include "buckets.h"

#include <string.h>

#include "must.h"
#include "watch.h"

/* On a thread of the library. */
static void on_done(void *context, struct esp_work *work, enum esp_status status)
{
	struct bucket *bucket = context;
	(void)work;
	(void)status; /* whoever waits is told */
	atomic_store_explicit(&bucket->told, watch_now(), memory_order_relaxed);
}

void buckets_open(struct buckets *buckets, struct esp_group *group, const struct model *model, float *gradient,
                  const char *plan, struct times *times)
{
	memset(buckets, 0, sizeof *buckets);
	buckets->count = model->layers;
	buckets->times = times;
	for (uint32_t l = 0; l < model->layers; l++) {
		struct esp_call call = ESP_CALL_INIT;
		call.collective = ESP_ALLREDUCE;
		call.type = ESP_F32;
		call.op = ESP_AVG;
		call.count = model_layer_floats(model, l);
		if (call.count > model_layer_floats(model, buckets->largest))
			buckets->largest = l;
		call.in = call.out = gradient + model->first[l];
		call.plan = plan;
		call.done = on_done;
		call.done_context = &buckets->bucket[l];
		must(esp_prepare(group, &call, &buckets->bucket[l].work), "esp_prepare");
	}
}

void buckets_close(struct buckets *buckets)
{
	for (uint32_t l = 0; l < buckets->count; l++)
		esp_work_free(buckets->bucket[l].work);
	memset(buckets, 0, sizeof *buckets);
}

static void add_waiting(struct buckets *buckets, int64_t since, int64_t cpu_since)
{
	buckets->times->waiting += watch_now() - since;
	buckets->times->communication_cpu += watch_thread_cpu() - cpu_since;
}

void buckets_start(struct buckets *buckets, uint32_t layer)
{
	struct bucket *bucket = &buckets->bucket[layer];
	int64_t cpu = watch_thread_cpu();
	bucket->started = watch_now();
	must(esp_restart(bucket->work), "esp_restart");
	add_waiting(buckets, bucket->started, cpu);
}

void buckets_wait(struct buckets *buckets, uint32_t layer)
{
	struct bucket *bucket = &buckets->bucket[layer];
	int64_t cpu = watch_thread_cpu(), begin = watch_now();
	must(esp_wait(bucket->work, -1), "esp_wait");
	bucket->ended = watch_now();
	add_waiting(buckets, begin, cpu);
}

/* The library may tell of the end a little after a waiting thread has seen it: then the latter counts. */
static int64_t end_of(struct bucket *bucket)
{
	int64_t told = atomic_load_explicit(&bucket->told, memory_order_relaxed);
	return told > bucket->started && told < bucket->ended ? told : bucket->ended;
}

void buckets_land(struct buckets *buckets)
{
	int64_t until = 0;
	for (uint32_t l = buckets->count; l-- > 0;) {
		struct bucket *bucket = &buckets->bucket[l];
		int64_t from = bucket->started > until ? bucket->started : until, end = end_of(bucket);
		if (end > from) {
			buckets->times->in_flight += end - from;
			until = end;
		}
	}
}

const char *buckets_planner(const struct buckets *buckets)
{
	return esp_work_plan(buckets->bucket[buckets->largest].work);
}
