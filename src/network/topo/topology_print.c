/*
 * topology_print.c - prints a topology as text that topology_parse() reads.
 */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "network/topo/topology_build.h"

static const char *rate_text(double rate, char text[UNITS_TEXT])
{
	return units_format_rate((uint64_t)llround(rate * 8), text);
}

static const char *time_text(double seconds, char text[UNITS_TEXT])
{
	return units_format_time((uint64_t)llround(seconds * 1e9), text);
}

static const struct topology_link *first_link(const struct topology *topology, const struct topology_vertex *vertex)
{
	return &topology->links[vertex->first_link];
}

static double local_rate(const struct topology *topology, const struct topology_vertex *vertex)
{
	return vertex->has_local ? first_link(topology, vertex)[2 * vertex->nics].rate : 0;
}

static void print_link(const struct topology *topology, const struct topology_vertex *vertex, FILE *file)
{
	const struct topology_link *link = first_link(topology, vertex);
	char text[UNITS_TEXT];

	fprintf(file, " under %s rate %s", topology->vertices[vertex->parent].name, rate_text(link[0].rate, text));
	if (link[1].rate != link[0].rate)
		fprintf(file, " in %s", rate_text(link[1].rate, text));
	if (link[0].delay > 0)
		fprintf(file, " delay %s", time_text(link[0].delay, text));
	if (vertex->nics > 1)
		fprintf(file, " nics %u", vertex->nics);
	if (vertex->has_local)
		fprintf(file, " local %s", rate_text(local_rate(topology, vertex), text));
}

static bool is_alike(const struct topology *topology, const struct topology_vertex *a, const struct topology_vertex *b)
{
	const struct topology_link *la = first_link(topology, a), *lb = first_link(topology, b);

	return a->is_host && b->is_host && a->parent == b->parent && a->nics == b->nics && la[0].rate == lb[0].rate &&
	       la[1].rate == lb[1].rate && la[0].delay == lb[0].delay && local_rate(topology, a) == local_rate(topology, b);
}

static bool has_usual_name(const struct topology_vertex *vertex, uint32_t number)
{
	char name[TOPOLOGY_NAME];

	return strcmp(vertex->name, topology_host_name(number, name)) == 0;
}

/* The number of consecutive hosts that are alike and have their default names. */
static uint32_t row_of_hosts(const struct topology *topology, uint32_t at, uint32_t number)
{
	const struct topology_vertex *first = &topology->vertices[at];
	uint32_t count = 0;

	while (at + count < topology->vertex_count && is_alike(topology, first, first + count) &&
	       has_usual_name(first + count, number + count))
		count++;
	return count;
}

static void print_vertices(const struct topology *topology, FILE *file)
{
	uint32_t hosts = 0;

	for (uint32_t i = 0; i < topology->vertex_count; i++) {
		const struct topology_vertex *vertex = &topology->vertices[i];
		uint32_t row = row_of_hosts(topology, i, hosts);

		if (row > 1)
			fprintf(file, "hosts %u", row);
		else
			fprintf(file, "%s %s", vertex->is_host ? "host" : "switch", vertex->name);
		if (vertex->parent != TOPOLOGY_NONE)
			print_link(topology, vertex, file);
		fputc('\n', file);
		if (row > 1)
			i += row - 1;
		hosts += row > 1 ? row : vertex->is_host;
	}
}

static void print_events(const struct topology *topology, FILE *file)
{
	char text[UNITS_TEXT];

	for (uint32_t i = 0; i < topology->change_count; i++) {
		const struct topology_change *change = &topology->changes[i];

		fprintf(file, "at %s %s", time_text(change->at, text), topology->vertices[change->vertex].name);
		fprintf(file, " rate %s\n", rate_text(change->rate, text));
	}
	for (uint32_t i = 0; i < topology->background_count; i++) {
		const struct topology_background *background = &topology->backgrounds[i];

		fprintf(file, "from %s", time_text(background->from, text));
		if (background->to < INFINITY)
			fprintf(file, " to %s", time_text(background->to, text));
		fprintf(file, " %s > %s", topology->vertices[background->source].name,
		        topology->vertices[background->target].name);
		if (background->flows)
			fprintf(file, " flows %u\n", background->flows);
		else
			fprintf(file, " rate %s\n", rate_text(background->rate, text));
	}
}

enum esp_status topology_print(const struct topology *topology, FILE *file, struct error *err)
{
	fputs("topology 1\n", file);
	print_vertices(topology, file);
	print_events(topology, file);
	return ferror(file) ? error_set(err, ESP_EIO, "the topology cannot be written") : ESP_OK;
}
