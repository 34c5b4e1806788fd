/*
 * control_fuzz.c - what ranks tell each other beside the data: what decodes encodes to the same bytes.
 */
#include "fuzz.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/control_msg.h"
#include "wire/crc32c.h"

static void check(const uint8_t bytes[CONTROL_BYTES])
{
	struct control_msg msg;
	uint8_t again[CONTROL_BYTES];

	if (!control_decode(bytes, &msg))
		return;
	FUZZ_CHECK(msg.type != CONTROL_FAILED || (strnlen(msg.failed.text, CONTROL_TEXT) < CONTROL_TEXT && msg.failed.status <= 0));
	control_encode(&msg, again);
	FUZZ_CHECK(memcmp(again, bytes, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t fixed[CONTROL_BYTES];

	if (size < CONTROL_BYTES)
		return 0;
	check(data);
	/* As if it had been sent so: a fuzzer does not find checksums. */
	memcpy(fixed, data, sizeof(fixed));
	bytes_put32(fixed + CONTROL_BYTES - 4, crc32c(0, fixed, CONTROL_BYTES - 4));
	check(fixed);
	return 0;
}
