/*
 * sim_film.h - the messages of a simulated collective as a trace in Chrome's form, for Perfetto and chrome://tracing.
 *
 * One process per node; its tracks are messages on their way out and in, as many as there are at a time; an arrow leads from
 * where a message leaves to where it arrives.
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

ESP_CHECKED enum esp_status sim_film_open(struct sim_film *film, const char *path, const struct plan *plan,
                                          struct error *err);
/* user is the film: as once_config.message. */
void sim_film_message(void *user, const struct cluster_message *message);
/* The file has its name now, if it is to be kept. */
ESP_CHECKED enum esp_status sim_film_close(struct sim_film *film, bool keep, struct error *err);

#endif
