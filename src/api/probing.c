#include "api/probing.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/probing_meeting.h"
#include "base/clock.h"
#include "rank/rank.h"

/* ---- meetings, as calls of the job ---- */

struct survivors {
	struct esp_group *group; /* ranks that are left */
	bool owns;               /* it was made here, by shrinking */
	int64_t deadline_ns;
	struct meeting meeting;
};

static uint32_t size(void *context)
{
	const struct survivors *survivors = context;

	return esp_size(survivors->group);
}

static uint32_t rank_at(void *context, uint32_t place)
{
	const struct survivors *survivors = context;

	return esp_world_rank(survivors->group, place);
}

static enum esp_status call(const struct survivors *survivors, struct esp_call *how, size_t bytes)
{
	how->type = ESP_U8;
	how->count = bytes;
	how->deadline_ns = survivors->deadline_ns;
	return esp_run(survivors->group, how);
}

static enum esp_status gather(void *context, const void *mine, void *all, size_t bytes)
{
	struct esp_call how = ESP_CALL_INIT;

	how.collective = ESP_ALLGATHER;
	how.in = mine;
	how.out = all;
	return call(context, &how, bytes);
}

static enum esp_status broadcast(void *context, void *data, size_t bytes, uint32_t place)
{
	struct esp_call how = ESP_CALL_INIT;

	how.collective = ESP_BROADCAST;
	how.root = place;
	how.out = data;
	return call(context, &how, bytes);
}

static enum esp_status shrink(void *context)
{
	struct survivors *survivors = context;
	struct esp_group *left = NULL, *before = survivors->group;
	struct esp_shrink how = ESP_SHRINK_INIT;

	how.deadline_ns = survivors->deadline_ns; /* one may be grouping the others, and learn of it when it has done so */
	enum esp_status status = esp_group_shrink(before, &how, &left);

	if (status != ESP_OK)
		return status;
	if (survivors->owns)
		(void)esp_group_free(before);
	survivors->group = left;
	survivors->owns = true;
	return ESP_OK;
}

static enum esp_status failed(enum esp_status status, struct error *err)
{
	struct esp_error last = ESP_ERROR_INIT;

	if (esp_last_error(&last) == ESP_OK && last.status == status && last.text[0])
		return error_set(err, status, "%.250s", last.text);
	return error_set(err, status, "%s", esp_status_text(status));
}

static enum esp_status exchange(void *context, const void *mine, size_t bytes, void *all, bool *present,
                                struct error *err)
{
	enum esp_status status = meeting_hold(context, mine, bytes, all, present);

	return status == ESP_OK ? ESP_OK : failed(status, err);
}

/* ---- hosts ---- */

struct hosts {
	uint32_t count;
	uint32_t *host_of; /* by rank: may be all ranks themselves */
	uint32_t *speaker; /* by host: its first rank              */
	char (*names)[SURVEY_NAME_MAX + 1];
	const char **name_list;
	struct place *places;
};

static void hosts_fini(struct hosts *hosts)
{
	free(hosts->host_of);
	free(hosts->speaker);
	free(hosts->names);
	free(hosts->name_list);
	free(hosts->places);
}

static bool is_name_taken(const struct hosts *hosts, uint32_t host)
{
	for (uint32_t i = 0; i < hosts->count; i++)
		if (i != host && strcmp(hosts->names[i], hosts->names[host]) == 0)
			return true;
	return false;
}

/*
 * A survey has words: no blanks, nothing that starts a comment, and none twice. A slash is what tells equal names from
 * each other.
 */
static void make_word(char *name)
{
	for (; *name; name++)
		if (*name <= ' ' || *name == '#' || *name == '/' || *name == 0x7f)
			*name = '_';
}

static void name_hosts(const struct rank *context, bool each_rank, struct hosts *hosts)
{
	char name[NODE_INFO_HOST_NAME];

	for (uint32_t i = 0; i < hosts->count; i++) {
		snprintf(name, sizeof(name), "%s", context->roster.nodes[hosts->speaker[i]].host_name);
		make_word(name);
		snprintf(hosts->names[i], sizeof(hosts->names[i]), each_rank ? "%s/%u" : "%s", name[0] ? name : "host",
		         hosts->speaker[i]);
		hosts->name_list[i] = hosts->names[i];
	}
	for (uint32_t i = hosts->count; i-- > 1;)
		if (is_name_taken(hosts, i)) {
			size_t length = strlen(hosts->names[i]), most = TOPOLOGY_NAME - sizeof("/4294967295");
			length = length < most ? length : most;
			snprintf(hosts->names[i] + length, sizeof(hosts->names[i]) - length, "/%u", hosts->speaker[i]);
		}
}

/* Where each is reached from here, as the lanes would. */
static void find_places(struct rank *context, struct hosts *hosts)
{
	struct route route;

	for (uint32_t i = 0; i < hosts->count; i++) {
		if (!route_find(&context->rails, &context->roster, &context->listener.interfaces, context->rank,
		                hosts->speaker[i], context->rails.count > 1 ? 0 : ROUTE_ANY, 0, &route))
			continue;
		probe_place_set(&hosts->places[i], route.to.bytes, route.to.family == NODE_IPV4 ? 4 : 16, route.scope);
	}
}

static enum esp_status find_hosts(struct rank *context, bool each_rank, struct hosts *hosts, struct error *err)
{
	const struct roster *roster = &context->roster;
	uint32_t size = context->size, count = each_rank ? size : roster->hosts;

	hosts->count = count;
	hosts->host_of = calloc(size, sizeof(*hosts->host_of));
	hosts->speaker = calloc(count, sizeof(*hosts->speaker));
	hosts->names = calloc(count, sizeof(*hosts->names));
	hosts->name_list = calloc(count, sizeof(*hosts->name_list));
	hosts->places = calloc(count, sizeof(*hosts->places));
	if (!hosts->host_of || !hosts->speaker || !hosts->names || !hosts->name_list || !hosts->places)
		return error_set(err, ESP_ENOMEM, "no memory for %u hosts", count);
	for (uint32_t rank = size; rank-- > 0;) {
		hosts->host_of[rank] = each_rank ? rank : roster->host_of[rank];
		hosts->speaker[hosts->host_of[rank]] = rank; /* the first is the last to be written */
	}
	name_hosts(context, each_rank, hosts);
	find_places(context, hosts);
	return ESP_OK;
}

enum esp_status probing_names(struct esp_context *given, struct probing_names *out, struct error *err)
{
	struct hosts hosts = {0};
	enum esp_status status = find_hosts(api_context(given), false, &hosts, err);

	*out = (struct probing_names){0};
	if (status == ESP_OK) {
		*out = (struct probing_names){hosts.name_list, hosts.names};
		hosts.name_list = NULL;
		hosts.names = NULL;
	}
	hosts_fini(&hosts);
	return status;
}

void probing_names_fini(struct probing_names *names)
{
	free(names->list);
	free(names->texts);
}

/* ---- all of it ---- */

static enum esp_status run(struct rank *context, struct survivors *survivors, struct hosts *hosts,
                           const struct probing_options *options, struct found *out, struct error *err)
{
	uint32_t host = hosts->host_of[context->rank];
	struct probe_config config = {
		.hosts = hosts->count,
		.self = hosts->speaker[host] == context->rank ? host : PROBE_OBSERVER,
		.names = hosts->name_list,
		.places = hosts->places,
		.port_first = (uint16_t)context->conf.port.first,
		.port_last = (uint16_t)context->conf.port.last,
		.latency = options->latency,
		.bandwidth = options->bandwidth,
		.seconds = options->seconds,
		.streams = options->streams,
		.seed = options->seed,
		.exchange = exchange,
		.exchange_context = &survivors->meeting,
		.group = options->group,
		.group_context = options->group_context,
		.progress = options->progress,
		.progress_context = options->progress_context,
	};

	memcpy(config.key, context->join.key, sizeof(config.key));
	enum esp_status status = probe_run(&config, out, err);
	explicit_bzero(config.key, sizeof(config.key));
	return status;
}

static int64_t patience(const struct probing_options *options, uint32_t hosts)
{
	const struct timing_wish wish = {hosts, options->latency, options->bandwidth,
	                                 options->seconds > 0 ? options->seconds : PROBE_SECONDS};
	struct timing timing;

	probe_timing_make(&wish, &timing);
	return (int64_t)(probe_timing_patience(&timing, hosts) * (double)NS_PER_S);
}

/* Of the ranks at the last meeting, is this the one that speaks for the first host? */
static bool is_first(const struct meeting *meeting, uint32_t rank)
{
	uint32_t host = 0;

	while (host < meeting->hosts && !meeting->last[host])
		host++;
	return host < meeting->hosts && meeting->speaker[host] == rank;
}

enum esp_status probing_run(struct esp_context *given, const struct probing_options *options, struct found *out,
                            bool *out_tells, struct error *err)
{
	struct rank *context = api_context(given);
	struct hosts hosts = {0};

	*out_tells = false;
	enum esp_status status = find_hosts(context, options->each_rank, &hosts, err);
	if (status == ESP_OK && hosts.count < 2)
		status = error_set(err, ESP_EINVAL, "all ranks of the job are on one host: there is no network to probe; "
		                   "name others with --hosts, or try it on a lab (espalier lab)");
	if (status == ESP_OK) {
		struct survivors survivors = {.group = options->ranks ? options->ranks : esp_world(given),
		                        .deadline_ns = patience(options, hosts.count)};
		survivors.meeting = (struct meeting){
			.calls = {&survivors, size, rank_at, gather, broadcast, shrink},
			.hosts = hosts.count,
			.host_of = hosts.host_of,
			.speaker = hosts.speaker,
		};
		status = run(context, &survivors, &hosts, options, out, err);
		if (status == ESP_OK) {
			meeting_leave(&survivors.meeting);
			*out_tells = is_first(&survivors.meeting, context->rank);
		}
		if (survivors.owns)
			(void)esp_group_free(survivors.group);
		meeting_fini(&survivors.meeting);
	}
	hosts_fini(&hosts);
	return status;
}
