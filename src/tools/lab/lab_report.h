/*
 * lab_report.h - what a lab is and what was measured in it, for people and for programs.
 */
#ifndef TOOLS_LAB_LAB_REPORT_H
#define TOOLS_LAB_LAB_REPORT_H

#include "report/rows.h"
#include "tools/lab/lab.h"
#include "tools/lab/measure.h"

/* Measurements as they come in. */
struct lab_checks {
	struct measure *list;
	uint32_t count;
	bool lost; /* no memory for one of them */
};

/* A client_measure_fn; context: struct lab_checks. */
void lab_checks_add(void *context, const struct measure *measure, uint32_t count);
void lab_checks_fini(struct lab_checks *checks);

/* How many are not what was asked. */
uint32_t lab_checks_wrong(const struct lab_checks *checks);

/* The measurements, and hosts and uplinks: a table on stdout, or as a key of a JSON object that was begun. */
ESP_CHECKED enum esp_status lab_report_checks(const struct lab *lab, const struct lab_checks *checks, struct json *json);
ESP_CHECKED enum esp_status lab_report_links(const struct lab *lab, struct json *json);

/* The lab: one sentence on stdout, or as keys. */
void lab_report_sentence(const struct lab *lab);
void lab_json_config(struct json *json, const struct lab *lab);

#endif
