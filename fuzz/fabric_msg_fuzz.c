/*
 * fabric_msg_fuzz.c - messages between a worker and the scheduler of its updates: what decodes encodes to the same
 * bytes.
 */
#include "fuzz.h"

#include <string.h>

#include "wire/fabric_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t again[FABRIC_MSG_BYTES];
	struct fabric_msg msg;

	for (; size >= FABRIC_MSG_BYTES && fabric_msg_decode(data, &msg);
	     data += FABRIC_MSG_BYTES, size -= FABRIC_MSG_BYTES) {
		fabric_msg_encode(&msg, again);
		FUZZ_CHECK(memcmp(again, data, FABRIC_MSG_BYTES) == 0);
	}
	return 0;
}
