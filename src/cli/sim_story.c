/*
 * sim_story.c - events of a simulated training, written as they happen.
 */
#include "cli/sim_story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum track { TRACK_COMPUTE, TRACK_OUT, TRACK_IN, TRACKS };
static const char *const track_names[TRACKS] = {"compute", "out", "in"};

/* The names of a node and of its tracks, before the first event of each. */
static void name_track(struct sim_story *story, uint32_t node, enum track track)
{
	FILE *out = story->file.file;
	uint32_t workers = story->workers, servers = story->servers;

	if (node >= story->named_count) {
		uint32_t count = node + 64;
		uint8_t *named = realloc(story->named, count);

		if (!named)
			return;
		memset(named + story->named_count, 0, count - story->named_count);
		story->named = named;
		story->named_count = count;
	}
	if (!story->named[node])
		fprintf(out, ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":\"%s %u\"}}", node,
		        node < workers ? "worker" : node < workers + servers ? "server" : "switch or hub",
		        node < workers ? node : node < workers + servers ? node - workers : node - workers - servers);
	if (!(story->named[node] & 1u << track))
		fprintf(out, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%d,\"args\":{\"name\":\"%s\"}}", node, (int)track,
		        track_names[track]);
	story->named[node] |= (uint8_t)(1u << track);
}

static void slice(struct sim_story *story, uint32_t node, enum track track, const char *name, double from, double to)
{
	name_track(story, node, track);
	fprintf(story->file.file, ",\n{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%u,\"tid\":%d,\"ts\":%.6f,\"dur\":%.6f", name, node, (int)track,
	        from * 1e6, (to - from) * 1e6);
}

static void on_computed(void *user, uint32_t worker, bool forward, uint32_t iteration, double from, double to)
{
	struct sim_story *story = user;

	slice(story, worker, TRACK_COMPUTE, forward ? "forward" : "backward", from, to);
	fprintf(story->file.file, ",\"args\":{\"iteration\":%u}}", iteration);
}

static void arguments(FILE *out, const struct cluster_message *message)
{
	fprintf(out, ",\"args\":{\"from\":%u,\"to\":%u,\"bytes\":%llu,\"stream\":%u,\"call\":%llu,\"chunk\":%llu}}", message->from, message->to,
	        (unsigned long long)message->bytes, message->stream, (unsigned long long)message->call, (unsigned long long)message->chunk);
}

/* It takes as long to come in as to go out, and may have waited in between. */
static void on_moved(void *user, const struct cluster_message *message)
{
	struct sim_story *story = user;
	double from = message->arrived - (message->left - message->begun);
	char name[32];

	snprintf(name, sizeof(name), "to %u", message->to);
	slice(story, message->from, TRACK_OUT, name, message->begun, message->left);
	arguments(story->file.file, message);
	snprintf(name, sizeof(name), "from %u", message->from);
	slice(story, message->to, TRACK_IN, name, from > message->begun ? from : message->begun, message->arrived);
	arguments(story->file.file, message);
}

enum esp_status sim_story_open(struct sim_story *story, const char *path, uint32_t workers, uint32_t servers, struct error *err)
{
	*story = (struct sim_story){.workers = workers, .servers = servers};
	enum esp_status status = outfile_open(&story->file, path, err);
	if (status == ESP_OK)
		fputs("[{\"ph\":\"M\",\"name\":\"trace_of\",\"pid\":0,\"args\":{\"name\":\"espalier sim run\"}}", story->file.file);
	return status;
}

struct train_watch sim_story_watch(struct sim_story *story)
{
	return (struct train_watch){story, on_computed, on_moved};
}

enum esp_status sim_story_close(struct sim_story *story, bool keep, struct error *err)
{
	enum esp_status status = ESP_OK;

	free(story->named);
	if (keep) {
		fputs("]\n", story->file.file);
		status = outfile_commit(&story->file, err);
	} else {
		outfile_abandon(&story->file);
	}
	return status;
}
