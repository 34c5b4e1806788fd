/*
 * lab_ask_fuzz.c - what a lab's keeper is asked to set: words from a message to settings of a link, and back.
 *
 * Input: kind, flag, then the words.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "tools/lab/ask.h"

static struct lab *make_lab(void)
{
	const struct lab_config config = {.name = "fuzz", .racks = 2, .hosts = 2, .rails = 2, .rate = {1000000, 2000000},
	                                  .oversubscribe = 2, .mtu = 1500, .seed = 1};
	struct lab *lab = malloc(lab_bytes(&config));
	FUZZ_CHECK(lab);
	lab_init(lab, &config);
	return lab;
}

/* What is shown for settings sets them again. */
static void check_round_trip(const struct lab_settings *settings, const struct lab_settings *made)
{
	char text[LAB_SETTINGS_TEXT], again_text[LAB_SETTINGS_TEXT], *words[ASK_WORDS], *rest = text, *word;
	struct lab_settings again = *made;
	struct error err;
	size_t count = 0;
	lab_settings_text(settings, made, text);
	if (strchr(text, '(') || strcmp(text, "-") == 0)
		return;
	memcpy(again_text, text, sizeof(text));
	while ((word = strsep(&rest, " ")))
		words[count++] = word;
	FUZZ_CHECK(lab_settings_apply(&again, made, LAB_BOTH_WAYS, words, count, &err) == ESP_OK);
	FUZZ_CHECK(strcmp(lab_settings_text(&again, made, text), again_text) == 0);
}

static void set(const struct lab *lab, const struct ask *ask, char *const *words, size_t count)
{
	uint32_t links[16], link_count;
	struct error err;
	if (lab_targets(lab, words[0], links, &link_count, &err) != ESP_OK)
		return;
	FUZZ_CHECK(link_count > 0 && link_count <= lab->link_count);
	for (uint32_t i = 0; i < link_count; i++) {
		FUZZ_CHECK(links[i] < lab->link_count);
		const struct lab_link *link = lab_link(lab, links[i]);
		struct lab_settings settings = link->set;
		if (lab_settings_apply(&settings, &link->made, (enum lab_ways_given)ask->flag, words + 1, count - 1, &err) != ESP_OK)
			FUZZ_CHECK(settings.rate == link->set.rate && settings.background == 0 && !settings.down);
		for (int way = 0; way < LAB_WAYS; way++)
			FUZZ_CHECK(settings.faults[way].loss <= 1000000 && settings.faults[way].delay_ns <= UINT64_C(3600000000000));
		check_round_trip(&settings, &link->made);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lab *lab;
	struct ask ask = {.version = ASK_VERSION, .seconds = 1};
	char *words[ASK_WORDS + 1];
	size_t count;
	if (!lab)
		lab = make_lab();
	if (size < 2 || size - 2 > sizeof(ask.words))
		return 0;
	ask.kind = data[0];
	ask.flag = data[1];
	ask.length = (uint32_t)(size - 2);
	memcpy(ask.words, data + 2, size - 2);
	if (!lab_ask_decode(&ask, sizeof(ask), words, &count))
		return 0;
	FUZZ_CHECK(count <= ASK_WORDS && words[count] == NULL);
	if (ask.kind == ASK_SET && count > 1)
		set(lab, &ask, words, count);
	return 0;
}
