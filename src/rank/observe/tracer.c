#include "rank/observe/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/observe/trace_event.h"
#include "rank/comm/call.h"
#include "rank/rank_log.h"

#define EVENTS 16384u           /* in the ring: a tenth of a second of the smallest calls */
#define WRITE_EVERY (200 * NS_PER_MS)
#define PATIENCE (5 * NS_PER_S) /* with the disk, when leaving */

struct event {
	enum { EVENT_CALL, EVENT_LANE, EVENT_MARK } what;
	union {
		struct record call;
		struct {
			const char *what;
			uint64_t from_ns, to_ns, chunk;
			uint32_t lane, peer;
		} lane;
		struct {
			uint64_t at_ns;
			char text[TRACE_TEXT];
		} mark;
	};
};

/* Shared by the rank and the thread; the last reference frees it. */
struct tracer {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned references;
	struct event *events;
	uint64_t added, taken; /* events */
	uint64_t lost;
	bool closes, is_done, has_failed;
	struct error err;
	bool detail;
	uint32_t rank;
	/* Only the thread's. */
	FILE *file;
	struct trace_tracks calls;
	struct trace_tracks *lanes, *waits; /* by lane */
	uint32_t lane_count;
	char path[RANK_PATH], part[RANK_PATH + 8];
};

static void release(struct tracer *tracer)
{
	pthread_mutex_lock(&tracer->lock);
	bool is_last = --tracer->references == 0;
	pthread_mutex_unlock(&tracer->lock);
	if (!is_last)
		return;
	pthread_cond_destroy(&tracer->changed);
	pthread_mutex_destroy(&tracer->lock);
	free(tracer->lanes);
	free(tracer->waits);
	free(tracer->events);
	free(tracer);
}

/* ---- the thread ---- */

/* A track on which the slice overlaps no other; a track that is used for the first time gets its name. */
static uint32_t find_track(struct tracer *tracer, struct trace_tracks *tracks, uint32_t first, const char *name,
                           uint64_t from_ns, uint64_t to_ns)
{
	uint32_t used = tracks->used, track = trace_track(tracks, from_ns, to_ns);
	char text[TRACE_TEXT];

	if (tracks->used > used) {
		if (track == 0)
			snprintf(text, sizeof(text), "%s", name);
		else
			snprintf(text, sizeof(text), "%s %u", name, track + 1);
		trace_write_track(tracer->file, tracer->rank, first + track, text);
	}
	return first + track;
}

static void write_lane(struct tracer *tracer, const struct event *event)
{
	uint32_t lane = event->lane.lane < tracer->lane_count ? event->lane.lane : 0;
	bool waits = event->lane.peer != RECORD_NONE;
	char name[32];

	snprintf(name, sizeof(name), waits ? "lane %u waits" : "lane %u", lane);
	uint32_t track =
		find_track(tracer, waits ? &tracer->waits[lane] : &tracer->lanes[lane],
	               trace_lane_track(lane) + (waits ? TRACE_WAITS : 0), name, event->lane.from_ns, event->lane.to_ns);
	trace_write_lane(tracer->file, tracer->rank, track, event->lane.what, event->lane.from_ns, event->lane.to_ns,
	                 event->lane.peer, event->lane.chunk);
}

static void write_call(struct tracer *tracer, const struct record *record)
{
	char words[CALL_TEXT + 32];
	uint32_t track = find_track(tracer, &tracer->calls, 0, "calls", record->started_ns, record->ended_ns);

	if (record->note.flags & CALL_LETTER)
		snprintf(words, sizeof(words), "%s %s rank %" PRId64, record_kind_name(record->kind),
		         record->kind == RECORD_SEND ? "to" : "from", record->peer == RECORD_NONE ? -1 : (int64_t)record->peer);
	else
		call_describe(&record->note, words);
	trace_write_call(tracer->file, tracer->rank, track, record, words);
}

static void write_event(struct tracer *tracer, const struct event *event)
{
	switch (event->what) {
	case EVENT_CALL:
		write_call(tracer, &event->call);
		break;
	case EVENT_LANE:
		write_lane(tracer, event);
		break;
	case EVENT_MARK:
		trace_write_mark(tracer->file, tracer->rank, event->mark.at_ns, event->mark.text);
		break;
	}
}

/* With the lock, which is released while an event is written. */
static void write_all(struct tracer *tracer)
{
	while (tracer->taken < tracer->added) {
		struct event event = tracer->events[tracer->taken++ % EVENTS];

		pthread_mutex_unlock(&tracer->lock);
		write_event(tracer, &event);
		pthread_mutex_lock(&tracer->lock);
	}
}

/* With the lock. Removes the file, so that a full disk has room again. */
static void give_up(struct tracer *tracer)
{
	tracer->has_failed = true;
	error_set(&tracer->err, ESP_EIO, "cannot write %.150s: %s; there will be no trace of this rank", tracer->part,
	          strerror(errno));
	(void)unlink(tracer->part);
}

static void wait_for_events(struct tracer *tracer)
{
	uint64_t until = clock_now_ns() + WRITE_EVERY;
	struct timespec at = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};

	if (tracer->has_failed || tracer->added == tracer->taken)
		while (!tracer->closes && (tracer->has_failed || tracer->added == tracer->taken))
			pthread_cond_wait(&tracer->changed, &tracer->lock); /* the first event signals it */
	/* More events will come: they are written together. */
	if (!tracer->closes && tracer->added - tracer->taken < EVENTS / 2)
		pthread_cond_timedwait(&tracer->changed, &tracer->lock, &at);
}

static void finish(struct tracer *tracer)
{
	pthread_mutex_unlock(&tracer->lock);
	if (tracer->lost > 0) {
		char text[TRACE_TEXT];

		snprintf(text, sizeof(text), "%" PRIu64 " events were lost, as they came too fast", tracer->lost);
		trace_write_mark(tracer->file, tracer->rank, clock_now_ns(), text);
	}
	trace_write_end(tracer->file);
	bool written = fflush(tracer->file) == 0 && !ferror(tracer->file) && rename(tracer->part, tracer->path) == 0;
	pthread_mutex_lock(&tracer->lock);
	if (!written)
		give_up(tracer);
}

static void *tracer_main(void *argument)
{
	struct tracer *tracer = argument;

	pthread_setname_np(pthread_self(), "esp-trace");
	pthread_mutex_lock(&tracer->lock);
	while (!tracer->closes) {
		wait_for_events(tracer);
		if (tracer->has_failed)
			continue;
		write_all(tracer);
		pthread_mutex_unlock(&tracer->lock);
		bool written = fflush(tracer->file) == 0 && !ferror(tracer->file);
		pthread_mutex_lock(&tracer->lock);
		if (!written)
			give_up(tracer);
	}
	if (!tracer->has_failed) {
		write_all(tracer);
		finish(tracer);
	}
	pthread_mutex_unlock(&tracer->lock);
	fclose(tracer->file);
	pthread_mutex_lock(&tracer->lock);
	tracer->is_done = true;
	pthread_cond_broadcast(&tracer->changed);
	pthread_mutex_unlock(&tracer->lock);
	release(tracer);
	return NULL;
}

/* ---- events ---- */

/* With the lock: a slot of the ring for an event; NULL: there is none. */
static struct event *take_slot(struct tracer *tracer)
{
	if (tracer->has_failed || tracer->closes)
		return NULL;
	if (tracer->added - tracer->taken == EVENTS) {
		tracer->lost++;
		return NULL;
	}
	if (tracer->added == tracer->taken || tracer->added - tracer->taken == EVENTS / 2)
		pthread_cond_signal(&tracer->changed);
	return &tracer->events[tracer->added++ % EVENTS];
}

static void add(struct tracer *tracer, const struct event *event)
{
	pthread_mutex_lock(&tracer->lock);
	struct event *slot = take_slot(tracer);
	if (slot)
		*slot = *event;
	pthread_mutex_unlock(&tracer->lock);
}

void tracer_add_call(struct tracer *tracer, const struct record *record)
{
	if (tracer)
		add(tracer, &(struct event){.what = EVENT_CALL, .call = *record});
}

bool tracer_has_detail(const struct tracer *tracer)
{
	return tracer && tracer->detail;
}

void tracer_add_lane(struct tracer *tracer, uint32_t lane, const char *what, uint64_t from_ns, uint64_t to_ns,
                     uint32_t peer, uint64_t chunk)
{
	struct event event = {.what = EVENT_LANE};

	if (!tracer_has_detail(tracer))
		return;
	event.lane.what = what;
	event.lane.from_ns = from_ns;
	event.lane.to_ns = to_ns;
	event.lane.chunk = chunk;
	event.lane.lane = lane;
	event.lane.peer = peer;
	add(tracer, &event);
}

void tracer_mark(struct tracer *tracer, const char *format, ...)
{
	struct event event = {.what = EVENT_MARK};
	va_list arguments;

	if (!tracer)
		return;
	event.mark.at_ns = clock_now_ns();
	va_start(arguments, format);
	vsnprintf(event.mark.text, sizeof(event.mark.text), format, arguments);
	va_end(arguments);
	add(tracer, &event);
}

uint64_t tracer_lost(struct tracer *tracer)
{
	uint64_t lost = 0;

	if (tracer) {
		pthread_mutex_lock(&tracer->lock);
		lost = tracer->lost;
		pthread_mutex_unlock(&tracer->lock);
	}
	return lost;
}

/* ---- life ---- */

static void write_head(struct tracer *tracer, const struct rank *context)
{
	const struct node_info *info = &context->roster.nodes[context->rank];
	struct timespec real;
	struct trace_head head = {
		.job = context->join.launch.job,
		.host = info->host_name,
		.instance = context->instance,
		.rank = context->rank,
		.size = context->size,
		.now_ns = clock_now_ns(),
	};

	clock_gettime(CLOCK_REALTIME, &real);
	head.real_ns = (uint64_t)real.tv_sec * NS_PER_S + (uint64_t)real.tv_nsec;
	memcpy(&head.host_id, info->host_id, sizeof(head.host_id));
	trace_write_head(tracer->file, &head);
	/* So that the file of a rank that is killed soon names its rank. A failure shows later. */
	(void)fflush(tracer->file);
}

/* Fails with EWOULDBLOCK if another rank, of this process or another, is writing this file. */
static FILE *open_part(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	FILE *file = NULL;

	if (fd < 0)
		return NULL;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && ftruncate(fd, 0) == 0)
		file = fdopen(fd, "w");
	if (!file) {
		int cause = errno;

		close(fd);
		errno = cause;
	}
	return file;
}

static enum esp_status start(struct tracer *tracer, struct rank *context, struct error *err)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, before;

	enum esp_status status = rank_path(context, context->conf.trace, tracer->path, err);
	if (status != ESP_OK)
		return status;
	snprintf(tracer->part, sizeof(tracer->part), "%s.part", tracer->path);
	tracer->file = open_part(tracer->part);
	if (!tracer->file && errno == EWOULDBLOCK)
		return error_set(
			err, ESP_EIO,
			"cannot write %.130s: another rank does; put %%r into ESP_TRACE, so that each has a file of its own",
			tracer->part);
	if (!tracer->file)
		return error_set(err, ESP_EIO, "cannot write %.150s: %s", tracer->part, strerror(errno));
	write_head(tracer, context);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the program's */
	tracer->references++;
	int error = pthread_create(&thread, &attributes, tracer_main, tracer);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	if (error == 0)
		return ESP_OK;
	tracer->references--;
	fclose(tracer->file);
	(void)unlink(tracer->part);
	return error_set(err, ESP_ELIMIT, "no thread for the trace: %s", strerror(error));
}

struct tracer *tracer_open(struct rank *context)
{
	struct error err = {.text = "no memory"};

	if (!context->conf.trace[0])
		return NULL;
	struct tracer *tracer = calloc(1, sizeof(*tracer));
	if (!tracer)
		return NULL;
	pthread_mutex_init(&tracer->lock, NULL);
	rank_cond_init(&tracer->changed);
	tracer->references = 1;
	tracer->rank = context->rank;
	tracer->detail = context->conf.trace_detail;
	tracer->events = calloc(EVENTS, sizeof(*tracer->events));
	tracer->lane_count = context->lanes;
	tracer->lanes = calloc(context->lanes, sizeof(*tracer->lanes));
	tracer->waits = calloc(context->lanes, sizeof(*tracer->waits));
	if (tracer->events && tracer->lanes && tracer->waits && start(tracer, context, &err) == ESP_OK)
		return tracer;
	log_write(&context->log, LOG_LEVEL_WARN, LOG_WATCH, "trace: %s; there will be none of this rank", err.text);
	release(tracer);
	return NULL;
}

void tracer_close(struct tracer *tracer, struct rank *context)
{
	uint64_t until = clock_now_ns() + PATIENCE;
	struct timespec at = {(time_t)(until / NS_PER_S), (long)(until % NS_PER_S)};

	if (!tracer)
		return;
	pthread_mutex_lock(&tracer->lock);
	tracer->closes = true;
	pthread_cond_broadcast(&tracer->changed);
	while (!tracer->is_done && clock_now_ns() < until)
		pthread_cond_timedwait(&tracer->changed, &tracer->lock, &at);
	bool is_done = tracer->is_done, has_failed = tracer->has_failed;
	uint64_t lost = tracer->lost;
	struct error err = tracer->err;
	pthread_mutex_unlock(&tracer->lock);
	if (has_failed)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_WATCH, "trace: %s", err.text);
	else if (!is_done)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_WATCH, "trace: the disk does not take it; it may stay unfinished");
	else if (lost > 0)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_WATCH,
		          "trace: %" PRIu64 " events were lost, as they came too fast", lost);
	release(tracer);
}
