/*
 * probe_page.h - a report for a browser while it is written, and its parts.
 */
#ifndef TOOLS_PROBE_PROBE_PAGE_H
#define TOOLS_PROBE_PROBE_PAGE_H

#include <string.h>

#include "tools/probe/probe_outcome.h"

#define PAGE_CELLS_MOST 96u /* of a heat map in a row: more hosts share cells */
#define PAGE_NAMES_MOST 64u /* beside a heat map, and beside the map           */
#define PAGE_WIDE_MOST 16u  /* hosts whose pictures fit side by side           */
#define PAGE_NAME_SHOWN 36u /* bytes of a name in a picture; tooltips have all of it */
#define PAGE_NAME (PAGE_NAME_SHOWN + 8u)
#define PAGE_COLOURS 8u

struct probe_page {
	const struct probe_outcome *outcome;
	FILE *file;
	uint32_t *order; /* the hosts by their groups                                   */
	double *x, *y;   /* by host: where it stands in the map                         */
	double edge;     /* of a heat map: room for the names at its left and above it */
	size_t domain;   /* bytes that all names end in, from a dot on: pictures leave them out */
};

static inline const char *page_name(const struct probe_page *page, uint32_t host)
{
	return page->outcome->found.survey.names[host];
}

static inline uint32_t page_group(const struct probe_page *page, uint32_t host)
{
	return page->outcome->found.grouping.group_of[host];
}

/* ".eu-west-1.compute.internal" */
static inline const char *page_domain(const struct probe_page *page)
{
	const char *name = page_name(page, 0);

	return name + strlen(name) - page->domain;
}

/* probe_names.c: the domain that all hosts share; a name without it, cut where it is too long. Returns text. */
size_t page_find_domain(const struct probe_page *page);
const char *page_short_name(const struct probe_page *page, uint32_t host, char text[PAGE_NAME]);

/* probe_dots.c: the section with the map; x and y are from 0 to 1 before, and those of the picture after it. ESP_ENOMEM. */
ESP_CHECKED enum esp_status page_write_map(const struct probe_page *page);

/* probe_heat.c: the section of this kind of distance, nothing if it was not measured; and the edge that its names need. */
void page_write_heat(const struct probe_page *page, enum survey_kind kind);
double page_find_edge(const struct probe_page *page);

#endif
