#include "tools/sim/sim_film.h"

#include <stdio.h>
#include <stdlib.h>

#define TRACKS 64u /* in each direction; further messages share the last one */
#define TRACK_IN 100u /* the first track of incoming messages */

struct film_node {
	double out_until[TRACKS], in_until[TRACKS]; /* the time until which a track is in use */
	uint32_t out_count, in_count;
};

static const char *node_kind(const struct plan *plan, uint32_t node)
{
	return node < plan->workers ? "worker" : node < plan->nodes - plan->switches ? "server" : "switch";
}

enum esp_status sim_tool_film_open(struct sim_film *film, const char *path, const struct plan *plan, struct error *err)
{
	*film = (struct sim_film){.plan = plan, .nodes = calloc(plan->nodes, sizeof(struct film_node))};
	if (!film->nodes)
		return error_set(err, ESP_ENOMEM, "no memory for a trace of %u nodes", plan->nodes);
	enum esp_status status = outfile_open(&film->file, path, err);
	if (status != ESP_OK) {
		free(film->nodes);
		return status;
	}
	trace_events_begin(&film->events, film->file.file, TRACE_TICK_PS);
	for (uint32_t i = 0; i < plan->nodes; i++) {
		char name[32];

		snprintf(name, sizeof(name), "%s %u", node_kind(plan, i), i);
		trace_name_process(&film->events, i, name);
	}
	return ESP_OK;
}

/* The first free track; names it when it is used for the first time. */
static uint32_t take_track(struct trace_events *events, uint32_t node, const char *way, uint32_t base, double *until,
                           uint32_t *count, double from, double to)
{
	uint32_t track = 0;

	while (track < *count && track + 1 < TRACKS && until[track] > from)
		track++;
	if (track == *count) {
		char name[32];

		(*count)++;
		snprintf(name, sizeof(name), "%s %u", way, track);
		trace_name_track(events, node, base + track, name);
	}
	until[track] = to;
	return base + track;
}

static void slice(struct trace_events *events, const struct cluster_message *message, struct trace_spot from,
                  double seconds, const char *word, uint32_t peer)
{
	char name[32];

	snprintf(name, sizeof(name), "%s %u", word, peer);
	trace_slice(events, from, sim_tool_ticks(seconds), "message", name);
	json_put_u64(trace_args(events), "chunk", message->chunk);
	json_put_u64(trace_args(events), "bytes", message->bytes);
	trace_put_time(events, "waited_us", sim_tool_ticks(message->begun - message->ready));
	trace_event_end(events);
}

/* A message takes as long to come in as to go out, and may have waited in between. */
void sim_tool_film_message(void *user, const struct cluster_message *message)
{
	struct sim_film *film = user;
	struct trace_events *events = &film->events;
	struct film_node *from = &film->nodes[message->from], *to = &film->nodes[message->to];
	double took = message->left - message->begun, came = message->arrived - took;

	uint32_t out_track =
		take_track(events, message->from, "out", 0, from->out_until, &from->out_count, message->begun, message->left);
	uint32_t in_track =
		take_track(events, message->to, "in", TRACK_IN, to->in_until, &to->in_count, came, message->arrived);
	const struct trace_spot out = {message->from, out_track, sim_tool_ticks(message->begun)},
							in = {message->to, in_track, sim_tool_ticks(came)};
	slice(events, message, out, took, "to", message->to);
	slice(events, message, in, took, "from", message->from);
	sim_tool_arrow_draw(&film->arrows, events, out, in);
}

enum esp_status sim_tool_film_close(struct sim_film *film, bool keep, struct error *err)
{
	enum esp_status status = ESP_OK;

	free(film->nodes);
	if (keep) {
		(void)!trace_events_end(&film->events); /* outfile_commit() reports a file that cannot be written */
		status = outfile_commit(&film->file, err);
	} else {
		outfile_abandon(&film->file);
	}
	return status;
}
