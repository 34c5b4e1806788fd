/*
 * sim_story.c - events of a simulated training, written as they happen.
 */
#include "tools/sim/sim_story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum way { WAY_OUT, WAY_IN, WAYS };
static const char *const way_names[WAYS] = {"out", "in"};
#define TRACK_COMPUTE 0u /* behind it, out and in take turns: 1 and 2, 3 and 4, ... */

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

/*
 * What never overlaps, and so has a track of its own: what leaves one NIC where messages go one at a time, what one connection
 * carries where connections share the link.
 */
struct lane {
	uint32_t nic, peer;
	double until_s; /* in: it is taken so long */
};

/* What was written of a node. */
struct sim_story_node {
	bool is_named, computes;
	struct lane *lanes[WAYS];
	uint32_t lane_count[WAYS];
};

/* NULL: no memory, which costs names and tidiness, not the trace. */
static struct sim_story_node *node_at(struct sim_story *story, uint32_t node)
{
	if (node >= story->node_count) {
		uint32_t count = node + 64;
		struct sim_story_node *nodes = realloc(story->nodes, count * sizeof(*nodes));
		if (!nodes)
			return NULL;
		memset(nodes + story->node_count, 0, (count - story->node_count) * sizeof(*nodes));
		story->nodes = nodes;
		story->node_count = count;
	}
	uint32_t number;
	const char *kind = kind_of(&story->cast, node, &number);
	if (!story->nodes[node].is_named)
		fprintf(story->file.file, ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":\"%s %u\"}}", node, kind, number);
	story->nodes[node].is_named = true;
	return &story->nodes[node];
}

static void name_lane(struct sim_story *story, uint32_t node, enum way way, uint32_t track, const struct lane *lane)
{
	FILE *out = story->file.file;
	uint32_t number;
	const char *kind = kind_of(&story->cast, lane->peer, &number);

	fprintf(out, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s", node, track, way_names[way]);
	if (lane->nic > 0)
		fprintf(out, ", NIC %u", lane->nic);
	if (story->cast.shares_links)
		fprintf(out, " %s %s %u", way == WAY_OUT ? "to" : "from", kind, number);
	fputs("\"}}", out);
}

/* The lane of a message, made if it is the first; NULL: no memory. */
static struct lane *lane_of(struct sim_story *story, const struct cluster_message *message, enum way way, uint32_t *out_track)
{
	uint32_t node = way == WAY_OUT ? message->from : message->to, i = 0;
	struct sim_story_node *at = node_at(story, node);
	struct lane wanted = {0};

	*out_track = way + 1u;
	if (!at)
		return NULL;
	/* Which NIC it comes in at is not told; what comes in one at a time is drawn in the order in which it came. */
	if (story->cast.shares_links || way == WAY_OUT)
		wanted.nic = message->nic;
	if (story->cast.shares_links)
		wanted.peer = way == WAY_OUT ? message->to : message->from;
	while (i < at->lane_count[way] && (at->lanes[way][i].nic != wanted.nic || at->lanes[way][i].peer != wanted.peer))
		i++;
	*out_track = 2 * i + way + 1u;
	if (i == at->lane_count[way]) {
		struct lane *lanes = realloc(at->lanes[way], (i + 1) * sizeof(*lanes));
		if (!lanes)
			return NULL;
		at->lanes[way] = lanes;
		lanes[at->lane_count[way]++] = wanted;
		name_lane(story, node, way, *out_track, &wanted);
	}
	return &at->lanes[way][i];
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

static void slice_begin(struct sim_story *story, uint32_t node, uint32_t track, double from, double to)
{
	fprintf(story->file.file, ",\n{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%.6f,\"dur\":%.6f,\"name\":\"", node, track, from * 1e6,
	        (to - from) * 1e6);
}

static void on_computed(void *user, uint32_t worker, bool forward, uint32_t iteration, double from, double to)
{
	struct sim_story *story = user;
	struct sim_story_node *at = node_at(story, worker);

	if (at && !at->computes)
		fprintf(story->file.file, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"compute\"}}", worker,
		        TRACK_COMPUTE);
	if (at)
		at->computes = true;
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

/* When and how long it left is known, in whichever order messages arrive. */
static struct sim_point draw_out(struct sim_story *story, const struct cluster_message *message, const struct train_cargo *cargo)
{
	uint32_t track;

	(void)lane_of(story, message, WAY_OUT, &track);
	slice_begin(story, message->from, track, message->begun, message->left);
	slice_end(story, message, cargo);
	return (struct sim_point){message->from, track, message->begun};
}

/*
 * It takes as long to come in as to go out, and may have waited in between. We are told in the order of arrival: what seems to begin
 * before the one before it is there was queueing until then.
 */
static struct sim_point draw_in(struct sim_story *story, const struct cluster_message *message, const struct train_cargo *cargo)
{
	uint32_t track;
	struct lane *lane = lane_of(story, message, WAY_IN, &track);
	double from = message->arrived - (message->left - message->begun);

	from = from > message->begun ? from : message->begun;
	if (lane) {
		from = from > lane->until_s ? from : lane->until_s;
		lane->until_s = message->arrived;
	}
	slice_begin(story, message->to, track, from, message->arrived);
	slice_end(story, message, cargo);
	return (struct sim_point){message->to, track, from};
}

static void on_moved(void *user, const struct cluster_message *message, const struct train_cargo *cargo)
{
	struct sim_story *story = user;
	bool from_host = is_host(&story->cast, message->from), to_host = is_host(&story->cast, message->to);
	struct sim_point from = {0}, to = {0};

	if (from_host)
		from = draw_out(story, message, cargo);
	if (to_host)
		to = draw_in(story, message, cargo);
	if (from_host && to_host)
		sim_arrow_draw(&story->arrows, story->file.file, from, to);
	else if (from_host)
		sim_arrows_leave(&story->arrows, message, from);
	else if (to_host)
		sim_arrows_arrive(&story->arrows, story->file.file, message, to);
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

	for (uint32_t i = 0; i < story->node_count; i++) {
		free(story->nodes[i].lanes[WAY_OUT]);
		free(story->nodes[i].lanes[WAY_IN]);
	}
	free(story->nodes);
	sim_arrows_fini(&story->arrows);
	if (keep) {
		fputs("]\n", story->file.file);
		status = outfile_commit(&story->file, err);
	} else {
		outfile_abandon(&story->file);
	}
	return status;
}
