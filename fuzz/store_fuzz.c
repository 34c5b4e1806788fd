/*
 * store_fuzz.c - messages of joining: what decodes encodes to the same bytes, and can be printed.
 */
#include "fuzz.h"

#include <string.h>

#include "wire/store_msg.h"

static void check_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	FUZZ_CHECK(length < size);
	for (size_t i = 0; i < length; i++)
		FUZZ_CHECK(text[i] >= 0x20 && text[i] < 0x7f);
}

static void as_arrival(const uint8_t *data)
{
	uint8_t again[STORE_ARRIVAL_BYTES];
	struct store_arrival arrival;

	if (!store_arrival_decode(data, &arrival))
		return;
	FUZZ_CHECK(arrival.card.rank < arrival.card.size && arrival.card.address_count <= CARD_ADDRESSES);
	check_text(arrival.card.host_name, CARD_HOST_NAME);
	check_text(arrival.settings, STORE_SETTINGS_TEXT);
	check_text(arrival.job, STORE_JOB_TEXT);
	store_arrival_encode(&arrival, again);
	FUZZ_CHECK(memcmp(data, again, sizeof(again)) == 0);
}

static void as_failure(const uint8_t *data)
{
	uint8_t again[STORE_FAILURE_BYTES];
	struct store_failure failure;

	if (!store_failure_decode(data, &failure))
		return;
	FUZZ_CHECK(failure.status < 0);
	check_text(failure.text, STORE_FAILURE_TEXT);
	store_failure_encode(&failure, again);
	FUZZ_CHECK(memcmp(data, again, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[STORE_HEAD_BYTES];
	struct store_head head;

	if (size < STORE_HEAD_BYTES || !store_head_decode(data, &head))
		return 0;
	store_head_encode(&head, again);
	FUZZ_CHECK(memcmp(data, again, sizeof(again)) == 0);
	data += STORE_HEAD_BYTES;
	size -= STORE_HEAD_BYTES;
	if (head.type == STORE_ARRIVAL && size >= STORE_ARRIVAL_BYTES)
		as_arrival(data);
	if ((head.type == STORE_FAILURE || head.type == STORE_AWAY) && size >= STORE_FAILURE_BYTES)
		as_failure(data);
	return 0;
}
