/*
 * sim_advise.c - espalier sim advise: which mechanism for this model on this cluster, and why.
 *
 * Every mechanism is run, and sim/advice.h makes words of what its links carried. The best one is then run on a network
 * and with accelerators twice as fast: what to buy next.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/infile.h"
#include "cli/cli.h"
#include "cli/sim.h"
#include "report/json.h"
#include "report/table.h"
#include "sim/advice.h"
#include "tools/sim/sim_case.h"
#include "tools/sim/sim_pace.h"

#define COMMAND "sim advise"

enum by { BY_TIME, BY_MONEY };
static const char *const by_names[] = {"time", "money", NULL};

struct advise {
	struct sim_case c;
	struct sim_choice choice;
	struct sim_source source;
	struct load load;
	struct money_prices prices;
	struct advice_case about;
	struct advice_entry entries[SIM_MECHANISMS_MAX];
	size_t count;
	double server_s;    /* of the mechanism that speedups are relative to; NAN: it has no place */
	double network_s, compute_s; /* the best one on twice the network, with twice the accelerators; NAN: not asked */
};

/* ---- running ---- */

static enum esp_status run_one(struct advise *advise, const struct mechanism *mechanism, struct error *err)
{
	struct train_result result;
	const struct trial trial = sim_tool_case_trial(&advise->c, &advise->source, &advise->load, mechanism);
	enum esp_status status = sim_tool_case_try(&trial, &advise->choice, &result, err);
	if (status != ESP_OK || isnan(result.iteration_s))
		return status;
	advise->entries[advise->count++] =
		(struct advice_entry){.mechanism = mechanism, .iteration_s = result.iteration_s, .busiest = result.busiest};
	if (mechanism == workload_mechanism_at(0))
		advise->server_s = result.iteration_s;
	return ESP_OK;
}

/* Runs the mechanism that speedups are relative to, where it is not among the candidates. */
static void run_server(struct advise *advise)
{
	struct train_result result;
	struct error err;
	const struct trial trial =
		sim_tool_case_trial(&advise->c, &advise->source, &advise->load, workload_mechanism_at(0));
	if (sim_trial_run(&trial, &result, &err) == ESP_OK)
		advise->server_s = result.iteration_s;
}

static enum esp_status run_all(struct advise *advise, struct error *err)
{
	enum esp_status status = ESP_OK;
	struct sim_pace pace;
	sim_tool_pace_begin(&pace, COMMAND, advise->choice.count);
	for (size_t i = 0; i < advise->choice.count && status == ESP_OK; i++) {
		status = run_one(advise, advise->choice.list[i], err);
		if (status == ESP_OK)
			sim_tool_pace_step(&pace);
	}
	sim_tool_pace_end(&pace);
	if (status == ESP_OK && advise->count == 0)
		return error_set(err, ESP_EINVAL, "%.240s", advise->choice.left_out);
	if (status == ESP_OK && isnan(advise->server_s))
		run_server(advise);
	return status;
}

/* The slowest worker's forward and backward pass. */
static double compute_time(const struct sim_case *c, const struct load *load)
{
	double forward = 0, backward = 0;
	for (uint32_t i = 0; i < load->layer_count; i++)
		forward += load->layer_s[i];
	for (uint32_t w = 0; w < load->workers; w++)
		for (uint32_t i = 0; i < load->gradient_count; i++)
			backward = fmax(backward, load_ready_s(load, w, 0, i));
	return (forward + backward) / c->compute;
}

static double what_if(struct advise *advise, double network, double compute)
{
	struct sim_case c = advise->c;
	struct train_result result;
	struct error err;
	c.gbps *= network;
	c.server_gbps *= network;
	c.compute *= compute;
	const struct trial trial = sim_tool_case_trial(&c, &advise->source, &advise->load, advise->entries[0].mechanism);
	return sim_trial_run(&trial, &result, &err) == ESP_OK ? result.iteration_s : NAN;
}

/*
 * Reads the parameters of prices from a cluster that a file describes: racks with workers, the fastest link of a host,
 * the fullest uplink.
 */
static enum esp_status survey(const struct topology *topology, struct advice_case *about, struct error *err)
{
	double *rack_rate = calloc(topology->vertex_count, sizeof(*rack_rate));
	if (!rack_rate)
		return error_set(err, ESP_ENOMEM, "no memory for %" PRIu32 " switches", topology->vertex_count);
	about->racks = 0;
	for (uint32_t i = 0; i < topology->host_count; i++) {
		const struct topology_vertex *host = &topology->vertices[topology->hosts[i]];
		double rate = topology->links[host->first_link].rate;
		double *sum = &rack_rate[topology_rack(topology, topology->hosts[i])];
		about->racks += *sum == 0 && i < about->workers;
		about->gbps = fmax(about->gbps, rate * 8e-9);
		*sum += host->nics * rate;
	}
	for (uint32_t i = 0; i < topology->vertex_count; i++) {
		const struct topology_vertex *rack = &topology->vertices[i];
		if (rack_rate[i] > 0 && rack->parent != TOPOLOGY_NONE)
			about->oversubscribe =
				fmax(about->oversubscribe, rack_rate[i] / (rack->nics * topology->links[rack->first_link].rate));
	}
	free(rack_rate);
	return ESP_OK;
}

static enum esp_status think(struct advise *advise, bool by_money, bool with_prices, struct error *err)
{
	struct sim_case *c = &advise->c;
	enum esp_status status = sim_tool_source_open(&advise->source, c, err);
	if (status == ESP_OK)
		status = sim_tool_source_load(&advise->source, c, &advise->load, err);
	if (status == ESP_OK)
		status = run_all(advise, err);
	if (status != ESP_OK)
		return status;
	bool is_made = !c->topology;
	advise->about = (struct advice_case){
		.workers = (uint32_t)c->workers,
		.servers = (uint32_t)c->servers,
		.racks = (uint32_t)c->racks,
		.compute_s = compute_time(c, &advise->load),
		.gbps = is_made ? c->gbps : 0,
		.oversubscribe = fmax(c->oversubscribe, 1),
		.batch = advise->source.replay.model.batch,
		.prices = with_prices ? &advise->prices : NULL,
		.by_money = by_money,
	};
	if (!is_made)
		status = survey(advise->source.topology, &advise->about, err);
	if (status == ESP_OK)
		status = sim_advice_rank(advise->entries, advise->count, &advise->about, err);
	advise->network_s = status == ESP_OK && is_made ? what_if(advise, 2, 1) : NAN;
	advise->compute_s = status == ESP_OK ? what_if(advise, 1, 2) : NAN;
	return status;
}

/* ---- showing ---- */

static void say_assumed_prices(const struct money_prices *prices)
{
	const char *const how[] = {"assumed", "given"};
	printf("\nPrices: %s. A parameter server %.0f (%s), a hub %.0f (%s); a switch that multicasts %.0f more (%s), one "
	       "that aggregates %.0f more (%s).\n",
	       prices->from_paper ? "those of the Parameter Hub paper"
	                          : "those of the file, otherwise the Parameter Hub paper's",
	       prices->server_node, how[prices->server_given], prices->hub_node,
	       prices->hub_given ? "given" : "the paper's", prices->multicast, how[prices->multicast_given],
	       prices->aggregation, how[prices->aggregation_given]);
}

static enum esp_status print_text(const struct advise *advise)
{
	static const char *const plain[] = {"", "mechanism", "iteration s", "speedup", "needs", NULL};
	static const char *const priced[] = {"",     "mechanism",          "iteration s", "speedup",
	                                     "cost", "samples/s for 1000", "needs",       NULL};
	char text[ADVICE_SUMMARY], about[SIM_CASE_TEXT];
	struct table table;
	puts(sim_tool_case_text(&advise->c, &advise->source, NULL, about));
	if (sim_tool_case_notes(&advise->c, &advise->source, about)[0])
		puts(about);
	printf("\n%s\n", sim_advice_summary(advise->entries, advise->count, text));
	if (!isnan(advise->network_s))
		printf("With a network twice as fast: %.4g s; ", advise->network_s);
	printf("with accelerators twice as fast: %.4g s.\n\n", advise->compute_s);
	table_init(&table, advise->about.prices ? priced : plain);
	for (size_t i = 0; i < advise->count; i++) {
		const struct advice_entry *entry = &advise->entries[i];
		table_cell(&table, entry->is_tie ? "=" : "%zu", i + 1);
		table_cell(&table, "%s", entry->mechanism->name);
		table_cell(&table, "%.4g", entry->iteration_s);
		isnan(advise->server_s) ? table_cell(&table, "-")
								: table_cell(&table, "%.2fx", advise->server_s / entry->iteration_s);
		if (advise->about.prices) {
			table_cell(&table, "%.0f", entry->cost);
			table_cell(&table, "%.4g", entry->per_1000);
		}
		table_cell(&table, "%s", entry->needs);
	}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	puts("\nWhy:");
	for (size_t i = 0; i < advise->count; i++)
		printf("  %s: %s\n", advise->entries[i].mechanism->name, advise->entries[i].reason);
	if (advise->about.prices)
		say_assumed_prices(&advise->prices);
	return status;
}

static void put_link(struct json *json, const struct train_link *link)
{
	static const char *const kinds[] = {"worker", "server", "hub", "switch"};
	json_key(json, "busiest_link");
	json_object_begin(json);
	json_put_string(json, "name", link->name);
	json_put_string(json, "kind", kinds[link->kind]);
	if (link->kind != TRAIN_SWITCH)
		json_put_u64(json, "number", link->number);
	json_put_u64(json, "alike", link->alike);
	json_put_u64(json, "out_bytes", link->out_bytes);
	json_put_u64(json, "in_bytes", link->in_bytes);
	json_put_double(json, "out_s", link->out_s);
	json_put_double(json, "in_s", link->in_s);
	json_put_double(json, "busy_s", train_link_busy_s(link));
	json_object_end(json);
}

static void put_entry(struct json *json, const struct advise *advise, const struct advice_entry *entry)
{
	json_object_begin(json);
	json_put_string(json, "mechanism", entry->mechanism->name);
	json_put_double(json, "iteration_s", entry->iteration_s);
	json_put_double(json, "speedup", advise->server_s / entry->iteration_s);
	json_put_bool(json, "tie", entry->is_tie);
	json_put_string(json, "needs", entry->needs);
	json_put_string(json, "reason", entry->reason);
	put_link(json, &entry->busiest);
	if (advise->about.prices) {
		json_put_double(json, "cost", entry->cost);
		json_put_double(json, "extra_cost", entry->extra_cost);
		json_put_double(json, "per_1000", entry->per_1000);
	}
	json_object_end(json);
}

static enum esp_status print_json(const struct advise *advise)
{
	char text[ADVICE_SUMMARY], about[SIM_CASE_TEXT];
	struct json json;
	json_init(&json, stdout);
	json_object_begin(&json);
	sim_tool_case_put(&json, &advise->c, &advise->source, NULL);
	json_put_string(&json, "case", sim_tool_case_text(&advise->c, &advise->source, NULL, about));
	json_put_string(&json, "advice", sim_advice_summary(advise->entries, advise->count, text));
	json_put_string(&json, "by", by_names[advise->about.by_money ? BY_MONEY : BY_TIME]);
	json_put_double(&json, "compute_s", advise->about.compute_s);
	json_put_double(&json, "twice_network_s", advise->network_s);
	json_put_double(&json, "twice_compute_s", advise->compute_s);
	json_key(&json, "results");
	json_array_begin(&json);
	for (size_t i = 0; i < advise->count; i++)
		put_entry(&json, advise, &advise->entries[i]);
	json_array_end(&json);
	json_object_end(&json);
	return json_fini(&json);
}

/* ---- the command ---- */

static enum esp_status load_prices(const char *path, struct money_prices *prices, struct error *err)
{
	struct infile file;
	sim_money_paper_prices(prices);
	if (!path)
		return ESP_OK;
	enum esp_status status = infile_open(&file, path, err);
	if (status != ESP_OK)
		return status;
	status = sim_money_parse(prices, path, file.text, file.length, err);
	infile_close(&file);
	return status;
}

static int finish(struct advise *advise, enum esp_status status, bool json, const struct error *err)
{
	if (status == ESP_OK)
		status = json ? print_json(advise) : print_text(advise);
	workload_load_fini(&advise->load);
	sim_tool_source_close(&advise->source);
	return sim_tool_case_end(&advise->c, &advise->choice, status, err);
}

static int run(int argc, char **argv)
{
	static struct advise advise; /* large */
	advise = (struct advise){
		.c = SIM_CASE_INIT(COMMAND), .choice = SIM_CHOICE_INIT, .server_s = NAN, .network_s = NAN, .compute_s = NAN};
	const char *prices = NULL;
	int by = BY_TIME;
	bool json = false, by_given = false;
	struct error err = {0};
	const struct option_spec options[] = {
		SIM_CHOICE_OPTION(&advise.choice, "those that come into question"),
		{"prices", 0, OPTION_STRING, &prices, "FILE", "prices as JSON (docs/money.md); ranks by money then"},
		{"by", 0, OPTION_CHOICE, &by, "WHAT", "rank by time (default) or by money", .choices = by_names,
	     .given = &by_given},
		SIM_CASE_OPTIONS(&advise.c),
		{"json", 0, OPTION_FLAG, &json, NULL, "print JSON"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"",
		"Ranks the mechanisms for a model and a cluster, and says why: what each needs, and what it waits for.\n"
		"Those within 4 % of each other are ties (=); the one that needs the least comes first.\n\n"
		"  espalier sim advise --model vgg-16 --workers 32 --gbps 10\n"
		"  espalier sim advise --model resnet-50 --racks 4 --workers 64 --oversubscribe 4 --by money",
		options,
		0,
		0};
	int parsed = sim_tool_case_parse(&usage, &argc, argv, &advise.c, &advise.choice);
	if (parsed >= 0)
		return parsed;
	bool by_money = by_given ? by == BY_MONEY : prices != NULL;
	enum esp_status status = load_prices(prices, &advise.prices, &err);
	if (status == ESP_OK)
		status = think(&advise, by_money, by_money || prices, &err);
	return finish(&advise, status, json, &err);
}

const struct cli_command cli_sim_advise = {"advise", "ranks the mechanisms for a model and a cluster, and says why",
                                           run};
