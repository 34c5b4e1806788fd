/*
 * hub_msg_fuzz.c - control messages of a parameter hub: what decodes encodes to the same bytes.
 */
#include "fuzz.h"

#include <string.h>

#include "wire/hub_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t again[HUB_MSG_MOST];
	struct hub_msg msg;
	size_t used = 0;

	while (size > 0 && hub_msg_decode(data, size, &msg, &used) == HUB_MSG_WHOLE) {
		FUZZ_CHECK(used > 0 && used <= size && used <= HUB_MSG_MOST);
		FUZZ_CHECK(hub_msg_encode(&msg, again) == used && memcmp(again, data, used) == 0);
		data += used;
		size -= used;
	}
	return 0;
}
