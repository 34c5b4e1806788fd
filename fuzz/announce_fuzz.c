/*
 * announce_fuzz.c - what hangs in a store under a notice's name: what decodes encodes to the same bytes.
 */
#include "fuzz.h"

#include <string.h>

#include "rank/join/announce.h"

static void check_text(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	FUZZ_CHECK(length < size);
	for (size_t i = 0; i < length; i++)
		FUZZ_CHECK(text[i] >= 0x20 && text[i] < 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct announcement notice;
	char again[ANNOUNCE_BYTES];

	if (!announce_decode((const char *)data, size, &notice))
		return 0;
	FUZZ_CHECK(notice.address_count <= NODE_ADDRESSES);
	FUZZ_CHECK((notice.port != 0) == (notice.address_count > 0) && (notice.port == 0) == (notice.reason[0] != '\0'));
	check_text(notice.host_name, sizeof(notice.host_name));
	check_text(notice.reason, sizeof(notice.reason));
	FUZZ_CHECK(announce_encode(&notice, again) == size);
	FUZZ_CHECK(memcmp(data, again, size) == 0);
	return 0;
}
