#include "tools/lab/lab_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/units.h"
#include "report/complain.h"
#include "tools/lab/lab_switch.h"

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
		wrong += !lab_measure_is_right(&checks->list[i]);
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

static void put_check(struct rows *rows, const struct lab *lab, const struct measure *measure)
{
	char text[UNITS_TEXT], name[LAB_HOST_TEXT];

	rows_text(rows, measure->class == MEASURE_UPLINK ? "uplink" : "host");
	rows_shown(rows, "e%u", measure->rail);
	rows_u64(rows, measure->rail);
	rows_text(rows, end_name(lab, measure, measure->from, name));
	rows_text(rows, end_name(lab, measure, measure->to, name));
	rows_shown(rows, "%s", units_format_rate(measure->asked_bits, text));
	rows_u64(rows, measure->asked_bits);
	rows_double(rows, measure->bits);
	rows_double(rows, percent_off(measure->bits, (double)measure->asked_bits));
	rows_shown(rows, "%s", measure->asked_rtt_ns ? units_format_time(measure->asked_rtt_ns, text) : "-");
	rows_double(rows, (double)measure->asked_rtt_ns / 1e9);
	rows_double(rows, (double)measure->rtt_ns / 1e9);
	rows_u64(rows, measure->tries);
	rows_shown(rows, "%s",
	           measure->failure[0]             ? measure->failure
	           : lab_measure_is_right(measure) ? ""
	                                           : "not as asked");
	rows_bool(rows, lab_measure_is_right(measure));
	rows_text(rows, measure->failure[0] ? measure->failure : NULL);
}

enum esp_status lab_report_checks(const struct lab *lab, const struct lab_checks *checks, struct json *json)
{
	static const struct column columns[] = {
		{"link", "link"},
		{"interface", "interface"},
		{"from", "from"},
		{"to", "to"},
		{"asked", "asked_bits_per_second"},
		{"measured", "bits_per_second", "%.1f Mbit/s", 1e-6},
		{"off", NULL, "%+.1f%%"},
		{"rtt asked", "asked_rtt_seconds"},
		{"rtt", "rtt_seconds", "%.3f ms", 1e3},
		{"tries", "tries"},
		{"", "as_asked"},
		{NULL, "failure"},
		{0},
	};
	struct rows rows;

	if (json)
		json_key(json, "checks");
	rows_begin(&rows, columns, json);
	for (uint32_t i = 0; i < checks->count; i++)
		put_check(&rows, lab, &checks->list[i]);
	return rows_end(&rows, stdout);
}

/* ---- the lab ---- */

void lab_report_sentence(const struct lab *lab)
{
	const struct lab_config *config = &lab->config;
	char text[UNITS_TEXT], number[32] = "", name[LAB_HOST_TEXT], address[LAB_SWITCH_TEXT];
	printf("lab %s: %u rack%s of %u host%s, ", config->name, config->racks, plural(config->racks), config->hosts,
	       plural(config->hosts));
	for (uint32_t rail = 0; rail < config->rails; rail++)
		printf("%s%s", rail ? " and " : "", units_format_rate(config->rate[rail], text));
	snprintf(number, sizeof(number), "%g", config->oversubscribe);
	printf(" each, oversubscribed %s to 1, MTU %u, %s, seed %llu, process %d\n", number, config->mtu,
	       config->ipv6 ? "IPv6" : "IPv4", (unsigned long long)config->seed, lab->keeper);
	if (lab->through != LAB_NOBODY)
		printf("a switch at %s: ESP_SWITCH=%s\n", lab_space_name(lab, lab->through, name),
		       lab_switch_address(lab, address));
}

void lab_json_config(struct json *json, const struct lab *lab)
{
	const struct lab_config *config = &lab->config;
	char address[LAB_SWITCH_TEXT];
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
	json_put_string(json, "switch", lab->through != LAB_NOBODY ? lab_switch_address(lab, address) : NULL);
}

/* "frames 120, duplicated 3": what the relay of a link has done, both ways; "-" without one. */
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

/* One direction of a link: its settings, and the counts of its relay. */
static void put_way(struct json *json, const struct lab_link *link, int way)
{
	const struct lab_faults *faults = &link->set.faults[way];
	const struct lab_counts *counts = &link->counts[way];
	if (!json)
		return;
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

static void put_place(struct rows *rows, const struct lab *lab, const struct lab_link *link)
{
	char address[LAB_ADDRESS_TEXT];
	bool uplink = link->host == LAB_NOBODY;
	rows_text(rows, uplink ? "uplink" : "host");
	rows_text(rows, uplink ? NULL : lab_host(lab, link->host)->name);
	if (uplink)
		rows_shown(rows, "uplink");
	else
		rows_shown(rows, "rack%u/%u", link->rack, lab_host(lab, link->host)->slot);
	rows_u64(rows, link->rack);
	if (uplink)
		rows_skip(rows);
	else
		rows_u64(rows, lab_host(lab, link->host)->slot);
	rows_u64(rows, link->rail);
	rows_text(rows, uplink ? NULL : lab_address(lab, link->host, link->rail, address));
}

static void put_link(struct rows *rows, const struct lab *lab, uint32_t index)
{
	const struct lab_link *link = lab_link(lab, index);
	char name[LAB_LINK_TEXT], rate[UNITS_TEXT], settings[LAB_SETTINGS_TEXT], relay[160];
	rows_text(rows, lab_link_name(lab, index, name));
	put_place(rows, lab, link);
	rows_shown(rows, "%s", units_format_rate(link->set.rate, rate));
	rows_u64(rows, link->set.rate);
	rows_text(rows, lab_settings_text(&link->set, &link->made, settings));
	rows_bool(rows, link->set.down);
	rows_u64(rows, link->set.background);
	rows_u64(rows, link->background_bytes);
	rows_shown(rows, "%s", relay_text(link, relay, sizeof(relay)));
	rows_i64(rows, link->relay);
	put_way(rows_nested(rows), link, LAB_FROM);
	put_way(rows_nested(rows), link, LAB_TO);
}

enum esp_status lab_report_links(const struct lab *lab, struct json *json)
{
	static const struct column columns[] = {
		{"link", "link"},
		{NULL, "kind"},
		{NULL, "host"},
		{"place", "rack"},
		{NULL, "slot"},
		{NULL, "interface"},
		{"address", "address"},
		{"rate", "rate_bits_per_second"},
		{"set", "set"},
		{NULL, "down"},
		{NULL, "background_flows"},
		{NULL, "background_bytes"},
		{"relay", "relay"},
		{NULL, "from"},
		{NULL, "to"},
		{0},
	};
	struct rows rows;
	if (json)
		json_key(json, "links");
	rows_begin(&rows, columns, json);
	for (uint32_t i = 0; i < lab->link_count; i++)
		put_link(&rows, lab, i);
	return rows_end(&rows, stdout);
}
