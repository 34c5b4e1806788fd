/*
 * lab_report.h - prints a lab and its measurements, as tables or JSON.
 */
#ifndef TOOLS_LAB_LAB_REPORT_H
#define TOOLS_LAB_LAB_REPORT_H

#include "report/json.h"
#include "report/table.h"
#include "tools/lab/lab.h"
#include "tools/lab/measure.h"

/* Measurements so far. */
struct lab_checks {
	struct measure *list;
	uint32_t count;
	bool lost; /* no memory for one of them */
};

/* A client_measure_fn; context: struct lab_checks. */
void lab_checks_add(void *context, const struct measure *measure, uint32_t count);
void lab_checks_fini(struct lab_checks *checks);

/* The number of measurements outside of the tolerance. */
uint32_t lab_checks_wrong(const struct lab_checks *checks);

/* On stdout: a sentence about the lab, a table of measurements, a table of links. */
void lab_report_sentence(const struct lab *lab);
ESP_CHECKED enum esp_status lab_report_checks(const struct lab *lab, const struct lab_checks *checks);
ESP_CHECKED enum esp_status lab_report_links(const struct lab *lab);

/* Writes keys into an open JSON object. */
void lab_json_config(struct json *json, const struct lab *lab);
void lab_json_checks(struct json *json, const struct lab *lab, const struct lab_checks *checks);
void lab_json_links(struct json *json, const struct lab *lab);

#endif
