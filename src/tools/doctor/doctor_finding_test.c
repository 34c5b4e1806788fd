#include "tools/doctor/doctor_finding.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"

static void merged(void)
{
	struct doctor_findings all = {0};
	struct doctor_finding one = {.verdict = DOCTOR_WARN, .check = "cores", .what = "2 cores for 4 ranks",
	                             .advice = "fewer"};
	struct doctor_finding other = one;
	char host[24];

	snprintf(other.what, sizeof(other.what), "3 cores for 4 ranks");
	doctor_merge(&all, &one, "a");
	doctor_merge(&all, &other, "b");
	doctor_merge(&all, &one, "c");
	CHECK_U64(all.count, 2);
	CHECK_STR(all.list[0].hosts, "a, c");
	CHECK_STR(all.list[1].hosts, "b");
	for (unsigned i = 0; i < 100; i++) {
		snprintf(host, sizeof(host), "host-number-%u", i);
		doctor_merge(&all, &one, host);
	}
	CHECK_U64(all.count, 2);
	CHECK(strlen(all.list[0].hosts) < DOCTOR_HOSTS &&
	      strcmp(all.list[0].hosts + strlen(all.list[0].hosts) - 5, ", ...") == 0);
	CHECK_U64(doctor_worst(&all), DOCTOR_WARN);
	doctor_say(&all, DOCTOR_FAIL, "reach", "%s", "nobody");
	CHECK_U64(doctor_worst(&all), DOCTOR_FAIL);
	doctor_findings_fini(&all);
	CHECK_U64(doctor_worst(&all), DOCTOR_OK);
}

static void check_printed(const struct doctor_findings *all, const char *wanted)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	CHECK(out);
	CHECK(doctor_print(all, out) == ESP_OK && fclose(out) == 0);
	CHECK_STR(text, wanted);
	free(text);
}

static void printed(void)
{
	struct doctor_findings all = {0};

	doctor_say(&all, DOCTOR_OK, "kernel", "Linux");
	doctor_merge(&all, &(struct doctor_finding){.verdict = DOCTOR_WARN, .check = "cores", .what = "few",
	                                            .advice = "buy more"}, "a");
	check_printed(&all, "OK    kernel          Linux\n"
	                    "WARN  cores           a: few\n"
	                    "                      do: buy more\n"
	                    "\n1 ok, 1 warning, 0 failures\n");
	doctor_findings_fini(&all);
	doctor_say(&all, DOCTOR_FAIL, "reach", "nobody");
	check_printed(&all, "FAIL  reach           nobody\n"
	                    "\n0 ok, 0 warnings, 1 failure\n");
	doctor_findings_fini(&all);
}

static void on_the_wire(struct rng *rng)
{
	uint8_t bytes[DOCTOR_FINDING_BYTES], again[DOCTOR_FINDING_BYTES];
	struct doctor_finding one = {.verdict = (uint8_t)rng_below(rng, 3)}, back;

	for (uint64_t i = rng_below(rng, DOCTOR_WHAT); i > 0; i--)
		one.what[i - 1] = (char)(0x20 + rng_below(rng, 0x5f));
	for (uint64_t i = rng_below(rng, DOCTOR_CHECK); i > 0; i--)
		one.check[i - 1] = (char)(0x20 + rng_below(rng, 0x5f));
	doctor_finding_encode(&one, bytes);
	CHECK(doctor_finding_decode(bytes, &back));
	CHECK(back.verdict == one.verdict && strcmp(back.what, one.what) == 0 && strcmp(back.check, one.check) == 0);
	bytes[rng_below(rng, sizeof(bytes))] = (uint8_t)rng_next(rng);
	if (doctor_finding_decode(bytes, &back)) {
		doctor_finding_encode(&back, again);
		CHECK(memcmp(again, bytes, sizeof(bytes)) == 0);
	}
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	merged();
	printed();
	for (unsigned i = 0; i < 1000; i++)
		on_the_wire(&rng);
	return 0;
}
