/*
 * money_fuzz.c - prices: what is accepted has a cost, or is refused with a reason.
 */
#include "fuzz.h"

#include "sim/money.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct money_prices prices;
	struct money money;
	struct error err = {0};
	if (sim_money_parse(&prices, "fuzz", (const char *)data, size, &err) != ESP_OK) {
		FUZZ_CHECK(err.status != ESP_OK && err.text[0]);
		return 0;
	}
	for (int reading = MONEY_CORRECTED; reading <= MONEY_PRINTED; reading++) {
		if (sim_money_compute(&money, &prices, (enum money_reading)reading, &err) != ESP_OK) {
			FUZZ_CHECK(err.text[0]);
			continue;
		}
		FUZZ_CHECK(money.row_count >= 2 && money.row_count <= MONEY_ROWS_MAX);
		for (uint32_t i = 0; i < money.row_count; i++)
			for (uint32_t s = 0; s < prices.scenario_count; s++)
				FUZZ_CHECK(money.rows[i].worker[s] > 0 && money.rows[i].rack_workers > 0);
	}
	return 0;
}
