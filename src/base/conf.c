#include "base/conf.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/number.h"
#include "base/quote.h"
#include "base/word.h"

#define PREFIX "ESP_"
#define FILE_VARIABLE "ESP_CONF_FILE"

static const char *const transports[] = {"auto", "shm", "tcp", NULL}; /* enum conf_transport */
static const char *const families[] = {"any", "ipv4", "ipv6", NULL}; /* enum conf_family */
static const char *const autotunes[] = {"auto", "on", "off", NULL}; /* enum conf_autotune */
static const char *const numerics[] = {"float", "fixed", "fixed16", NULL}; /* enum conf_numerics */
static const char *const log_levels[] = {"off", "error", "warn", "info", "trace", NULL};

#define AT(field) offsetof(struct conf, field)
static const struct conf_setting settings[] = {
	{"chunk_bytes", CONF_BYTES, "0", 256, 64 << 20, NULL,
     "how much of a buffer travels in one piece; 0: as it suits the plan", AT(chunk_bytes), true},
	{"credits", CONF_UINT, "16", 1, 64, NULL, "messages that a peer may send ahead on one connection", AT(credits),
     true},
	{"active_chunks", CONF_UINT, "64", 1, 65536, NULL, "chunks in flight per lane", AT(active_chunks), true},
	{"lanes", CONF_UINT, "0", 1, 64, NULL,
     "threads that move data, each with its own connections; 0: as there are cores for each rank, at most 4", AT(lanes),
     true},
	{"transport", CONF_CHOICE, "auto", 0, 0, transports,
     "how ranks of one host reach each other: shared memory or sockets", AT(transport), .agreed = true, .strict = true},
	{"small_bytes", CONF_BYTES, "8K", 0, 64 << 10, NULL,
     "most bytes that each rank of a host sums by itself, in one round of the small path", AT(small_bytes), true},
	{"small_shm_bytes", CONF_BYTES, "128K", 0, 512 << 10, NULL,
     "most bytes of a rank's data that go through the small path of a host; 0: it is off", AT(small_shm_bytes), true,
     .old_name = "board_bytes"},
	{"peer_stores", CONF_BOOL, "yes", 0, 0, NULL,
     "ranks of a host store sums into each other's memory from esp_alloc(); no: each fetches them by itself",
     AT(peer_stores), .old_name = "stores"},
	{"core_affinity", CONF_BOOL, "yes", 0, 0, NULL,
     "on hosts with more ranks than cores that use TCP, waiting ranks move to core (rank mod cores) now and then",
     AT(core_affinity), .old_name = "seats"},
	{"buffer_bytes", CONF_BYTES, "64M", 1 << 20, UINT64_C(1) << 36, NULL,
     "most memory for data under way, in each process", AT(buffer_bytes), true},
	{"deadline_seconds", CONF_UINT, "300", 1, 31536000, NULL, "how long a call may take", AT(deadline_seconds)},
	{"liveness_ms", CONF_UINT, "10000", 100, 86400000, NULL,
     "a rank of which nothing is heard for so long is given up; other waiting is measured in parts of it",
     AT(liveness_ms), .agreed = true, .strict = true},
	{"quorum", CONF_BOOL, "no", 0, 0, NULL, "a group that has failed goes on only with more than half of its ranks",
     AT(quorum), .agreed = true, .strict = true},
	{"linger_seconds", CONF_UINT, "30", 0, 86400, NULL, "how long to wait for the others when leaving",
     AT(linger_seconds)},
	{"log", CONF_CHOICE, "warn", 0, 0, log_levels, "how much is said on stderr", AT(log)},
	{"join_seconds", CONF_UINT, "60", 1, 86400, NULL, "how long to wait for all ranks to arrive", AT(join_seconds)},
	{"insecure", CONF_BOOL, "no", 0, 0, NULL,
     "join without a key: any process on the network can take part, or on this machine where the job stays there",
     AT(insecure), .strict = true},
	{"interfaces", CONF_TEXT, "", 0, CONF_INTERFACES_MOST, NULL,
     "which network interfaces: prefixes as in eth,ib; ^ before the list excludes, = takes names as they are",
     AT(interfaces), .strict = true},
	{"family", CONF_CHOICE, "any", 0, 0, families, "which addresses", AT(family), .strict = true},
	{"port", CONF_RANGE, "0", 1, 65535, NULL, "where ranks listen: 7000, or the first free one of 7000-7015; 0: any",
     AT(port), .strict = true},
	{"segment_bytes", CONF_UINT, "0", 88, 32767, NULL,
     "most bytes that TCP puts into one packet; 0: what the interface takes", AT(segment_bytes)},
	{"resume", CONF_BOOL, "no", 0, 0, NULL,
     "connections for data that are reset are made again, and no call notices; costs a copy of what is sent",
     AT(resume), true},
	{"rails", CONF_UINT, "0", 1, 8, NULL, "network interfaces of a host that are used together; 0: all, 1: one",
     AT(rails), true},
	{"rail_weights", CONF_TEXT, "", 0, CONF_WEIGHTS_MOST, NULL,
     "shares of the interfaces that are used together, as in 5:1; without any: as measured", AT(rail_weights), true},
	{"topology", CONF_TEXT, "", 0, CONF_TEXT_MAX - 1, NULL,
     "file that says where hosts are in the network, read by rank 0; probe: measured at start", AT(topology),
     .strict = true},
	{"switch", CONF_TEXT, "", 0, CONF_SWITCH_MOST, NULL,
     "HOST:PORT of an espalier switch that sums integers on their way; without any, or while none answers: plans",
     AT(through), true},
	{"numerics", CONF_CHOICE, "float", 0, 0, numerics,
     "how allreduces of f32, f16 and bf16 add: as floats, or as 32-bit or 16-bit integers, in any order the same bits",
     AT(numerics), .agreed = true, .strict = true},
	{"autotune", CONF_CHOICE, "auto", 0, 0, autotunes,
     "masters of two-level plans follow the network; auto: where a topology has groups", AT(autotune), true},
	{"autotune_ms", CONF_UINT, "500", 1, 600000, NULL, "how long calls are measured before masters are looked at again",
     AT(autotune_ms), true},
	{"log_subsystems", CONF_TEXT, "", 0, CONF_TEXT_MAX - 1, NULL,
     "whose lines below warn are written: CONF, JOIN, NET, PLAN, CALL, WATCH; ^ in front: all others",
     AT(log_subsystems)},
	{"log_file", CONF_TEXT, "", 0, CONF_TEXT_MAX - 1, NULL,
     "where the log goes instead of stderr; %h host, %j job, %p process, %r rank", AT(log_file)},
	{"dump_dir", CONF_TEXT, "", 0, CONF_TEXT_MAX - 1, NULL,
     "folder for what ranks know when a call fails, for espalier diagnose", AT(dump_dir)},
	{"status", CONF_BOOL, "yes", 0, 0, NULL, "answer espalier status of the same user, on a local socket", AT(status)},
	{"metrics", CONF_TEXT, "", 0, CONF_TEXT_MAX - 1, NULL,
     "path of a local socket that answers Prometheus; %h, %j, %p, %r as in log_file", AT(metrics)},
	{"trace", CONF_TEXT, "", 0, CONF_TEXT_MAX - 1, NULL,
     "file for a Chrome trace of each rank; %h, %j, %p, %r as in log_file", AT(trace)},
	{"trace_detail", CONF_BOOL, "no", 0, 0, NULL, "the trace also has what each lane does and waits for",
     AT(trace_detail)},
};
static_assert(CONF_INTERFACES_MOST < CONF_VALUE_TEXT && CONF_WEIGHTS_MOST < CONF_VALUE_TEXT,
              "CONF_VALUE_TEXT in conf.h");
static_assert(sizeof settings / sizeof settings[0] == CONF_COUNT, "CONF_COUNT in conf.h");

static const char *const origin_names[] = {"default", "file", "environment", "command line"};

const struct conf_setting *conf_setting_at(size_t index)
{
	return index < CONF_COUNT ? &settings[index] : NULL;
}

const char *conf_origin_name(enum conf_origin origin)
{
	return origin_names[origin];
}

static bool same_word(const char *text, size_t length, const char *word)
{
	return strlen(word) == length && strncasecmp(text, word, length) == 0;
}

static bool parse_bool(const char *text, size_t length, bool *out)
{
	static const char *const words[] = {"0", "1", "no", "yes", "false", "true", "off", "on"};
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
		if (same_word(text, length, words[i])) {
			*out = i % 2 == 1;
			return true;
		}
	}
	return false;
}

static bool parse_choice(const struct conf_setting *setting, const char *text, size_t length, uint32_t *out)
{
	for (uint32_t i = 0; setting->choices[i]; i++) {
		if (same_word(text, length, setting->choices[i])) {
			*out = i;
			return true;
		}
	}
	return false;
}

/* Where 0 is the default, it leaves the choice to us, whatever the range. */
static bool zero_is_ours(const struct conf_setting *setting)
{
	return strcmp(setting->fallback, "0") == 0;
}

static bool parse_number(const struct conf_setting *setting, const char *text, size_t length, uint64_t *out)
{
	uint64_t number = 0;
	bool parsed = setting->type == CONF_BYTES ? number_parse_bytes(text, length, &number)
	                                          : number_parse_u64(text, length, &number);
	bool in_range = number >= setting->min && number <= setting->max;

	if (!parsed || !(in_range || (number == 0 && zero_is_ours(setting))))
		return false;
	*out = number;
	return true;
}

/* "7000" or "7000-7015" */
static bool parse_range(const struct conf_setting *setting, const char *text, size_t length, struct conf_range *out)
{
	const char *dash = memchr(text, '-', length);
	size_t first_length = dash ? (size_t)(dash - text) : length;
	uint64_t first, last;

	if (!parse_number(setting, text, first_length, &first))
		return false;
	last = first;
	if (dash && (!parse_number(setting, dash + 1, length - first_length - 1, &last) || first == 0 || last < first))
		return false;
	*out = (struct conf_range){(uint32_t)first, (uint32_t)last};
	return true;
}

static bool parse_text(const struct conf_setting *setting, const char *text, size_t length, char *out)
{
	if (length > setting->max)
		return false;
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	memcpy(out, text, length);
	out[length] = '\0';
	return true;
}

/* Writes the value into its field, or leaves the field alone and returns false. */
static bool store(struct conf *conf, const struct conf_setting *setting, const char *text, size_t length)
{
	void *field = (char *)conf + setting->offset;
	uint64_t number;
	switch (setting->type) {
	case CONF_BYTES:
		return parse_number(setting, text, length, field);
	case CONF_UINT:
		assert(setting->max <= UINT32_MAX);
		if (!parse_number(setting, text, length, &number))
			return false;
		*(uint32_t *)field = (uint32_t)number;
		return true;
	case CONF_BOOL:
		return parse_bool(text, length, field);
	case CONF_CHOICE:
		return parse_choice(setting, text, length, field);
	case CONF_RANGE:
		return parse_range(setting, text, length, field);
	case CONF_TEXT:
		return parse_text(setting, text, length, field);
	}
	return false;
}

/* "a number from 1 to 64" */
static void describe(const struct conf_setting *setting, char *text, size_t size)
{
	char low[NUMBER_BYTES_TEXT], high[NUMBER_BYTES_TEXT];
	const char *zero = zero_is_ours(setting) ? "0 or " : "";
	size_t used;
	switch (setting->type) {
	case CONF_BYTES:
		snprintf(text, size, "%sa number of bytes from %s to %s", zero, number_format_bytes(setting->min, low),
		         number_format_bytes(setting->max, high));
		break;
	case CONF_UINT:
		snprintf(text, size, "%sa number from %" PRIu64 " to %" PRIu64, zero, setting->min, setting->max);
		break;
	case CONF_BOOL:
		snprintf(text, size, "yes or no");
		break;
	case CONF_CHOICE:
		used = (size_t)snprintf(text, size, "one of");
		for (int i = 0; setting->choices[i] && used < size; i++)
			used += (size_t)snprintf(text + used, size - used, "%s %s", i ? "," : "", setting->choices[i]);
		break;
	case CONF_RANGE:
		snprintf(text, size, "%sa number or a range (such as 7000-7015) from %" PRIu64 " to %" PRIu64, zero,
		         setting->min, setting->max);
		break;
	case CONF_TEXT:
		snprintf(text, size, "a text of at most %" PRIu64 " printable bytes", setting->max);
		break;
	}
}

void conf_init(struct conf *conf)
{
	memset(conf, 0, sizeof *conf);
	for (size_t i = 0; i < CONF_COUNT; i++) {
		const char *fallback = settings[i].fallback;
		bool stored = store(conf, &settings[i], fallback, strlen(fallback));
		assert(stored);
		(void)stored;
	}
}

/* How much of the name is ESP_. */
static size_t prefix_length(const char *name, size_t length)
{
	size_t prefix = sizeof PREFIX - 1;
	return length > prefix && strncasecmp(name, PREFIX, prefix) == 0 ? prefix : 0;
}

static bool is_old_name(const struct conf_setting *setting, const char *name, size_t length)
{
	return setting->old_name && same_word(name, length, setting->old_name);
}

bool conf_is_renamed(const char *name, size_t length, struct error *out)
{
	char shown[QUOTE_TEXT];
	size_t prefix = prefix_length(name, length);

	for (size_t i = 0; i < CONF_COUNT; i++)
		if (is_old_name(&settings[i], name + prefix, length - prefix)) {
			error_set(out, ESP_EINVAL, "%s is now called %s; the old name works in this version only",
			          quote(name, length, shown), settings[i].name);
			return true;
		}
	return false;
}

static size_t find_setting(const char *name, size_t length)
{
	size_t prefix = prefix_length(name, length);
	name += prefix;
	length -= prefix;
	for (size_t i = 0; i < CONF_COUNT; i++)
		if (same_word(name, length, settings[i].name) || is_old_name(&settings[i], name, length))
			return i;
	return CONF_COUNT;
}

static const char *setting_name_at(const void *list, size_t index)
{
	(void)list;
	return index < CONF_COUNT ? settings[index].name : NULL;
}

static enum esp_status unknown_setting(const char *name, size_t length, struct error *err)
{
	char shown[QUOTE_TEXT];
	char word[64];
	size_t prefix = prefix_length(name, length), rest = length - prefix;
	snprintf(word, sizeof word, "%.*s", (int)(rest < sizeof word ? rest : sizeof word - 1), name + prefix);
	const char *near = word_nearest(word, setting_name_at, NULL);
	quote(name, length, shown);
	if (near)
		return error_set(err, ESP_EINVAL, "there is no setting %s (did you mean %s?)", shown, near);
	return error_set(err, ESP_EINVAL, "there is no setting %s; espalier conf lists them", shown);
}

enum esp_status conf_set(struct conf *conf, const char *name, size_t name_length, const char *value,
                         size_t value_length, enum conf_origin origin, struct error *err)
{
	size_t index = find_setting(name, name_length);
	if (index == CONF_COUNT)
		return unknown_setting(name, name_length, err);
	const struct conf_setting *setting = &settings[index];
	struct conf unused = *conf; /* a value that loses is checked all the same */
	bool wins = origin >= conf->origins[index];
	if (!store(wins ? conf : &unused, setting, value, value_length)) {
		char wanted[128], shown[QUOTE_TEXT];
		describe(setting, wanted, sizeof wanted);
		return error_set(err, ESP_EINVAL, "%s is %s, not %s", setting->name, wanted, quote(value, value_length, shown));
	}
	if (wins)
		conf->origins[index] = (uint8_t)origin;
	return ESP_OK;
}

static const char *variable_name(const char *name, char text[CONF_VARIABLE_TEXT])
{
	snprintf(text, CONF_VARIABLE_TEXT, PREFIX "%s", name);
	for (char *c = text; *c; c++)
		if (*c >= 'a' && *c <= 'z')
			*c = (char)(*c - 'a' + 'A');
	return text;
}

const char *conf_variable_name(size_t index, char text[CONF_VARIABLE_TEXT])
{
	return variable_name(settings[index].name, text);
}

const char *conf_old_variable_name(size_t index, char text[CONF_VARIABLE_TEXT])
{
	text[0] = '\0';
	return settings[index].old_name ? variable_name(settings[index].old_name, text) : NULL;
}

bool conf_is_strict(const char *name, size_t length)
{
	size_t index = find_setting(name, length);
	return index < CONF_COUNT && settings[index].strict;
}

static void tell_new_name(size_t index, const char *old, conf_complain_fn *complain, void *context)
{
	char name[CONF_VARIABLE_TEXT];
	struct error complaint;

	error_set(&complaint, ESP_EINVAL,
	          "environment variable %s is now called %s; the old name works in this version only", old,
	          conf_variable_name(index, name));
	if (complain)
		complain(context, &complaint);
}

/* A variable of the new name counts before one of the old. */
static void load_variable(struct conf *conf, size_t index, conf_complain_fn *complain, void *context, struct error *err)
{
	char name[CONF_VARIABLE_TEXT];
	struct error why, complaint;
	conf_variable_name(index, name);
	const char *value = getenv(name);
	if (!value && settings[index].old_name && (value = getenv(variable_name(settings[index].old_name, name))))
		tell_new_name(index, name, complain, context);
	/* no text is a text, and may replace the file's */
	bool is_set = value && (value[0] || settings[index].type == CONF_TEXT);
	if (!is_set || conf_set(conf, name, strlen(name), value, strlen(value), CONF_ENVIRONMENT, &why) == ESP_OK)
		return;
	error_set(&complaint, why.status, "environment variable %s: %.200s%s", name, why.text,
	          settings[index].strict ? "" : "; ignored");
	if (settings[index].strict && err->status == ESP_OK)
		*err = complaint;
	else if (complain)
		complain(context, &complaint);
}

enum esp_status conf_load(struct conf *conf, conf_complain_fn *complain, void *context, struct error *err)
{
	struct error why;
	conf_init(conf);
	err->status = ESP_OK;
	const char *path = getenv(FILE_VARIABLE);
	if (path && path[0] == '\0') {
		error_set(&why, ESP_EINVAL, FILE_VARIABLE " is empty: name a file in it, or unset it");
		if (complain)
			complain(context, &why);
	} else if (path && conf_read_file(conf, path, complain, context, &why) != ESP_OK) {
		error_set(err, why.status, FILE_VARIABLE ": %.230s", why.text);
	}
	for (size_t i = 0; i < CONF_COUNT; i++)
		load_variable(conf, i, complain, context, err);
	return err->status;
}

void conf_check_environment(conf_complain_fn *complain, void *context)
{
	conf_check_names(environ, complain, context);
}

const char *conf_environment(void *unused, const char *name)
{
	(void)unused;
	return getenv(name);
}

const char *conf_value_text(const struct conf *conf, size_t index, char text[CONF_VALUE_TEXT])
{
	const struct conf_setting *setting = &settings[index];
	const void *field = (const char *)conf + setting->offset;
	const struct conf_range *range = field;
	switch (setting->type) {
	case CONF_BYTES:
		number_format_bytes(*(const uint64_t *)field, text);
		break;
	case CONF_UINT:
		snprintf(text, CONF_VALUE_TEXT, "%" PRIu32, *(const uint32_t *)field);
		break;
	case CONF_BOOL:
		snprintf(text, CONF_VALUE_TEXT, "%s", *(const bool *)field ? "yes" : "no");
		break;
	case CONF_CHOICE:
		snprintf(text, CONF_VALUE_TEXT, "%s", setting->choices[*(const uint32_t *)field]);
		break;
	case CONF_RANGE:
		if (range->first == range->last)
			snprintf(text, CONF_VALUE_TEXT, "%" PRIu32, range->first);
		else
			snprintf(text, CONF_VALUE_TEXT, "%" PRIu32 "-%" PRIu32, range->first, range->last);
		break;
	case CONF_TEXT:
		snprintf(text, CONF_VALUE_TEXT, "%s", (const char *)field);
		break;
	}
	return text;
}

const char *conf_agreed_text(const struct conf *conf, char text[CONF_AGREED_TEXT])
{
	char value[CONF_VALUE_TEXT];
	size_t used = 0;
	text[0] = '\0';
	for (size_t i = 0; i < CONF_COUNT; i++) {
		if (!settings[i].agreed)
			continue;
		used += (size_t)snprintf(text + used, CONF_AGREED_TEXT - used, "%s%s=%s", used ? " " : "", settings[i].name,
		                         conf_value_text(conf, i, value));
		assert(used < CONF_AGREED_TEXT); /* conf_test.c has the longest */
	}
	return text;
}
