#include "group/launch.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"

/* The places that may hold a number, strongest first. */
struct place {
	const char *name;
	const char *text; /* NULL: not there */
};

struct finder {
	const struct launch_arguments *arguments;
	launch_lookup_fn *lookup;
	void *context;
	struct error *warning, *err;
};

static const char *ask(const struct finder *finder, const char *name)
{
	const char *text = finder->lookup(finder->context, name);
	return text && text[0] ? text : NULL; /* an empty variable is how scripts unset one */
}

static void warn_if_other(const struct finder *finder, const struct place *used, const struct place *other)
{
	char used_text[QUOTE_TEXT], other_text[QUOTE_TEXT];
	if (!finder->warning || finder->warning->status != ESP_OK || !other->text || strcmp(used->text, other->text) == 0)
		return;
	error_set(finder->warning, ESP_EMISMATCH, "%s is %s but %s is %s; using %s", used->name,
	          quote(used->text, strlen(used->text), used_text), other->name,
	          quote(other->text, strlen(other->text), other_text), used->name);
}

/* The first of three places that has the number. */
static enum esp_status find_number(const struct finder *finder, const struct place places[3], const char *expected,
                                   uint64_t min, uint64_t max, uint64_t *out, const char **out_source)
{
	char shown[QUOTE_TEXT];
	int used = 0;
	while (used < 3 && !places[used].text)
		used++;
	if (used == 3)
		return error_set(finder->err, ESP_EINVAL, "neither %s nor %s is set: start with espalier run or torchrun, or "
		                 "set %s to %s", places[1].name, places[2].name, places[1].name, expected);
	const char *text = places[used].text;
	uint64_t number;
	if (!number_parse_u64(text, strlen(text), &number) || number < min || number > max)
		return error_set(finder->err, ESP_EINVAL, "%s is %s, from %" PRIu64 " to %" PRIu64 ", not %s", places[used].name,
		                 expected, min, max, quote(text, strlen(text), shown));
	for (int other = used + 1; other < 3; other++)
		warn_if_other(finder, &places[used], &places[other]);
	*out = number;
	*out_source = places[used].name;
	return ESP_OK;
}

static const char *argument_text(int64_t value, char text[24])
{
	snprintf(text, 24, "%" PRId64, value);
	return value < 0 ? NULL : text;
}

static enum esp_status find_size(const struct finder *finder, struct launch *launch)
{
	char text[24];
	uint64_t size = 0;
	struct place places[3] = {{"the argument size", argument_text(finder->arguments->size, text)},
	                          {"ESP_SIZE", ask(finder, "ESP_SIZE")},
	                          {"WORLD_SIZE", ask(finder, "WORLD_SIZE")}};
	enum esp_status status =
		find_number(finder, places, "the number of ranks", 1, LAUNCH_SIZE_MAX, &size, &launch->size_source);
	if (status == ESP_OK)
		launch->size = (uint32_t)size;
	return status;
}

static enum esp_status find_rank(const struct finder *finder, struct launch *launch)
{
	char text[24];
	uint64_t rank = 0;
	struct place places[3] = {{"the argument rank", argument_text(finder->arguments->rank, text)},
	                          {"ESP_RANK", ask(finder, "ESP_RANK")},
	                          {"RANK", ask(finder, "RANK")}};
	enum esp_status status =
		find_number(finder, places, "the number of this rank", 0, launch->size - 1, &rank, &launch->rank_source);
	if (status == ESP_OK)
		launch->rank = (uint32_t)rank;
	return status;
}

static enum esp_status torch_leader(const struct finder *finder, struct launch *launch)
{
	const char *host = ask(finder, "MASTER_ADDR"), *port = ask(finder, "MASTER_PORT");
	if (!host && !port && launch->size == 1)
		return ESP_OK;
	if (!host && !port)
		return error_set(finder->err, ESP_EINVAL, "neither ESP_LEADER nor MASTER_ADDR is set: set ESP_LEADER to host:port, "
		                 "where rank 0 can be reached");
	if (!host || !port)
		return error_set(finder->err, ESP_EINVAL, "%s is set but %s is not", host ? "MASTER_ADDR" : "MASTER_PORT",
		                 host ? "MASTER_PORT" : "MASTER_ADDR");
	enum esp_status status = address_from_parts(host, "MASTER_ADDR", port, "MASTER_PORT", &launch->leader, finder->err);
	if (status != ESP_OK)
		return status;
	if (launch->leader.port == UINT16_MAX)
		return error_set(finder->err, ESP_EINVAL, "MASTER_PORT is 65535, and there is no port above it for the leader");
	launch->leader.port++;
	launch->leader_source = "MASTER_ADDR, MASTER_PORT + 1";
	return ESP_OK;
}

static enum esp_status find_leader(const struct finder *finder, struct launch *launch)
{
	const char *text = finder->arguments->leader;
	launch->leader_source = text ? "the argument leader" : "ESP_LEADER";
	if (!text)
		text = ask(finder, "ESP_LEADER");
	if (text)
		return address_parse(text, launch->leader_source, &launch->leader, finder->err);
	launch->leader_source = "none";
	return torch_leader(finder, launch);
}

static enum esp_status find_job(const struct finder *finder, struct launch *launch)
{
	const char *name = finder->arguments->job;
	if (!name)
		name = ask(finder, "ESP_JOB");
	if (!name)
		name = ask(finder, "TORCHELASTIC_RUN_ID");
	if (name && strlen(name) >= LAUNCH_JOB)
		return error_set(finder->err, ESP_EINVAL, "the name of the job has %zu bytes, at most %u fit", strlen(name),
		                 LAUNCH_JOB - 1);
	snprintf(launch->job, sizeof(launch->job), "%s", name ? name : "");
	return ESP_OK;
}

static enum esp_status find_epoch(const struct finder *finder, struct launch *launch)
{
	char shown[QUOTE_TEXT];
	const char *name = "ESP_EPOCH", *text = ask(finder, name);
	if (!text)
		text = ask(finder, name = "TORCHELASTIC_RESTART_COUNT");
	if (text && !number_parse_u64(text, strlen(text), &launch->epoch))
		return error_set(finder->err, ESP_EINVAL, "%s says how often the job was started anew, not %s", name,
		                 quote(text, strlen(text), shown));
	return ESP_OK;
}

static bool comes_from(const char *source, const char *name)
{
	return source && strcmp(source, name) == 0;
}

/* What it says is about ESP_RANK and no other numbers: a program may form groups of its own. */
static void find_launcher(const struct finder *finder, struct launch *launch)
{
	const char *name = ask(finder, "ESP_LAUNCHER");
	bool same = comes_from(launch->rank_source, "ESP_RANK") && comes_from(launch->size_source, "ESP_SIZE") &&
	            comes_from(launch->leader_source, "ESP_LEADER");
	if (name && same && strlen(name) < LAUNCH_LAUNCHER)
		snprintf(launch->launcher, sizeof(launch->launcher), "%s", name);
}

enum esp_status launch_find(const struct launch_arguments *arguments, launch_lookup_fn *lookup, void *context,
                            struct launch *out, struct error *warning, struct error *err)
{
	const struct finder finder = {arguments, lookup, context, warning, err};
	struct launch launch = {0};
	error_clear(warning);
	enum esp_status status = find_size(&finder, &launch);
	if (status == ESP_OK)
		status = find_rank(&finder, &launch);
	if (status == ESP_OK)
		status = find_leader(&finder, &launch);
	if (status == ESP_OK)
		status = find_job(&finder, &launch);
	if (status == ESP_OK)
		status = find_epoch(&finder, &launch);
	if (status == ESP_OK) {
		find_launcher(&finder, &launch);
		*out = launch;
	}
	return status;
}

const char *launch_describe(const struct launch *launch, char text[LAUNCH_TEXT])
{
	char leader[ADDRESS_TEXT] = "none";
	if (launch->leader.port)
		address_format(&launch->leader, leader);
	snprintf(text, LAUNCH_TEXT, "rank %u of %u (%s, %s), leader %s (%s)", launch->rank, launch->size,
	         launch->rank_source, launch->size_source, leader, launch->leader_source);
	return text;
}
