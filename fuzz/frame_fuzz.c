/*
 * frame_fuzz.c - frames from a stranger: what decodes encodes to the same bytes.
 */
#include "fuzz.h"

#include <string.h>

#include "wire/crc32c.h"
#include "wire/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (; size >= FRAME_BYTES; data += FRAME_BYTES, size -= FRAME_BYTES) {
		uint8_t sealed[FRAME_BYTES], again[FRAME_BYTES];
		struct frame frame;

		/* Nobody guesses a checksum: it is put right, so that what lies behind it is reached. */
		memcpy(sealed, data, FRAME_BYTES);
		uint32_t crc = crc32c(0, sealed, FRAME_BYTES - 4);
		for (unsigned i = 0; i < 4; i++)
			sealed[FRAME_BYTES - 4 + i] = (uint8_t)(crc >> 8 * i);
		if (!frame_decode(sealed, &frame))
			continue;
		FUZZ_CHECK(frame.type == FRAME_DATA || (frame.bytes == 0 && frame.call == 0 && frame.type <= FRAME_COUNT));
		frame_encode(&frame, again);
		FUZZ_CHECK(memcmp(sealed, again, FRAME_BYTES) == 0);
	}
	return 0;
}
