#include "rank/join/announce_place.h"

#include "base/check.h"

static struct announce_place place;
static struct error err;

static const char *described(const char *text)
{
	static char out[ANNOUNCE_PLACE_TEXT];
	CHECK_MSG(announce_place_parse(text, "ESP_STORE", &place, &err) == ESP_OK, "%s: %s", text, err.text);
	return announce_place_describe(&place, out);
}

static void good(void)
{
	CHECK_STR(described("file:/shared/run 7"), "file:/shared/run 7");
	CHECK_STR(described("file:///shared"), "file:/shared");
	CHECK_STR(described("redis://db"), "redis://db:6379/0");
	CHECK_STR(described("redis://db/"), "redis://db:6379/0");
	CHECK_STR(described("redis://10.0.0.1:7000/3"), "redis://10.0.0.1:7000/3");
	CHECK_STR(described("redis://[fd00::1]"), "redis://[fd00::1]:6379/0");
	CHECK_STR(described("redis://me:s%40cret%25@[::1]:1/15"), "redis://[::1]:1/15");
	CHECK_STR(place.user, "me");
	CHECK_STR(place.password, "s@cret%");
	CHECK_STR(described("redis://:pass@word@h"), "redis://h:6379/0");
	CHECK_STR(place.user, "");
	CHECK_STR(place.password, "pass@word");
	CHECK_STR(described("redis://secret@h"), "redis://h:6379/0");
	CHECK_STR(place.password, "secret");
}

static void bad(void)
{
	static const char *const texts[] = {
		"", "/shared", "file:", "file:shared", "file://host/shared", "redis:", "redis://", "redis://:1", "redis://h:0",
		"redis://h/x", "redis://h/65536", "redis://@h", "redis://u:@h", "redis://u:%4@h", "redis://u:%00@h",
		"redis://u:%zz@h", "redis://a b", "rediss://h", "http://h",
	};
	char text[2 * ANNOUNCE_PATH];

	place.kind = ANNOUNCE_NOWHERE;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK_MSG(announce_place_parse(texts[i], "ESP_STORE", &place, &err) == ESP_EINVAL, "%s", texts[i]);
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text, "file:/", 6);
	text[sizeof(text) - 1] = '\0';
	CHECK(announce_place_parse(text, "ESP_STORE", &place, &err) == ESP_EINVAL);
	memcpy(text, "redis://:", 9);
	text[300] = '@';
	CHECK(announce_place_parse(text, "ESP_STORE", &place, &err) == ESP_EINVAL);
	CHECK(!strstr(err.text, "xxx")); /* it may be a password */
	CHECK(place.kind == ANNOUNCE_NOWHERE);
}

int main(void)
{
	good();
	bad();
	return 0;
}
