/*
 * lab_report.h - a lab's settings and links, and measurements of them, as tables for people or as JSON for programs.
 * Prints to stdout; no other I/O. One thread.
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
	bool lost; /* memory for a measurement ran out */
};

/* A client_measure_fn; context: struct lab_checks. */
void lab_checks_add(void *context, const struct measure *measure, uint32_t count);
void lab_checks_fini(struct lab_checks *checks);

/* The number of measurements that are not as asked; one more if a measurement was lost. */
uint32_t lab_checks_wrong(const struct lab_checks *checks);

/*
 * Measurements; hosts and uplinks: a table on stdout (json NULL), or a key of the JSON object that was begun. Errors
 * of rows_end().
 */
ESP_CHECKED enum esp_status lab_report_checks(const struct lab *lab, const struct lab_checks *checks,
                                              struct json *json);
ESP_CHECKED enum esp_status lab_report_links(const struct lab *lab, struct json *json);

/* The lab: one sentence on stdout, or as keys. */
void lab_report_sentence(const struct lab *lab);
void lab_json_config(struct json *json, const struct lab *lab);

#endif
