#include "rank/placement.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/infile.h"
#include "rank/comm/comm.h"
#include "rank/init_barrier.h"
#include "rank/state.h"

#define TEXT_VARIABLE "ESP_TOPOLOGY_TEXT"
#define TEXT_MOST (16u << 20) /* bytes of a topology: a hundred thousand hosts */
#define PROBE "probe"
#define NAMES_SHOWN 8u

/* Rank 0's value in the init barrier: 0 is nothing. */
#define SAYS_PROBE 1u
#define SAYS_REASON (UINT64_C(1) << 40) /* and the bytes of the reason */
#define SAYS_TEXT (UINT64_C(2) << 40)   /* and the bytes of the text   */
#define SAYS_BYTES ((UINT64_C(1) << 40) - 1)

/* ---- finding hosts ---- */

static uint32_t find_host(const struct topology *topology, const char *name, size_t length)
{
	uint32_t vertex = topology_find(topology, name, length);

	return vertex != TOPOLOGY_NONE && topology->vertices[vertex].is_host ? vertex : TOPOLOGY_NONE;
}

/* The one host whose name begins with this and a dot; TOPOLOGY_NONE: there is none, or several. */
static uint32_t find_longer(const struct topology *topology, const char *name)
{
	uint32_t found = TOPOLOGY_NONE;
	size_t length = strlen(name);

	for (uint32_t i = 0; i < topology->host_count; i++) {
		const char *other = topology->vertices[topology->hosts[i]].name;

		if (strncmp(other, name, length) != 0 || other[length] != '.')
			continue;
		if (found != TOPOLOGY_NONE)
			return TOPOLOGY_NONE;
		found = topology->hosts[i];
	}
	return found;
}

/* By its name, its name without the domain or with one, or one of its addresses. */
static uint32_t find_card(const struct topology *topology, const struct node_info *card)
{
	size_t length = strlen(card->host_name), head = strcspn(card->host_name, ".");
	uint32_t vertex = find_host(topology, card->host_name, length);

	if (vertex == TOPOLOGY_NONE && head < length)
		vertex = find_host(topology, card->host_name, head);
	for (uint32_t i = 0; vertex == TOPOLOGY_NONE && i < card->address_count; i++) {
		char text[NODE_ADDRESS_TEXT];

		node_address_text(&card->addresses[i], text);
		vertex = find_host(topology, text, strlen(text));
	}
	return vertex == TOPOLOGY_NONE && head == length ? find_longer(topology, card->host_name) : vertex;
}

/* "a, b, c and 5 more" */
static void list_hosts(const struct topology *topology, char *text, size_t size)
{
	size_t used = 0;
	uint32_t count = topology->host_count, shown = count > NAMES_SHOWN ? NAMES_SHOWN : count;

	text[0] = '\0';
	for (uint32_t i = 0; i < shown && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
		                         topology->vertices[topology->hosts[i]].name);
	if (count > shown && used < size)
		snprintf(text + used, size - used, " and %u more", count - shown);
}

static uint32_t find_rank(const struct rank *context, const struct topology *topology,
                          const struct placement_text *text, uint32_t rank)
{
	const struct roster *roster = &context->roster;

	if (!text->names)
		return find_card(topology, &roster->nodes[rank]);
	const char *name = text->names[roster->host_of[rank]];
	return find_host(topology, name, strlen(name));
}

static enum esp_status place_ranks(const struct rank *context, const struct topology *topology,
                                   const struct placement_text *text, uint32_t *out_place, struct failure *failure)
{
	const struct roster *roster = &context->roster;
	char names[256];

	for (uint32_t rank = 0; rank < context->size; rank++) {
		out_place[rank] = find_rank(context, topology, text, rank);
		if (out_place[rank] != TOPOLOGY_NONE)
			continue;
		list_hosts(topology, names, sizeof(names));
		return rank_failure_set(failure, ESP_EINVAL, -1,
		                        "topology %s has no host %.64s, where rank %u is; its hosts are %s", text->source,
		                        roster->nodes[rank].host_name, rank, names);
	}
	return ESP_OK;
}

/* Hosts that share a name may be containers of one machine, or machines that were never named: one rank asks. */
static void tell_shared(struct rank *context, const struct placement *placement, const char *source)
{
	const struct roster *roster = &context->roster;
	/* by vertex: 1 and a rank */
	uint32_t *first = context->rank == 0 ? calloc(placement->topology->vertex_count, sizeof(*first)) : NULL;

	for (uint32_t rank = 0; first && rank < context->size; rank++) {
		uint32_t *one = &first[placement->place[rank]];

		if (*one == 0)
			*one = rank + 1;
		if (roster->host_of[*one - 1] == roster->host_of[rank])
			continue;
		log_write(&context->log, LOG_LEVEL_WARN, LOG_PLAN,
		          "topology %s: rank %u and rank %u are on different hosts, and both are taken for %s: if "
		          "they do not share its link, give each an entry with its address",
		          source, *one - 1, rank, placement->topology->vertices[placement->place[rank]].name);
		break;
	}
	free(first);
}

/* ---- using it ---- */

/* They all have the same: the others log it at a lower level. */
static void tell(struct rank *context, const char *source)
{
	const struct placement *placement = context->mod.placement;
	bool *is_used = calloc(placement->topology->vertex_count, sizeof(*is_used));
	uint32_t used = 0;

	for (uint32_t rank = 0; is_used && rank < context->size; rank++) {
		used += !is_used[placement->place[rank]];
		is_used[placement->place[rank]] = true;
	}
	free(is_used);
	log_write(&context->log, context->rank == 0 ? LOG_LEVEL_INFO : LOG_LEVEL_TRACE, LOG_PLAN,
	          "topology %s: %u hosts, %u of them in this job", source, placement->topology->host_count, used);
}

static void forget(struct rank *context)
{
	bool wants_probe = context->mod.placement->wants_probe;

	rank_placement_fini(context->mod.placement);
	context->mod.placement->wants_probe = wants_probe;
}

static uint64_t digest_of(const char *text, size_t length)
{
	uint8_t hash[crypto_generichash_BYTES_MIN];
	uint64_t digest;

	crypto_generichash(hash, sizeof(hash), (const uint8_t *)text, length, NULL, 0);
	memcpy(&digest, hash, sizeof(digest));
	return digest ? digest : 1;
}

/* The context has it, and no group yet. */
static enum esp_status install(struct rank *context, const struct placement_text *text, struct failure *failure)
{
	struct placement placement = {.wants_probe = context->mod.placement->wants_probe,
	                              .digest = digest_of(text->text, text->length)};
	struct error err;

	if (topology_parse(text->text, text->length, &placement.topology, &err) != ESP_OK)
		return rank_failure_set(failure, err.status, -1, "topology %s: %s", text->source, err.text);
	placement.place = calloc(context->size, sizeof(*placement.place));
	if (!placement.place) {
		rank_placement_fini(&placement);
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for the hosts of %u ranks", context->size);
	}
	enum esp_status status = place_ranks(context, placement.topology, text, placement.place, failure);
	if (status != ESP_OK) {
		rank_placement_fini(&placement);
		return status;
	}
	tell_shared(context, &placement, text->source);
	forget(context);
	*context->mod.placement = placement;
	return ESP_OK;
}

enum esp_status rank_use_topology(struct rank *context, const struct placement_text *text, struct failure *failure)
{
	enum esp_status status = install(context, text, failure);

	if (status != ESP_OK)
		return status;
	if (!comm_use_site(context->world)) {
		forget(context);
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for the hosts of %u ranks", context->size);
	}
	tell(context, text->source);
	return ESP_OK;
}

/* ---- whether all have it ---- */

struct placement_word rank_placement_word(const struct placement *placement)
{
	return (struct placement_word){placement->digest, ~placement->digest};
}

bool rank_placement_settle(struct comm *group, struct placement_word least)
{
	struct rank *context = group->context;

	if (context->mod.placement->digest == 0)
		return true;
	if (least.digest == ~least.inverse)
		return comm_use_site(group);
	log_write(&context->log, LOG_LEVEL_WARN, LOG_PLAN,
	          "not all ranks of a group have the topology: its plans do without");
	return true;
}

enum esp_status rank_agree_on_topology(struct rank *context, const struct placement_text *text, bool *out_used,
                                       struct failure *failure)
{
	struct comm *world = context->world;
	struct failure why = FAILURE_NONE;
	char reason[CONTROL_TEXT];

	*out_used = false;
	/* one rank says it, as all would say the same */
	if (text && install(context, text, &why) != ESP_OK && (context->rank == 0 || why.status == ESP_ENOMEM))
		log_write(&context->log, LOG_LEVEL_WARN, LOG_PLAN, "%s", why.text);
	struct placement_word word = rank_placement_word(context->mod.placement), least = {0};
	struct call call = {
		.collective = PLAN_ALLREDUCE, .type = ESP_U64, .op = ESP_MIN, .count = 2, .in = &word, .out = &least};
	enum esp_status status = call_check(&call, context->rank, context->size, failure);

	comm_begin_aside(world);
	if (status == ESP_OK)
		status = comm_run(world, &call, &(struct work_options){0}, failure);
	comm_end_aside(world);
	if (status != ESP_OK) /* the remaining ranks of the world will compare their topologies */
		return status;
	if (!rank_placement_settle(world, least)) { /* the others use it already */
		snprintf(reason, sizeof(reason), "rank %u has no memory for the topology", context->rank);
		comm_fail(world, ESP_ENOMEM, (int32_t)context->rank, reason, true);
		return rank_failure_set(failure, ESP_ENOMEM, (int32_t)context->rank, "%s", reason);
	}
	*out_used = text && world->net.layout.topology;
	if (*out_used)
		tell(context, text->source);
	else
		forget(context);
	return ESP_OK;
}

/* ---- probing ---- */

bool rank_wants_probe(const struct rank *context)
{
	return context->mod.placement->wants_probe;
}

enum esp_status rank_make_internal_comm(struct rank *context, struct comm **out, struct failure *failure)
{
	comm_begin_aside(context->world);
	enum esp_status status = comm_split(context->world, 0, 0, out, failure);
	comm_end_aside(context->world);
	if (status == ESP_OK)
		(*out)->is_internal = true;
	return status;
}

void rank_placement_fini(struct placement *placement)
{
	topology_close(placement->topology);
	free(placement->place);
	*placement = (struct placement){0};
}

/* ---- joining ---- */

/*
 * The file that espalier run --hosts sends along, as rank 0's host may not have it: its name, a new line, its text.
 * NULL: nothing, or another one's.
 */
static const char *sent_along(const char *name)
{
	const char *sent = conf_environment(NULL, TEXT_VARIABLE);
	size_t length = strlen(name);

	return sent && strncmp(sent, name, length) == 0 && sent[length] == '\n' ? sent + length + 1 : NULL;
}

/* The name, a NUL, the text. NULL: no memory. */
static char *join_texts(const char *name, const char *text, size_t length, uint64_t *out_bytes)
{
	size_t head = strlen(name) + 1;
	char *both = malloc(head + length);

	if (both) {
		memcpy(both, name, head);
		memcpy(both + head, text, length);
	}
	*out_bytes = head + length;
	return both;
}

uint64_t rank_placement_ask(struct rank *context, char **out_text)
{
	const char *name = context->conf.topology, *sent = sent_along(name);
	struct infile file = {0};
	struct error err;
	uint64_t bytes;

	*out_text = NULL;
	if (context->rank != 0 || name[0] == '\0')
		return 0;
	if (strcmp(name, PROBE) == 0)
		return SAYS_PROBE;
	if (sent) {
		*out_text = join_texts(name, sent, strlen(sent), &bytes);
		return *out_text ? SAYS_TEXT + bytes : SAYS_REASON;
	}
	enum esp_status status = infile_open(&file, name, &err);
	if (status == ESP_OK && file.length > TEXT_MOST)
		status =
			error_set(&err, ESP_ELIMIT, "%s has %zu bytes: a topology has %u at most", name, file.length, TEXT_MOST);
	*out_text = status == ESP_OK ? join_texts(name, file.text, file.length, &bytes)
	                             : join_texts(name, err.text, strlen(err.text), &bytes);
	if (file.text)
		infile_close(&file);
	return *out_text ? (status == ESP_OK ? SAYS_TEXT : SAYS_REASON) + bytes : SAYS_REASON;
}

static enum esp_status hand_out(struct rank *context, char *text, uint64_t length, struct failure *failure)
{
	struct call call = {.collective = PLAN_BROADCAST, .type = ESP_BYTES, .count = length, .in = text, .out = text};
	struct work_options options = {.deadline_ns = (int64_t)rank_init_barrier_patience_ns(context)};
	enum esp_status status = call_check(&call, context->rank, context->size, failure);

	return status == ESP_OK ? comm_run(context->world, &call, &options, failure) : status;
}

/* A rank died before all was received; that is no reason for this rank not to join. */
static bool has_only_missed_it(struct rank *context, enum esp_status status)
{
	if (status == ESP_OK || context->entry || !rank_init_barrier_has_been(context))
		return false;
	log_write(&context->log, LOG_LEVEL_INFO, LOG_PLAN, "a rank died before this rank knew the topology");
	return true;
}

enum esp_status rank_placement_tell(struct rank *context, uint64_t all, char *text, struct failure *failure)
{
	uint64_t length = all & SAYS_BYTES;

	if (all == SAYS_REASON)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "topology: rank 0 has no memory for it");
	if (all == SAYS_PROBE) {
		context->mod.placement->wants_probe = true;
		return ESP_OK;
	}
	if (length == 0 || length > TEXT_MOST + CONF_TEXT_MAX || all >= SAYS_TEXT + SAYS_REASON)
		return rank_failure_set(failure, ESP_ECORRUPT, 0, "rank 0 has a topology that cannot be");
	char *copy = context->rank == 0 ? text : malloc(length);
	if (!copy)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a topology of %llu bytes",
		                        (unsigned long long)length);
	enum esp_status status = context->size > 1 ? hand_out(context, copy, length, failure) : ESP_OK;
	if (has_only_missed_it(context, status)) {
		if (copy != text)
			free(copy);
		return ESP_OK;
	}
	if (status == ESP_OK && !memchr(copy, '\0', length))
		status = rank_failure_set(failure, ESP_ECORRUPT, 0, "the topology of rank 0 has no name");
	size_t head = status == ESP_OK ? strlen(copy) + 1 : 0; /* its name */
	if (status == ESP_OK && all < SAYS_TEXT)
		status = rank_failure_set(failure, ESP_EIO, -1, "topology: rank 0 on %.64s %.*s",
		                          context->roster.nodes[0].host_name, (int)(length - head), copy + head);
	else if (status == ESP_OK)
		status = rank_use_topology(context, &(struct placement_text){copy + head, length - head, copy, NULL}, failure);
	if (copy != text)
		free(copy);
	return status;
}
