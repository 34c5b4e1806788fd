#include "base/pattern.h"

#include "base/check.h"

static char got[32];
static struct error err;

static enum esp_status expand(const char *pattern)
{
	static const struct pattern_values values = {.host = "node7", .job = "a/../b", .rank = 3, .pid = 1234};
	return pattern_expand(pattern, &values, got, sizeof got, &err);
}

static void check(const char *pattern, const char *expected)
{
	CHECK(expand(pattern) == ESP_OK);
	CHECK_STR(got, expected);
}

int main(void)
{
	check("", "");
	check("/tmp/log", "/tmp/log");
	check("%h-%p/%r%%.log", "node7-1234/3%.log");
	check("%j", "a_.._b"); /* a job's name is no path */
	CHECK(expand("%x") == ESP_EINVAL && got[0] == '\0');
	CHECK(strstr(err.text, "h (host)"));
	CHECK(expand("50%") == ESP_EINVAL && got[0] == '\0');
	check("0123456789012345678901234567890", "0123456789012345678901234567890");
	CHECK(expand("01234567890123456789012345678901") == ESP_ELIMIT && got[0] == '\0');
	CHECK(expand("0123456789012345678901234567%p") == ESP_ELIMIT);
	return 0;
}
