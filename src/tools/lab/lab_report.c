#include "tools/lab/lab_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "report/complain.h"

/* ---- measurements ---- */

void lab_checks_add(void *context, const struct measure *measure, uint32_t count)
{
	struct lab_checks *checks = context;
	(void)count;
	struct measure *list = realloc(checks->list, (checks->count + 1) * sizeof(*list));
	checks->lost = checks->lost || !list;
	if (!list)
		return;
	checks->list = list;
	list[checks->count++] = *measure;
}

void lab_checks_fini(struct lab_checks *checks)
{
	free(checks->list);
	*checks = (struct lab_checks){0};
}

uint32_t lab_checks_wrong(const struct lab_checks *checks)
{
	uint32_t wrong = checks->lost ? 1 : 0;
	for (uint32_t i = 0; i < checks->count; i++)
		wrong += !measure_is_right(&checks->list[i]);
	return wrong;
}

static const char *end_name(const struct lab *lab, const struct measure *measure, uint32_t end,
                            char text[LAB_HOST_TEXT])
{
	return lab_space_name(lab, measure->class == MEASURE_UPLINK ? lab_rack_space(lab, end) : end, text);
}

static double percent_off(double value, double asked)
{
	return asked > 0 ? (value / asked - 1) * 100 : 0;
}

enum esp_status lab_report_checks(const struct lab *lab, const struct lab_checks *checks)
{
	static const char *const headers[] = {"link",  "interface", "from",    "to",  "asked", "measured",
	                                      "off",   "rtt asked", "rtt",     "tries", "",    NULL};
	struct table table;
	char text[UNITS_TEXT], name[LAB_HOST_TEXT];
	table_init(&table, headers);
	for (uint32_t i = 0; i < checks->count; i++) {
		const struct measure *measure = &checks->list[i];
		table_cell(&table, "%s", measure->class == MEASURE_UPLINK ? "uplink" : "host");
		table_cell(&table, "e%u", measure->rail);
		table_cell(&table, "%s", end_name(lab, measure, measure->from, name));
		table_cell(&table, "%s", end_name(lab, measure, measure->to, name));
		table_cell(&table, "%s", units_format_rate(measure->asked_bits, text));
		table_cell(&table, "%.1f Mbit/s", measure->bits / 1e6);
		table_cell(&table, "%+.1f%%", percent_off(measure->bits, (double)measure->asked_bits));
		table_cell(&table, "%s", measure->asked_rtt_ns ? units_format_time(measure->asked_rtt_ns, text) : "-");
		table_cell(&table, "%.3f ms", (double)measure->rtt_ns / 1e6);
		table_cell(&table, "%u", measure->tries);
		table_cell(&table, "%s", measure->failure[0] ? measure->failure : measure_is_right(measure)
		           ? "" : "not as asked");
	}
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	return status;
}

void lab_json_checks(struct json *json, const struct lab *lab, const struct lab_checks *checks)
{
	char name[LAB_HOST_TEXT];
	json_key(json, "checks");
	json_array_begin(json);
	for (uint32_t i = 0; i < checks->count; i++) {
		const struct measure *measure = &checks->list[i];
		json_object_begin(json);
		json_put_string(json, "link", measure->class == MEASURE_UPLINK ? "uplink" : "host");
		json_put_u64(json, "interface", measure->rail);
		json_put_string(json, "from", end_name(lab, measure, measure->from, name));
		json_put_string(json, "to", end_name(lab, measure, measure->to, name));
		json_put_u64(json, "asked_bits_per_second", measure->asked_bits);
		json_put_double(json, "bits_per_second", measure->bits);
		json_put_double(json, "asked_rtt_seconds", (double)measure->asked_rtt_ns / 1e9);
		json_put_double(json, "rtt_seconds", (double)measure->rtt_ns / 1e9);
		json_put_u64(json, "tries", measure->tries);
		json_put_bool(json, "as_asked", measure_is_right(measure));
		json_put_string(json, "failure", measure->failure[0] ? measure->failure : NULL);
		json_object_end(json);
	}
	json_array_end(json);
}

/* ---- the lab ---- */

void lab_report_sentence(const struct lab *lab)
{
	const struct lab_config *config = &lab->config;
	char text[UNITS_TEXT], number[32] = "";
	printf("lab %s: %u rack%s of %u host%s, ", config->name, config->racks, cli_plural(config->racks), config->hosts,
	       cli_plural(config->hosts));
	for (uint32_t rail = 0; rail < config->rails; rail++)
		printf("%s%s", rail ? " and " : "", units_format_rate(config->rate[rail], text));
	snprintf(number, sizeof(number), "%g", config->oversubscribe);
	printf(" each, oversubscribed %s to 1, MTU %u, %s, seed %llu, process %d\n", number, config->mtu,
	       config->ipv6 ? "IPv6" : "IPv4", (unsigned long long)config->seed, lab->keeper);
}

void lab_json_config(struct json *json, const struct lab *lab)
{
	const struct lab_config *config = &lab->config;
	json_put_string(json, "name", config->name);
	json_put_u64(json, "racks", config->racks);
	json_put_u64(json, "hosts_per_rack", config->hosts);
	json_key(json, "rates_bits_per_second");
	json_array_begin(json);
	for (uint32_t rail = 0; rail < config->rails; rail++)
		json_u64(json, config->rate[rail]);
	json_array_end(json);
	json_put_double(json, "oversubscribe", config->oversubscribe);
	json_put_u64(json, "mtu", config->mtu);
	json_put_bool(json, "ipv6", config->ipv6);
	json_put_u64(json, "seed", config->seed);
	json_put_string(json, "congestion", config->congestion[0] ? config->congestion : NULL);
	json_put_i64(json, "process", lab->keeper);
}

/* The relay's counters of both directions: "frames 120, duplicated 3"; "-" without a relay. */
static const char *relay_text(const struct lab_link *link, char *text, size_t size)
{
	struct lab_counts sum = {0};
	for (int way = 0; way < LAB_WAYS; way++) {
		const struct lab_counts *counts = &link->counts[way];
		sum.frames += counts->frames;
		sum.lost += counts->lost;
		sum.reordered += counts->reordered;
		sum.duplicated += counts->duplicated;
		sum.corrupted += counts->corrupted;
		sum.overrun += counts->overrun;
	}
	if (link->relay == 0)
		return "-";
	FILE *out = fmemopen(text, size, "w");
	if (!out)
		return "?";
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {{"lost", sum.lost},           {"reordered", sum.reordered}, {"duplicated", sum.duplicated},
	            {"corrupted", sum.corrupted}, {"overrun", sum.overrun}};
	fprintf(out, "%s%llu frames", link->relay < 0 ? "ended! " : "", (unsigned long long)sum.frames);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].value)
			fprintf(out, ", %llu %s", (unsigned long long)rows[i].value, rows[i].name);
	fputc('\0', out);
	fclose(out);
	text[size - 1] = '\0';
	return text;
}

static void link_row(struct table *table, const struct lab *lab, uint32_t index)
{
	const struct lab_link *link = lab_link(lab, index);
	char name[LAB_LINK_TEXT], address[LAB_ADDRESS_TEXT], rate[UNITS_TEXT], settings[LAB_SETTINGS_TEXT], relay[160];
	bool uplink = link->host == LAB_NOBODY;
	table_cell(table, "%s", lab_link_name(lab, index, name));
	if (uplink)
		table_cell(table, "uplink");
	else
		table_cell(table, "rack%u/%u", link->rack, lab_host(lab, link->host)->slot);
	table_cell(table, "%s", uplink ? "-" : lab_address(lab, link->host, link->rail, address));
	table_cell(table, "%s", units_format_rate(link->set.rate, rate));
	table_cell(table, "%s", lab_settings_text(&link->set, &link->made, settings));
	table_cell(table, "%s", relay_text(link, relay, sizeof(relay)));
}

enum esp_status lab_report_links(const struct lab *lab)
{
	static const char *const headers[] = {"link", "place", "address", "rate", "set", "relay", NULL};
	struct table table;
	table_init(&table, headers);
	for (uint32_t i = 0; i < lab->link_count; i++)
		link_row(&table, lab, i);
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	return status;
}

static void json_way(struct json *json, const char *key, const struct lab_link *link, int way)
{
	const struct lab_faults *faults = &link->set.faults[way];
	const struct lab_counts *counts = &link->counts[way];
	json_key(json, key);
	json_object_begin(json);
	json_put_bool(json, "cut", faults->cut);
	json_put_double(json, "loss", faults->loss / (double)UNITS_SHARE_ALL);
	json_put_double(json, "delay_seconds", (double)faults->delay_ns / 1e9);
	json_put_double(json, "jitter_seconds", (double)faults->jitter_ns / 1e9);
	json_put_double(json, "reorder", faults->reorder / (double)UNITS_SHARE_ALL);
	json_put_double(json, "hold_seconds", (double)faults->hold_ns / 1e9);
	json_put_double(json, "duplicate", faults->duplicate / (double)UNITS_SHARE_ALL);
	json_put_double(json, "corrupt", faults->corrupt / (double)UNITS_SHARE_ALL);
	json_key(json, "relayed");
	json_object_begin(json);
	json_put_u64(json, "frames", counts->frames);
	json_put_u64(json, "lost", counts->lost);
	json_put_u64(json, "reordered", counts->reordered);
	json_put_u64(json, "duplicated", counts->duplicated);
	json_put_u64(json, "corrupted", counts->corrupted);
	json_put_u64(json, "overrun", counts->overrun);
	json_object_end(json);
	json_object_end(json);
}

void lab_json_links(struct json *json, const struct lab *lab)
{
	char name[LAB_LINK_TEXT], address[LAB_ADDRESS_TEXT], settings[LAB_SETTINGS_TEXT];
	json_key(json, "links");
	json_array_begin(json);
	for (uint32_t i = 0; i < lab->link_count; i++) {
		const struct lab_link *link = lab_link(lab, i);
		bool uplink = link->host == LAB_NOBODY;
		json_object_begin(json);
		json_put_string(json, "link", lab_link_name(lab, i, name));
		json_put_string(json, "kind", uplink ? "uplink" : "host");
		json_put_string(json, "host", uplink ? NULL : lab_host(lab, link->host)->name);
		json_put_u64(json, "rack", link->rack);
		if (!uplink)
			json_put_u64(json, "slot", lab_host(lab, link->host)->slot);
		json_put_u64(json, "interface", link->rail);
		json_put_string(json, "address", uplink ? NULL : lab_address(lab, link->host, link->rail, address));
		json_put_u64(json, "rate_bits_per_second", link->set.rate);
		json_put_string(json, "set", lab_settings_text(&link->set, &link->made, settings));
		json_put_bool(json, "down", link->set.down);
		json_put_u64(json, "background_flows", link->set.background);
		json_put_u64(json, "background_bytes", link->background_bytes);
		json_put_i64(json, "relay", link->relay);
		json_way(json, "from", link, LAB_FROM);
		json_way(json, "to", link, LAB_TO);
		json_object_end(json);
	}
	json_array_end(json);
}
