#include "rank/observe/recorder.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rank/observe/tracer.h"

enum esp_status recorder_open(struct recorder *recorder, bool by_clock)
{
	ticks_open(&recorder->ticks, by_clock);
	pthread_mutex_init(&recorder->lock, NULL);
	recorder->ring = calloc(1, sizeof(*recorder->ring));
	recorder->tally = calloc(1, sizeof(*recorder->tally));
	return recorder->ring && recorder->tally ? ESP_OK : ESP_ENOMEM;
}

void recorder_close(struct recorder *recorder)
{
	free(recorder->ring);
	free(recorder->tally);
	recorder->ring = NULL;
	recorder->tally = NULL;
}

/* ---- the end of a call ---- */

void recorder_add(struct recorder *recorder, struct tracer *tracer, const struct record *record)
{
	pthread_mutex_lock(&recorder->lock);
	ring_add(recorder->ring, record);
	tally_add(recorder->tally, record);
	pthread_mutex_unlock(&recorder->lock);
	tracer_add_call(tracer, record);
	if (record->status != ESP_OK)
		atomic_fetch_add(&recorder->failures, 1);
}

void recorder_copy(struct recorder *recorder, struct ring *ring, struct tally *tally)
{
	pthread_mutex_lock(&recorder->lock);
	if (ring)
		memcpy(ring, recorder->ring, sizeof(*ring));
	if (tally)
		memcpy(tally, recorder->tally, sizeof(*tally));
	pthread_mutex_unlock(&recorder->lock);
}
