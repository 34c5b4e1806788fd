/*
 * frame_fuzz.c - frames from a stranger: what decodes encodes to the same bytes.
 */
#include "fuzz.h"

#include <string.h>

#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (; size >= FRAME_BYTES; data += FRAME_BYTES, size -= FRAME_BYTES) {
		uint8_t again[FRAME_BYTES];
		struct frame frame;

		if (!frame_decode(data, &frame))
			continue;
		FUZZ_CHECK(frame.type == FRAME_DATA || frame.bytes == 0);
		frame_encode(&frame, again);
		FUZZ_CHECK(memcmp(data, again, FRAME_BYTES) == 0);
	}
	return 0;
}
