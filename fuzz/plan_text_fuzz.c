/*
 * plan_text_fuzz.c - plans as text: any bytes are either refused, with the line, or are a
 * plan that prints to a text that parses and prints the same again; and the checker
 * survives it, whatever it thinks of it.
 */
#include "fuzz.h"

#include <string.h>

#include "plan/check.h"
#include "plan/text.h"

struct text {
	char *bytes;
	size_t length;
};

static struct text print(const struct plan *plan)
{
	struct text text = {0};
	FILE *file = open_memstream(&text.bytes, &text.length);

	FUZZ_CHECK(file);
	FUZZ_CHECK(plan_print(plan, file, NULL) == ESP_OK);
	fclose(file);
	return text;
}

/* Beside a row stands how many messages it sends, and then each of them; what comes after those is nothing. */
static void check_same_turns(const struct plan *plan, const struct plan *copy, uint64_t rows)
{
	for (uint64_t i = 0; plan->turns && i < rows; i++) {
		uint64_t at = plan->row_at[i];

		FUZZ_CHECK(plan->turns[at].to == copy->turns[at].to);
		FUZZ_CHECK(memcmp(&plan->turns[at], &copy->turns[at], (plan->turns[at].to + UINT64_C(1)) * sizeof(struct plan_sent)) == 0);
	}
}

/* Both were read from text, so their lists can be compared as memory. */
static void check_same(const struct plan *plan, const struct plan *copy)
{
	uint64_t rows = plan->nodes * plan->chunks.chunk_count;

	FUZZ_CHECK(plan->planner == copy->planner && plan->in_place == copy->in_place);
	FUZZ_CHECK(plan->nodes == copy->nodes && plan->workers == copy->workers);
	FUZZ_CHECK(plan->chunks.collective == copy->chunks.collective && plan->chunks.root == copy->chunks.root);
	FUZZ_CHECK(plan_lap(plan) == plan_lap(copy) && plan->abreast == copy->abreast && !plan->turns == !copy->turns);
	FUZZ_CHECK(plan->group_count == copy->group_count && !plan->group_of == !copy->group_of);
	FUZZ_CHECK(!plan->group_of || memcmp(plan->group_of, copy->group_of, plan->nodes * sizeof(uint32_t)) == 0);
	FUZZ_CHECK(plan->chunks.chunk_count == copy->chunks.chunk_count);
	FUZZ_CHECK(memcmp(plan->chunks.blocks, copy->chunks.blocks,
	                  plan->chunks.chunk_count * sizeof(struct plan_piece)) == 0);
	FUZZ_CHECK(plan->step_count == copy->step_count);
	FUZZ_CHECK(memcmp(plan->row_at, copy->row_at, rows * sizeof(uint64_t)) == 0);
	FUZZ_CHECK(memcmp(plan->steps, copy->steps, plan->step_count * sizeof(struct plan_step)) == 0);
	check_same_turns(plan, copy, rows);
}

static void check_verdicts(const struct plan *plan, const struct plan *copy)
{
	struct plan_report a = {0}, b = {0};
	struct plan_fault fault;
	struct error err = {0};
	enum esp_status status = plan_check(plan, NULL, &a, &fault, &err);

	FUZZ_CHECK(status == ESP_OK || err.text[0] != '\0');
	FUZZ_CHECK(plan_check(copy, NULL, &b, NULL, NULL) == status);
	FUZZ_CHECK(a.messages == b.messages && a.rounds == b.rounds && a.wire_bytes == b.wire_bytes);
}

static void check_refusal(enum esp_status status, const struct error *err)
{
	FUZZ_CHECK(status == err->status);
	FUZZ_CHECK(strncmp(err->text, "line ", 5) == 0);
	for (const char *c = err->text; *c; c++)
		FUZZ_CHECK(*c >= 0x20 && *c < 0x7f);
}

static void check_round_trip(const struct plan *plan)
{
	struct plan *copy = NULL;
	struct text once = print(plan);

	FUZZ_CHECK(plan_parse(once.bytes, once.length, &copy, NULL) == ESP_OK);
	struct text twice = print(copy);
	FUZZ_CHECK(once.length == twice.length && memcmp(once.bytes, twice.bytes, once.length) == 0);
	check_same(plan, copy);
	check_verdicts(plan, copy);
	plan_close(copy);
	free(once.bytes);
	free(twice.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct plan *plan = NULL;
	struct error err = {0};
	enum esp_status status = plan_parse((const char *)data, size, &plan, &err);

	if (status != ESP_OK)
		check_refusal(status, &err);
	/* A head may ask for millions of rows in a few bytes: allowed, but there is nothing to learn from them. */
	else if (plan->nodes <= 4096 && plan->chunks.chunk_count * plan->nodes <= 65536)
		check_round_trip(plan);
	plan_close(plan);
	return 0;
}
