#include "api/probing_start.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/probing.h"
#include "api/probing_group.h"
#include "runtime/context.h"
#include "runtime/site.h"

#define START_SECONDS 3.0
#define BANDWIDTH_HOSTS 48u /* with more of them all pairs take longer than a start should */
#define SEED 1u
#define TEXT_MOST (16u << 20)

static enum esp_status group(void *context, const struct survey *survey, struct grouping *out, struct error *err)
{
	const struct verdict_wish wish = {.seed = SEED};
	struct verdict verdict = {0};

	(void)context;
	enum esp_status status = verdict_make(survey, &wish, &verdict, err);
	if (status == ESP_OK)
		status = grouping_from(out, verdict.grouping.group_of, survey->count, err);
	verdict_fini(&verdict);
	return status;
}

static enum esp_status write_text(const struct found *found, char **out_text, size_t *out_length, struct error *err)
{
	FILE *file = open_memstream(out_text, out_length);

	if (!file)
		return error_set(err, ESP_ENOMEM, "no memory for a topology");
	enum esp_status status = found_print_topology(found, NULL, file, err);
	if (status == ESP_OK)
		status = found_print_lost(found, file, err);
	if (fclose(file) != 0 && status == ESP_OK)
		status = error_set(err, ESP_ENOMEM, "no memory for a topology");
	return status;
}

/*
 * All ranks have measured the same, unless somebody died in the middle: so what rank 0 has counts. Length 0: it has nothing. *text is replaced, and freed
 * by the caller.
 */
static enum esp_status hand_out(struct esp_context *context, char **text, uint64_t *length)
{
	uint64_t said = *length;
	enum esp_status status = esp_broadcast(esp_world(context), &said, 1, ESP_U64, 0);

	if (status != ESP_OK || said == 0 || said > TEXT_MOST) {
		*length = 0;
		return status;
	}
	char *room = realloc(*text, said); /* ours, where we are rank 0 */
	if (!room) {
		(void)esp_abort(esp_world(context), "no memory for the topology that was probed");
		return ESP_ENOMEM;
	}
	*text = room;
	*length = said;
	return esp_broadcast(esp_world(context), room, said, ESP_U8, 0);
}

static void warn(struct context *context, const char *what)
{
	if (context->rank == 0)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "the network is not probed, and plans do without: %s", what);
}

static void tell(struct context *context, const struct found *found)
{
	for (uint32_t i = 0; i < found->lost_count && context->rank == 0; i++)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "probing: host %s %s", found->lost[i].name, probe_fate_text(found->lost[i].fate));
	log_write(&context->log, LOG_LEVEL_INFO, LOG_NET, "probing: %u hosts in %u groups, in %.1f s", found->survey.count, found->grouping.count,
	          found->seconds);
}

static void probe(struct esp_context *given)
{
	struct context *context = api_context(given);
	const struct probing_options options = {
		.latency = true,
		.bandwidth = context->roster.hosts <= BANDWIDTH_HOSTS,
		.seconds = START_SECONDS,
		.seed = SEED,
		.group = group,
	};
	struct failure failure = FAILURE_NONE;
	struct found found = {0};
	struct error err = {0};
	char *text = NULL;
	size_t bytes = 0;

	enum esp_status status = probing_run(given, &options, &found, &err);
	if (status == ESP_OK) {
		tell(context, &found);
		status = write_text(&found, &text, &bytes, &err);
	}
	if (status != ESP_OK)
		warn(context, err.text);
	uint64_t length = status == ESP_OK ? bytes : 0;
	if (hand_out(given, &text, &length) == ESP_OK && length > 0 &&
	    context_use_topology(context, text, length, "that was probed", &failure) != ESP_OK)
		warn(context, failure.text);
	free(text);
	found_fini(&found);
}

void probing_at_start(struct esp_context *context)
{
	if (!context_wants_probe(api_context(context)))
		return;
	if (api_context(context)->roster.hosts < 2)
		log_write(&api_context(context)->log, LOG_LEVEL_INFO, LOG_NET, "all ranks are on one host: there is no network to probe");
	else
		probe(context);
}
