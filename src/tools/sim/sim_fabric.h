/*
 * sim_fabric.h - the options of espalier sim fabric, and the table of ways that its commands show. One thread.
 */
#ifndef TOOLS_SIM_SIM_FABRIC_H
#define TOOLS_SIM_SIM_FABRIC_H

#include "report/json.h"
#include "report/options.h"
#include "sim/fabric/fabric_study.h"

#define SIM_FABRIC_OPTIONS 14u

struct sim_fabric {
	const char *model; /* NULL: 100 MB, 100 ms */
	uint64_t hosts, per_host, seeds, seed;
	double gbps, compute_ms, seconds, lag_s; /* compute_ms 0: the model's */
	int weather, stragglers, task;
	bool json;
	/* of sim_tool_fabric_cell() */
	struct fabric_cell cell;
	char about[256];   /* "resnet-50 (102 MB, 98 ms a step), 15 hosts with ..." */
};

void sim_tool_fabric_init(struct sim_fabric *fabric);
/* Appends the options to those before, and the end of the table. */
void sim_tool_fabric_options(struct sim_fabric *fabric, struct option_spec options[SIM_FABRIC_OPTIONS]);
/* ESP_EINVAL: out of range, or there is no such model; errors of sim_tool_model_open(). */
ESP_CHECKED enum esp_status sim_tool_fabric_cell(struct sim_fabric *fabric, struct error *err);
/* json: the rows are its next value, and its object and the document end; NULL: a table. */
ESP_CHECKED enum esp_status sim_tool_fabric_print(const struct sim_fabric *fabric, const struct fabric_row *rows,
                                                  uint32_t count, struct json *json);

#endif
