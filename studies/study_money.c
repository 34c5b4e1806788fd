/*
 * study_money.c - espalier-study money: what a hub and a slow network cost beside a fast network, and which bandwidth a
 * server needs.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/infile.h"
#include "report/options.h"
#include "report/rows.h"
#include "sim/money.h"
#include "studies/studies.h"
#include "tools/sim/sim_model.h"

#define COMMAND "money"

static const char *const reading_names[] = {[MONEY_CORRECTED] = "corrected", [MONEY_PRINTED] = "printed"};
static const char *const reading_words[] = {
	[MONEY_CORRECTED] = "each NIC counted once, the hub from its own price (H)",
	[MONEY_PRINTED] = "the NIC beside A and in it, the hub from a worker's price (W)",
};

static double off(double is, double wanted)
{
	return (is / wanted - 1) * 100;
}

static void row_name(const struct money *money, uint32_t row, char text[48])
{
	snprintf(text, 48, row == 0 ? "fast, sharded %g:1" : "slow, hub %g:1", money->rows[row].ratio);
}

/* ---- the cost of a worker ---- */

static void print_assumptions(const struct money *money)
{
	const struct money_prices *prices = &money->prices;
	const char *how = prices->from_paper ? "read back from table 5" : "assumed";
	if (money->assumed.throughput && prices->throughput > 0)
		printf("  throughput of a baseline worker: %.1f samples/s (%s)\n", prices->throughput, how);
	if (money->assumed.throughput && prices->throughput == 0)
		puts("  throughput: not given, so no throughput for the money");
	if (money->assumed.hub_throughput)
		printf("  throughput of a worker with the hub: %.4f of it (%s)\n", prices->hub_throughput,
		       prices->from_paper ? "follows from two columns of table 5" : how);
	for (uint32_t s = 0; s < prices->scenario_count; s++) {
		if (money->assumed.gpu[s])
			printf("  price of a GPU, %s: %.0f (%s)\n", prices->scenarios[s].name, prices->scenarios[s].gpu, how);
		if (money->assumed.worker[s])
			printf("  price of a worker without GPUs, %s: %.0f (%s)\n", prices->scenarios[s].name,
			       prices->scenarios[s].worker, how);
	}
}

static enum esp_status print_costs(const struct money *money)
{
	static const char *const paper[] = {"deployment", "workers",         "network", "hub", "worker",
	                                    "relative",   "table 5 implies", "off %",   NULL};
	static const char *const given[] = {"deployment", "workers", "network", "hub", "worker", "relative", NULL};
	struct table table;
	char name[48];
	table_init(&table, money->prices.from_paper ? paper : given);
	for (uint32_t i = 0; i < money->row_count; i++) {
		const struct money_row *row = &money->rows[i];
		row_name(money, i, name);
		table_cell(&table, "%s", name);
		table_cell(&table, "%" PRIu32, row->rack_workers);
		table_cell(&table, "%.0f", row->network);
		table_cell(&table, "%.0f", row->hub);
		table_cell(&table, "%.0f", row->worker[0]);
		table_cell(&table, "%.3f", row->relative[0]);
		if (money->prices.from_paper) {
			table_cell(&table, "%.3f", sim_money_implied(i));
			table_cell(&table, "%+.1f", off(row->relative[0], sim_money_implied(i)));
		}
	}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	return status;
}

static enum esp_status print_throughput(const struct money *money)
{
	static const char *const headers[] = {"throughput for 1000", "scenario", "here", "table 5", "off %", NULL};
	struct table table;
	char name[48];
	table_init(&table, headers);
	for (uint32_t i = 0; i < money->row_count; i++)
		for (uint32_t s = 0; s < money->prices.scenario_count; s++) {
			double is = money->rows[i].per_1000[s], paper = money->prices.from_paper ? sim_money_table5(i, s) : 0;
			row_name(money, i, name);
			table_cell(&table, "%s", name);
			table_cell(&table, "%s", money->prices.scenarios[s].name);
			table_cell(&table, "%.2f", is);
			paper > 0 ? table_cell(&table, "%.2f", paper) : table_cell(&table, "-");
			paper > 0 ? table_cell(&table, "%+.1f", off(is, paper)) : table_cell(&table, "-");
		}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	return status;
}

static enum esp_status print_money(const struct money *money, enum money_reading reading)
{
	printf("\nReading '%s': %s\n", reading_names[reading], reading_words[reading]);
	print_assumptions(money);
	putchar('\n');
	enum esp_status status = print_costs(money);
	if (status == ESP_OK && money->prices.throughput > 0) {
		putchar('\n');
		status = print_throughput(money);
	}
	return status;
}

static void put_money(struct json *json, const struct money *money, enum money_reading reading)
{
	const struct money_prices *prices = &money->prices;
	char name[48];
	json_object_begin(json);
	json_put_string(json, "reading", reading_names[reading]);
	json_key(json, "assumed");
	json_array_begin(json);
	if (money->assumed.throughput)
		json_text(json, "throughput");
	if (money->assumed.hub_throughput)
		json_text(json, "hub_throughput");
	for (uint32_t s = 0; s < prices->scenario_count; s++) {
		char text[64];
		snprintf(text, sizeof text, "%s.%s", prices->scenarios[s].name, money->assumed.gpu[s] ? "gpu" : "worker");
		if (money->assumed.gpu[s] || money->assumed.worker[s])
			json_text(json, text);
	}
	json_array_end(json);
	json_put_double(json, "throughput", prices->throughput);
	json_put_double(json, "hub_throughput", prices->hub_throughput);
	json_key(json, "deployments");
	json_array_begin(json);
	for (uint32_t i = 0; i < money->row_count; i++) {
		const struct money_row *row = &money->rows[i];
		row_name(money, i, name);
		json_object_begin(json);
		json_put_string(json, "name", name);
		json_put_double(json, "oversubscription", row->ratio);
		json_put_u64(json, "rack_workers", row->rack_workers);
		json_put_double(json, "network", row->network);
		json_put_double(json, "hub", row->hub);
		if (prices->from_paper)
			json_put_double(json, "paper_relative", sim_money_implied(i));
		json_key(json, "scenarios");
		json_array_begin(json);
		for (uint32_t s = 0; s < prices->scenario_count; s++) {
			json_object_begin(json);
			json_put_string(json, "name", prices->scenarios[s].name);
			json_put_double(json, "gpu", prices->scenarios[s].gpu);
			json_put_double(json, "worker", prices->scenarios[s].worker);
			json_put_double(json, "cost", row->worker[s]);
			json_put_double(json, "relative", row->relative[s]);
			json_put_double(json, "per_1000", row->per_1000[s]);
			if (prices->from_paper)
				json_put_double(json, "paper_per_1000", sim_money_table5(i, s));
			json_object_end(json);
		}
		json_array_end(json);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

/* ---- bandwidth ---- */

struct bound {
	char name[64];
	double bytes, seconds;
	const double *paper; /* NULL: a model of the user's */
};

static void put_bound(struct rows *rows, const struct bound *bound, uint32_t workers)
{
	rows_text(rows, bound->name);
	rows_double(rows, bound->bytes);
	rows_double(rows, bound->seconds);
	for (int p = 0; p < MONEY_PLACEMENTS; p++) {
		double is = sim_money_bound((enum money_placement)p, bound->bytes, bound->seconds, workers) / 1e9;

		rows_shown(rows, is < 10 ? "%.1f" : "%.0f", is);
		rows_double(rows, is);
		if (bound->paper)
			rows_double(rows, bound->paper[p]);
		else
			rows_skip(rows);
	}
}

/* json: NULL, or with a key that waits for them. */
static enum esp_status print_bounds(const struct bound *bounds, size_t count, uint32_t workers, struct json *json)
{
	static const struct column columns[] = {
		{"model", "model"},
		{"MB", "bytes", "%.0f", 1e-6},
		{"ms", "seconds", "%.4g", 1e3},
		{"CC", "CC"},
		{"paper", "paper_CC", "%.0f"},
		{"CS", "CS"},
		{"paper", "paper_CS", "%.0f"},
		{"NCC", "NCC"},
		{"paper", "paper_NCC", "%.0f"},
		{"NCS", "NCS"},
		{"paper", "paper_NCS", "%.0f"},
		{0},
	};
	struct rows rows;

	if (!json)
		printf("\nBandwidth (Gbit/s, in and out added) that a parameter server of %" PRIu32
		       " workers needs to hide behind computing\n"
		       "(CC, CS: on the workers' hosts, central, sharded; NCC, NCS: on hosts of their own):\n\n",
		       workers);
	rows_begin(&rows, columns, json);
	for (size_t i = 0; i < count; i++)
		put_bound(&rows, &bounds[i], workers);
	return rows_end(&rows, stdout);
}

/* The paper's models, and the one that was named. */
static enum esp_status collect_bounds(const char *model_name, uint32_t workers, struct bound bounds[16],
                                      size_t *out_count, struct error *err)
{
	struct model model;
	size_t count = 0;
	for (; sim_money_table2(count); count++) {
		const struct money_bound_row *row = sim_money_table2(count);
		/* The paper's numbers are those of eight workers. */
		bounds[count] =
			(struct bound){.bytes = row->bytes, .seconds = row->seconds, .paper = workers == 8 ? row->paper : NULL};
		snprintf(bounds[count].name, sizeof bounds[count].name, "%s", row->name);
	}
	*out_count = count;
	if (!model_name)
		return ESP_OK;
	enum esp_status status = sim_tool_model_open(&model, model_name, NULL, err);
	if (status == ESP_OK && model.forward_s + model.backward_s > 0) {
		bounds[count] = (struct bound){.bytes = (double)workload_model_aggregated_bytes(&model),
		                               .seconds = model.forward_s + model.backward_s};
		snprintf(bounds[count].name, sizeof bounds[count].name, "%s%s", model.name,
		         model.times_assumed ? " (times assumed)" : "");
		*out_count = count + 1;
	}
	workload_model_fini(&model);
	return status;
}

/* ---- the command ---- */

static enum esp_status load_prices(const char *path, struct money_prices *prices, struct error *err)
{
	struct infile file;
	if (!path) {
		sim_money_paper_prices(prices);
		return ESP_OK;
	}
	enum esp_status status = infile_open(&file, path, err);
	if (status != ESP_OK)
		return status;
	status = sim_money_parse(prices, path, file.text, file.length, err);
	infile_close(&file);
	return status;
}

static enum esp_status show_text(const struct money money[2], const struct bound *bounds, size_t count,
                                 uint32_t workers)
{
	puts(money[0].prices.from_paper
	         ? "Cost of a worker with its share of network and hub (Parameter Hub, table 5)"
	         : "Cost of a worker with its share of network and hub, with the prices that were given");
	enum esp_status status = ESP_OK;
	for (int reading = MONEY_CORRECTED; reading <= MONEY_PRINTED && status == ESP_OK; reading++)
		status = print_money(&money[reading], (enum money_reading)reading);
	return status == ESP_OK ? print_bounds(bounds, count, workers, NULL) : status;
}

static enum esp_status show_json(const struct money money[2], const struct bound *bounds, size_t count,
                                 uint32_t workers)
{
	struct json json;
	json_init(&json, stdout);
	json_object_begin(&json);
	json_put_bool(&json, "paper_prices", money[0].prices.from_paper);
	json_key(&json, "readings");
	json_array_begin(&json);
	for (int reading = MONEY_CORRECTED; reading <= MONEY_PRINTED; reading++)
		put_money(&json, &money[reading], (enum money_reading)reading);
	json_array_end(&json);
	json_put_u64(&json, "bound_workers", workers);
	json_key(&json, "bounds_gbps");
	enum esp_status status = print_bounds(bounds, count, workers, &json);
	json_object_end(&json);
	enum esp_status written = json_fini(&json);
	return status == ESP_OK ? written : status;
}

static int run(int argc, char **argv)
{
	bool json = false;
	uint64_t workers = 8;
	const char *path = NULL, *model = NULL;
	const struct option_spec options[] = {
		{"prices", 'p', OPTION_STRING, &path, "FILE", "prices as JSON; what it leaves out is the paper's"},
		{"model", 'm', OPTION_STRING, &model, "MODEL", "also the bandwidth that this model needs"},
		{"workers", 'w', OPTION_U64, &workers, "N", "workers that share the server, for the bandwidth (default 8)",
	     .min = 2, .max = 1u << 20},
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"",
		"Compares the cost of training on a fast network with sharded servers and on a slow one with a hub\n"
		"per rack, with the formulas and prices of the Parameter Hub paper or with yours, and says which\n"
		"numbers are assumed. Then the bandwidth below which communication cannot hide behind computing.",
		options,
		0,
		0};
	struct money_prices prices;
	struct money money[2];
	struct bound bounds[16];
	size_t count = 0;
	struct error err = {0};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	enum esp_status status = load_prices(path, &prices, &err);
	for (int reading = MONEY_CORRECTED; reading <= MONEY_PRINTED && status == ESP_OK; reading++)
		status = sim_money_compute(&money[reading], &prices, (enum money_reading)reading, &err);
	if (status == ESP_OK)
		status = collect_bounds(model, (uint32_t)workers, bounds, &count, &err);
	if (status != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	status =
		json ? show_json(money, bounds, count, (uint32_t)workers) : show_text(money, bounds, count, (uint32_t)workers);
	return status == ESP_OK ? EXIT_OK : complain(COMMAND ": the result could not be written");
}

const struct cli_command study_money = {
	"money", "says what a hub costs beside a fast network, and which bandwidth a server needs", run};
