#include "tools/sim/sim_film.h"

#include <stdio.h>
#include <stdlib.h>

#define TRACKS 64u /* each way; what has no room shares the last one */
#define TRACK_IN 100u /* the first of those that come in */

struct film_node {
	double out_until[TRACKS], in_until[TRACKS]; /* when a track is free again */
	uint32_t out_count, in_count;
};

static const char *node_kind(const struct plan *plan, uint32_t node)
{
	return node < plan->workers ? "worker" : node < plan->nodes - plan->switches ? "server" : "switch";
}

enum esp_status sim_film_open(struct sim_film *film, const char *path, const struct plan *plan, struct error *err)
{
	*film = (struct sim_film){.plan = plan, .nodes = calloc(plan->nodes, sizeof(struct film_node))};
	if (!film->nodes)
		return error_set(err, ESP_ENOMEM, "no memory for a trace of %u nodes", plan->nodes);
	enum esp_status status = outfile_open(&film->file, path, err);
	if (status != ESP_OK) {
		free(film->nodes);
		return status;
	}
	FILE *out = film->file.file;
	fputs("[{\"ph\":\"M\",\"name\":\"trace_of\",\"pid\":0,\"args\":{\"name\":\"espalier sim\"}}", out);
	for (uint32_t i = 0; i < plan->nodes; i++)
		fprintf(out, ",\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%u,\"args\":{\"name\":\"%s %u\"}}", i, node_kind(plan, i), i);
	return ESP_OK;
}

/* The first track that is free; a new one gets its name. */
static uint32_t take_track(FILE *out, uint32_t node, const char *way, uint32_t base, double *until, uint32_t *count, double from,
                           double to)
{
	uint32_t track = 0;

	while (track < *count && track + 1 < TRACKS && until[track] > from)
		track++;
	if (track == *count) {
		(*count)++;
		fprintf(out, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":\"%s %u\"}}", node, base + track,
		        way, track);
	}
	until[track] = to;
	return base + track;
}

static void slice(FILE *out, const struct cluster_message *message, uint32_t node, uint32_t track, const char *word,
                  uint32_t peer, double from, double to)
{
	fprintf(out, ",\n{\"ph\":\"X\",\"cat\":\"message\",\"name\":\"%s %u\",\"pid\":%u,\"tid\":%u,\"ts\":%.6f,\"dur\":%.6f,"
	             "\"args\":{\"chunk\":%llu,\"bytes\":%llu,\"waited_us\":%.6f}}",
	        word, peer, node, track, from * 1e6, (to - from) * 1e6, (unsigned long long)message->chunk,
	        (unsigned long long)message->bytes, (message->begun - message->ready) * 1e6);
}

/* It takes as long to come in as to go out, and may have waited in between. */
void sim_film_message(void *user, const struct cluster_message *message)
{
	struct sim_film *film = user;
	FILE *out = film->file.file;
	struct film_node *from = &film->nodes[message->from], *to = &film->nodes[message->to];
	double came = message->arrived - (message->left - message->begun);

	uint32_t out_track = take_track(out, message->from, "out", 0, from->out_until, &from->out_count, message->begun, message->left);
	uint32_t in_track = take_track(out, message->to, "in", TRACK_IN, to->in_until, &to->in_count, came, message->arrived);
	slice(out, message, message->from, out_track, "to", message->to, message->begun, message->left);
	slice(out, message, message->to, in_track, "from", message->from, came, message->arrived);
	sim_arrow_draw(&film->arrows, out, (struct sim_point){message->from, out_track, message->begun},
	               (struct sim_point){message->to, in_track, came});
}

enum esp_status sim_film_close(struct sim_film *film, bool keep, struct error *err)
{
	enum esp_status status = ESP_OK;

	free(film->nodes);
	if (keep) {
		fputs("]\n", film->file.file);
		status = outfile_commit(&film->file, err);
	} else {
		outfile_abandon(&film->file);
	}
	return status;
}
