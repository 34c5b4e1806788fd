/*
 * sim_story.c - writes events of a simulated training as they happen.
 */
#include "tools/sim/sim_story.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum way { WAY_OUT, WAY_IN, WAYS };
static const char *const way_names[WAYS] = {"out", "in"};
#define NAME_TEXT 32
#define CARGO_TEXT 256
#define TRACK_COMPUTE 0u /* followed by out and in tracks in turn: 1 and 2, 3 and 4, ... */

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
 * Messages that never overlap have a track: the ones that leave a NIC that sends one at a time, or the ones of a
 * connection if connections share links.
 */
struct track {
	uint32_t nic, peer;
	double until_s; /* incoming: the track is in use until then */
};

/* The tracks of a node. */
struct sim_story_node {
	bool is_named, computes;
	struct track *tracks[WAYS];
	uint32_t track_count[WAYS];
};

/* NULL: no memory. Then names are missing and slices may overlap, but the trace is complete. */
static struct sim_story_node *node_at(struct sim_story *story, uint32_t node)
{
	if (node >= story->node_count) {
		size_t count = story->node_count;
		if (!vec_reserve(&story->nodes, &count, (size_t)node + 1, sizeof(*story->nodes)))
			return NULL;
		memset(story->nodes + story->node_count, 0, (count - story->node_count) * sizeof(*story->nodes));
		story->node_count = count;
	}
	uint32_t number;
	const char *kind = kind_of(&story->cast, node, &number);
	char name[NAME_TEXT];
	snprintf(name, sizeof(name), "%s %u", kind, number);
	if (!story->nodes[node].is_named)
		trace_name_process(&story->events, node, name);
	story->nodes[node].is_named = true;
	return &story->nodes[node];
}

static void name_track(struct sim_story *story, uint32_t node, enum way way, uint32_t track, const struct track *used)
{
	uint32_t number;
	const char *kind = kind_of(&story->cast, used->peer, &number);
	char nic[NAME_TEXT] = "", peer[NAME_TEXT] = "", name[3 * NAME_TEXT];

	if (used->nic > 0)
		snprintf(nic, sizeof(nic), ", NIC %u", used->nic);
	if (story->cast.shares_links)
		snprintf(peer, sizeof(peer), " %s %s %u", way == WAY_OUT ? "to" : "from", kind, number);
	snprintf(name, sizeof(name), "%s%s%s", way_names[way], nic, peer);
	trace_name_track(&story->events, node, track, name);
}

/* The track of a message, made if it is the first; NULL: no memory. */
static struct track *track_of(struct sim_story *story, const struct cluster_message *message, enum way way,
                              uint32_t *out_track)
{
	uint32_t node = way == WAY_OUT ? message->from : message->to, i = 0;
	struct sim_story_node *at = node_at(story, node);
	struct track wanted = {0};

	*out_track = way + 1u;
	if (!at)
		return NULL;
	/*
	 * The receiving NIC is not known; messages that come in one at a time are drawn in the order in which they
	 * arrive.
	 */
	if (story->cast.shares_links || way == WAY_OUT)
		wanted.nic = message->nic;
	if (story->cast.shares_links)
		wanted.peer = way == WAY_OUT ? message->to : message->from;
	while (i < at->track_count[way] && (at->tracks[way][i].nic != wanted.nic || at->tracks[way][i].peer != wanted.peer))
		i++;
	*out_track = 2 * i + way + 1u;
	if (i == at->track_count[way]) {
		struct track *tracks = realloc(at->tracks[way], (i + 1) * sizeof(*tracks));
		if (!tracks)
			return NULL;
		at->tracks[way] = tracks;
		tracks[at->track_count[way]++] = wanted;
		name_track(story, node, way, *out_track, &wanted);
	}
	return &at->tracks[way][i];
}

static void on_computed(void *user, uint32_t worker, bool forward, uint32_t iteration, double from, double to)
{
	struct sim_story *story = user;
	struct sim_story_node *at = node_at(story, worker);

	if (at && !at->computes)
		trace_name_track(&story->events, worker, TRACK_COMPUTE, "compute");
	if (at)
		at->computes = true;
	trace_slice(&story->events, (struct trace_spot){worker, TRACK_COMPUTE, sim_tool_ticks(from)},
	            sim_tool_ticks(to - from), NULL, forward ? "forward" : "backward");
	json_put_u64(trace_args(&story->events), "iteration", iteration);
	trace_event_end(&story->events);
}

static void put_node(struct sim_story *story, const char *key, uint32_t node)
{
	uint32_t number;
	const char *kind = kind_of(&story->cast, node, &number);
	char name[NAME_TEXT];

	snprintf(name, sizeof(name), "%s %u", kind, number);
	json_put_string(trace_args(&story->events), key, name);
}

static void slice(struct sim_story *story, struct trace_spot from, double seconds,
                  const struct cluster_message *message, const struct train_cargo *cargo)
{
	const struct model *model = story->cast.model;
	const char *kind = cargo->is_gradient ? "gradient" : "parameter";
	const char *first = cargo->parameter < model->parameter_count ? model->parameters[cargo->parameter].name : kind;
	char name[CARGO_TEXT];

	if (cargo->count > 1)
		snprintf(name, sizeof(name), "%.*s and %u more", CARGO_TEXT - 32, first, cargo->count - 1);
	else
		snprintf(name, sizeof(name), "%s", first);
	trace_slice(&story->events, from, sim_tool_ticks(seconds), kind, name);
	put_node(story, "from", message->from);
	put_node(story, "to", message->to);
	json_put_u64(trace_args(&story->events), "bytes", message->bytes);
	json_put_u64(trace_args(&story->events), "piece", message->chunk);
	trace_event_end(&story->events);
}

/* When a message left, and how long that took, is known, in whichever order messages arrive. */
static struct trace_spot draw_out(struct sim_story *story, const struct cluster_message *message,
                                  const struct train_cargo *cargo)
{
	uint32_t track;

	(void)track_of(story, message, WAY_OUT, &track);
	const struct trace_spot spot = {message->from, track, sim_tool_ticks(message->begun)};
	slice(story, spot, message->left - message->begun, message, cargo);
	return spot;
}

/*
 * A message takes as long to come in as to go out, and may have waited in between. Messages are reported in the order
 * of arrival: if one seems to begin before the end of the previous one, it was queueing until then.
 */
static struct trace_spot draw_in(struct sim_story *story, const struct cluster_message *message,
                                 const struct train_cargo *cargo)
{
	uint32_t track;
	struct track *used = track_of(story, message, WAY_IN, &track);
	double from = message->arrived - (message->left - message->begun);

	from = from > message->begun ? from : message->begun;
	if (used) {
		from = from > used->until_s ? from : used->until_s;
		used->until_s = message->arrived;
	}
	const struct trace_spot spot = {message->to, track, sim_tool_ticks(from)};
	slice(story, spot, message->arrived - from, message, cargo);
	return spot;
}

static void on_moved(void *user, const struct cluster_message *message, const struct train_cargo *cargo)
{
	struct sim_story *story = user;
	bool from_host = is_host(&story->cast, message->from), to_host = is_host(&story->cast, message->to);
	struct trace_spot from = {0}, to = {0};

	if (from_host)
		from = draw_out(story, message, cargo);
	if (to_host)
		to = draw_in(story, message, cargo);
	if (from_host && to_host)
		sim_tool_arrow_draw(&story->arrows, &story->events, from, to);
	else if (from_host)
		sim_tool_arrows_leave(&story->arrows, message, from);
	else if (to_host)
		sim_tool_arrows_arrive(&story->arrows, &story->events, message, to);
}

enum esp_status sim_tool_story_open(struct sim_story *story, const char *path, const struct sim_story_cast *cast,
                                    struct error *err)
{
	*story = (struct sim_story){.cast = *cast};
	enum esp_status status = outfile_open(&story->file, path, err);
	if (status == ESP_OK)
		trace_events_begin(&story->events, story->file.file, TRACE_TICK_PS);
	return status;
}

struct train_watch sim_tool_story_watch(struct sim_story *story)
{
	return (struct train_watch){story, on_computed, on_moved};
}

enum esp_status sim_tool_story_close(struct sim_story *story, bool keep, struct error *err)
{
	enum esp_status status = ESP_OK;

	for (uint32_t i = 0; i < story->node_count; i++) {
		free(story->nodes[i].tracks[WAY_OUT]);
		free(story->nodes[i].tracks[WAY_IN]);
	}
	free(story->nodes);
	sim_tool_arrows_fini(&story->arrows);
	if (keep) {
		(void)!trace_events_end(&story->events); /* outfile_commit() reports a file that cannot be written */
		status = outfile_commit(&story->file, err);
	} else {
		outfile_abandon(&story->file);
	}
	return status;
}
