/*
 * probe_report_fuzz.c - what a host says it has measured: what decodes encodes to the same bytes, makes sense, and whatever hosts say, those
 * who are believed have distances.
 */
#include "fuzz.h"

#include <math.h>
#include <string.h>

#include "network/probe/collect.h"

#define HOSTS 4u
#define BYTES (HOSTS * REPORT_ROW_BYTES)

static void put_together(const struct report_row *rows, enum probe_fate *fates)
{
	const struct collect_input input = {HOSTS, rows, true, true, 0.05};
	double latency_at[HOSTS * HOSTS], inverse_at[HOSTS * HOSTS];
	struct matrix latency = {HOSTS, latency_at}, inverse = {HOSTS, inverse_at};
	struct error err;

	for (uint32_t i = 0; i < HOSTS * HOSTS; i++)
		latency_at[i] = inverse_at[i] = i % (HOSTS + 1) == 0 ? 0 : NAN;
	probe_collect_expel(&input, fates);
	probe_collect_distances(&input, fates, &latency, &inverse);
	FUZZ_CHECK(matrix_check(&latency, &err) == ESP_OK && matrix_check(&inverse, &err) == ESP_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct report_row rows[HOSTS * HOSTS];
	enum probe_fate fates[HOSTS] = {0};
	uint8_t bytes[BYTES], again[BYTES];

	/* The input is the report of each host in turn; what is missing is zero. */
	memset(rows, 0, sizeof(rows));
	for (uint32_t host = 0; host < HOSTS; host++) {
		size_t at = (size_t)host * BYTES, n = size > at ? size - at : 0;
		memset(bytes, 0, sizeof(bytes));
		memcpy(bytes, data + (n ? at : 0), n < BYTES ? n : BYTES);
		if (!probe_report_decode(bytes, HOSTS, host, rows + (size_t)host * HOSTS)) {
			fates[host] = PROBE_NONSENSE;
			continue;
		}
		probe_report_encode(rows + (size_t)host * HOSTS, HOSTS, again);
		FUZZ_CHECK(memcmp(bytes, again, BYTES) == 0);
	}
	put_together(rows, fates);
	return 0;
}
