/*
 * sim_film.h - the messages of a simulated collective as a trace in Chrome's format, for Perfetto and
 * chrome://tracing. One thread; writes the file.
 *
 * A process per node; its tracks are outgoing and incoming messages, as many as there are at a time; an arrow leads
 * from where a message leaves to where it arrives.
 */
#ifndef TOOLS_SIM_SIM_FILM_H
#define TOOLS_SIM_SIM_FILM_H

#include "base/outfile.h"
#include "plan/plan.h"
#include "sim/cluster.h"
#include "tools/sim/sim_arrows.h"

struct film_node;

struct sim_film {
	struct outfile file;
	struct trace_events events;
	const struct plan *plan; /* borrowed */
	struct film_node *nodes;
	struct sim_arrows arrows;
};

ESP_CHECKED enum esp_status sim_tool_film_open(struct sim_film *film, const char *path, const struct plan *plan,
                                               struct error *err);
/* once_config.message; user: the film. */
void sim_tool_film_message(void *user, const struct cluster_message *message);
/* keep: the file gets its name; otherwise it is removed. */
ESP_CHECKED enum esp_status sim_tool_film_close(struct sim_film *film, bool keep, struct error *err);

#endif
