#include "rank/join/launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "rank/join/launch_parts.h"

/* The variables of launchers. */
static const struct {
	const char *rank, *size; /* NULL: not provided */
	const char *mark;        /* has to be set too, or else rank and size do not count; NULL: no such variable */
} starters[STARTERS] = {
	[STARTER_ESPALIER] = {"ESP_RANK", "ESP_SIZE", NULL},
	[STARTER_TORCHRUN] = {"RANK", "WORLD_SIZE", NULL},
	[STARTER_OPEN_MPI] = {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
	[STARTER_MPICH] = {"PMI_RANK", "PMI_SIZE", NULL},
	/* sbatch sets the first, but no step */
	[STARTER_SLURM] = {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
	[STARTER_KUBERNETES] = {"JOB_COMPLETION_INDEX", NULL, NULL},
};

/* A source of a number; the arguments come first, then the launchers. */
struct place {
	const char *name;
	const char *text; /* NULL: absent */
};
#define PLACES (1u + STARTERS)

static const char *look_up(const struct launch_finder *finder, const char *name)
{
	return finder->around->lookup(finder->around->lookup_context, name);
}

/*
 * espalier run also sets torchrun's variables, for scripts that know no others. The library uses espalier run's
 * own; a caller that removes these from the environment, for a process that is no rank of the job, need not
 * remove torchrun's.
 */
static bool is_said_twice(const struct launch_finder *finder, const char *name)
{
	static const char *const words[] = {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"};
	const char *mark = look_up(finder, "ESPALIER_RUN"), *rank = look_up(finder, "RANK"),
	    *size = look_up(finder, "WORLD_SIZE");
	char expected[64];

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(name, words[i]) != 0 || !mark || !rank || !size)
			continue;
		snprintf(expected, sizeof(expected), "%s/%s", rank, size);
		return strcmp(mark, expected) == 0;
	}
	return false;
}

const char *launch_ask(const struct launch_finder *finder, const char *name)
{
	const char *text = name && !is_said_twice(finder, name) ? look_up(finder, name) : NULL;
	return text && text[0] ? text : NULL;
}

/* mpiexec -pmi-port: a rank would have to ask for its number over the port; it is no job of its own. */
static bool is_counted_by_port(const struct launch_finder *finder)
{
	return launch_ask(finder, "PMI_PORT") && launch_ask(finder, "PMI_ID");
}

bool launch_is_told(conf_lookup_fn *lookup, void *context)
{
	const struct launch_surroundings around = {.lookup = lookup, .lookup_context = context};
	const struct launch_finder finder = {.around = &around};
	for (unsigned i = 0; i < STARTERS; i++) {
		if (starters[i].mark && !launch_ask(&finder, starters[i].mark))
			continue;
		if (launch_ask(&finder, starters[i].rank) || launch_ask(&finder, starters[i].size))
			return true;
	}
	return is_counted_by_port(&finder);
}

/* espalier run under another launcher numbers its own ranks. */
static bool is_nested(const struct launch_finder *finder, const struct place *used)
{
	return strncmp(used->name, "ESP_", 4) == 0 &&
	       finder->around->lookup(finder->around->lookup_context, "ESP_LAUNCHER");
}

static void warn_if_other(const struct launch_finder *finder, const struct place *used, const struct place *other)
{
	char used_text[QUOTE_TEXT], other_text[QUOTE_TEXT];
	struct error warning;
	if (!finder->around->warn || !other->text || strcmp(used->text, other->text) == 0 || is_nested(finder, used))
		return;
	error_set(&warning, ESP_EMISMATCH, "%s is %s but %s is %s; using %s", used->name,
	          quote(used->text, strlen(used->text), used_text), other->name,
	          quote(other->text, strlen(other->text), other_text), used->name);
	finder->around->warn(finder->around->warn_context, &warning);
}

static enum esp_status find_number(const struct launch_finder *finder, const struct place places[PLACES],
                                   const char *expected, uint64_t min, uint64_t max, uint64_t *out,
                                   const char **out_source)
{
	char shown[QUOTE_TEXT];
	unsigned used = 0;
	while (used < PLACES && !places[used].text)
		used++;
	if (used == PLACES)
		return error_set(finder->err, ESP_EINVAL,
		                 "neither %s nor %s is set: start with espalier run, torchrun, mpirun or srun, or set %s to %s",
		                 places[1].name, places[2].name, places[1].name, expected);
	const char *text = places[used].text;
	uint64_t number;
	if (!number_parse_u64(text, strlen(text), &number) || number < min || number > max)
		return error_set(finder->err, ESP_EINVAL, "%s is %s, from %" PRIu64 " to %" PRIu64 ", not %s",
		                 places[used].name, expected, min, max, quote(text, strlen(text), shown));
	for (unsigned other = used + 1; other < PLACES; other++)
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

static void list_places(const struct launch_finder *finder, bool sizes, struct place places[PLACES])
{
	for (unsigned i = 0; i < STARTERS; i++) {
		const char *name = sizes ? starters[i].size : starters[i].rank;
		bool counts = !starters[i].mark || launch_ask(finder, starters[i].mark);
		places[1 + i] = (struct place){name, counts ? launch_ask(finder, name) : NULL};
	}
}

/* Some launchers provide the rank, but not the size. */
static enum esp_status no_size(const struct launch_finder *finder)
{
	if (!launch_ask(finder, starters[STARTER_KUBERNETES].rank))
		return error_set(finder->err, ESP_EINVAL,
		                 "mpiexec -pmi-port does not tell how many ranks there are: leave it out, or set ESP_RANK, "
		                 "ESP_SIZE and ESP_LEADER");
	return error_set(finder->err, ESP_EINVAL,
	                 "JOB_COMPLETION_INDEX says which rank this is, but nothing says how many there are: set ESP_SIZE "
	                 "to the job's completions, or to 1 if its pods have nothing to do with each other");
}

static enum esp_status find_size(const struct launch_finder *finder, struct launch *launch)
{
	char text[24];
	uint64_t size = 0;
	bool told = false;
	struct place places[PLACES] = {{"the argument size", argument_text(finder->arguments->size, text)}};
	list_places(finder, true, places);
	for (unsigned i = 0; i < PLACES; i++)
		told |= places[i].text != NULL;
	if (!told && (launch_ask(finder, starters[STARTER_KUBERNETES].rank) || is_counted_by_port(finder)))
		return no_size(finder);
	enum esp_status status =
		find_number(finder, places, "the number of ranks", 1, LAUNCH_SIZE_MAX, &size, &launch->size_source);
	if (status == ESP_OK)
		launch->size = (uint32_t)size;
	return status;
}

static enum esp_status find_rank(const struct launch_finder *finder, struct launch *launch)
{
	char text[24];
	uint64_t rank = 0;
	struct place places[PLACES] = {{"the argument rank", argument_text(finder->arguments->rank, text)}};
	list_places(finder, false, places);
	enum esp_status status =
		find_number(finder, places, "the number of this rank", 0, launch->size - 1, &rank, &launch->rank_source);
	if (status == ESP_OK)
		launch->rank = (uint32_t)rank;
	return status;
}

/* True if a launcher has numbered the same ranks: then its other variables count. */
static bool agrees(const struct launch_finder *finder, enum launch_starter starter, const struct launch *launch)
{
	uint64_t rank, size = launch->size;
	const char *rank_text = launch_ask(finder, starters[starter].rank),
	    *size_text = launch_ask(finder, starters[starter].size);
	if (starters[starter].mark && !launch_ask(finder, starters[starter].mark))
		return false;
	if (!rank_text || !number_parse_u64(rank_text, strlen(rank_text), &rank) || rank != launch->rank)
		return false;
	if (starters[starter].size && (!size_text || !number_parse_u64(size_text, strlen(size_text), &size)))
		return false;
	return size == launch->size;
}

static enum esp_status torch_leader(const struct launch_finder *finder, struct launch *launch)
{
	const char *host = launch_ask(finder, "MASTER_ADDR"), *port = launch_ask(finder, "MASTER_PORT");
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

/* From a launcher's other variables. Of several the first one's advice is reported: it gave the rank. */
static enum esp_status starter_leader(const struct launch_finder *finder, struct launch *launch)
{
	struct error advice = {.status = ESP_OK}, other;
	for (unsigned i = 0; i < STARTERS; i++) {
		if (!agrees(finder, (enum launch_starter)i, launch))
			continue;
		enum esp_status status =
			launch_leader_of((enum launch_starter)i, finder, launch, advice.status == ESP_OK ? &advice : &other);
		if (status == ESP_OK)
			return ESP_OK;
	}
	if (launch->size == 1)
		return ESP_OK;
	if (advice.status != ESP_OK)
		return error_set(finder->err, ESP_EINVAL, "%s", advice.text);
	return error_set(finder->err, ESP_EINVAL, "neither ESP_LEADER nor MASTER_ADDR is set: set ESP_LEADER to host:port, "
	                 "where rank 0 can be reached, or ESP_STORE to file:/FOLDER that all ranks see");
}

static enum esp_status find_leader(const struct launch_finder *finder, struct launch *launch)
{
	const char *text = finder->arguments->leader;
	launch->leader_source = text ? "the argument leader" : "ESP_LEADER";
	if (!text)
		text = launch_ask(finder, "ESP_LEADER");
	if (text)
		return address_parse(text, launch->leader_source, &launch->leader, finder->err);
	launch->leader_source = "ESP_STORE";
	text = launch_ask(finder, "ESP_STORE");
	if (text && launch->size > 1)
		return announce_place_parse(text, "ESP_STORE", &launch->place, finder->err);
	launch->leader_source = "none";
	if (launch_ask(finder, "MASTER_ADDR") ||
	    (launch_ask(finder, "MASTER_PORT") && !launch_ask(finder, "JOB_COMPLETION_INDEX")))
		return torch_leader(finder, launch);
	return starter_leader(finder, launch);
}

/* Before the leader: a launcher's name of the job is one of the things that tell two jobs apart. */
static enum esp_status find_job(const struct launch_finder *finder, struct launch *launch)
{
	const char *name = finder->arguments->job;
	if (!name)
		name = launch_ask(finder, "ESP_JOB");
	if (!name)
		name = launch_ask(finder, "TORCHELASTIC_RUN_ID");
	if (name && strlen(name) >= LAUNCH_JOB)
		return error_set(finder->err, ESP_EINVAL, "the name of the job has %zu bytes, at most %u fit", strlen(name),
		                 LAUNCH_JOB - 1);
	snprintf(launch->job, sizeof(launch->job), "%s", name ? name : "");
	for (unsigned i = 0; i < STARTERS && !launch->job[0]; i++)
		if (agrees(finder, (enum launch_starter)i, launch))
			launch_job_of((enum launch_starter)i, finder, launch->job);
	return ESP_OK;
}

static enum esp_status find_epoch(const struct launch_finder *finder, struct launch *launch)
{
	static const char *const names[] = {"ESP_EPOCH", "TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT"};
	char shown[QUOTE_TEXT];
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = launch_ask(finder, names[i]);
		if (!text)
			continue;
		if (!number_parse_u64(text, strlen(text), &launch->epoch))
			return error_set(finder->err, ESP_EINVAL, "%s says how often the job was started anew, not %s", names[i],
			                 quote(text, strlen(text), shown));
		break;
	}
	return ESP_OK;
}

static bool comes_from(const char *source, const char *name)
{
	return source && strcmp(source, name) == 0;
}

/* The launcher's socket is about ESP_RANK's numbers only: a program may form jobs of its own. */
static void find_launcher(const struct launch_finder *finder, struct launch *launch)
{
	const char *name = launch_ask(finder, "ESP_LAUNCHER");
	bool same = comes_from(launch->rank_source, "ESP_RANK") && comes_from(launch->size_source, "ESP_SIZE") &&
	            comes_from(launch->leader_source, "ESP_LEADER");
	if (name && same && strlen(name) < LAUNCH_LAUNCHER)
		snprintf(launch->launcher, sizeof(launch->launcher), "%s", name);
}

enum esp_status launch_find(const struct launch_arguments *arguments, const struct launch_surroundings *surroundings,
                            struct launch *out, struct error *err)
{
	const struct launch_finder finder = {arguments, surroundings, err};
	struct launch launch = {0};
	enum esp_status status = find_size(&finder, &launch);
	if (status == ESP_OK)
		status = find_rank(&finder, &launch);
	if (status == ESP_OK)
		status = find_job(&finder, &launch);
	if (status == ESP_OK)
		status = find_leader(&finder, &launch);
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
	char leader[ANNOUNCE_PLACE_TEXT] = "none";
	if (launch->leader.port)
		address_format(&launch->leader, leader);
	else if (launch->place.kind != ANNOUNCE_NOWHERE)
		announce_place_describe(&launch->place, leader);
	snprintf(text, LAUNCH_TEXT, "rank %u of %u (%s, %s), %s %s (%s)", launch->rank, launch->size, launch->rank_source,
	         launch->size_source, launch->place.kind == ANNOUNCE_NOWHERE ? "leader" : "leader's address in", leader,
	         launch->leader_source);
	return text;
}
