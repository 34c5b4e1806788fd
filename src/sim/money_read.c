/*
 * money_read.c - prices from JSON.
 */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "sim/money.h"

#define PRICE_MOST 1e12
#define COUNT_MOST 1e6

/* The walk over one document: the first thing that is wrong ends it. */
struct reader {
	const char *file;
	struct error *err;
	enum esp_status status;
};

static void wrong(struct reader *reader, const char *place, const char *key, const char *what)
{
	char shown[QUOTE_TEXT];
	if (reader->status == ESP_OK)
		reader->status = error_set(reader->err, ESP_EPARSE, "%.100s: %s%s%s %s", reader->file, place,
		                           place[0] ? "." : "", quote(key, strlen(key), shown), what);
}

struct entry {
	const char *key;
	double *out;
	double least, most;
};

/* The numbers of an object, and nothing else: a price that is misspelt must not pass for the paper's. */
static void numbers(struct reader *reader, const char *place, const json_t *object, const struct entry *entries,
                    const char *const *others)
{
	const char *key;
	json_t *value;
	if (!object)
		return;
	if (!json_is_object(object)) {
		wrong(reader, "", place, "is no object");
		return;
	}
	json_object_foreach((json_t *)object, key, value) {
		const struct entry *entry = entries;
		const char *const *other = others;
		while (entry->key && strcmp(entry->key, key) != 0)
			entry++;
		while (*other && strcmp(*other, key) != 0)
			other++;
		double number = json_number_value(value);
		if (!entry->key && !*other)
			wrong(reader, place, key, "is no price that is known");
		else if (entry->key && (!json_is_number(value) || !(number >= entry->least && number <= entry->most)))
			wrong(reader, place, key, "is no number, or one that makes no sense");
		else if (entry->key)
			*entry->out = number;
	}
}

static const char *const none[] = {NULL};

static void read_network(struct reader *reader, const json_t *root, const char *key, struct money_network *out)
{
	numbers(reader, key, json_object_get(root, key),
	        (const struct entry[]){{"nic", &out->nic, 0, PRICE_MOST}, {"cable", &out->cable, 0, PRICE_MOST},
	                               {"hosts_per_port", &out->hosts_per_port, 1, COUNT_MOST}, {NULL}},
	        none);
}

static void read_ratios(struct reader *reader, const json_t *root, struct money_prices *out)
{
	const json_t *list = json_object_get(root, "oversubscription");
	if (!list)
		return;
	if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > MONEY_RATIOS_MAX) {
		wrong(reader, "", "oversubscription", "is no list of 1 to 8 numbers");
		return;
	}
	out->ratio_count = (uint32_t)json_array_size(list);
	for (uint32_t i = 0; i < out->ratio_count; i++) {
		out->ratios[i] = json_number_value(json_array_get(list, i));
		if (!(out->ratios[i] >= 1 && out->ratios[i] <= COUNT_MOST))
			wrong(reader, "", "oversubscription", "has an entry below 1; 2 is 2:1");
	}
}

static void read_scenario(struct reader *reader, const json_t *from, const struct money_scenario *usual,
                          struct money_scenario *out)
{
	static const char *const others[] = {"name", NULL};
	const char *name = json_string_value(json_object_get(from, "name"));
	*out = (struct money_scenario){.gpu = usual->gpu, .worker = usual->worker};
	if (!name || !name[0] || strlen(name) >= MONEY_NAME) {
		wrong(reader, "scenarios", "name", "is missing or too long");
		return;
	}
	for (size_t i = 0; name[i]; i++)
		out->name[i] = (unsigned char)name[i] < 0x20 || name[i] == 0x7f ? '?' : name[i];
	numbers(reader, "scenarios", from,
	        (const struct entry[]){
				{"gpu", &out->gpu, 1e-6, PRICE_MOST}, {"worker", &out->worker, 1e-6, PRICE_MOST}, {NULL}},
	        others);
}

static void read_scenarios(struct reader *reader, const json_t *root, struct money_prices *out)
{
	const json_t *list = json_object_get(root, "scenarios");
	const struct money_scenario usual = out->scenarios[0];
	out->scenario_count = 1; /* the paper's others rest on its own table */
	if (!list)
		return;
	if (!json_is_array(list) || json_array_size(list) == 0 || json_array_size(list) > MONEY_SCENARIOS_MAX) {
		wrong(reader, "", "scenarios", "is no list of 1 to 8 objects");
		return;
	}
	out->scenario_count = (uint32_t)json_array_size(list);
	for (uint32_t i = 0; i < out->scenario_count; i++)
		read_scenario(reader, json_array_get(list, i), &usual, &out->scenarios[i]);
}

static void read_root(struct reader *reader, const json_t *root, struct money_prices *out)
{
	static const char *const others[] = {"fast",       "slow",      "hub", "switch", "oversubscription",
	                                     "throughput", "scenarios", NULL};
	struct money_scenario *first = &out->scenarios[0];
	double hub_throughput = 0;
	snprintf(first->name, sizeof first->name, "given");
	numbers(reader, "prices", root,
	        (const struct entry[]){{"worker", &first->worker, 1e-6, PRICE_MOST},
	                               {"gpu", &first->gpu, 1e-6, PRICE_MOST},
	                               {"gpus", &out->gpus, 0, COUNT_MOST},
	                               {"server", &out->server_node, 0, PRICE_MOST},
	                               {"multicast", &out->multicast, 0, PRICE_MOST},
	                               {"aggregation", &out->aggregation, 0, PRICE_MOST},
	                               {NULL}},
	        others);
	out->server_given = json_object_get(root, "server") != NULL;
	out->hub_given = json_object_get(json_object_get(root, "hub"), "node") != NULL;
	out->multicast_given = json_object_get(root, "multicast") != NULL;
	out->aggregation_given = json_object_get(root, "aggregation") != NULL;
	read_network(reader, root, "fast", &out->fast);
	read_network(reader, root, "slow", &out->slow);
	numbers(reader, "hub", json_object_get(root, "hub"),
	        (const struct entry[]){{"node", &out->hub_node, 0, PRICE_MOST}, {"ports", &out->hub_ports, 1, COUNT_MOST},
	                               {"nic_port", &out->hub_nic_port, 0, PRICE_MOST}, {NULL}},
	        none);
	numbers(reader, "switch", json_object_get(root, "switch"),
	        (const struct entry[]){
				{"price", &out->switch_price, 0, PRICE_MOST}, {"ports", &out->switch_ports, 1, COUNT_MOST}, {NULL}},
	        none);
	numbers(reader, "throughput", json_object_get(root, "throughput"),
	        (const struct entry[]){
				{"baseline", &out->throughput, 1e-9, PRICE_MOST}, {"hub", &hub_throughput, 1e-9, PRICE_MOST}, {NULL}},
	        none);
	if (reader->status == ESP_OK && (out->throughput > 0) != (hub_throughput > 0))
		wrong(reader, "", "throughput", "needs both \"baseline\" and \"hub\"");
	out->hub_throughput = out->throughput > 0 ? hub_throughput / out->throughput : 0;
	read_ratios(reader, root, out);
	read_scenarios(reader, root, out);
}

enum esp_status sim_money_parse(struct money_prices *out, const char *file, const char *text, size_t size,
                                struct error *err)
{
	struct reader reader = {.file = file, .err = err};
	json_error_t where;
	sim_money_paper_prices(out);
	out->from_paper = false;
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &where);
	if (!root)
		return error_set(err, json_error_code(&where) == json_error_out_of_memory ? ESP_ENOMEM : ESP_EPARSE,
		                 "%.100s:%d:%d: %s", file, where.line, where.column, where.text);
	if (!json_is_object(root))
		reader.status = error_set(err, ESP_EPARSE, "%.100s: it is no object of prices", file);
	else
		read_root(&reader, root, out);
	json_decref(root);
	return reader.status;
}
