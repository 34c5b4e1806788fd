#include "base/jobs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#define THREADS_MOST 256u

struct jobs {
	uint32_t count;
	jobs_piece piece;
	void *user;
	_Atomic uint32_t next;
	_Atomic bool failed;
	pthread_mutex_t lock; /* of what follows */
	uint32_t first; /* of those that failed */
	enum esp_status status;
	struct error *err;
};

/* Pieces are begun in order, so one that fails alone in its run also comes to its turn in a run with more threads. */
static void note_failure(struct jobs *jobs, uint32_t nth, enum esp_status status, const struct error *err)
{
	pthread_mutex_lock(&jobs->lock);
	if (jobs->status == ESP_OK || nth < jobs->first) {
		jobs->first = nth;
		jobs->status = status;
		if (jobs->err)
			*jobs->err = *err;
	}
	pthread_mutex_unlock(&jobs->lock);
	atomic_store(&jobs->failed, true);
}

static void *work(void *argument)
{
	struct jobs *jobs = argument;

	while (!atomic_load(&jobs->failed)) {
		uint32_t nth = atomic_fetch_add(&jobs->next, 1);
		struct error err = {0};

		if (nth >= jobs->count)
			break;
		enum esp_status status = jobs->piece(jobs->user, nth, &err);
		if (status != ESP_OK)
			note_failure(jobs, nth, status, &err);
	}
	return NULL;
}

enum esp_status jobs_run(uint32_t count, uint32_t at_once, jobs_piece piece, void *user, struct error *err)
{
	struct jobs jobs = {.count = count, .piece = piece, .user = user, .lock = PTHREAD_MUTEX_INITIALIZER, .err = err};
	pthread_t threads[THREADS_MOST];
	uint32_t wanted = at_once < count ? at_once : count, started = 0;

	/* Fewer threads than wanted do the same work. */
	while (started + 1 < wanted && started < THREADS_MOST && pthread_create(&threads[started], NULL, work, &jobs) == 0)
		started++;
	work(&jobs);
	for (uint32_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	pthread_mutex_destroy(&jobs.lock);
	return jobs.status;
}
