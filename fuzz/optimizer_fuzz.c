/*
 * optimizer_fuzz.c - optimizers of a parameter hub, as text ('t' and the text) and as bytes ('b' and the bytes): what is
 * taken prints and encodes to what gives the same optimizer again.
 */
#include "fuzz.h"

#include <string.h>

#include "math/optimizer.h"

#define TEXT_MOST 400u

static void check_again(const struct optimizer *optimizer)
{
	char text[OPTIMIZER_TEXT];
	uint8_t bytes[OPTIMIZER_BYTES];
	struct optimizer back;
	struct error err;

	FUZZ_CHECK(optimizer_check(optimizer, &err) == ESP_OK);
	FUZZ_CHECK(optimizer_parse(optimizer_print(optimizer, text), &back, &err) == ESP_OK);
	FUZZ_CHECK(optimizer_equal(optimizer, &back));
	optimizer_encode(optimizer, bytes);
	FUZZ_CHECK(optimizer_decode(bytes, &back) && optimizer_equal(optimizer, &back));
	FUZZ_CHECK(optimizer_states(optimizer) <= OPTIMIZER_STATES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[TEXT_MOST + 1] = "";
	struct optimizer optimizer;
	struct error err;

	if (size == 0 || size - 1 > TEXT_MOST)
		return 0;
	if (data[0] == 'b' && size == 1 + OPTIMIZER_BYTES && optimizer_decode(data + 1, &optimizer))
		check_again(&optimizer);
	memcpy(text, data + 1, size - 1);
	if (data[0] == 't' && optimizer_parse(text, &optimizer, &err) == ESP_OK)
		check_again(&optimizer);
	return 0;
}
