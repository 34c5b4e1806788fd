#include "network/topo/topology_build.h"

#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

enum esp_status topology_build_begin(struct topology_builder *builder, struct error *err)
{
	*builder = (struct topology_builder){.topology = calloc(1, sizeof(struct topology))};
	return builder->topology ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for a topology");
}

void topology_build_abandon(struct topology_builder *builder)
{
	topology_close(builder->topology);
	builder->topology = NULL;
}

static enum esp_status out_of_memory(struct error *err)
{
	return error_set(err, ESP_ENOMEM, "no memory for a topology of that size");
}

/* ---- names ---- */

static uint32_t name_hash(const char *name, size_t length)
{
	uint32_t hash = UINT32_C(2166136261);

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)name[i]) * UINT32_C(16777619);
	return hash;
}

static bool is_named(const struct topology_vertex *vertex, const char *name, size_t length)
{
	return strlen(vertex->name) == length && memcmp(vertex->name, name, length) == 0;
}

static uint32_t *name_slot(const struct topology *topology, const char *name, size_t length)
{
	uint32_t mask = topology->index_capacity - 1, at = name_hash(name, length) & mask;

	while (topology->index[at] != TOPOLOGY_NONE && !is_named(&topology->vertices[topology->index[at]], name, length))
		at = (at + 1) & mask;
	return &topology->index[at];
}

uint32_t topology_find(const struct topology *topology, const char *name, size_t length)
{
	return topology->index_capacity ? *name_slot(topology, name, length) : TOPOLOGY_NONE;
}

static bool index_room(struct topology *topology)
{
	if (topology->vertex_count * 2 < topology->index_capacity)
		return true;
	uint32_t capacity = topology->index_capacity ? topology->index_capacity * 2 : 64;
	uint32_t *index = malloc(capacity * sizeof(*index));
	if (!index)
		return false;
	memset(index, 0xff, capacity * sizeof(*index));
	free(topology->index);
	topology->index = index;
	topology->index_capacity = capacity;
	for (uint32_t i = 0; i < topology->vertex_count; i++) {
		const char *name = topology->vertices[i].name;

		*name_slot(topology, name, strlen(name)) = i;
	}
	return true;
}

const char *topology_host_name(uint32_t number, char text[TOPOLOGY_NAME])
{
	snprintf(text, TOPOLOGY_NAME, "node%02u", number);
	return text;
}

const char *topology_build_host_name(const struct topology_builder *builder, char text[TOPOLOGY_NAME])
{
	return topology_host_name(builder->topology->host_count, text);
}

/* ---- vertices and links ---- */

static bool add_link(struct topology_builder *builder, struct topology_link link)
{
	struct topology *topology = builder->topology;

	if (!vec_reserve(&topology->links, &builder->link_capacity, (size_t)topology->link_count + 1, sizeof(link)))
		return false;
	topology->links[topology->link_count++] = link;
	return true;
}

static bool add_links(struct topology_builder *builder, uint32_t number, const struct build_vertex *vertex)
{
	for (uint32_t i = 0; i < vertex->nics; i++) {
		if (!add_link(builder, (struct topology_link){vertex->rate_out, vertex->delay, number, 0}) ||
		    !add_link(builder, (struct topology_link){vertex->rate_in, vertex->delay, number, 0}))
			return false;
	}
	return vertex->local == 0 || add_link(builder, (struct topology_link){vertex->local, 0, number, TOPOLOGY_LOCAL});
}

static enum esp_status check_vertex(const struct topology *topology, const struct build_vertex *vertex,
                                    struct error *err)
{
	if (vertex->length == 0 || vertex->length >= TOPOLOGY_NAME)
		return error_set(err, ESP_EINVAL, "a name has 1 to %u letters", TOPOLOGY_NAME - 1);
	if (topology_find(topology, vertex->name, vertex->length) != TOPOLOGY_NONE)
		return error_set(err, ESP_EINVAL, "there are two of the name %.*s", (int)vertex->length, vertex->name);
	if (topology->vertex_count == TOPOLOGY_VERTICES_MAX)
		return error_set(err, ESP_ELIMIT, "there may be %u hosts and switches at most", TOPOLOGY_VERTICES_MAX);
	if (topology->link_count + 2 * vertex->nics + 1 > 4 * TOPOLOGY_VERTICES_MAX)
		return error_set(err, ESP_ELIMIT, "there may be %u links at most", 4 * TOPOLOGY_VERTICES_MAX);
	if (vertex->parent != TOPOLOGY_NONE && topology->vertices[vertex->parent].depth + 2 > TOPOLOGY_DEPTH_MAX)
		return error_set(err, ESP_EINVAL, "%.*s is too deep: there may be %u levels", (int)vertex->length, vertex->name,
		                 TOPOLOGY_DEPTH_MAX);
	return ESP_OK;
}

enum esp_status topology_build_add(struct topology_builder *builder, const struct build_vertex *vertex,
                                   struct error *err)
{
	struct topology *topology = builder->topology;
	struct topology_vertex *made;
	uint32_t number = topology->vertex_count;
	enum esp_status status = check_vertex(topology, vertex, err);

	if (status != ESP_OK)
		return status;
	if (!vec_reserve(&topology->vertices, &builder->vertex_capacity, (size_t)number + 1, sizeof(*made)) ||
	    !vec_reserve(&topology->hosts, &builder->host_capacity, (size_t)topology->host_count + 1,
	                 sizeof(*topology->hosts)) ||
	    !index_room(topology))
		return out_of_memory(err);
	bool is_root = vertex->parent == TOPOLOGY_NONE;
	made = &topology->vertices[number];
	*made = (struct topology_vertex){
		.parent = vertex->parent,
		.depth = is_root ? 0 : topology->vertices[vertex->parent].depth + 1,
		.first_link = topology->link_count,
		.nics = is_root ? 0 : (uint16_t)vertex->nics,
		.is_host = vertex->is_host,
		.has_local = vertex->local > 0,
	};
	memcpy(made->name, vertex->name, vertex->length);
	if (!is_root && !add_links(builder, number, vertex))
		return out_of_memory(err);
	*name_slot(topology, vertex->name, vertex->length) = number;
	topology->vertex_count++;
	if (vertex->is_host)
		topology->hosts[topology->host_count++] = number;
	return ESP_OK;
}

enum esp_status topology_build_change(struct topology_builder *builder, struct topology_change change,
                                      struct error *err)
{
	struct topology *topology = builder->topology;

	if (!vec_reserve(&topology->changes, &builder->change_capacity, (size_t)topology->change_count + 1, sizeof(change)))
		return out_of_memory(err);
	topology->changes[topology->change_count++] = change;
	return ESP_OK;
}

enum esp_status topology_build_background(struct topology_builder *builder, struct topology_background background,
                                          struct error *err)
{
	struct topology *topology = builder->topology;

	if (!vec_reserve(&topology->backgrounds, &builder->background_capacity, (size_t)topology->background_count + 1,
	                 sizeof(background)))
		return out_of_memory(err);
	topology->backgrounds[topology->background_count++] = background;
	return ESP_OK;
}

static enum topology_class out_class(const struct topology_vertex *vertex, bool has_hosts)
{
	if (vertex->is_host)
		return TOPOLOGY_HOST_OUT;
	return has_hosts ? TOPOLOGY_RACK_OUT : TOPOLOGY_UPPER_OUT;
}

/* Only now it is known which switches have hosts. */
static void set_classes(struct topology *topology, uint32_t number, bool has_hosts)
{
	const struct topology_vertex *vertex = &topology->vertices[number];
	enum topology_class out = out_class(vertex, has_hosts);

	for (uint32_t i = 0; i < vertex->nics; i++) {
		topology->links[vertex->first_link + 2 * i].class = (uint8_t)out;
		topology->links[vertex->first_link + 2 * i + 1].class = (uint8_t)(out + 1);
	}
}

struct topology *topology_build_end(struct topology_builder *builder)
{
	struct topology *topology = builder->topology;

	for (uint32_t i = 0; i < topology->vertex_count; i++)
		set_classes(topology, i, false);
	for (uint32_t i = 0; i < topology->host_count; i++)
		set_classes(topology, topology->vertices[topology->hosts[i]].parent, true);
	builder->topology = NULL;
	return topology;
}
