#include "tools/bench/bench_options.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/word.h"
#include "report/complain.h"
#include "report/options.h"
#include "tools/bench/bench_fixed.h"
#include "tools/plan/plan_options.h"

#define GO_ON (-1)

const char *const bench_memories[] = {"alloc", "malloc", "shared", NULL};
static const char *const transports[] = {"auto", "shm", "tcp", NULL};
/* In the order of enum esp_numerics, without the first. */
static const char *const numerics_names[] = {"float", "fixed", "fixed16", NULL};
/* In the order of enum esp_op. */
static const char *const op_names[] = {"sum", "avg",  "prod", "min", "max",  "band",   "bor",
                                       "bxor", "land", "lor",  "lxor", "scaled", NULL};
static_assert(sizeof(op_names) / sizeof(op_names[0]) == ESP_OP_COUNT + 1, "one name per operation");
/* Espalier's names in the order of enum esp_type, then those of nccl-tests in the same order. */
static const char *const type_names[] = {"f32",   "f64",   "f16",   "bf16",   "i8",     "u8",     "i16",
                                         "u16",   "i32",   "u32",   "i64",    "u64",    "bytes",  "float",
                                         "double", "half", "bfloat16", "int8", "uint8", "int16",  "uint16",
                                         "int32", "uint32", "int64", "uint64", NULL};
static_assert(sizeof(type_names) / sizeof(type_names[0]) == 2 * ESP_TYPE_COUNT,
              "two names per type, but one for bytes");

/* The values of the table of options, as they were given. */
struct words {
	const char *size, *plan, *set;
	uint64_t from, to, factor, step, check;
	double seconds;
	int type, op, memory, transport, numerics;
	bool async, persistent;
	bool size_given, from_given, to_given, factor_given, step_given, type_given, memory_given, op_given, root_given,
		transport_given, numerics_given;
};

const char *bench_calls_name(enum bench_calls calls)
{
	static const char *const names[] = {"blocking", "async", "persistent"};
	return names[calls];
}

/* ---- options that may be given more than once ---- */

/* If word number *at is this option, returns its value and moves *at to its last word; otherwise NULL. */
static const char *value_at(char *const *argv, int argc, int *at, const char *option)
{
	const char *word = argv[*at];
	size_t length = strlen(option);

	if (strncmp(word, option, length) != 0)
		return NULL;
	if (word[length] == '=')
		return word + length + 1;
	return word[length] == '\0' && *at + 1 < argc ? argv[++*at] : NULL;
}

/* All values of an option, one after the other, with a separator between them. The caller frees it. NULL: no memory. */
static char *all_values(int argc, char *const *argv, const char *option, char separator)
{
	size_t bytes = 1, used = 0;

	for (int i = 1; i < argc; i++)
		bytes += strlen(argv[i]) + 1;
	char *text = malloc(bytes);
	if (!text)
		return NULL;
	text[0] = '\0';
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const char *value = value_at(argv, argc, &i, option);
		if (value)
			used += (size_t)snprintf(text + used, bytes - used, "%s%c", value, separator);
	}
	if (used > 0)
		text[used - 1] = '\0';
	return text;
}

/* ---- checking and converting ---- */

static char next_letter(const char **text)
{
	*text += strspn(*text, "-_");
	return **text ? (char)tolower((unsigned char)*(*text)++) : '\0';
}

/* Ignores case and dashes: reduce-scatter and ReduceScatter are the same. */
static bool same_name(const char *a, const char *b)
{
	char x, y;

	do {
		x = next_letter(&a);
		y = next_letter(&b);
	} while (x == y && x);
	return x == y;
}

static const char *collective_at(const void *list, size_t index)
{
	(void)list;
	return index < BENCH_COLLECTIVES ? esp_collective_name((enum esp_collective)index) : NULL;
}

static int choose_collectives(struct bench_options *options, const char *name)
{
	for (uint32_t i = 0; i < BENCH_COLLECTIVES; i++) {
		if (same_name(name, "all") || same_name(name, esp_collective_name((enum esp_collective)i)))
			options->collectives[options->collective_count++] = (enum esp_collective)i;
	}
	if (options->collective_count > 0)
		return GO_ON;
	const char *near = word_nearest(name, collective_at, NULL);
	if (near)
		return complain_usage("bench: unknown collective '%s'; did you mean '%s'?", name, near);
	return complain_usage("bench: unknown collective '%s'; there are allreduce, reduce-scatter, allgather, broadcast, "
	                      "reduce, gather, scatter, alltoall, barrier, and all of them: all", name);
}

static int choose_sizes(struct bench_options *options, const struct words *words)
{
	struct error err;
	char range[64];
	const char *text = words->size;

	if (words->size_given && (words->from_given || words->to_given))
		return complain_usage("bench: --size says which sizes already; -b and -e say it in another way");
	if (words->factor_given && words->step_given)
		return complain_usage("bench: --factor and --stepbytes are two ways from one size to the next: choose one");
	if ((words->factor_given || words->step_given) && words->size_given && !strchr(words->size, ':'))
		return complain_usage("bench: --%s is for a range of sizes, such as --size 4:128M",
		                      words->factor_given ? "factor" : "stepbytes");
	struct bench_step step = {.factor = words->step_given ? 0 : words->factor, .bytes = words->step};
	if (words->from_given || words->to_given) {
		uint64_t from = !words->from_given && words->to < words->from ? words->to : words->from;
		uint64_t to = !words->to_given && words->from > words->to ? words->from : words->to;
		snprintf(range, sizeof(range), "%" PRIu64 ":%" PRIu64, from, to);
		text = range;
	}
	if (bench_sizes_parse(text, step, &options->sizes, &err) != ESP_OK)
		return complain_usage("bench: --size: %s", err.text);
	return GO_ON;
}

static int choose_plans(struct bench_options *options, const struct words *words)
{
	struct error err;

	for (char *rest = words->plan ? options->plan_text : NULL; rest;) {
		const char *name = strsep(&rest, ",");
		if (options->plan_count == BENCH_PLANS_MAX)
			return complain_usage("bench: --plan: more than %u plans", BENCH_PLANS_MAX);
		bool is_auto = strcmp(name, "auto") == 0;
		if (!is_auto && !plan_tool_find_runnable(name, "auto", &err))
			return complain_usage("bench: --plan: %s", err.text);
		options->plans[options->plan_count++] = is_auto ? NULL : name;
	}
	if (options->plan_count == 0)
		options->plans[options->plan_count++] = NULL;
	return GO_ON;
}

static bool sets_transport(const struct conf *conf)
{
	for (size_t i = 0; conf_setting_at(i); i++) {
		if (strcmp(conf_setting_at(i)->name, "transport") == 0)
			return conf->origins[i] == CONF_COMMAND_LINE;
	}
	return false;
}

static int choose_settings(struct bench_options *options, const struct words *words)
{
	static const char *const transport_settings[] = {"transport=auto", "transport=shm", "transport=tcp"};
	uint32_t count = 0;
	struct conf conf;
	struct error err;

	conf_init(&conf);
	for (char *rest = words->set ? options->setting_text : NULL; rest;) {
		const char *setting = strsep(&rest, "\n"), *equals = strchr(setting, '=');
		if (!equals)
			return complain_usage("bench: --set: expected NAME=VALUE, not '%s'", setting);
		if (conf_set(&conf, setting, (size_t)(equals - setting), equals + 1, strlen(equals + 1), CONF_COMMAND_LINE,
		             &err) != ESP_OK)
			return complain_usage("bench: --set: %s", err.text);
		if (words->transport_given && sets_transport(&conf))
			return complain_usage("bench: --transport and --set %s say the same thing: choose one", setting);
		if (count + 1 == BENCH_SETTINGS_MAX)
			return complain_usage("bench: --set: more than %u settings", BENCH_SETTINGS_MAX - 1);
		options->settings[count++] = setting;
	}
	if (words->transport_given)
		options->settings[count++] = transport_settings[words->transport];
	return GO_ON;
}

static bool any(const struct bench_options *options, bool (*is_so)(enum esp_collective))
{
	for (uint32_t i = 0; i < options->collective_count; i++)
		if (is_so(options->collectives[i]))
			return true;
	return false;
}

/* The first chosen collective that has no such mode; NULL: all have it. */
static const char *lacks_mode(const struct bench_options *options, enum bench_mode mode)
{
	for (uint32_t i = 0; i < options->collective_count; i++)
		if (!bench_has_mode(options->collectives[i], mode))
			return esp_collective_name(options->collectives[i]);
	return NULL;
}

static bool is_only_barrier(const struct bench_options *options)
{
	return options->collective_count == 1 && options->collectives[0] == ESP_BARRIER;
}

/* The name of an option about data that was given; NULL: none was. */
static const char *meaningless_to_barrier(const struct words *words)
{
	return words->size_given     ? "size"
	       : words->from_given   ? "minbytes"
	       : words->to_given     ? "maxbytes"
	       : words->factor_given ? "factor"
	       : words->step_given   ? "stepbytes"
	       : words->type_given   ? "type"
	       : words->memory_given ? "memory"
	                             : NULL;
}

static bool is_allreduce(enum esp_collective collective)
{
	return collective == ESP_ALLREDUCE;
}

/* Can allreduces with these options be in fixed point? */
static bool has_fixed(const struct bench_options *options)
{
	struct bench_shape shape = {.collective = ESP_ALLREDUCE, .type = options->type, .op = options->op, .ranks = 2,
	                            .numerics = ESP_NUMERICS_FIXED};

	return bench_is_fixed(&shape);
}

static int check_sense(const struct bench_options *options, const struct words *words)
{
	const char *name = esp_collective_name(options->collectives[0]);
	bool reduces = any(options, bench_reduces);

	if (words->op_given && !reduces)
		return complain_usage("bench: --op is for allreduce, reduce-scatter and reduce, and means nothing to %s", name);
	if (words->numerics_given && !any(options, is_allreduce))
		return complain_usage("bench: --numerics is for allreduce, and means nothing to %s", name);
	if (options->numerics > ESP_NUMERICS_FLOAT && !has_fixed(options))
		return complain_usage("bench: --numerics %s is for sums and averages of f32, f16 and bf16, not for %s of %s",
		                      numerics_names[options->numerics - 1], esp_op_name(options->op),
		                      esp_type_name(options->type));
	if (words->root_given && !any(options, bench_has_root))
		return complain_usage("bench: --root is for broadcast, reduce, gather and scatter, and means nothing to %s",
		                      name);
	if (reduces && esp_reduce_local(NULL, NULL, NULL, 0, options->type, options->op) != ESP_OK)
		return complain_usage("bench: --op: %s is not defined for %s", esp_op_name(options->op),
		                      esp_type_name(options->type));
	if (is_only_barrier(options) && meaningless_to_barrier(words))
		return complain_usage("bench: --%s means nothing to barrier, which moves no data",
		                      meaningless_to_barrier(words));
	if (options->in_place && lacks_mode(options, BENCH_IN_PLACE))
		return complain_usage("bench: --in-place: %s cannot be in place", lacks_mode(options, BENCH_IN_PLACE));
	if (words->async && words->persistent)
		return complain_usage("bench: --async and --persistent are two ways to make a call: choose one");
	if (!(options->seconds >= 0 && options->seconds <= 86400))
		return complain_usage("bench: --seconds is a number from 0 to 86400");
	return GO_ON;
}

static int make_sense(struct bench_options *options, const struct words *words, const char *collective)
{
	int exit_status = choose_collectives(options, collective);

	options->type = (enum esp_type)(words->type % ESP_TYPE_COUNT);
	options->op = (enum esp_op)words->op;
	options->numerics = words->numerics_given ? (enum esp_numerics)(words->numerics + 1) : ESP_NUMERICS_DEFAULT;
	options->check = words->check;
	options->memory = (enum bench_memory)words->memory;
	options->calls = words->persistent ? BENCH_PERSISTENT : words->async ? BENCH_ASYNC : BENCH_BLOCKING;
	if (exit_status == GO_ON)
		exit_status = choose_sizes(options, words);
	if (exit_status == GO_ON)
		exit_status = choose_plans(options, words);
	if (exit_status == GO_ON)
		exit_status = choose_settings(options, words);
	if (exit_status == GO_ON)
		exit_status = check_sense(options, words);
	return exit_status;
}

static int parse(struct bench_options *options, struct words *words, int argc, char **argv)
{
	const struct option_spec table[] = {
		{"ranks", 'n', OPTION_U64, &options->ranks, "N",
		 "how many ranks to start here (default: one per core, at least 2)", 1, BENCH_RANKS_MAX, NULL},
		{"size", 0, OPTION_STRING, &words->size, "SIZES",
		 "a range, as in 4:128M (the default), or a list, as in 4,1K,64K", .given = &words->size_given},
		{"minbytes", 'b', OPTION_BYTES, &words->from, "BYTES", "the smallest size, as of nccl-tests", 1, BENCH_SIZE_MAX,
		 NULL, &words->from_given},
		{"maxbytes", 'e', OPTION_BYTES, &words->to, "BYTES", "the largest size", 1, BENCH_SIZE_MAX, NULL,
		 &words->to_given},
		{"factor", 'f', OPTION_U64, &words->factor, "F", "from one size of a range to the next (default 2)", 2,
		 UINT32_MAX, NULL, &words->factor_given},
		{"stepbytes", 'i', OPTION_BYTES, &words->step, "BYTES", "the same by adding, not by multiplying", 1,
		 BENCH_SIZE_MAX, NULL, &words->step_given},
		{"plan", 0, OPTION_STRING, &words->plan, "NAMES",
		 "planners of espalier plan, or auto (the default); a table for each"},
		{"transport", 0, OPTION_CHOICE, &words->transport, "HOW", "how ranks of one host reach each other",
		 .choices = transports, .given = &words->transport_given},
		{"type", 'd', OPTION_CHOICE, &words->type, "TYPE", "of the elements (default f32)", .choices = type_names,
		 .given = &words->type_given},
		{"op", 'o', OPTION_CHOICE, &words->op, "OP", "of reductions (default sum)", .choices = op_names,
		 .given = &words->op_given},
		{"numerics", 0, OPTION_CHOICE, &words->numerics, "HOW",
		 "how allreduces add floats (default: the setting numerics)", .choices = numerics_names,
		 .given = &words->numerics_given},
		{"root", 'r', OPTION_U64, &options->root, "RANK", "root of broadcast, reduce, gather and scatter (default 0)",
		 0, UINT32_MAX, NULL, &words->root_given},
		{"iters", 0, OPTION_U64, &options->iters, "N", "samples of each size, at least (default 20)", 1, 1000000, NULL},
		{"seconds", 0, OPTION_DOUBLE, &options->seconds, "S", "measure each size for at least so long"},
		{"warmup", 'w', OPTION_U64, &options->warmup, "N", "calls before the first that is timed (default 1)", 0,
		 1000000, NULL},
		{"check", 'c', OPTION_U64, &words->check, "0|1", "check every element of the results (default 1)", 0, 1, NULL},
		{"memory", 0, OPTION_CHOICE, &words->memory, "HOW",
		 "where buffers come from (default alloc: esp_alloc; shared: malloc and esp_share)", .choices = bench_memories,
		 .given = &words->memory_given},
		{"in-place", 0, OPTION_FLAG, &options->in_place, NULL, "measure nothing out of place"},
		{"async", 0, OPTION_FLAG, &words->async, NULL, "start each call, then wait for it"},
		{"persistent", 0, OPTION_FLAG, &words->persistent, NULL,
		 "prepare each call once, then start it again and again"},
		{"set", 0, OPTION_STRING, &words->set, "NAME=VALUE", "a setting of the ranks; may stand there more than once"},
		{"json", 0, OPTION_FLAG, &options->json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		"bench", "[COLLECTIVE]",
		"Measures collectives between ranks that it starts on this machine, or, under a launcher, between those\n"
		"that the launcher has started, and checks every result. COLLECTIVE is allreduce (the default),\n"
		"reduce-scatter, allgather, broadcast, reduce, gather, scatter, alltoall, barrier or all. The table is that\n"
		"of nccl-tests.",
		table, 0, 1,
	};
	int exit_status = options_parse(&usage, &argc, argv);

	return exit_status == GO_ON ? make_sense(options, words, argc > 1 ? argv[1] : "allreduce") : exit_status;
}

int bench_options_parse(struct bench_options *options, int argc, char **argv)
{
	struct words words = {.size = "4:128M", .from = 4, .to = 128 << 20, .factor = 2, .check = 1};

	*options = (struct bench_options){
		.iters = 20,
		.warmup = 1,
		.plan_text = all_values(argc, argv, "--plan", ','),
		.setting_text = all_values(argc, argv, "--set", '\n'),
	};
	int exit_status = options->plan_text && options->setting_text ? parse(options, &words, argc, argv)
	                                                              : complain("bench: %s", esp_status_text(ESP_ENOMEM));
	if (exit_status != GO_ON)
		bench_options_fini(options);
	return exit_status;
}

void bench_options_fini(struct bench_options *options)
{
	free(options->plan_text);
	free(options->setting_text);
	options->plan_text = options->setting_text = NULL;
}
