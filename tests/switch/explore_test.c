/*
 * The rules of docs/protocol/atp.md, explored: the product's step, merge rule and sender over all that a network can do, and
 * the same with rules that are known to be wrong, which must be found out.
 */
#include "explore.h"

#include "base/check.h"

#define MOST UINT64_C(200000)

static const struct explore_case cases[] = {
	{"2 workers, 1 slot, 1 number", 2, {0}, 1, 1, 1},
	{"2 workers, 1 slot, 2 numbers", 2, {0}, 1, 2, 1},
	{"2 workers, 2 slots, 2 numbers", 2, {0}, 1, 2, 2},
	{"3 workers, 1 slot, 1 number", 3, {0}, 1, 1, 1},
	{"3 workers in racks of 2 and 1, 2 levels, 1 slot each", 3, {0, 0, 1}, 2, 1, 1},
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

enum { TWO, TWO_COLLIDING, TWO_APART, THREE, RACKS };

/* So many states, rounds of resends, and ends that need more than one: of 1,000. */
struct expected {
	enum explore_verdict verdict;
	uint64_t states;
	uint32_t rounds, late;
};

static void check_case(uint32_t which, const struct rules *rules, struct expected expected)
{
	struct explore_result result = explore_all(&cases[which], rules, MOST);

	explore_print(&cases[which], rules, &result);
	CHECK_MSG(result.verdict == expected.verdict, "%s, %s: %s", cases[which].name, rules->name,
	          explore_verdict_name(result.verdict));
	if (expected.states)
		CHECK_U64(result.states, expected.states);
	if (expected.verdict != EXPLORE_SAFE)
		return;
	CHECK_U64(result.worst_rounds, expected.rounds);
	CHECK_U64((result.late * 2000 + result.ends) / (2 * result.ends), expected.late);
}

static void test_product(void)
{
	static const struct expected expected[CASES] = {
		{EXPLORE_SAFE, 75, 1, 0}, {EXPLORE_SAFE, 2709, 1, 0}, {EXPLORE_SAFE, 5625, 1, 0}, {EXPLORE_SAFE, 4978, 2, 63},
		    {EXPLORE_SAFE, 20208, 2, 281},
	};
	for (uint32_t i = 0; i < CASES; i++)
		check_case(i, &rules_product, expected[i]);
}

static void test_paper(void)
{
	static const struct expected expected[CASES] = {
		{EXPLORE_SAFE, 75, 2, 250}, {EXPLORE_SAFE, 2709, 2, 286}, {EXPLORE_SAFE, 5625, 2, 438},
		    {EXPLORE_SAFE, 4978, 2, 500}, {EXPLORE_SAFE, 20208, 2, 438},
	};
	for (uint32_t i = 0; i < CASES; i++) {
		check_case(i, &rules_paper_disjoint, expected[i]);
		if (i == THREE)
			check_case(i, &rules_paper, (struct expected){EXPLORE_WRONG_SUM, 0, 0, 0});
		else
			check_case(i, &rules_paper, expected[i]);
	}
}

static void test_one_rule_less(void)
{
	check_case(RACKS, &rules_s1_off, (struct expected){EXPLORE_WRONG_SUM, 0, 0, 0});
	check_case(TWO, &rules_s3_off, (struct expected){EXPLORE_LEAK, 75, 0, 0});
	check_case(TWO, &rules_s4_off, (struct expected){EXPLORE_WRONG_SUM, 0, 0, 0});
	check_case(TWO, &rules_s5_off, (struct expected){EXPLORE_WRONG_SUM, 0, 0, 0});
	check_case(THREE, &rules_o3_off, (struct expected){EXPLORE_WRONG_SUM, 0, 0, 0});
	check_case(TWO, &rules_w2_off, (struct expected){EXPLORE_NO_PROGRESS, 75, 0, 0});
	check_case(TWO, &rules_i1_off, (struct expected){EXPLORE_WRONG_SUM, 0, 0, 0});
	check_case(THREE, &rules_i1_off, (struct expected){EXPLORE_WRONG_SUM, 0, 0, 0});
}

static void test_larger(void)
{
	static const struct explore_case larger[] = {
		{"4 workers, 2 numbers in 1 slot", 4, {0}, 1, 2, 1},
		{"5 workers, 1 number", 5, {0}, 1, 1, 1},
		{"racks of 2 and 2, 2 numbers in 1 slot", 4, {0, 0, 1, 1}, 2, 2, 1},
		{"racks of 2, 2 and 2, 2 numbers in 1 slot", 6, {0, 0, 1, 1, 2, 2}, 3, 2, 1},
		{"racks of 3 and 3, 1 number", 6, {0, 0, 0, 1, 1, 1}, 2, 1, 1},
	};
	for (uint32_t i = 0; i < sizeof(larger) / sizeof(larger[0]); i++) {
		struct explore_result result = explore_closure(&larger[i], &rules_product);
		explore_print(&larger[i], &rules_product, &result);
		CHECK(result.verdict == EXPLORE_SAFE);
	}
	struct explore_result result = explore_closure(&larger[0], &rules_paper);
	CHECK(result.verdict == EXPLORE_WRONG_SUM);
}

int main(void)
{
	test_product();
	test_paper();
	test_one_rule_less();
	test_larger();
	return 0;
}
