/*
 * api_test.c - the public interface, through libespalier.so as a program sees it.
 */
#include <espalier/espalier.h>

#include "base/check.h"

static void test_version(void)
{
	char header[32];
	snprintf(header, sizeof header, "%d.%d.%d", ESP_VERSION_MAJOR, ESP_VERSION_MINOR, ESP_VERSION_PATCH);
	CHECK_STR(ESP_VERSION_STRING, header);
	CHECK_STR(esp_version(), header);
	CHECK_STR(esp_version(), PROJECT_VERSION); /* the one that meson knows */
}

static void test_names(void)
{
	CHECK_STR(esp_status_name(ESP_EPEER), "ESP_EPEER");
	CHECK_STR(esp_status_text(ESP_EPEER), "a peer died or was excluded");
	CHECK_STR(esp_type_name(ESP_BF16), "bf16");
	CHECK_STR(esp_type_name((enum esp_type)99), NULL);
	CHECK_STR(esp_op_name(ESP_SUM), "sum");
	CHECK_STR(esp_op_name((enum esp_op) - 1), NULL);
	CHECK_U64(esp_type_bytes(ESP_F64), 8);
	CHECK_U64(esp_type_bytes(ESP_BYTES), 1);
	CHECK_U64(esp_type_bytes((enum esp_type)99), 0);
	for (int type = 0; type < ESP_TYPE_COUNT; type++)
		CHECK(esp_type_name((enum esp_type)type) && esp_type_bytes((enum esp_type)type) > 0);
	for (int op = 0; op < ESP_OP_COUNT; op++)
		CHECK(esp_op_name((enum esp_op)op));
}

static void test_reduce(void)
{
	const float a[] = {1, 2, 3};
	float b[] = {10, 20, 30};
	float sum[3] = {0};
	CHECK(esp_reduce_local(sum, a, b, 3, ESP_F32, ESP_SUM) == ESP_OK);
	CHECK(sum[0] == 11 && sum[1] == 22 && sum[2] == 33);
	CHECK(esp_reduce_local(b, a, b, 3, ESP_F32, ESP_MAX) == ESP_OK); /* in place */
	CHECK(b[0] == 10 && b[2] == 30);
	CHECK(esp_reduce_local(sum, a, b, 2, ESP_F32, ESP_AVG) == ESP_OK); /* adds */
	CHECK(sum[0] == 11 && sum[2] == 33);

	const char bytes[] = {0, 1, 0, 0, 0, 2, 0, 0, 0};
	char odd[9] = {0};
	const char *one = bytes + 1;
	CHECK(esp_reduce_local(odd + 1, one, one, 2, ESP_U32, ESP_SUM) == ESP_OK); /* nothing is aligned */
	CHECK(odd[1] == 2 && odd[5] == 4);
}

static void test_refusals(void)
{
	float buffer[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	const float other[4] = {0};
	CHECK(esp_reduce_local(NULL, NULL, NULL, 0, ESP_F32, ESP_SUM) == ESP_OK);
	CHECK(esp_reduce_local(NULL, other, other, 1, ESP_F32, ESP_SUM) == ESP_EINVAL);
	CHECK(esp_reduce_local(buffer, NULL, other, 1, ESP_F32, ESP_SUM) == ESP_EINVAL);
	CHECK(esp_reduce_local(buffer, other, NULL, 1, ESP_F32, ESP_SUM) == ESP_EINVAL);
	CHECK(esp_reduce_local(buffer, other, other, 1, (enum esp_type)99, ESP_SUM) == ESP_EINVAL);
	CHECK(esp_reduce_local(buffer, other, other, 1, (enum esp_type) - 1, ESP_SUM) == ESP_EINVAL);
	CHECK(esp_reduce_local(buffer, other, other, 1, ESP_F32, (enum esp_op)99) == ESP_EINVAL);
	CHECK(esp_reduce_local(buffer, other, other, 1, ESP_F32, ESP_BAND) == ESP_EUNSUPPORTED);
	CHECK(esp_reduce_local(buffer, other, other, 1, ESP_BYTES, ESP_SUM) == ESP_EUNSUPPORTED);
	CHECK(esp_reduce_local(buffer, other, other, UINT64_MAX / 2, ESP_F32, ESP_SUM) == ESP_EINVAL);
	CHECK(esp_reduce_local(buffer, other, other, UINT64_MAX / 4, ESP_F32, ESP_SUM) == ESP_EINVAL);
	CHECK(esp_reduce_local(buffer + 1, buffer, other, 4, ESP_F32, ESP_SUM) == ESP_EINVAL);
	CHECK(esp_reduce_local(buffer, other, buffer + 3, 4, ESP_F32, ESP_SUM) == ESP_EINVAL);
	CHECK(buffer[0] == 1 && buffer[1] == 2);
	CHECK(esp_reduce_local(buffer, other, buffer + 4, 4, ESP_F32, ESP_SUM) == ESP_OK);
	CHECK(buffer[0] == 5);
}

int main(void)
{
	test_version();
	test_names();
	test_reduce();
	test_refusals();
	return 0;
}
