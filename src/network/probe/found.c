#include "network/probe/found.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

#define DELAY_LEAST 1e-9
#define NEARLY 0.9 /* of the hosts' rates */

void probe_found_fini(struct found *found)
{
	survey_fini(&found->survey);
	grouping_fini(&found->grouping);
	free(found->rate_out);
	free(found->rate_in);
	free(found->uplink_out);
	free(found->uplink_in);
	free(found->lost);
	*found = (struct found){0};
}

enum esp_status probe_found_rates_init(struct found *found, struct error *err)
{
	size_t hosts = found->survey.count, groups = found->grouping.count;

	found->rate_out = calloc(hosts + 1, sizeof(double));
	found->rate_in = calloc(hosts + 1, sizeof(double));
	found->uplink_out = calloc(groups + 1, sizeof(double));
	found->uplink_in = calloc(groups + 1, sizeof(double));
	if (!found->rate_out || !found->rate_in || !found->uplink_out || !found->uplink_in)
		return error_set(err, ESP_ENOMEM, "no memory for the rates of %zu hosts", hosts);
	return ESP_OK;
}

void probe_found_uplinks(const struct report_row *rows, uint32_t hosts, const struct grouping *grouping,
                         double *out_out, double *out_in)
{
	memset(out_out, 0, grouping->count * sizeof(*out_out));
	memset(out_in, 0, grouping->count * sizeof(*out_in));
	for (uint32_t to = 0; to < hosts; to++)
		for (uint32_t from = 0; from < hosts; from++) {
			double rate = rows[(size_t)to * hosts + from].rate_sum;
			if (grouping->group_of[to] == grouping->group_of[from])
				continue;
			out_in[grouping->group_of[to]] += rate;
			out_out[grouping->group_of[from]] += rate;
		}
}

/* ---- estimates ---- */

static const struct matrix *inverse_of(const struct found *found)
{
	const struct matrix *matrix = &found->survey.matrices[SURVEY_INVERSE_BANDWIDTH];

	return matrix->size ? matrix : NULL;
}

static double best_rate(const struct matrix *inverse, uint32_t host)
{
	double best = 0;

	for (uint32_t j = 0; j < inverse->size; j++) {
		double each = matrix_get(inverse, host, j);
		if (j != host && isfinite(each) && each > 0)
			best = fmax(best, 1 / each);
	}
	return best;
}

/* The expected number of hosts of such a group that have partners outside in a random round. */
static double flows_out(uint32_t size, uint32_t hosts)
{
	return (double)size * (hosts - size) / (hosts - 1);
}

static double estimate_uplink(const struct found *found, const struct matrix *inverse, uint32_t group)
{
	const struct grouping *grouping = &found->grouping;
	double sum = 0, own = 0;
	uint32_t known = 0, size = 0;

	for (uint32_t i = 0; i < grouping->nodes; i++) {
		if (grouping->group_of[i] != group)
			continue;
		size++;
		own += found->rate_out[i];
		for (uint32_t j = 0; j < grouping->nodes; j++) {
			double each = matrix_get(inverse, i, j);
			if (grouping->group_of[j] != group && isfinite(each) && each > 0) {
				sum += 1 / each;
				known++;
			}
		}
	}
	/* flows as fast as their hosts have not filled the uplink: its rate is unknown */
	if (known && sum / known * size >= NEARLY * own)
		return own;
	return known ? fmin(own, sum / known * flows_out(size, grouping->nodes)) : 0;
}

static void fill(double *at, double estimate)
{
	if (*at <= 0)
		*at = estimate;
}

void probe_found_estimate_rates(struct found *found)
{
	const struct matrix *inverse = inverse_of(found);

	if (!inverse)
		return;
	for (uint32_t i = 0; i < found->survey.count; i++) {
		double rate = best_rate(inverse, i);
		fill(&found->rate_out[i], rate);
		fill(&found->rate_in[i], rate);
	}
	for (uint32_t g = 0; g < found->grouping.count && found->grouping.count > 1; g++) {
		double rate = estimate_uplink(found, inverse, g);
		fill(&found->uplink_out[g], rate);
		fill(&found->uplink_in[g], rate);
	}
}

/* ---- the topology ---- */

/* The mean round trip within (or out of) a group; NAN: none is known. */
static double mean_latency(const struct found *found, uint32_t group, bool inside)
{
	const struct matrix *latency = &found->survey.matrices[SURVEY_LATENCY];
	const struct grouping *grouping = &found->grouping;
	double sum = 0;
	uint32_t known = 0;

	for (uint32_t i = 0; i < latency->size; i++)
		for (uint32_t j = 0; j < latency->size; j++) {
			bool same = grouping->group_of[i] == grouping->group_of[j];
			if (i == j || grouping->group_of[i] != group || same != inside || !isfinite(matrix_get(latency, i, j)))
				continue;
			sum += matrix_get(latency, i, j);
			known++;
		}
	return known ? sum / known : NAN;
}

/* One way over a host's link: a quarter of the round trip between two hosts. */
static double host_delay(const struct found *found, uint32_t group)
{
	double inside = mean_latency(found, group, true), outside = mean_latency(found, group, false);
	double delay = isfinite(inside) ? inside / 4 : isfinite(outside) ? outside / 8 : 0;

	return delay < DELAY_LEAST ? 0 : delay;
}

/* The additional delay to other groups, divided over two uplinks and two directions. */
static double uplink_delay(const struct found *found, uint32_t group)
{
	double outside = mean_latency(found, group, false);
	double delay = isfinite(outside) ? outside / 4 - host_delay(found, group) : 0;

	return delay < DELAY_LEAST ? 0 : delay;
}

/* More digits would be noise. */
static uint64_t four_digits(double value)
{
	double unit = 1;

	while (value / unit >= 1e4)
		unit *= 10;
	return (uint64_t)(floor(value / unit + 0.5) * unit);
}

static uint64_t bits(double rate)
{
	return four_digits(rate * 8);
}

static void print_link(FILE *file, double out, double in, double delay)
{
	char text[UNITS_TEXT];

	fprintf(file, " rate %s", units_format_rate(bits(out), text));
	if (bits(in) != bits(out))
		fprintf(file, " in %s", units_format_rate(bits(in), text));
	if (delay > 0)
		fprintf(file, " delay %s", units_format_time(four_digits(delay * 1e9), text));
	fputc('\n', file);
}

/* A name that is too long for a topology loses its domain. */
static enum esp_status host_name(const char *name, char out[TOPOLOGY_NAME], struct error *err)
{
	size_t length = strlen(name), host = strcspn(name, ".");

	length = length < TOPOLOGY_NAME ? length : host;
	if (length >= TOPOLOGY_NAME)
		return error_set(err, ESP_ELIMIT, "the name of host %s has more than the %u letters of a topology", name,
		                 TOPOLOGY_NAME - 1);
	memcpy(out, name, length);
	out[length] = '\0';
	return ESP_OK;
}

/* A name that no host has. */
static void switch_name(const struct found *found, const char *stem, uint32_t number, char out[TOPOLOGY_NAME])
{
	static const char *const tails[] = {"", "-switch", "-of-probe"};

	for (size_t t = 0; t < sizeof(tails) / sizeof(tails[0]); t++) {
		bool taken = false;
		if (number == UINT32_MAX)
			snprintf(out, TOPOLOGY_NAME, "%s%s", stem, tails[t]);
		else
			snprintf(out, TOPOLOGY_NAME, "%s%u%s", stem, number, tails[t]);
		for (uint32_t i = 0; i < found->survey.count; i++)
			taken = taken || strcmp(found->survey.names[i], out) == 0;
		if (!taken)
			return;
	}
}

static enum esp_status check_printable(const struct found *found, struct error *err)
{
	char name[TOPOLOGY_NAME];

	for (uint32_t i = 0; i < found->survey.count; i++) {
		enum esp_status status = host_name(found->survey.names[i], name, err);
		if (status != ESP_OK)
			return status;
		if (bits(found->rate_out[i]) < 8 || bits(found->rate_in[i]) < 8)
			return error_set(err, ESP_EINVAL, "the rate of host %s is not known: probe bandwidth too",
			                 found->survey.names[i]);
	}
	for (uint32_t g = 0; g < found->grouping.count && found->grouping.count > 1; g++)
		if (bits(found->uplink_out[g]) < 8 || bits(found->uplink_in[g]) < 8)
			return error_set(err, ESP_EINVAL, "the rate of group %u is not known: probe bandwidth too", g);
	return ESP_OK;
}

static void print_group(const struct found *found, uint32_t group, const char *root, FILE *file)
{
	char name[TOPOLOGY_NAME], host[TOPOLOGY_NAME];

	snprintf(name, sizeof(name), "%s", root);
	if (found->grouping.count > 1) {
		switch_name(found, "group", group, name);
		fprintf(file, "switch %s under %s", name, root);
		print_link(file, found->uplink_out[group], found->uplink_in[group], uplink_delay(found, group));
	}
	for (uint32_t i = 0; i < found->survey.count; i++) {
		if (found->grouping.group_of[i] != group || host_name(found->survey.names[i], host, NULL) != ESP_OK)
			continue;
		fprintf(file, "host %s under %s", host, name);
		print_link(file, found->rate_out[i], found->rate_in[i], host_delay(found, group));
	}
}

enum esp_status probe_found_print_topology(const struct found *found, const char *const *comments, FILE *file,
                                           struct error *err)
{
	char root[TOPOLOGY_NAME];
	enum esp_status status = check_printable(found, err);

	if (status != ESP_OK)
		return status;
	fputs("topology 1\n", file);
	for (; comments && *comments; comments++)
		fprintf(file, "# %s\n", *comments);
	switch_name(found, "core", UINT32_MAX, root);
	fprintf(file, "switch %s\n", root);
	for (uint32_t g = 0; g < found->grouping.count; g++)
		print_group(found, g, root, file);
	return ferror(file) ? error_set(err, ESP_EIO, "cannot write the topology") : ESP_OK;
}

enum esp_status probe_found_print_lost(const struct found *found, FILE *file, struct error *err)
{
	char root[TOPOLOGY_NAME], name[TOPOLOGY_NAME];
	double rate = INFINITY;

	for (uint32_t i = 0; i < found->survey.count; i++)
		rate = fmin(rate, fmin(found->rate_out[i], found->rate_in[i]));
	switch_name(found, "core", UINT32_MAX, root);
	for (uint32_t i = 0; i < found->lost_count; i++) {
		enum esp_status status = host_name(found->lost[i].name, name, err);
		if (status != ESP_OK)
			return status;
		fprintf(file, "host %s under %s", name, root);
		print_link(file, rate, rate, 0);
	}
	return ferror(file) ? error_set(err, ESP_EIO, "cannot write the topology") : ESP_OK;
}

enum esp_status probe_topology(const struct found *found, struct topology **out, struct error *err)
{
	char *text = NULL;
	size_t length = 0;
	FILE *file = open_memstream(&text, &length);

	if (!file)
		return error_set(err, ESP_ENOMEM, "no memory for a topology");
	enum esp_status status = probe_found_print_topology(found, NULL, file, err);
	if (fclose(file) != 0 && status == ESP_OK)
		status = error_set(err, ESP_ENOMEM, "no memory for a topology");
	if (status == ESP_OK)
		status = topology_parse(text, length, out, err);
	free(text);
	return status;
}
