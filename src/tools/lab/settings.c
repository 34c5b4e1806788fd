/*
 * settings.c - the settings of a link as words: one table. Pure.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "base/units.h"
#include "base/word.h"
#include "tools/lab/lab.h"

#define BACKGROUND_MAX 256u

/* How a word changes settings. */
enum kind {
	RATE,  /* of the link            */
	TIME,  /* of a direction, uint64_t */
	SHARE, /* of a direction, uint32_t */
	FLOWS, /* of the link            */
	CUT,   /* of a direction, no value */
	DOWN,  /* of the link, no value  */
	UP,
	HEAL,
};

struct setting {
	const char *name;
	enum kind kind;
	size_t offset; /* in struct lab_faults */
	const char *wanted;
};

#define SHARE_TEXT "a share such as 1% or 0.01%"
#define TIME_TEXT "a time such as 5ms or 200us"
static const struct setting table[] = {
	{"rate", RATE, 0, "a rate such as 200mbit or 1gbit"},
	{"cut", CUT, 0, NULL},
	{"loss", SHARE, offsetof(struct lab_faults, loss), SHARE_TEXT},
	{"delay", TIME, offsetof(struct lab_faults, delay_ns), TIME_TEXT},
	{"jitter", TIME, offsetof(struct lab_faults, jitter_ns), TIME_TEXT},
	{"reorder", SHARE, offsetof(struct lab_faults, reorder), SHARE_TEXT},
	{"hold", TIME, offsetof(struct lab_faults, hold_ns), TIME_TEXT},
	{"duplicate", SHARE, offsetof(struct lab_faults, duplicate), SHARE_TEXT},
	{"corrupt", SHARE, offsetof(struct lab_faults, corrupt), SHARE_TEXT},
	{"background", FLOWS, 0, "a number of flows, 0 to 256"},
	{"down", DOWN, 0, NULL},
	{"up", UP, 0, NULL},
	{"heal", HEAL, 0, NULL},
};
#define TABLE_COUNT (sizeof(table) / sizeof(table[0]))

static const char *name_at(const void *unused, size_t index)
{
	(void)unused;
	return index < TABLE_COUNT ? table[index].name : NULL;
}

static enum esp_status fail_word(const char *word, struct error *err)
{
	const char *near = word_nearest(word, name_at, NULL);
	char shown[QUOTE_TEXT], all[160] = "";
	quote(word, strlen(word), shown);
	if (near)
		return error_set(err, ESP_EINVAL, "%s cannot be set; did you mean '%s'?", shown, near);
	for (size_t i = 0, used = 0; i < TABLE_COUNT && used < sizeof(all); i++)
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", table[i].name);
	return error_set(err, ESP_EINVAL, "%s cannot be set, but these can: %s", shown, all);
}

static const struct setting *find(const char *word)
{
	for (size_t i = 0; i < TABLE_COUNT; i++)
		if (strcmp(table[i].name, word) == 0)
			return &table[i];
	return NULL;
}

static void *field(struct lab_faults *faults, const struct setting *setting)
{
	return (char *)faults + setting->offset;
}

static bool is_meant(enum lab_ways_given ways, int way)
{
	return ways == LAB_BOTH_WAYS || (ways == LAB_ONLY_FROM) == (way == LAB_FROM);
}

static bool parse_value(const struct setting *setting, const char *value, uint64_t *out)
{
	uint32_t share = 0;
	switch (setting->kind) {
	case RATE:
		return units_parse_rate(value, out);
	case TIME:
		return units_parse_time(value, out);
	case SHARE:
		if (!units_parse_share(value, &share))
			return false;
		*out = share;
		return true;
	case FLOWS:
		return number_parse_u64(value, strlen(value), out) && *out <= BACKGROUND_MAX;
	default:
		*out = 0;
		return true;
	}
}

static void set_faults(struct lab_faults *faults, const struct setting *setting, uint64_t value)
{
	if (setting->kind == TIME)
		*(uint64_t *)field(faults, setting) = value;
	else if (setting->kind == SHARE)
		*(uint32_t *)field(faults, setting) = (uint32_t)value;
	else if (setting->kind == CUT)
		faults->cut = true;
}

static void set_word(struct lab_settings *settings, const struct lab_settings *made, enum lab_ways_given ways,
                const struct setting *setting, uint64_t value)
{
	for (int way = 0; way < LAB_WAYS; way++) {
		if (is_meant(ways, way) && setting->kind == HEAL)
			settings->faults[way] = made->faults[way];
		else if (is_meant(ways, way))
			set_faults(&settings->faults[way], setting, value);
	}
	switch (setting->kind) {
	case RATE:
		settings->rate = value;
		break;
	case FLOWS:
		settings->background = (uint32_t)value;
		break;
	case DOWN:
	case UP:
		settings->down = setting->kind == DOWN;
		break;
	case HEAL:
		if (ways == LAB_BOTH_WAYS)
			*settings = *made;
		break;
	default:
		break;
	}
}

static enum esp_status check_ways(const struct setting *setting, enum lab_ways_given ways, struct error *err)
{
	bool of_a_way = setting->kind == TIME || setting->kind == SHARE || setting->kind == CUT || setting->kind == HEAL;
	if (ways == LAB_BOTH_WAYS || of_a_way)
		return ESP_OK;
	return error_set(err, ESP_EINVAL, "%s is a matter of the link: it cannot be set one way", setting->name);
}

enum esp_status lab_settings_apply(struct lab_settings *settings, const struct lab_settings *made,
                                   enum lab_ways_given ways, char *const *words, size_t count, struct error *err)
{
	struct lab_settings changed = *settings;
	char shown[QUOTE_TEXT];
	if (count == 0)
		return error_set(err, ESP_EINVAL, "what is to be set? rate 200mbit, cut, loss 1%%, delay 5ms, heal ...");
	for (size_t i = 0; i < count; i++) {
		const struct setting *setting = find(words[i]);
		uint64_t value = 0;
		if (!setting)
			return fail_word(words[i], err);
		if (setting->wanted && i + 1 == count)
			return error_set(err, ESP_EINVAL, "%s needs %s", setting->name, setting->wanted);
		if (setting->wanted && !parse_value(setting, words[++i], &value))
			return error_set(err, ESP_EINVAL, "%s: %s is not %s", setting->name,
			                 quote(words[i], strlen(words[i]), shown), setting->wanted);
		enum esp_status status = check_ways(setting, ways, err);
		if (status != ESP_OK)
			return status;
		set_word(&changed, made, ways, setting, value);
	}
	*settings = changed;
	return ESP_OK;
}

bool lab_needs_relay(const struct lab_settings *settings)
{
	for (int way = 0; way < LAB_WAYS; way++) {
		const struct lab_faults *faults = &settings->faults[way];
		if (faults->delay_ns || faults->jitter_ns || faults->reorder || faults->duplicate || faults->corrupt)
			return true;
	}
	return false;
}

bool lab_needs_packets(const struct lab_settings *settings)
{
	return lab_needs_relay(settings) || settings->faults[LAB_FROM].loss || settings->faults[LAB_TO].loss;
}

/* ---- from settings to words ---- */

static void put_way(FILE *out, const struct lab_settings *settings, const struct lab_settings *made, int way,
                    const char *suffix)
{
	char text[UNITS_TEXT];
	const struct lab_faults *faults = &settings->faults[way], *before = &made->faults[way];
	for (size_t i = 0; i < TABLE_COUNT; i++) {
		const struct setting *setting = &table[i];
		const void *now = (const char *)faults + setting->offset, *then = (const char *)before + setting->offset;
		if (setting->kind == CUT && faults->cut)
			fprintf(out, " cut%s", suffix);
		else if (setting->kind == TIME && memcmp(now, then, sizeof(uint64_t)) != 0)
			fprintf(out, " %s%s %s", setting->name, suffix, units_format_time(*(const uint64_t *)now, text));
		else if (setting->kind == SHARE && *(const uint32_t *)now)
			fprintf(out, " %s%s %s", setting->name, suffix, units_format_share(*(const uint32_t *)now, text));
	}
}

static bool ways_are_alike(const struct lab_settings *settings)
{
	const struct lab_faults *from = &settings->faults[LAB_FROM], *to = &settings->faults[LAB_TO];
	bool alike = from->cut == to->cut;
	for (size_t i = 0; i < TABLE_COUNT && alike; i++) {
		const struct setting *setting = &table[i];
		const char *here = (const char *)from + setting->offset, *there = (const char *)to + setting->offset;
		if (setting->kind == TIME)
			alike = *(const uint64_t *)here == *(const uint64_t *)there;
		else if (setting->kind == SHARE)
			alike = *(const uint32_t *)here == *(const uint32_t *)there;
	}
	return alike;
}

const char *lab_settings_text(const struct lab_settings *settings, const struct lab_settings *made,
                              char text[LAB_SETTINGS_TEXT])
{
	char rate[UNITS_TEXT];
	FILE *out = fmemopen(text, LAB_SETTINGS_TEXT, "w");
	if (!out)
		return strcpy(text, "?");
	if (settings->rate != made->rate)
		fprintf(out, " rate %s", units_format_rate(settings->rate, rate));
	if (ways_are_alike(settings)) {
		put_way(out, settings, made, LAB_FROM, "");
	} else {
		put_way(out, settings, made, LAB_FROM, "(from)");
		put_way(out, settings, made, LAB_TO, "(to)");
	}
	if (settings->background)
		fprintf(out, " background %u", settings->background);
	if (settings->down)
		fputs(" down", out);
	fputc('\0', out);
	fclose(out);
	text[LAB_SETTINGS_TEXT - 1] = '\0';
	if (text[0] == '\0')
		return strcpy(text, "-");
	memmove(text, text + 1, strlen(text));
	return text;
}
