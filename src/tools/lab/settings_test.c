#include "tools/lab/lab.h"

#include "base/check.h"

static const struct lab_settings made = {.rate = 1000000000, .faults = {{.hold_ns = 2000000}, {.hold_ns = 2000000}}};

/* Words with blanks between them. */
static enum esp_status apply(struct lab_settings *settings, enum lab_ways_given ways, const char *text,
                             struct error *err)
{
	char copy[256], *words[32], *rest = copy, *word;
	size_t count = 0;
	snprintf(copy, sizeof(copy), "%s", text);
	while ((word = strsep(&rest, " ")))
		if (word[0])
			words[count++] = word;
	return lab_settings_apply(settings, &made, ways, words, count, err);
}

static void check_text(const char *words, enum lab_ways_given ways, const char *expected)
{
	char text[LAB_SETTINGS_TEXT];
	struct lab_settings settings = made;
	struct error err;
	CHECK_MSG(apply(&settings, ways, words, &err) == ESP_OK, "%s: %s", words, err.text);
	CHECK_STR(lab_settings_text(&settings, &made, text), expected);
}

static void test_good(void)
{
	check_text("rate 200mbit", LAB_BOTH_WAYS, "rate 200mbit");
	check_text("cut", LAB_BOTH_WAYS, "cut");
	check_text("cut", LAB_ONLY_TO, "cut(to)");
	check_text("delay 5ms jitter 1ms loss 0.1%", LAB_BOTH_WAYS, "loss 0.1% delay 5ms jitter 1ms");
	check_text("reorder 5% hold 1ms duplicate 1% corrupt 0.01%", LAB_ONLY_FROM,
	           "reorder(from) 5% hold(from) 1ms duplicate(from) 1% corrupt(from) 0.01%");
	check_text("background 4 down", LAB_BOTH_WAYS, "background 4 down");
	check_text("down up", LAB_BOTH_WAYS, "-");
	check_text("rate 200mbit delay 5ms cut down background 2 heal", LAB_BOTH_WAYS, "-");
	check_text("rate 200mbit heal loss 2%", LAB_BOTH_WAYS, "loss 2%");
	check_text("delay 5ms delay 0", LAB_BOTH_WAYS, "-");
}

/* Healing one direction leaves the other and the link's own settings unchanged. */
static void test_heal_one_way(void)
{
	char text[LAB_SETTINGS_TEXT];
	struct lab_settings settings = made;
	struct error err;
	CHECK(apply(&settings, LAB_BOTH_WAYS, "cut rate 10mbit", &err) == ESP_OK);
	CHECK(apply(&settings, LAB_ONLY_FROM, "heal", &err) == ESP_OK);
	CHECK_STR(lab_settings_text(&settings, &made, text), "rate 10mbit cut(to)");
}

/* An error anywhere changes nothing. */
static void test_bad(void)
{
	static const char *const bad[] = {"", "rate", "rate 5", "loss 1", "delay 5", "fast", "cut 1", "background 257",
	                                  "delay 5ms loss", "delay 5ms lost 1%", "loss 101%", "background -1"};
	struct error err;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[LAB_SETTINGS_TEXT];
		struct lab_settings settings = made;
		CHECK_MSG(apply(&settings, LAB_BOTH_WAYS, bad[i], &err) == ESP_EINVAL, "'%s' was taken", bad[i]);
		CHECK_STR(lab_settings_text(&settings, &made, text), "-");
	}
	struct lab_settings same = made;
	CHECK(apply(&same, LAB_BOTH_WAYS, "dely 5ms", &err) == ESP_EINVAL);
	CHECK_STR(err.text, "'dely' cannot be set; did you mean 'delay'?");
	CHECK(apply(&same, LAB_BOTH_WAYS, "frobnicate", &err) == ESP_EINVAL);
	CHECK_STR(err.text, "'frobnicate' cannot be set, but these can: rate, cut, loss, delay, jitter, reorder, hold, "
	                    "duplicate, corrupt, background, down, up, heal");
	static const char *const whole[] = {"rate 5mbit", "down", "up", "background 1"};
	for (size_t i = 0; i < sizeof(whole) / sizeof(whole[0]); i++) {
		struct lab_settings settings = made;
		CHECK_MSG(apply(&settings, LAB_ONLY_FROM, whole[i], &err) == ESP_EINVAL, "'%s' was taken one way", whole[i]);
	}
}

static void test_needs(void)
{
	static const struct {
		const char *words;
		bool relay, packets;
	} rows[] = {{"rate 5mbit", false, false}, {"cut", false, false},       {"down", false, false},
	            {"background 1", false, false}, {"loss 1%", false, true},  {"delay 1ms", true, true},
	            {"jitter 1ms", true, true},   {"reorder 1%", true, true},  {"duplicate 1%", true, true},
	            {"corrupt 1%", true, true},   {"hold 5ms", false, false}};
	struct error err;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct lab_settings settings = made;
		CHECK(apply(&settings, LAB_BOTH_WAYS, rows[i].words, &err) == ESP_OK);
		CHECK_MSG(lab_needs_relay(&settings) == rows[i].relay, "%s", rows[i].words);
		CHECK_MSG(lab_needs_packets(&settings) == rows[i].packets, "%s", rows[i].words);
	}
}

int main(void)
{
	test_good();
	test_heal_one_way();
	test_bad();
	test_needs();
	return 0;
}
