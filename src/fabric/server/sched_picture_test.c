#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "fabric/server/sched_picture.h"

static char *draw(const struct sched_picture *picture, const char *job, uint32_t workers)
{
	char *text = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);

	CHECK(file);
	sched_picture_draw(picture, job, workers, file);
	CHECK(fclose(file) == 0);
	return text;
}

/* Each tag is closed by its own name, in the right order; no character is left that has a meaning in markup. */
static bool is_well_formed(const char *text)
{
	char open[32][32];
	uint32_t depth = 0, roots = 0;

	for (const char *at = text; (at = strchr(at, '<')); at++) {
		const char *end = strchr(at, '>'), *next = strchr(at + 1, '<');
		size_t length = strcspn(at + 1, " >/");

		if (!end || (next && next < end) || length >= sizeof(open[0]))
			return false;
		if (at[1] == '/') {
			length = (size_t)(end - at) - 2;
			if (depth == 0 || strlen(open[depth - 1]) != length || strncmp(open[depth - 1], at + 2, length) != 0)
				return false;
			depth--;
			continue;
		}
		roots += depth == 0;
		if (end[-1] == '/')
			continue;
		if (depth == 32)
			return false;
		snprintf(open[depth++], sizeof(open[0]), "%.*s", (int)length, at + 1);
	}
	return depth == 0 && roots == 1;
}

static struct sched_decision sent(uint32_t worker, uint64_t position)
{
	return (struct sched_decision){.worker = worker, .end = LEDGER_APPLIED, .position = position, .start_ns = 2000000,
	                               .rate = 1000000, .aggregator = SCHED_ALONE};
}

/* One by itself, a sum of two at worker 2, a chain from worker 3 to 4, one that is dropped, one without an update. */
static void test_batch(void)
{
	static struct sched_picture picture;
	struct sched_decision rows[] = {sent(0, 1), sent(1, 2), sent(2, 3), sent(3, 4), sent(4, 5),
	                                {.worker = 5, .end = LEDGER_LATE}};

	rows[1].bundle = rows[2].bundle = 7;
	rows[1].aggregator = rows[2].aggregator = 2;
	rows[3].bundle = rows[4].bundle = 8;
	rows[3].aggregator = rows[4].aggregator = 4;
	rows[3].is_chain = rows[4].is_chain = true;
	rows[3].next_hop = 4;
	rows[4].next_hop = SCHED_HUB;
	for (uint32_t i = 0; i < 6; i++)
		sched_picture_add(&picture, 12, &rows[i], 50000);
	char *text = draw(&picture, "a<b & c", 7);
	CHECK(is_well_formed(text));
	for (uint32_t worker = 0; worker < 7; worker++) {
		char name[32];
		snprintf(name, sizeof(name), ">worker %u<", worker);
		CHECK(strstr(text, name));
	}
	CHECK(strstr(text, "a&lt;b &amp; c") && strstr(text, ">hub<"));
	CHECK(strstr(text, "batch 12: 6 updates, 5 sent"));
	CHECK(strstr(text, ">1. to the hub at 1.000 MB/s<"));
	CHECK(strstr(text, ">2. to worker 2 at 1.000 MB/s, sum 7<"));
	CHECK(strstr(text, ">3. to the hub at 1.000 MB/s, sum 7 (adds)<"));
	CHECK(strstr(text, ">4. to worker 4 at 1.000 MB/s, sum 8<"));
	CHECK(strstr(text, ">5. to the hub at 1.000 MB/s, sum 8 (adds)<"));
	CHECK(strstr(text, ">dropped: late at source<"));
	free(text);
}

/* A decision of another batch begins anew; before any, the picture has the workers alone. */
static void test_batches(void)
{
	static struct sched_picture picture;
	const struct sched_decision one = sent(0, 1), two = sent(1, 2);

	char *text = draw(&picture, "job", 2);
	CHECK(is_well_formed(text) && strstr(text, "no batch was decided yet") && strstr(text, ">worker 1<"));
	free(text);
	sched_picture_add(&picture, 1, &one, 50000);
	sched_picture_add(&picture, 2, &two, 50000);
	text = draw(&picture, "job", 2);
	CHECK(picture.count == 1 && strstr(text, "batch 2: 1 updates, 1 sent") && !strstr(text, ">1. to"));
	free(text);
}

int main(void)
{
	test_batch();
	test_batches();
	return 0;
}
