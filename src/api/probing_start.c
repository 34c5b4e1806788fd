#include "api/probing_start.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/probing.h"
#include "api/probing_group.h"
#include "runtime/context.h"
#include "runtime/group.h"
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
 * A group of all ranks for the meetings: when somebody dies it is this one that is shrunk, and the world is left to the program, which may
 * want to do that itself, by the numbers of its own calls. NULL: there is none, as somebody has died already.
 */
static struct esp_group *make_group(struct esp_context *context, struct error *err)
{
	struct esp_group *group = NULL, *world = esp_world(context);
	uint32_t size = esp_size(world), *ranks = calloc(size, sizeof(*ranks));
	struct esp_error last = ESP_ERROR_INIT;

	for (uint32_t i = 0; i < size && ranks; i++)
		ranks[i] = i;
	group_begin_aside(api_group(world));
	enum esp_status status = ranks ? esp_group_create(world, ranks, size, &group) : ESP_ENOMEM;
	group_end_aside(api_group(world));
	free(ranks);
	if (status == ESP_OK)
		return group;
	(void)esp_last_error(&last);
	(void)error_set(err, status, "%.250s", last.status == status ? last.text : esp_status_text(status));
	return NULL;
}

static void warn(struct context *context, bool tells, const char *what)
{
	if (tells)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "the network is not probed, and plans do without: %s", what);
}

static void tell(struct context *context, bool tells, const struct found *found)
{
	for (uint32_t i = 0; i < found->lost_count && tells; i++)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_NET, "probing: host %s %s", found->lost[i].name, probe_fate_text(found->lost[i].fate));
	log_write(&context->log, LOG_LEVEL_INFO, LOG_NET, "probing: %u hosts in %u groups, in %.1f s", found->survey.count, found->grouping.count,
	          found->seconds);
}

/* All have the same, whoever died: so all make the same of it. */
static void use(struct context *context, bool tells, const struct found *found)
{
	struct failure failure = FAILURE_NONE;
	struct error err = {0};
	char *text = NULL;
	size_t length = 0;

	tell(context, tells, found);
	if (write_text(found, &text, &length, &err) != ESP_OK)
		warn(context, tells, err.text);
	else if (context_use_topology(context, text, length, "that was probed", &failure) != ESP_OK)
		warn(context, tells, failure.text);
	free(text);
}

static void probe(struct esp_context *given)
{
	struct context *context = api_context(given);
	struct error err = {0};
	const struct probing_options options = {
		.circle = make_group(given, &err),
		.latency = true,
		.bandwidth = context->roster.hosts <= BANDWIDTH_HOSTS,
		.seconds = START_SECONDS,
		.seed = SEED,
		.group = group,
	};
	struct found found = {0};
	bool tells = false;

	if (!options.circle) {
		warn(context, context->rank == 0, err.text);
		return;
	}
	if (probing_run(given, &options, &found, &tells, &err) == ESP_OK)
		use(context, tells, &found);
	else
		warn(context, context->rank == 0, err.text);
	(void)esp_group_free(options.circle);
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
