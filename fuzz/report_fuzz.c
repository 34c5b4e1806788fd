/*
 * report_fuzz.c - what a rank of espalier doctor tells rank 0: what decodes encodes to the same bytes.
 */
#include "fuzz.h"

#include <string.h>

#include "tools/doctor/doctor_pair.h"

#define RANKS 2u
#define BYTES_MOST 65536u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[BYTES_MOST], again[BYTES_MOST];
	static struct doctor_way ways[RANKS * NODE_ADDRESSES];
	static struct doctor_report report;
	uint32_t length = doctor_report_bytes(RANKS);

	/* Few bytes reach few fields: they are spread over the front, as the rest of a report is mostly zero. */
	FUZZ_CHECK(length <= BYTES_MOST);
	memset(bytes, 0, length);
	memcpy(bytes, data, size < length ? size : length);
	report.ways = ways;
	if (!doctor_report_decode(bytes, RANKS, &report))
		return 0;
	FUZZ_CHECK(report.finding_count <= DOCTOR_REPORT_FINDINGS);
	for (uint32_t i = 0; i < report.finding_count; i++)
		FUZZ_CHECK(report.findings[i].verdict <= DOCTOR_FAIL && memchr(report.findings[i].what, '\0', DOCTOR_WHAT));
	doctor_report_encode(&report, RANKS, again);
	FUZZ_CHECK(memcmp(bytes, again, length) == 0);
	return 0;
}
