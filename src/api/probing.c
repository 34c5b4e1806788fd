#include "api/probing.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/clock.h"
#include "runtime/context.h"
#include "wire/bytes.h"

#define NUMBER_BYTES 8u
#define PATIENCE_S 60.0 /* for a meeting, beside the time that is measured before it */
#define SHRINK_S 30
#define DEATHS_MOST 64u

/* Where the hosts meet. */
struct meeting {
	struct esp_context *context;
	struct esp_group *group;    /* those who are left                             */
	bool owns;                  /* it is not the world                            */
	uint32_t hosts;
	const uint32_t *host_of;    /* by rank of the world                           */
	const uint32_t *speaker;    /* by host: the rank that measures                */
	uint64_t number;            /* of meetings that have ended here               */
	uint8_t *last;              /* what was said at the last one, with its number */
	size_t last_bytes;
	int64_t deadline_ns;
};

static enum esp_status failed(enum esp_status status, struct error *err)
{
	struct esp_error last = ESP_ERROR_INIT;

	if (esp_last_error(&last) == ESP_OK && last.status == status && last.text[0])
		return error_set(err, status, "%.250s", last.text);
	return error_set(err, status, "%s", esp_status_text(status));
}

static enum esp_status gather(struct meeting *meeting, const void *mine, void *all, size_t bytes)
{
	struct esp_call call = ESP_CALL_INIT;

	call.collective = ESP_ALLGATHER;
	call.type = ESP_U8;
	call.count = bytes;
	call.in = mine;
	call.out = all;
	call.deadline_ns = meeting->deadline_ns;
	return esp_run(meeting->group, &call);
}

/* ---- when somebody has died ---- */

static enum esp_status shrink(struct meeting *meeting)
{
	struct esp_group *left = NULL, *before = meeting->group;
	struct esp_shrink how = ESP_SHRINK_INIT;

	how.deadline_ns = (int64_t)(SHRINK_S * NS_PER_S);
	enum esp_status status = esp_group_shrink(before, &how, &left);

	if (status != ESP_OK)
		return status;
	if (meeting->owns)
		(void)esp_group_free(before);
	meeting->group = left;
	meeting->owns = true;
	return ESP_OK;
}

/*
 * Some may have been at the meeting that failed for the others: it is held once more for those, and whoever was there says the same again. Nobody is
 * further ahead than that, as the next meeting needs all.
 */
static enum esp_status catch_up(struct meeting *meeting)
{
	uint32_t size = esp_size(meeting->group);
	uint8_t mine[NUMBER_BYTES], *numbers = malloc((size_t)size * NUMBER_BYTES);
	uint64_t least = meeting->number;

	if (!numbers)
		return ESP_ENOMEM;
	bytes_put64(mine, meeting->number);
	enum esp_status status = gather(meeting, mine, numbers, NUMBER_BYTES);
	for (uint32_t i = 0; i < size && status == ESP_OK; i++)
		least = bytes_get64(numbers + (size_t)i * NUMBER_BYTES) < least ? bytes_get64(numbers + (size_t)i * NUMBER_BYTES) : least;
	free(numbers);
	if (status != ESP_OK || least == meeting->number)
		return status;
	uint8_t *again = least + 1 == meeting->number ? malloc(size * meeting->last_bytes) : NULL;
	status = again ? gather(meeting, meeting->last, again, meeting->last_bytes) : ESP_ENOMEM;
	free(again);
	return status;
}

/* Can it go on after that? */
static bool is_death(enum esp_status status)
{
	return status == ESP_EPEER || status == ESP_EJOB || status == ESP_ELINK || status == ESP_EABORTED || status == ESP_ETIMEOUT;
}

/* ---- a meeting ---- */

static bool share_out(const struct meeting *meeting, const uint8_t *heard, size_t bytes, uint8_t *all, bool *present)
{
	size_t each = NUMBER_BYTES + bytes;

	memset(all, 0, meeting->hosts * bytes);
	memset(present, 0, meeting->hosts * sizeof(*present));
	for (uint32_t i = 0; i < esp_size(meeting->group); i++) {
		uint32_t rank = esp_world_rank(meeting->group, i), host = meeting->host_of[rank];
		if (bytes_get64(heard + i * each) != meeting->number)
			return false;
		if (meeting->speaker[host] != rank)
			continue;
		present[host] = true;
		memcpy(all + host * bytes, heard + i * each + NUMBER_BYTES, bytes);
	}
	return true;
}

static enum esp_status hold_once(struct meeting *meeting, const uint8_t *mine, size_t bytes, uint8_t *all, bool *present)
{
	size_t each = NUMBER_BYTES + bytes;
	uint8_t *heard = malloc(esp_size(meeting->group) * each);

	if (!heard)
		return ESP_ENOMEM;
	enum esp_status status = gather(meeting, mine, heard, each);
	if (status == ESP_OK && !share_out(meeting, heard, bytes, all, present))
		status = ESP_EMISMATCH;
	free(heard);
	return status;
}

/* With those who are left, as often as somebody dies. */
static enum esp_status hold(struct meeting *meeting, const uint8_t *mine, size_t bytes, uint8_t *all, bool *present)
{
	enum esp_status status = hold_once(meeting, mine, bytes, all, present);

	for (uint32_t deaths = 0; is_death(status) && deaths < DEATHS_MOST; deaths++) {
		status = shrink(meeting);
		if (status != ESP_OK)
			return status;
		status = catch_up(meeting);
		if (status == ESP_OK)
			status = hold_once(meeting, mine, bytes, all, present);
	}
	return status;
}

static enum esp_status exchange(void *context, const void *mine, size_t bytes, void *all, bool *present, struct error *err)
{
	struct meeting *meeting = context;
	size_t each = NUMBER_BYTES + bytes;
	uint8_t *said = calloc(1, each);

	if (!said)
		return error_set(err, ESP_ENOMEM, "no memory for a meeting of %u hosts", meeting->hosts);
	bytes_put64(said, meeting->number);
	if (mine)
		memcpy(said + NUMBER_BYTES, mine, bytes);
	enum esp_status status = hold(meeting, said, bytes, all, present);
	free(meeting->last);
	meeting->last = said;
	meeting->last_bytes = each;
	meeting->number++;
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

/* A survey has words: no blanks, nothing that starts a comment, and none twice. */
static void make_word(char *name)
{
	for (; *name; name++)
		if (*name <= ' ' || *name == '#' || *name == 0x7f)
			*name = '_';
}

static void name_hosts(const struct context *context, bool each_rank, struct hosts *hosts)
{
	char name[CARD_HOST_NAME];

	for (uint32_t i = 0; i < hosts->count; i++) {
		snprintf(name, sizeof(name), "%s", context->roster.cards[hosts->speaker[i]].host_name);
		make_word(name);
		snprintf(hosts->names[i], sizeof(hosts->names[i]), each_rank ? "%s/%u" : "%s", name[0] ? name : "host", hosts->speaker[i]);
		hosts->name_list[i] = hosts->names[i];
	}
	for (uint32_t i = hosts->count; i-- > 1;)
		if (is_name_taken(hosts, i)) {
			size_t length = strlen(hosts->names[i]);
			snprintf(hosts->names[i] + length, sizeof(hosts->names[i]) - length, "/%u", hosts->speaker[i]);
		}
}

/* Where each is reached from here, as the lanes would. */
static void find_places(struct context *context, struct hosts *hosts)
{
	struct route route;

	for (uint32_t i = 0; i < hosts->count; i++) {
		if (!route_find(&context->rails, &context->roster, &context->listener.interfaces, context->rank, hosts->speaker[i],
		                context->rails.count > 1 ? 0 : ROUTE_ANY, 0, &route))
			continue;
		place_set(&hosts->places[i], route.to.bytes, route.to.family == CARD_IPV4 ? 4 : 16, route.scope);
	}
}

static enum esp_status find_hosts(struct context *context, bool each_rank, struct hosts *hosts, struct error *err)
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

/* ---- all of it ---- */

static enum esp_status run(struct context *context, struct meeting *meeting, struct hosts *hosts, const struct probing_options *options,
                           struct found *out, struct error *err)
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
		.exchange_context = meeting,
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
	const struct timing_wish wish = {hosts, options->latency, options->bandwidth, options->seconds > 0 ? options->seconds : PROBE_SECONDS};
	struct timing timing;

	timing_make(&wish, &timing);
	return (int64_t)((PATIENCE_S + timing.seconds) * (double)NS_PER_S);
}

enum esp_status probing_run(struct esp_context *given, const struct probing_options *options, struct found *out, struct error *err)
{
	struct context *context = api_context(given);
	struct hosts hosts = {0};

	enum esp_status status = find_hosts(context, options->each_rank, &hosts, err);
	if (status == ESP_OK && hosts.count < 2)
		status = error_set(err, ESP_EINVAL, "all ranks of the job are on one host: there is no network to probe; "
		                   "name others with --hosts, or try it on a lab (espalier lab)");
	if (status == ESP_OK) {
		struct meeting meeting = {
			.context = given,
			.group = esp_world(given),
			.hosts = hosts.count,
			.host_of = hosts.host_of,
			.speaker = hosts.speaker,
			.deadline_ns = patience(options, hosts.count),
		};
		status = run(context, &meeting, &hosts, options, out, err);
		if (meeting.owns)
			(void)esp_group_free(meeting.group);
		free(meeting.last);
	}
	hosts_fini(&hosts);
	return status;
}
