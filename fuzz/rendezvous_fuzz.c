/*
 * rendezvous_fuzz.c - messages of joining: what decodes encodes to the same bytes, and can be printed.
 */
#include "fuzz.h"

#include <string.h>

#include "wire/rendezvous_msg.h"

static void check_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	FUZZ_CHECK(length < size);
	for (size_t i = 0; i < length; i++)
		FUZZ_CHECK(text[i] >= 0x20 && text[i] < 0x7f);
}

static void as_arrival(const uint8_t *data)
{
	uint8_t again[RENDEZVOUS_ARRIVAL_BYTES];
	struct rendezvous_arrival arrival;

	if (!rendezvous_arrival_decode(data, &arrival))
		return;
	FUZZ_CHECK(arrival.info.rank < arrival.info.size && arrival.info.address_count <= NODE_ADDRESSES);
	check_text(arrival.info.host_name, NODE_INFO_HOST_NAME);
	check_text(arrival.settings, RENDEZVOUS_SETTINGS_TEXT);
	check_text(arrival.job, RENDEZVOUS_JOB_TEXT);
	rendezvous_arrival_encode(&arrival, again);
	FUZZ_CHECK(memcmp(data, again, sizeof(again)) == 0);
}

static void as_failure(const uint8_t *data)
{
	uint8_t again[RENDEZVOUS_FAILURE_BYTES];
	struct rendezvous_failure failure;

	if (!rendezvous_failure_decode(data, &failure))
		return;
	FUZZ_CHECK(failure.status < 0);
	check_text(failure.text, RENDEZVOUS_FAILURE_TEXT);
	rendezvous_failure_encode(&failure, again);
	FUZZ_CHECK(memcmp(data, again, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[RENDEZVOUS_HEAD_BYTES];
	struct rendezvous_head head;

	if (size < RENDEZVOUS_HEAD_BYTES || !rendezvous_head_decode(data, &head))
		return 0;
	rendezvous_head_encode(&head, again);
	FUZZ_CHECK(memcmp(data, again, sizeof(again)) == 0);
	data += RENDEZVOUS_HEAD_BYTES;
	size -= RENDEZVOUS_HEAD_BYTES;
	if (head.type == RENDEZVOUS_ARRIVAL && size >= RENDEZVOUS_ARRIVAL_BYTES)
		as_arrival(data);
	if ((head.type == RENDEZVOUS_FAILURE || head.type == RENDEZVOUS_AWAY) && size >= RENDEZVOUS_FAILURE_BYTES)
		as_failure(data);
	return 0;
}
