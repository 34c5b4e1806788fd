/*
 * sim_story.c - events of a simulated training, written as they happen.
 */
#include "cli/sim_story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum track { TRACK_COMPUTE, TRACK_OUT, TRACK_IN, TRACKS };
static const char *const track_names[TRACKS] = {"compute", "out", "in"};

static const char *kind_of(const struct sim_story_cast *cast, uint32_t node, uint32_t *out_number)
{
	*out_number = node;
	if (node < cast->workers)
		return "worker";
	*out_number -= cast->workers;
	if (*out_number < cast->servers)
		return "server";
	*out_number -= cast->servers;
	return cast->has_hubs ? "hub" : "switch";
}

static bool is_host(const struct sim_story_cast *cast, uint32_t node)
{
	return cast->has_hubs || node < cast->workers + cast->servers;
}

/* What was written of a node. */
struct sim_story_node {
	uint8_t named;           /* tracks that have a name                      */
	double until_s[TRACKS];  /* slices on one track must not overlap         */
};

/* NULL: no memory, which costs names and tidiness, not the trace. */
static struct sim_story_node *node_at(struct sim_story *story, uint32_t node)
{
	if (node < story->node_count)
		return &story->nodes[node];
	uint32_t count = node + 64;
	struct sim_story_node *nodes = realloc(story->nodes, count * sizeof(*nodes));
	if (!nodes)
		return NULL;
	memset(nodes + story->node_count, 0, (count - story->node_count) * sizeof(*nodes));
	story->nodes = nodes;
	story->node_count = count;
	return &nodes[node];
}

/* The names of a node and of its tracks, before the first event of each. */
static void name_track(struct sim_story *story, struct sim_story_node *at, uint32_t node, enum track track)
{
	FILE *out = story->file.file;
	uint32_t number;
	const char *kind = kind_of(&story->cast, node, &number);

	if (at->named & 1u << track)
		return;
	if (!at->named)
		fprintf(out, ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":\"%s %u\"}}", node, kind, number);
	fprintf(out, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%d,\"args\":{\"name\":\"%s\"}}", node, (int)track,
	        track_names[track]);
	at->named |= (uint8_t)(1u << track);
}

/* As text in JSON: names of parameters may be anything. */
static void put_text(FILE *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else if ((unsigned char)*text >= 0x20)
			fputc(*text, out);
	}
}

/* Slices come in the order of their ends. What seems to begin before the one before it has ended was queueing until then. */
static void slice_begin(struct sim_story *story, uint32_t node, enum track track, double from, double to)
{
	struct sim_story_node *at = node_at(story, node);

	if (at) {
		name_track(story, at, node, track);
		from = from > at->until_s[track] ? from : at->until_s[track];
		at->until_s[track] = to;
	}
	fprintf(story->file.file, ",\n{\"ph\":\"X\",\"pid\":%u,\"tid\":%d,\"ts\":%.6f,\"dur\":%.6f,\"name\":\"", node, (int)track, from * 1e6,
	        (to - from) * 1e6);
}

static void on_computed(void *user, uint32_t worker, bool forward, uint32_t iteration, double from, double to)
{
	struct sim_story *story = user;

	slice_begin(story, worker, TRACK_COMPUTE, from, to);
	fprintf(story->file.file, "%s\",\"args\":{\"iteration\":%u}}", forward ? "forward" : "backward", iteration);
}

static void slice_end(struct sim_story *story, const struct cluster_message *message, const struct train_cargo *cargo)
{
	const struct model *model = story->cast.model;
	FILE *out = story->file.file;
	uint32_t from, to;
	const char *from_kind = kind_of(&story->cast, message->from, &from), *to_kind = kind_of(&story->cast, message->to, &to);

	if (cargo->parameter < model->parameter_count)
		put_text(out, model->parameters[cargo->parameter].name);
	else
		fputs(cargo->is_gradient ? "gradient" : "parameter", out);
	if (cargo->count > 1)
		fprintf(out, " and %u more", cargo->count - 1);
	fprintf(out, "\",\"cat\":\"%s\",\"args\":{\"from\":\"%s %u\",\"to\":\"%s %u\",\"bytes\":%llu,\"piece\":%llu}}",
	        cargo->is_gradient ? "gradient" : "parameter", from_kind, from, to_kind, to, (unsigned long long)message->bytes,
	        (unsigned long long)message->chunk);
}

/* It takes as long to come in as to go out, and may have waited in between. */
static void on_moved(void *user, const struct cluster_message *message, const struct train_cargo *cargo)
{
	struct sim_story *story = user;
	double from = message->arrived - (message->left - message->begun);

	if (is_host(&story->cast, message->from)) {
		slice_begin(story, message->from, TRACK_OUT, message->begun, message->left);
		slice_end(story, message, cargo);
	}
	if (is_host(&story->cast, message->to)) {
		slice_begin(story, message->to, TRACK_IN, from > message->begun ? from : message->begun, message->arrived);
		slice_end(story, message, cargo);
	}
}

enum esp_status sim_story_open(struct sim_story *story, const char *path, const struct sim_story_cast *cast, struct error *err)
{
	*story = (struct sim_story){.cast = *cast};
	enum esp_status status = outfile_open(&story->file, path, err);
	if (status == ESP_OK)
		fputs("[{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":0,\"args\":{\"sort_index\":0}}", story->file.file);
	return status;
}

struct train_watch sim_story_watch(struct sim_story *story)
{
	return (struct train_watch){story, on_computed, on_moved};
}

enum esp_status sim_story_close(struct sim_story *story, bool keep, struct error *err)
{
	enum esp_status status = ESP_OK;

	free(story->nodes);
	if (keep) {
		fputs("]\n", story->file.file);
		status = outfile_commit(&story->file, err);
	} else {
		outfile_abandon(&story->file);
	}
	return status;
}
