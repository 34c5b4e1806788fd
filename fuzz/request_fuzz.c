/*
 * request_fuzz.c - what somebody asks a rank: a path is a short text that begins with a slash, and more bytes never unsay it.
 */
#include "fuzz.h"

#include <string.h>

#include "node/observe/status_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[REQUEST_PATH] = "";
	enum request_verdict verdict = request_parse((const char *)data, size, path);

	if (verdict == REQUEST_GET || verdict == REQUEST_OTHER) {
		FUZZ_CHECK(path[0] == '/' && strnlen(path, sizeof(path)) < sizeof(path));
		for (const char *c = path; *c; c++)
			FUZZ_CHECK((unsigned char)*c > ' ' && *c != 0x7f);
	}
	FUZZ_CHECK(verdict != REQUEST_UNFINISHED || size < REQUEST_BYTES);
	return 0;
}
