#include "sim/money.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what the paper says ---- */

void sim_money_paper_prices(struct money_prices *out)
{
	*out = (struct money_prices){
		.gpus = 4,
		.fast = {795, 94, 1},
		.slow = {260, 31.25, 4},
		.hub_node = 8407,
		.hub_ports = 20,
		.hub_nic_port = 162.5,
		.switch_price = 21077,
		.switch_ports = 32,
		.server_node = 4117,  /* a worker without GPUs */
		.multicast = 0,       /* most switches have it, and few use it */
		.aggregation = 21077, /* another one, that can be programmed */
		.ratios = {1, 2, 3},
		.ratio_count = 3,
		.scenarios = {{"future", 699, 4117}, {"spendy", 0, 4117}, {"cheap", 699, 0}},
		.scenario_count = 3,
		.from_paper = true,
	};
}

#define TABLE5_ROWS 4u
#define TABLE5_COLUMNS 3u
enum { FUTURE, SPENDY, CHEAP };

static const double table5[TABLE5_ROWS][TABLE5_COLUMNS] = {
	{46.11, 14.57, 60.41},
	{55.19, 15.30, 77.21},
	{57.71, 15.49, 82.24},
	{59.03, 15.58, 84.95},
};

double sim_money_table5(uint32_t row, uint32_t scenario)
{
	return row < TABLE5_ROWS && scenario < TABLE5_COLUMNS ? table5[row][scenario] : 0;
}

/*
 * Throughput is the same in the first two columns, and their prices differ by the GPUs alone, which is as much for the
 * baseline as for the hub: T/14.57 - T/46.11 = t/15.30 - t/55.19. So the table tells t/T, without any price.
 */
static double implied_throughput(uint32_t row)
{
	return (1 / table5[0][SPENDY] - 1 / table5[0][FUTURE]) / (1 / table5[row][SPENDY] - 1 / table5[row][FUTURE]);
}

double sim_money_implied(uint32_t row)
{
	return row < TABLE5_ROWS ? implied_throughput(row) * table5[0][FUTURE] / table5[row][FUTURE] : 0;
}

/* ---- the formulas ---- */

/* A = (N + S + C) + F (4S + 2C) */
static double amortized(double nic, double port, double cable, double fraction)
{
	return nic + port + cable + fraction * (4 * port + 2 * cable);
}

/*
 * Hosts of a rack whose uplinks have 1/ratio of their rate: what goes down and what goes up are all ports of the
 * switch.
 */
static double rack_hosts(const struct money_prices *prices, const struct money_network *network, double ratio)
{
	return floor(prices->switch_ports * network->hosts_per_port * ratio / (1 + ratio) + 1e-9);
}

static double port_price(const struct money_prices *prices, const struct money_network *network)
{
	return prices->switch_price / prices->switch_ports / network->hosts_per_port;
}

/* Without the hub. */
static double worker_price(const struct money_prices *prices, const struct money_scenario *scenario,
                           const struct money_network *network, double share, enum money_reading reading)
{
	return scenario->worker + prices->gpus * scenario->gpu + share + (reading == MONEY_PRINTED ? network->nic : 0);
}

static double hub_price(const struct money_prices *prices, const struct money_scenario *scenario, double ratio,
                        enum money_reading reading)
{
	double share = amortized(prices->hub_nic_port, port_price(prices, &prices->slow), prices->slow.cable, 1 / ratio);
	if (reading == MONEY_PRINTED)
		return scenario->worker + prices->hub_ports * (prices->hub_nic_port + share);
	return prices->hub_node + prices->hub_ports * share;
}

/* ---- values that were not given ---- */

static void fill_in(struct money *money, double baseline_share, enum money_reading reading)
{
	struct money_prices *prices = &money->prices;
	const struct money_network *fast = &prices->fast;
	double first = worker_price(prices, &prices->scenarios[0], fast, baseline_share, reading);
	money->assumed.hub_throughput = prices->hub_throughput == 0;
	if (money->assumed.hub_throughput)
		prices->hub_throughput = prices->from_paper ? implied_throughput(1) : 1;
	money->assumed.throughput = prices->throughput == 0;
	if (money->assumed.throughput && prices->from_paper)
		prices->throughput = table5[0][FUTURE] * first / 1000;
	for (uint32_t s = 0; s < prices->scenario_count; s++) {
		struct money_scenario *scenario = &prices->scenarios[s];
		money->assumed.gpu[s] = scenario->gpu == 0;
		money->assumed.worker[s] = scenario->worker == 0;
		double wanted = prices->from_paper ? prices->throughput * 1000 / sim_money_table5(0, s) : first;
		if (money->assumed.gpu[s])
			scenario->gpu =
				prices->from_paper
					? (wanted - worker_price(prices, scenario, fast, baseline_share, reading)) / prices->gpus
					: prices->scenarios[0].gpu;
		if (money->assumed.worker[s])
			scenario->worker = prices->from_paper
			                       ? wanted - worker_price(prices, scenario, fast, baseline_share, reading)
			                       : prices->scenarios[0].worker;
	}
}

/* ---- all of it ---- */

static void fill_row(const struct money *money, struct money_row *row, const struct money_network *network,
                     enum money_reading reading)
{
	const struct money_prices *prices = &money->prices;
	bool is_baseline = network == &prices->fast;
	for (uint32_t s = 0; s < prices->scenario_count; s++) {
		const struct money_scenario *scenario = &prices->scenarios[s];
		double hub = is_baseline ? 0 : hub_price(prices, scenario, row->ratio, reading) / row->rack_workers;
		if (s == 0)
			row->hub = hub;
		row->worker[s] = worker_price(prices, scenario, network, row->network, reading) + hub;
		row->relative[s] = row->worker[s] / (is_baseline ? row->worker[s] : money->rows[0].worker[s]);
		row->per_1000[s] = prices->throughput * (is_baseline ? 1 : prices->hub_throughput) * 1000 / row->worker[s];
	}
}

enum esp_status sim_money_compute(struct money *out, const struct money_prices *prices, enum money_reading reading,
                                  struct error *err)
{
	*out = (struct money){.prices = *prices, .row_count = 1 + prices->ratio_count};
	struct money_row *baseline = &out->rows[0];
	*baseline = (struct money_row){
		.ratio = 1,
		.rack_workers = (uint32_t)rack_hosts(prices, &prices->fast, 1),
		.network = amortized(prices->fast.nic, port_price(prices, &prices->fast), prices->fast.cable, 1),
	};
	fill_in(out, baseline->network, reading);
	fill_row(out, baseline, &out->prices.fast, reading);
	for (uint32_t s = 0; s < prices->scenario_count; s++)
		if (!(baseline->worker[s] > 0))
			return error_set(err, ESP_EINVAL, "a worker of the scenario '%s' costs nothing", prices->scenarios[s].name);
	for (uint32_t i = 0; i < prices->ratio_count; i++) {
		struct money_row *row = &out->rows[1 + i];
		double workers = rack_hosts(prices, &prices->slow, prices->ratios[i]) - prices->hub_ports;
		if (!(workers >= 1 && workers < UINT32_MAX))
			return error_set(err, ESP_EINVAL, "a hub with %g ports leaves no worker room at a switch of %g ports",
			                 prices->hub_ports, prices->switch_ports);
		*row = (struct money_row){
			.ratio = prices->ratios[i],
			.rack_workers = (uint32_t)workers,
			.network = amortized(prices->slow.nic, port_price(prices, &prices->slow), prices->slow.cable,
		                         1 / prices->ratios[i]),
		};
		fill_row(out, row, &out->prices.slow, reading);
	}
	return ESP_OK;
}

/* ---- table 2 ---- */

const char *const money_placement_names[] = {"CC", "CS", "NCC", "NCS", NULL};

/* In multiples of the model's size per iteration, in and out added. */
double sim_money_bound(enum money_placement placement, double bytes, double seconds, uint32_t workers)
{
	double n = workers, times = 0;
	switch (placement) {
	case MONEY_CC: /* all but the worker on the same host send and receive all of it */
		times = 2 * (n - 1);
		break;
	case MONEY_CS: /* a host is worker of all shards but its own, and server of its shard for all but itself */
		times = 4 * (n - 1) / n;
		break;
	case MONEY_NCC:
		times = 2 * n;
		break;
	case MONEY_NCS:
	default:
		times = 2;
		break;
	}
	return times * bytes * 8 / seconds;
}

/* MXNet's sizes and times per batch (table 3), which the paper prints with two or three digits. */
static const struct money_bound_row bounds[] = {
	{"ResNet 269", 390e6, 0.350, {122, 31, 140, 17}},
	{"Inception", 91e6, 0.225, {44, 11, 50, 6}},
	{"GoogleNet", 38e6, 0.100, {40, 10, 46, 6}},
	{"AlexNet", 194e6, 0.016, {1232, 308, 1408, 176}},
};

const struct money_bound_row *sim_money_table2(size_t index)
{
	return index < sizeof bounds / sizeof bounds[0] ? &bounds[index] : NULL;
}
