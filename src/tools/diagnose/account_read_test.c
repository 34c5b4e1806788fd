#include "tools/diagnose/account_read.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/rng.h"

static struct account made;

static void draw(struct rng *rng)
{
	static struct account_gone gone[4];
	static struct account_group groups[4];
	static struct account_call calls[20];
	static uint32_t ranks[3] = {5, 0, 2};
	made = (struct account){.job = "a \"job\"", .instance = rng_next(rng), .rank = 1, .size = 6, .pid = 77,
	                        .host = "node7",
	                        .now_ns = rng_below(rng, 1 << 30), .real_ns = rng_next(rng) >> 2, .forgotten = 3,
	                        .gone = gone, .groups = groups, .calls = calls};
	made.gone_count = (uint32_t)rng_below(rng, 5);
	made.group_count = (uint32_t)rng_below(rng, 5);
	made.call_count = (uint32_t)rng_below(rng, 21);
	for (uint32_t i = 0; i < made.gone_count; i++)
		gone[i] = (struct account_gone){i, rng_chance(rng, 1, 2) ? ACCOUNT_LEFT : ACCOUNT_DIED, 17, "n"};
	for (uint32_t i = 0; i < made.group_count; i++) {
		bool failed = rng_chance(rng, 1, 2), some = rng_chance(rng, 1, 2);
		groups[i] = (struct account_group){.channel = 4 * i, .first = some ? 5 : 0, .size = some ? 3 : 6,
		                                   .calls = rng_next(rng) >> 2,
		                                   .culprit = -1, .ranks = some ? ranks : NULL};
		if (failed) {
			groups[i].failed = ESP_ETIMEOUT;
			groups[i].failed_ns = rng_next(rng) >> 2;
			groups[i].culprit = rng_chance(rng, 1, 2) ? 3 : -1;
			snprintf(groups[i].reason, sizeof groups[i].reason, "because");
		}
	}
	for (uint32_t i = 0; i < made.call_count; i++) {
		bool ended = rng_chance(rng, 1, 2), waits = rng_chance(rng, 1, 2), is_letter = rng_chance(rng, 1, 4);
		calls[i] = (struct account_call){
			.record = {.note = {.sequence = i, .flags = is_letter ? CALL_LETTER : 0,
			                    .key = is_letter ? rng_next(rng) : 0},
			           .started_ns = rng_next(rng) >> 2, .bytes = rng_next(rng) >> 2, .members = 6, .channel = 4,
			           .plan = "",
			           .kind = (uint8_t)rng_below(rng, RECORD_KINDS), .peer = is_letter ? 2 : RECORD_NONE,
			           .chunk = RECORD_NO_CHUNK, .step = RECORD_NONE, .waits_for = RECORD_NONE},
			.digest = (uint32_t)rng_next(rng), .plan = "ring", .words = "allreduce of 3 f32, sum"};
		if (ended) {
			calls[i].record.ended_ns = rng_next(rng) >> 2;
			calls[i].record.waited_ns = 7;
			calls[i].record.status = rng_chance(rng, 1, 2) ? ESP_OK : ESP_EPEER;
		}
		if (waits) {
			calls[i].record.waits_for = 4;
			calls[i].record.since_ns = 9;
			calls[i].record.chunk = 11;
			calls[i].record.step = 2;
		}
	}
}

static char *write_down(const struct account *account, size_t *size)
{
	char *text;
	FILE *out = open_memstream(&text, size);
	CHECK(out && account_write(account, out) == ESP_OK && fclose(out) == 0);
	return text;
}

/* An account that was written is read, and written again unchanged; truncated or damaged, it is refused or read. */
static void test_round(struct rng *rng)
{
	struct account got;
	struct error err = {0};
	size_t size, size_again;
	draw(rng);
	char *text = write_down(&made, &size);
	if (diagnose_account_read(text, size, &got, &err) != ESP_OK)
		CHECK_MSG(false, "%s in\n%s", err.text, text);
	char *again = write_down(&got, &size_again);
	CHECK_STR(again, text);
	account_fini(&got);
	for (int i = 0; i < 50; i++) {
		size_t cut = rng_below(rng, size - 1);
		CHECK(diagnose_account_read(text, cut, &got, &err) == ESP_EPARSE && err.text[0]);
	}
	for (int i = 0; i < 50; i++) {
		size_t at = rng_below(rng, size);
		char before = text[at];
		text[at] = (char)rng_below(rng, 256);
		if (diagnose_account_read(text, size, &got, &err) == ESP_OK)
			account_fini(&got);
		text[at] = before;
	}
	free(again);
	free(text);
}

static void refused(const char *text, const char *says)
{
	struct account got;
	struct error err = {0};
	CHECK(diagnose_account_read(text, strlen(text), &got, &err) == ESP_EPARSE);
	CHECK_MSG(strstr(err.text, says), "%s", err.text);
}

int main(int argc, char **argv)
{
	struct rng rng;
	rng_init(&rng, test_seed(argc, argv, 1));
	for (int i = 0; i < 200; i++)
		test_round(&rng);
	refused("", "line");
	refused("[]", "\"espalier_account\" is missing");
	refused("{\"espalier_account\": 2}", "of a form that this version does not know");
	refused("{\"espalier_account\": 1, \"job\": 3}", "\"job\" is no text");
	refused("{\"espalier_account\": 1, \"job\": \"\", \"instance\": \"00000000000000zz\", \"size\": 3}",
	        "16 hexadecimal digits");
	refused("{\"espalier_account\": 1, \"job\": \"\", \"instance\": \"0000000000000000\", \"size\": 3, \"rank\": 3}",
	        "\"rank\" is no number, or a bad one");
	refused("{\"espalier_account\": 1, \"job\": \"\", \"instance\": \"0000000000000000\", \"size\": 9999999999}",
	        "\"size\"");
	return 0;
}
