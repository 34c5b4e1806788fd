#include "node/observe/metrics.h"

#include <stdlib.h>

#include "base/check.h"

/* As strict as a scraper: every line is a comment or NAME{LABELS} NUMBER, and a # TYPE line precedes each name. */
static void check_lines(char *text)
{
	char type[64] = "";
	CHECK(text[strlen(text) - 1] == '\n');
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char name[64], labels[256], end;
		double value;
		if (sscanf(line, "# TYPE %63s", type) == 1 || strncmp(line, "# HELP ", 7) == 0)
			continue;
		CHECK_MSG(sscanf(line, "%63[a-z_]{%255[^}]} %lf%c", name, labels, &value, &end) == 3, "%s", line);
		CHECK_MSG(strncmp(name, type, strlen(type)) == 0, "%s under %s", line, type);
	}
}

int main(void)
{
	struct tally *tally = calloc(1, sizeof(*tally));
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	CHECK(tally && out);
	struct record record = {.note.sequence = 1, .started_ns = 0, .ended_ns = 1024, .bytes = 4096, .members = 2};
	tally_add(tally, &record);
	record.ended_ns = 5000000;
	record.waited_ns = 2500000;
	tally_add(tally, &record);
	struct metrics metrics = {.version = "1.2",
	                          .job = "a\"b\\c\nd",
	                          .host = "node7",
	                          .rank = 3,
	                          .size = 8,
	                          .tally = tally,
	                          .sent_bytes = UINT64_MAX,
	                          .oldest_seconds = 0.5};
	CHECK(metrics_write(&metrics, out) == ESP_OK && fclose(out) == 0);
#define BOTH "job=\"a\\\"b\\\\c\\nd\",rank=\"3\""
#define CELL BOTH ",operation=\"allreduce\",size=\"16K\""
	static const char *const lines[] = {
		"\nespalier_info{" BOTH ",ranks=\"8\",host=\"node7\",version=\"1.2\"} 1\n",
		"\nespalier_call_seconds_bucket{" CELL ",le=\"0.000001024\"} 1\n",
		"\nespalier_call_seconds_bucket{" CELL ",le=\"0.004194304\"} 1\n",
		"\nespalier_call_seconds_bucket{" CELL ",le=\"0.016777216\"} 2\n",
		"\nespalier_call_seconds_bucket{" CELL ",le=\"+Inf\"} 2\n",
		"\nespalier_call_seconds_sum{" CELL "} 0.005001024\n",
		"\nespalier_call_seconds_count{" CELL "} 2\n",
		"\nespalier_call_wait_seconds_total{" CELL "} 0.0025\n",
		"\nespalier_call_bytes_total{" CELL "} 8192\n",
		"\nespalier_call_failures_total{" CELL "} 0\n",
		"\nespalier_sent_bytes_total{" BOTH "} 18446744073709551615\n",
		"\nespalier_oldest_call_seconds{" BOTH "} 0.5\n",
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		CHECK_MSG(strstr(text, lines[i]), "no%s in\n%s", lines[i], text);
	CHECK(!strstr(text, "broadcast"));
	check_lines(text);
	free(text);
	free(tally);
	return 0;
}
