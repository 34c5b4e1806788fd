#include "network/topo/racks_topology.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/quote.h"
#include "network/topo/topology_build.h"

#define NONE UINT32_MAX
#define BITS_MIN 8.0  /* the range of rates in base/units.h */
#define BITS_MAX 1e15

/* A place on a level: a switch, unless it is left out. */
struct place {
	uint32_t first;  /* the first host there; NONE: there is no place of this number */
	uint32_t below;  /* number of its places on the next level */
	uint32_t hosts;
	uint32_t vertex; /* once it is made */
	double bits;     /* of its uplink                                                */
};

struct maker {
	const struct racks *racks;
	const char *const *hosts;
	const struct racks_links *links;
	struct place *places;  /* levels * nodes, indexed like the names of racks */
	uint32_t *order;       /* hosts, rack by rack                                              */
	const char **taken;    /* sorted: all names that hosts and switches want */
	size_t taken_count;
	uint32_t tops;         /* number of places on the outermost level */
	uint32_t root;         /* the vertex above all of them; NONE: there is one place, or none yet */
	struct topology_builder builder;
	struct error *err;
};

static struct place *place_of(const struct maker *maker, uint32_t host, uint32_t level)
{
	const struct racks *racks = maker->racks;

	return &maker->places[(size_t)level * racks->nodes + racks->place[(size_t)host * racks->levels + level]];
}

static const char *name_of(const struct maker *maker, const struct place *place)
{
	return maker->racks->names[place - maker->places];
}

static bool is_rack(const struct maker *maker, uint32_t level)
{
	return level + 1 == maker->racks->levels;
}

static bool is_switch(const struct maker *maker, uint32_t level, const struct place *place)
{
	return is_rack(maker, level) || place->below > 1;
}

/* ---- counting ---- */

static void count_places(struct maker *maker)
{
	const struct racks *racks = maker->racks;

	for (size_t i = 0; i < (size_t)racks->nodes * racks->levels; i++)
		maker->places[i].first = NONE;
	for (uint32_t host = 0; host < racks->nodes; host++) {
		for (uint32_t level = 0; level < racks->levels; level++) {
			struct place *place = place_of(maker, host, level);

			place->hosts++;
			if (place->first != NONE)
				continue;
			place->first = host;
			if (level == 0)
				maker->tops++;
			else
				place_of(maker, host, level - 1)->below++;
		}
	}
}

static enum esp_status set_uplinks(struct maker *maker)
{
	const struct racks *racks = maker->racks;
	const struct racks_links *links = maker->links;
	double share = (double)links->rate_bits / (links->oversubscribe > 0 ? links->oversubscribe : 1);

	for (uint32_t host = 0; host < racks->nodes; host++) {
		struct place *rack = place_of(maker, host, racks->levels - 1);
		double bits = links->uplink_bits ? (double)links->uplink_bits : rack->hosts * share;

		if (rack->first != host)
			continue;
		if (bits < BITS_MIN)
			return error_set(maker->err, ESP_EINVAL, "an uplink of %g bit/s is none: %g is the least", bits, BITS_MIN);
		for (uint32_t level = 0; level < racks->levels; level++)
			place_of(maker, host, level)->bits += bits;
	}
	return ESP_OK;
}

/* Places in the order in which they first appear, outermost first. */
static int compare_hosts(const void *a, const void *b, void *maker)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	for (uint32_t level = 0; level < ((const struct maker *)maker)->racks->levels; level++) {
		uint32_t p = place_of(maker, x, level)->first, q = place_of(maker, y, level)->first;

		if (p != q)
			return p < q ? -1 : 1;
	}
	return (x > y) - (x < y);
}

/* ---- names ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void list_names(struct maker *maker)
{
	const struct racks *racks = maker->racks;

	for (uint32_t host = 0; host < racks->nodes; host++) {
		maker->taken[maker->taken_count++] = maker->hosts[host];
		for (uint32_t level = 0; level < racks->levels; level++) {
			const struct place *place = place_of(maker, host, level);

			if (place->first == host && is_switch(maker, level, place))
				maker->taken[maker->taken_count++] = name_of(maker, place);
		}
	}
	/* NOLINT(bugprone-sizeof-expression): pointers are sorted */
	qsort(maker->taken, maker->taken_count, sizeof(*maker->taken), compare_names);
}

/* How many vertices want a name. */
static uint32_t count_taken(const struct maker *maker, const char *name)
{
	size_t low = 0, high = maker->taken_count;
	uint32_t count = 0;

	while (low < high) { /* binary search: the first that is not below it */
		size_t middle = low + (high - low) / 2;

		if (strcmp(maker->taken[middle], name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	while (low < maker->taken_count && strcmp(maker->taken[low++], name) == 0)
		count++;
	return count;
}

/* A name has to be one word of a topology's text. */
static enum esp_status check_name(const struct maker *maker, const char *what, const char *name)
{
	char shown[QUOTE_TEXT];
	size_t length = strlen(name);

	if (length == 0 || length >= TOPOLOGY_NAME)
		return error_set(maker->err, ESP_EINVAL, "%s %s has a name of %zu letters: 1 to %u are possible%s", what,
		                 quote(name, length, shown), length, TOPOLOGY_NAME - 1, length > 0 &&
		                 strchr(name, '.') ? "; leave out its domain" : "");
	for (size_t i = 0; i < length; i++) {
		if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || name[i] == '#')
			return error_set(maker->err, ESP_EINVAL,
			                 "%s %s: a name has no blank, no # and nothing but text in a topology", what,
			                 quote(name, length, shown));
	}
	return ESP_OK;
}

static bool is_free(const struct maker *maker, const char *name)
{
	return count_taken(maker, name) == 0 && topology_find(maker->builder.topology, name, strlen(name)) == TOPOLOGY_NONE;
}

/* "row1/rack3". False: it is too long. */
static bool write_path(const struct maker *maker, const struct place *place, uint32_t level, char out[TOPOLOGY_NAME])
{
	size_t used = 0;

	for (uint32_t above = 0; above <= level && used < TOPOLOGY_NAME; above++)
		used += (size_t)snprintf(out + used, TOPOLOGY_NAME - used, "%s%s", above > 0 ? "/" : "",
		                         name_of(maker, place_of(maker, place->first, above)));
	return used < TOPOLOGY_NAME;
}

/*
 * Its own name, else its path, else its own name with a number: in a map with hosts that are alone in their
 * racks, a host and a rack may have the same name.
 */
static enum esp_status name_switch(const struct maker *maker, const struct place *place, uint32_t level,
                                   char out[TOPOLOGY_NAME])
{
	const char *own = name_of(maker, place);
	enum esp_status status = check_name(maker, "rack", own);

	if (status != ESP_OK)
		return status;
	snprintf(out, TOPOLOGY_NAME, "%s", own);
	if (count_taken(maker, own) == 1 || (write_path(maker, place, level, out) && is_free(maker, out)))
		return check_name(maker, "rack", out);
	for (uint32_t i = 0; i == 0 || !is_free(maker, out); i++)
		snprintf(out, TOPOLOGY_NAME, "%.50s~%u", own, i);
	return ESP_OK;
}

/* ---- making ---- */

static enum esp_status add_switch(struct maker *maker, const char *name, uint32_t above, double bits,
                                  uint32_t *out_vertex)
{
	double rate = fmin(bits, BITS_MAX) / 8;

	*out_vertex = maker->builder.topology->vertex_count;
	return topology_build_add(&maker->builder,
	                          &(struct build_vertex){.name = name,
	                                                 .length = strlen(name),
	                                                 .parent = above,
	                                                 .nics = 1,
	                                                 .rate_out = rate,
	                                                 .rate_in = rate,
	                                                 .delay = (double)maker->links->uplink_delay_ns * 1e-9},
	                          maker->err);
}

/* The vertex above several outermost places is in no file: a core, with a name that is free. */
static enum esp_status add_root(struct maker *maker)
{
	char name[TOPOLOGY_NAME] = "core";

	for (uint32_t i = 0; !is_free(maker, name); i++)
		snprintf(name, sizeof(name), "core%u", i);
	return add_switch(maker, name, TOPOLOGY_NONE, 0, &maker->root);
}

static enum esp_status check_depth(const struct maker *maker, uint32_t host)
{
	char shown[QUOTE_TEXT];
	uint32_t above = maker->root != TOPOLOGY_NONE;

	for (uint32_t level = 0; level < maker->racks->levels; level++)
		above += is_switch(maker, level, place_of(maker, host, level));
	if (above < TOPOLOGY_DEPTH_MAX)
		return ESP_OK;
	return error_set(maker->err, ESP_EINVAL, "host %s has %u switches above it, and a topology can have %u: leave out "
	                                         "a level", quote(maker->hosts[host], strlen(maker->hosts[host]), shown),
	                 above, TOPOLOGY_DEPTH_MAX - 1);
}

/* Adds the switches above a host that are missing, and the host. */
static enum esp_status add_host(struct maker *maker, uint32_t host)
{
	char name[TOPOLOGY_NAME];
	double rate = (double)maker->links->rate_bits / 8;
	uint32_t above = maker->root;
	enum esp_status status = check_name(maker, "host", maker->hosts[host]);

	if (status == ESP_OK)
		status = check_depth(maker, host);
	for (uint32_t level = 0; status == ESP_OK && level < maker->racks->levels; level++) {
		struct place *place = place_of(maker, host, level);

		if (!is_switch(maker, level, place))
			continue;
		if (place->vertex == NONE) {
			status = name_switch(maker, place, level, name);
			if (status == ESP_OK)
				status = add_switch(maker, name, above, place->bits, &place->vertex);
		}
		above = place->vertex;
	}
	if (status != ESP_OK)
		return status;
	return topology_build_add(&maker->builder,
	                          &(struct build_vertex){.name = maker->hosts[host],
	                                                 .length = strlen(maker->hosts[host]),
	                                                 .parent = above,
	                                                 .is_host = true,
	                                                 .nics = 1,
	                                                 .rate_out = rate,
	                                                 .rate_in = rate,
	                                                 .delay = (double)maker->links->delay_ns * 1e-9},
	                          maker->err);
}

static enum esp_status make_topology(struct maker *maker)
{
	const struct racks *racks = maker->racks;
	size_t count = (size_t)racks->nodes * racks->levels;

	count_places(maker);
	enum esp_status status = set_uplinks(maker);
	for (size_t i = 0; i < count; i++)
		maker->places[i].vertex = NONE;
	for (uint32_t i = 0; i < racks->nodes; i++)
		maker->order[i] = i;
	qsort_r(maker->order, racks->nodes, sizeof(*maker->order), compare_hosts, maker);
	list_names(maker);
	if (status == ESP_OK && maker->tops > 1)
		status = add_root(maker);
	for (uint32_t i = 0; status == ESP_OK && i < racks->nodes; i++)
		status = add_host(maker, maker->order[i]);
	return status;
}

static enum esp_status check_links(const struct racks_links *links, struct error *err)
{
	if ((double)links->rate_bits < BITS_MIN || (double)links->rate_bits > BITS_MAX ||
	    (double)links->uplink_bits > BITS_MAX)
		return error_set(err, ESP_EINVAL, "rates go from 8 bit/s to 1 Pbit/s");
	if (!(links->oversubscribe >= 0) || links->oversubscribe > 1e6)
		return error_set(err, ESP_EINVAL, "racks oversubscribed by %g: must be above 0, and 1e6 at most",
		                 links->oversubscribe);
	return ESP_OK;
}

enum esp_status racks_topology(const struct racks *racks, const char *const *hosts, const struct racks_links *links,
                               struct topology **out, struct error *err)
{
	struct maker maker = {.racks = racks, .hosts = hosts, .links = links, .root = TOPOLOGY_NONE, .err = err};
	size_t count = (size_t)racks->nodes * racks->levels;
	enum esp_status status = check_links(links, err);

	if (status == ESP_OK)
		status = topology_build_begin(&maker.builder, err);
	if (status != ESP_OK)
		return status;
	maker.places = calloc(count, sizeof(*maker.places));
	maker.order = calloc(racks->nodes, sizeof(*maker.order));
	/* NOLINT(bugprone-sizeof-expression): pointers are meant */
	maker.taken = calloc(count + racks->nodes, sizeof(*maker.taken));
	if (maker.places && maker.order && maker.taken)
		status = make_topology(&maker);
	else
		status = error_set(err, ESP_ENOMEM, "no memory for a topology of %u hosts", racks->nodes);
	free(maker.places);
	free(maker.order);
	free(maker.taken);
	if (status != ESP_OK) {
		topology_build_abandon(&maker.builder);
		return status;
	}
	*out = topology_build_end(&maker.builder);
	return ESP_OK;
}
