/*
 * probe_page.h - a report for a browser while it is written, and its parts.
 */
#ifndef CLI_PROBE_PAGE_H
#define CLI_PROBE_PAGE_H

#include "cli/probe.h"

#define PAGE_CELLS_MOST 96u /* of a heat map in a row: more hosts share cells */
#define PAGE_NAMES_MOST 48u /* beside a heat map, and in the map              */

struct probe_page {
	const struct probe_outcome *outcome;
	FILE *file;
	uint32_t *order; /* the hosts by their groups                                   */
	double *x, *y;   /* by host: where it stands in the map                         */
	double edge;     /* of a heat map: room for the names at its left and above it */
};

static inline const char *page_name(const struct probe_page *page, uint32_t host)
{
	return page->outcome->found.survey.names[host];
}

static inline uint32_t page_group(const struct probe_page *page, uint32_t host)
{
	return page->outcome->found.grouping.group_of[host];
}

/* probe_heat.c: the section of this kind of distance, nothing if it was not measured; and the edge that its names need. */
void page_write_heat(const struct probe_page *page, enum survey_kind kind);
double page_find_edge(const struct probe_page *page);

#endif
