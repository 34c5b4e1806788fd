#include "base/status.h"

#include "base/check.h"
#include "base/error.h"

static void test_status(void)
{
	CHECK_STR(status_name(ESP_OK), "ESP_OK");
	CHECK_STR(status_name(ESP_EINVAL), "ESP_EINVAL");
	CHECK_STR(status_name(ESP_EABORTED), "ESP_EABORTED");
	CHECK_STR(status_text(ESP_ETIMEOUT), "a deadline passed");
	CHECK_STR(status_name((enum esp_status)-9999), "ESP_UNKNOWN");
}

static void test_error(void)
{
	struct error err;
	CHECK(error_set(&err, ESP_EINVAL, "a ring needs %u nodes", 2u) == ESP_EINVAL);
	CHECK(err.status == ESP_EINVAL);
	CHECK_STR(err.text, "a ring needs 2 nodes");
	CHECK(error_set(NULL, ESP_ENOMEM, "nobody listens") == ESP_ENOMEM);

	char longer[1000];
	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	CHECK(error_set(&err, ESP_EIO, "%s", longer) == ESP_EIO);
	CHECK_U64(strlen(err.text), sizeof err.text - 1);

	error_clear(&err);
	CHECK(err.status == ESP_OK);
	CHECK_STR(err.text, "");
}

int main(void)
{
	test_status();
	test_error();
	return 0;
}
