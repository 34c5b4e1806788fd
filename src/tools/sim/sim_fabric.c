#include "tools/sim/sim_fabric.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "report/rows.h"
#include "tools/sim/sim_model.h"

static const char *const weather_names[] = {"N0", "N1", "N2", "N3", NULL};
static const char *const straggler_names[] = {"C0", "C1", "C2", "C3", NULL};

void sim_tool_fabric_init(struct sim_fabric *fabric)
{
	*fabric = (struct sim_fabric){
		.hosts = 15, .per_host = 2, .seeds = 3, .seed = 1, .gbps = 10, .seconds = 100, .weather = 1, .stragglers = 1};
}

void sim_tool_fabric_options(struct sim_fabric *fabric, struct option_spec options[SIM_FABRIC_OPTIONS])
{
	const struct option_spec all[SIM_FABRIC_OPTIONS] = {
		{"model", 0, OPTION_STRING, &fabric->model, "MODEL", "size and computing time (default 100 MB, 100 ms)"},
		{"compute-ms", 0, OPTION_DOUBLE, &fabric->compute_ms, "MS", "a step's computing time (default the model's)"},
		{"hosts", 0, OPTION_U64, &fabric->hosts, "N", "hosts with workers (default 15)", .min = 2,
	     .max = FABRIC_WORKERS_MOST},
		{"per-host", 0, OPTION_U64, &fabric->per_host, "N", "workers of each host (default 2)", .min = 1, .max = 32},
		{"gbps", 0, OPTION_DOUBLE, &fabric->gbps, "GBPS", "each host's link and the hub's (default 10)"},
		{"weather", 0, OPTION_CHOICE, &fabric->weather, "N0..N3", "rates of links that others use too (default N1)",
	     .choices = weather_names},
		{"stragglers", 0, OPTION_CHOICE, &fabric->stragglers, "C0..C3", "steps that are slow (default C1)",
	     .choices = straggler_names},
		{"lag", 0, OPTION_DOUBLE, &fabric->lag_s, "SECONDS", "until the scheduler knows a new rate (default 0)"},
		{"task", 0, OPTION_CHOICE, &fabric->task, "TASK", "learnt to count updates: logistic (default), network",
	     .choices = fabric_task_names},
		{"seeds", 0, OPTION_U64, &fabric->seeds, "N", "runs of SGD for each learning rate (default 3)", .min = 1,
	     .max = 20},
		{"seed", 0, OPTION_U64, &fabric->seed, "SEED", "the first one (default 1)"},
		{"seconds", 0, OPTION_DOUBLE, &fabric->seconds, "S", "of virtual time for the rates (default 100)"},
		{"json", 0, OPTION_FLAG, &fabric->json, NULL, "print JSON"},
		{0},
	};

	for (uint32_t i = 0; i < SIM_FABRIC_OPTIONS; i++)
		options[i] = all[i];
}

static enum esp_status read_model(struct sim_fabric *fabric, struct error *err)
{
	struct model model;

	if (!fabric->model)
		return ESP_OK;
	enum esp_status status = sim_tool_model_open(&model, fabric->model, NULL, err);
	if (status != ESP_OK)
		return status;
	fabric->cell.bytes = workload_model_bytes(&model);
	fabric->cell.compute_ns = (uint64_t)((model.forward_s + model.backward_s) * (double)NS_PER_S);
	workload_model_fini(&model);
	return ESP_OK;
}

enum esp_status sim_tool_fabric_cell(struct sim_fabric *fabric, struct error *err)
{
	struct fabric_cell *cell = &fabric->cell;

	*cell = fabric_study_cell();
	enum esp_status status = read_model(fabric, err);
	if (status != ESP_OK)
		return status;
	if (!(fabric->gbps >= 0.001 && fabric->gbps <= 10000) || !(fabric->compute_ms >= 0 && fabric->compute_ms < 1e6) ||
	    !(fabric->lag_s >= 0 && fabric->lag_s < 1e4) || !(fabric->seconds > 0 && fabric->seconds <= 1e5))
		return error_set(err, ESP_EINVAL, "--gbps, --compute-ms, --lag or --seconds is out of range");
	if (fabric->hosts * fabric->per_host > FABRIC_WORKERS_MOST)
		return error_set(err, ESP_EINVAL, "%u workers are the most", FABRIC_WORKERS_MOST);
	if (fabric->compute_ms > 0)
		cell->compute_ns = (uint64_t)(fabric->compute_ms * (double)NS_PER_MS);
	cell->hosts = (uint32_t)fabric->hosts;
	cell->per_host = (uint32_t)fabric->per_host;
	cell->rate = (uint64_t)(fabric->gbps * 1e9 / 8);
	cell->lag_ns = (uint64_t)(fabric->lag_s * (double)NS_PER_S);
	cell->weather = &fabric_weathers[fabric->weather];
	cell->stragglers = &fabric_stragglers[fabric->stragglers];
	cell->task = (enum fabric_task)fabric->task;
	cell->seeds = (uint32_t)fabric->seeds;
	cell->seed = fabric->seed;
	cell->seconds = fabric->seconds;
	snprintf(fabric->about, sizeof(fabric->about),
	         "%.40s: %.1f MB, %.0f ms a step; %u hosts with %u workers each, %.4g Gbit/s; weather %s, stragglers %s",
	         fabric->model ? fabric->model : "model", (double)cell->bytes / 1e6, (double)cell->compute_ns / 1e6,
	         cell->hosts, cell->per_host, fabric->gbps, cell->weather->name, cell->stragglers->name);
	return ESP_OK;
}

static void put_or_none(struct rows *rows, double value, bool is_there)
{
	if (is_there)
		rows_double(rows, value);
	else
		rows_none(rows);
}

enum esp_status sim_tool_fabric_print(const struct sim_fabric *fabric, const struct fabric_row *rows, uint32_t count,
                                      struct json *json)
{
	static const struct column columns[] = {
		{"way", "way"},
		{"bound", "delay_bound"},
		{"updates/s", "updates_per_second", "%.1f"},
		{"at most", "updates_per_second_bound", "%.1f"},
		{"dropped", "dropped", "%.1f %%", 100},
		{"delay", "delay_mean", "%.1f"},
		{"most", "delay_most"},
		{"updates needed", "updates_needed", "%.0f"},
		{"lr", "lr"},
		{"seconds", "seconds", "%.1f"},
		{0},
	};
	struct rows table;

	(void)fabric;
	rows_begin(&table, columns, json);
	for (uint32_t i = 0; i < count; i++) {
		const struct fabric_row *row = &rows[i];

		rows_text(&table, fabric_way_names[row->way]);
		row->bound > 0 ? rows_u64(&table, row->bound) : rows_none(&table);
		rows_double(&table, row->per_second);
		put_or_none(&table, row->most, row->most > 0);
		put_or_none(&table, row->dropped, row->bound > 0);
		put_or_none(&table, row->delay_mean, row->bound > 0);
		row->bound > 0 ? rows_u64(&table, row->delay_most) : rows_none(&table);
		put_or_none(&table, row->updates, row->updates > 0);
		put_or_none(&table, row->lr, row->updates > 0);
		put_or_none(&table, row->seconds, row->seconds > 0);
	}
	return json ? rows_finish(&table, stdout) : rows_end(&table, stdout);
}
