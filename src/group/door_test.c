#include "group/door.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

static enum esp_status parse(const char *text, struct doors *out, struct error *err)
{
	error_clear(err);
	return doors_parse(text, out, err);
}

static void test_good(void)
{
	static const char *const same[] = {"10.0.0.1:7000,[::1]:7001", "10.0.0.1:7000,[::1]:7001,", ",10.0.0.1:7000,,[::1]:7001,,"};
	struct doors doors;
	struct error err;

	for (unsigned i = 0; i < 3; i++) {
		CHECK(parse(same[i], &doors, &err) == ESP_OK);
		CHECK_U64(doors.count, 2);
		CHECK_STR(doors.all[0].host, "10.0.0.1");
		CHECK_U64(doors.all[1].port, 7001);
		CHECK(!doors_are_loopback(&doors));
	}
	CHECK(parse("127.0.0.1:1,[::1]:2", &doors, &err) == ESP_OK && doors_are_loopback(&doors));
}

static void test_bad(void)
{
	char many[DOORS_MOST * 16 + 32] = "", longer[ADDRESS_TEXT + 8];
	struct doors doors;
	struct error err;

	CHECK(parse(",", &doors, &err) == ESP_EINVAL && strstr(err.text, "ESP_DOOR names no door"));
	CHECK(parse("10.0.0.1", &doors, &err) == ESP_EINVAL && strstr(err.text, "ESP_DOOR"));
	CHECK(parse("10.0.0.1:1, 10.0.0.2:1", &doors, &err) == ESP_EINVAL);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CHECK(parse(longer, &doors, &err) == ESP_EINVAL && strstr(err.text, "too long"));
	for (unsigned i = 0; i < DOORS_MOST; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "10.0.0.%u:1,", i);
	CHECK(parse(many, &doors, &err) == ESP_OK && doors.count == DOORS_MOST);
	strcat(many, "10.0.0.99:1");
	CHECK(parse(many, &doors, &err) == ESP_EINVAL && strstr(err.text, "more than"));
}

int main(void)
{
	test_good();
	test_bad();
	return 0;
}
