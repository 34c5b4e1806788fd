/*
 * conf_fuzz.c - the settings file: whatever it holds, every setting stays within its bounds.
 */
#include "fuzz.h"

#include <string.h>

#include "base/conf.h"

static void complain(void *context, const struct error *complaint)
{
	unsigned *complaints = context;
	++*complaints;
	FUZZ_CHECK(complaint->status != ESP_OK);
	FUZZ_CHECK(complaint->text[0] != '\0');
	for (const char *c = complaint->text; *c; c++)
		FUZZ_CHECK(*c >= 0x20 && *c < 0x7f);
}

/* Without the code that has just set them. */
static void check_bounds(const struct conf *conf, const struct conf_setting *setting)
{
	const void *field = (const char *)conf + setting->offset;
	if (setting->type != CONF_BYTES && setting->type != CONF_UINT)
		return;
	uint64_t value = setting->type == CONF_BYTES ? *(const uint64_t *)field : *(const uint32_t *)field;
	bool is_left_to_us = value == 0 && strcmp(setting->fallback, "0") == 0;
	FUZZ_CHECK(is_left_to_us || (value >= setting->min && value <= setting->max));
}

/* A value must read back from the text that is shown for it. */
static void check_round_trip(const struct conf *conf)
{
	struct conf again;
	char text[CONF_VALUE_TEXT], again_text[CONF_VALUE_TEXT];
	conf_init(&again);
	for (size_t i = 0; i < CONF_COUNT; i++) {
		const char *name = conf_setting_at(i)->name;
		check_bounds(conf, conf_setting_at(i));
		conf_value_text(conf, i, text);
		FUZZ_CHECK(conf_set(&again, name, strlen(name), text, strlen(text), conf->origins[i], NULL) == ESP_OK);
		FUZZ_CHECK(strcmp(conf_value_text(&again, i, again_text), text) == 0);
		FUZZ_CHECK(conf->origins[i] == CONF_DEFAULT || conf->origins[i] == CONF_FILE);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct conf conf;
	unsigned complaints = 0;
	conf_init(&conf);
	struct error refusal;
	if (conf_decode(&conf, (const char *)data, size, "fuzz", complain, &complaints, &refusal) != ESP_OK)
		complain(&complaints, &refusal);
	FUZZ_CHECK(complaints <= 21);
	check_round_trip(&conf);
	return 0;
}
