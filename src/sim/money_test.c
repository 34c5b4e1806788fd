#include "sim/money.h"

#include <math.h>

#include "base/check.h"

static bool near(double is, double wanted, double slack)
{
	return fabs(is - wanted) <= slack;
}

/* The columns of table 5 imply each other. */
static void test_implied(void)
{
	static const double wanted[] = {1, 0.830, 0.794, 0.776};
	for (uint32_t i = 0; i < 4; i++)
		CHECK_MSG(near(sim_money_implied(i), wanted[i], 0.0006), "row %u: %g", i, sim_money_implied(i));
	CHECK(sim_money_implied(4) == 0 && sim_money_table5(0, 3) == 0 && sim_money_table5(4, 0) == 0);
}

/* The formulas, done by hand with the paper's prices. */
static void test_formulas(void)
{
	struct money_prices prices;
	struct money corrected, printed;
	struct error err = {0};
	const double s = 21077 / 32.0, fast = (795 + s + 94) + (4 * s + 2 * 94), q = s / 4;
	sim_money_paper_prices(&prices);
	CHECK(sim_money_compute(&corrected, &prices, MONEY_CORRECTED, &err) == ESP_OK);
	CHECK(sim_money_compute(&printed, &prices, MONEY_PRINTED, &err) == ESP_OK);
	CHECK_U64(corrected.row_count, 4);
	CHECK_U64(corrected.rows[0].rack_workers, 16);
	CHECK_U64(corrected.rows[1].rack_workers, 44);
	CHECK_U64(corrected.rows[2].rack_workers, 65);
	CHECK_U64(corrected.rows[3].rack_workers, 76);
	CHECK(near(corrected.rows[0].worker[0], 4117 + 4 * 699 + fast, 1e-6));
	CHECK(near(printed.rows[0].worker[0], 4117 + 795 + 4 * 699 + fast, 1e-6));
	double slow = (260 + q + 31.25) + 0.5 * (4 * q + 2 * 31.25), hub = (162.5 + q + 31.25) + 0.5 * (4 * q + 2 * 31.25);
	CHECK(near(corrected.rows[2].worker[0], 4117 + 4 * 699 + slow + (8407 + 20 * hub) / 65, 1e-6));
	CHECK(near(printed.rows[2].worker[0], 4117 + 260 + 4 * 699 + slow + (4117 + 20 * 162.5 + 20 * hub) / 65, 1e-6));
	/* Values that are read back give the first row as it stands. */
	for (uint32_t scenario = 0; scenario < 3; scenario++) {
		CHECK(near(corrected.rows[0].per_1000[scenario], sim_money_table5(0, scenario), 1e-9));
		CHECK(near(printed.rows[0].per_1000[scenario], sim_money_table5(0, scenario), 1e-9));
	}
	CHECK(corrected.assumed.throughput && corrected.assumed.hub_throughput && corrected.assumed.gpu[1] &&
	      corrected.assumed.worker[2]);
	CHECK(!corrected.assumed.gpu[0] && !corrected.assumed.worker[0]);
	/* More oversubscription is always cheaper, and every deployment with the hub is cheaper than the baseline. */
	for (uint32_t i = 1; i < 4; i++)
		CHECK(corrected.rows[i].worker[0] < corrected.rows[i - 1].worker[0] && corrected.rows[i].relative[0] < 1);
}

/* Table 2 from table 3: the paper's numbers are within 10 % of these. */
static void test_bounds(void)
{
	size_t count = 0;
	for (; sim_money_table2(count); count++)
		for (int p = 0; p < MONEY_PLACEMENTS; p++) {
			const struct money_bound_row *row = sim_money_table2(count);
			double is = sim_money_bound((enum money_placement)p, row->bytes, row->seconds, 8) / 1e9;
			CHECK_MSG(near(row->paper[p] / is, 1, 0.10), "%s %s: %g, paper %g", row->name, money_placement_names[p], is,
			          row->paper[p]);
		}
	CHECK_U64(count, 4);
}

static const struct {
	const char *text, *says; /* "": it is fine */
} texts[] = {
	{"{}", ""},
	{"{\"worker\": 5000, \"gpu\": 2000, \"gpus\": 8, \"switch\": {\"price\": 30000, \"ports\": 64}, \"throughput\": "
     "{\"baseline\": 100, \"hub\": 98},"
     " \"oversubscription\": [1, 4], \"scenarios\": [{\"name\": \"a\"}, {\"name\": \"b\", \"gpu\": 9000}]}",
     ""},
	{"{\"wroker\": 5000}", "p.json: prices.'wroker' is no price that is known"},
	{"{\"worker\": -1}", "p.json: prices.'worker' is no number, or one that makes no sense"},
	{"{\"fast\": {\"nic\": \"x\"}}", "p.json: fast.'nic' is no number"},
	{"{\"hub\": 3}", "p.json: 'hub' is no object"},
	{"{\"oversubscription\": [0.5]}", "'oversubscription' has an entry below 1"},
	{"{\"oversubscription\": []}", "'oversubscription' is no list of 1 to 8 numbers"},
	{"{\"throughput\": {\"baseline\": 1}}", "'throughput' needs both"},
	{"{\"scenarios\": [{}]}", "scenarios.'name' is missing"},
	{"{\"scenarios\": 1}", "'scenarios' is no list"},
	{"[1]", "p.json: it is no object of prices"},
	{"{\n\n", "p.json:3:"},
};

static void test_texts(void)
{
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct money_prices prices;
		struct error err = {0};
		enum esp_status status = sim_money_parse(&prices, "p.json", texts[i].text, strlen(texts[i].text), &err);
		CHECK_MSG(status == (texts[i].says[0] ? ESP_EPARSE : ESP_OK) && strstr(err.text, texts[i].says),
		          "text %zu: %d \"%s\"", i, status, err.text);
	}
}

static void test_given(void)
{
	struct money_prices prices;
	struct money money;
	struct error err = {0};
	CHECK(sim_money_parse(&prices, "p.json", texts[1].text, strlen(texts[1].text), &err) == ESP_OK);
	CHECK(sim_money_compute(&money, &prices, MONEY_CORRECTED, &err) == ESP_OK);
	CHECK_U64(money.row_count, 3);
	CHECK_U64(money.rows[2].rack_workers, 64 * 4 * 4 / 5 - 20);
	CHECK(near(money.rows[0].per_1000[0], 100 * 1000 / money.rows[0].worker[0], 1e-9));
	CHECK(near(money.rows[1].per_1000[0], 98 * 1000 / money.rows[1].worker[0], 1e-9));
	CHECK(near(money.rows[0].worker[1] - money.rows[0].worker[0], 8 * 7000, 1e-6));
	CHECK(!money.assumed.throughput && !money.assumed.hub_throughput);
	prices.hub_ports = 1000;
	CHECK(sim_money_compute(&money, &prices, MONEY_CORRECTED, &err) == ESP_EINVAL);
	CHECK_MSG(strstr(err.text, "leaves no worker room"), "%s", err.text);
}

int main(void)
{
	test_implied();
	test_formulas();
	test_bounds();
	test_texts();
	test_given();
	return 0;
}
