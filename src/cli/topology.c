/*
 * topology.c - espalier topology: a topology file of what is written down already, in a rack map, by Slurm or by
 * Kubernetes.
 */
#include <stdio.h>

#include "base/infile.h"
#include "base/outfile.h"
#include "base/units.h"
#include "cli/cli.h"
#include "network/topo/racks_topology.h"
#include "report/options.h"

#define COMMAND "topology"
#define GO_ON (-1)

struct given {
	const char *file, *rate, *uplink, *delay, *uplink_delay, *label, *out;
	double oversubscribe;
	bool oversubscribe_given;
};

static int parse(struct given *given, int *argc, char **argv)
{
	const struct option_spec options[] = {
		{"rate", 0, OPTION_STRING, &given->rate, "RATE",
	     "of a host's link, each way, such as 25gbit; it has to be said"},
		{"oversubscribe", 0, OPTION_DOUBLE, &given->oversubscribe, "N",
	     "a rack's uplink has hosts * rate / N (default 1)", .given = &given->oversubscribe_given},
		{"uplink", 0, OPTION_STRING, &given->uplink, "RATE", "of a rack's uplink, each way, in place of that"},
		{"delay", 0, OPTION_STRING, &given->delay, "TIME",
	     "of a host's link, one way, such as 5us; a number alone counts microseconds (default 0)"},
		{"uplink-delay", 0, OPTION_STRING, &given->uplink_delay, "TIME", "of a switch's uplink, one way (default 0)"},
		{"rack-label", 0, OPTION_STRING, &given->label, "KEY",
	     "the label that names racks in kubectl's node list (default: the usual ones)"},
		{"out", 'o', OPTION_STRING, &given->out, "FILE", "write the topology there (default: the standard output)"},
		{0},
	};
	const struct options_usage usage = {
		COMMAND,
		"FILE",
		"Makes a topology of what is known already, without probing: FILE has lines 'host rack', or 'host row/rack',\n"
		"or it is Slurm's topology.conf, or what kubectl get nodes -o json prints; - is the standard input. The\n"
		"result is for ESP_TOPOLOGY, espalier run --topology and espalier sim run --topology.\n\n"
		"  espalier topology racks.txt --rate 25gbit --oversubscribe 4 > topology.txt\n"
		"  espalier topology topology.conf --rate 100gbit --uplink 400gbit --out topology.txt\n"
		"  kubectl get nodes -o json | espalier topology - --rate 10gbit\n\n"
		"No host is asked: names have to be those that the hosts of a job have, with or without a domain, or their "
	    "addresses.",
		options,
		1,
		1};
	return options_parse(&usage, argc, argv);
}

static int take_rate(const char *name, const char *text, uint64_t *out_bits)
{
	if (!text || units_parse_rate(text, out_bits))
		return GO_ON;
	return complain_usage(COMMAND ": --%s: '%s' is not a rate such as 200mbit or 25gbit", name, text);
}

static int take_delay(const char *name, const char *text, uint64_t *out_ns)
{
	if (!text || units_parse_delay(text, out_ns))
		return GO_ON;
	return complain_usage(COMMAND ": --%s: '%s' is not a time such as 5us, up to an hour", name, text);
}

static int understand(const struct given *given, struct racks_links *links)
{
	if (!given->rate)
		return complain_usage(COMMAND ": how fast is the link of a host? Give --rate, such as 25gbit");
	if (given->uplink && given->oversubscribe_given)
		return complain_usage(
			COMMAND ": --uplink says what a rack's uplink has, and so does --oversubscribe: give one of them");
	if (!(given->oversubscribe > 0 && given->oversubscribe <= 1e6))
		return complain_usage(COMMAND ": --oversubscribe must be above 0, and 1000000 at most");
	*links = (struct racks_links){.oversubscribe = given->oversubscribe};
	int status = take_rate("rate", given->rate, &links->rate_bits);
	if (status == GO_ON)
		status = take_rate("uplink", given->uplink, &links->uplink_bits);
	if (status == GO_ON)
		status = take_delay("delay", given->delay, &links->delay_ns);
	return status == GO_ON ? take_delay("uplink-delay", given->uplink_delay, &links->uplink_delay_ns) : status;
}

/* Racks and hosts of the file; what is made of them. */
static enum esp_status make(const struct given *given, const struct racks_links *links, const struct infile *file,
                            struct racks *out_racks, struct topology **out, struct error *err)
{
	struct racks_names names = {0};
	enum esp_status status = racks_names_read(file->text, file->length, &names, err);

	if (status == ESP_OK)
		status = racks_read(file->text, file->length, given->label, (const char *const *)names.list, names.count,
		                    out_racks, err);
	if (status == ESP_OK && given->label && !out_racks->label)
		status = error_set(err, ESP_EINVAL,
		                   "--rack-label is for what kubectl get nodes -o json prints, and this is another file");
	if (status == ESP_OK)
		status = racks_topology(out_racks, (const char *const *)names.list, links, out, err);
	racks_names_fini(&names);
	return status;
}

static enum esp_status count_racks(const struct racks *racks, uint32_t *out, struct error *err)
{
	struct grouping grouping = {0};
	enum esp_status status = racks_grouping(racks, &grouping, err);

	*out = grouping.count;
	grouping_fini(&grouping);
	return status;
}

static enum esp_status print(const struct racks *racks, const struct topology *topology, FILE *file, struct error *err)
{
	uint32_t count;
	enum esp_status status = count_racks(racks, &count, err);

	if (status != ESP_OK)
		return status;
	fprintf(file, "# made by espalier topology: %u host%s in %u rack%s", racks->nodes, plural(racks->nodes), count,
	        plural(count));
	if (racks->label)
		fprintf(file, ", by the label %s", racks->label);
	fputs("; rates as told, not measured\n", file);
	return topology_print(topology, file, err);
}

static int write_out(const struct given *given, const struct racks *racks, const struct topology *topology)
{
	struct outfile file;
	struct error err = {0};

	if (!given->out)
		return complain_end(COMMAND, print(racks, topology, stdout, &err), &err);
	if (outfile_open(&file, given->out, &err) != ESP_OK)
		return complain(COMMAND ": %s", err.text);
	if (print(racks, topology, file.file, &err) != ESP_OK) {
		outfile_abandon(&file);
		return complain(COMMAND ": %s: %s", given->out, err.text);
	}
	return outfile_commit(&file, &err) == ESP_OK ? EXIT_OK : complain(COMMAND ": %s", err.text);
}

static int convert(const struct given *given, const struct racks_links *links)
{
	struct infile file;
	struct racks racks = {0};
	struct topology *topology = NULL;
	struct error err = {0};
	int exit_status = EXIT_OK;

	if (infile_open(&file, given->file, &err) != ESP_OK)
		return complain_usage(COMMAND ": %s", err.text);
	if (make(given, links, &file, &racks, &topology, &err) == ESP_OK)
		exit_status = write_out(given, &racks, topology);
	else
		exit_status = complain(COMMAND ": %s: %s", given->file, err.text);
	infile_close(&file);
	racks_fini(&racks);
	topology_close(topology);
	return exit_status;
}

static int run(int argc, char **argv)
{
	struct given given = {.oversubscribe = 1};
	struct racks_links links;
	int status = parse(&given, &argc, argv);

	if (status == GO_ON)
		status = understand(&given, &links);
	if (status != GO_ON)
		return status;
	given.file = argv[1];
	return convert(&given, &links);
}

const struct cli_command cli_topology = {
	"topology", "makes a topology file of racks that are known: a map, Slurm's, Kubernetes'", run};
