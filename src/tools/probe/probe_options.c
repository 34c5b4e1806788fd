#include "tools/probe/probe_outcome.h"

#include "network/probe/burst.h"
#include "network/probe/probe.h"
#include "report/complain.h"
#include "report/options.h"

#define RANKS_MAX 16384u
#define SECONDS_MAX 3600.0
#define WAIT_SECONDS 20.0

static int check(const struct probe_options *options)
{
	bool starts = options->hosts || options->hostfile || options->ranks;

	if (!(options->seconds >= 0.5 && options->seconds <= SECONDS_MAX))
		return complain_usage("probe: --seconds: from 0.5 to %.0f", SECONDS_MAX);
	if (options->elasticity != 0 && !(options->elasticity >= 1 && options->elasticity <= RANKS_MAX))
		return complain_usage("probe: --elasticity: 1 or more");
	if (options->elasticity != 0 && !options->groups)
		return complain_usage("probe: --elasticity means nothing without --groups");
	if (!(options->wait > 0 && options->wait <= SECONDS_MAX))
		return complain_usage("probe: --wait: more than 0, up to %.0f", SECONDS_MAX);
	if (options->matrix && (starts || options->save_matrix))
		return complain_usage(
			"probe: --matrix groups what was measured before: no host is probed, and --hosts, --hostfile, -n and "
			"--save-matrix have no place");
	if (options->rsh && !options->hosts && !options->hostfile)
		return complain_usage("probe: --rsh means nothing without --hosts or --hostfile");
	if (options->port && !starts)
		return complain_usage("probe: --port says where the ranks of --hosts, --hostfile or -n meet; under a launcher "
		                      "it is the launcher's, as in "
		                      "espalier run --port");
	if (options->hosts && options->hostfile)
		return complain_usage("probe: --hosts or --hostfile, not both");
	return -1;
}

int probe_tool_options_parse(struct probe_options *options, int argc, char **argv)
{
	*options = (struct probe_options){.seconds = PROBE_SECONDS, .seed = 1, .wait = WAIT_SECONDS};
	const struct option_spec table[] = {
		{"latency", 0, OPTION_FLAG, &options->latency, NULL, "group by latency (default: by both, as is clearer)"},
		{"bandwidth", 0, OPTION_FLAG, &options->bandwidth, NULL, "group by bandwidth"},
		{"seconds", 's', OPTION_DOUBLE, &options->seconds, "S", "time for probing (default 8; many hosts take longer)"},
		{"hosts", 0, OPTION_STRING, &options->hosts, "LIST",
		 "hosts to be probed, as in a,b,user@c: started like espalier run"},
		{"hostfile", 0, OPTION_STRING, &options->hostfile, "FILE", "the same from a file, a line for each"},
		{"rsh", 0, OPTION_STRING, &options->rsh, "COMMAND", "remote shell, as of espalier run (default: ssh)"},
		{"port", 0, OPTION_U64, &options->port, "PORT",
		 "where the ranks meet at the first host (default: a random one)", .min = 1, .max = UINT16_MAX},
		{"ranks", 'n', OPTION_U64, &options->ranks, "N", "start so many ranks, here or on --hosts", .min = 2,
		 .max = RANKS_MAX},
		{"wait", 'w', OPTION_DOUBLE, &options->wait, "S",
		 "how long a host may take to answer, and to join (default 20); it is left out then"},
		{"absent", 0, OPTION_STRING, &options->absent, "LIST",
		 "what --hosts tells the ranks: hosts that could not be started"},
		{"each-rank", 0, OPTION_FLAG, &options->each_rank, NULL,
		 "every rank stands for a host, also those of one machine"},
		{"out", 'o', OPTION_STRING, &options->out, "FILE",
		 "write the topology there, for --topology of run and of sim run"},
		{"html", 0, OPTION_STRING, &options->html, "FILE",
		 "write a report for a browser: one file that needs no network"},
		{"json", 0, OPTION_FLAG, &options->json, NULL, "print JSON"},
		{"groups", 'k', OPTION_U64, &options->groups, "K", "so many groups (default: what is fastest)", .min = 1,
		 .max = RANKS_MAX},
		{"elasticity", 0, OPTION_DOUBLE, &options->elasticity, "E",
		 "by what factor sizes of --groups may differ from the mean, 1: even (default: what is fastest)"},
		{"matrix", 0, OPTION_STRING, &options->matrix, "FILE", "group what was measured before, and probe nothing"},
		{"save-matrix", 0, OPTION_STRING, &options->save_matrix, "FILE", "keep what was measured, for --matrix"},
		{"racks", 0, OPTION_STRING, &options->racks, "FILE",
		 "compare with the truth: lines 'host rack', Slurm's topology.conf or kubectl's node list"},
		{"rack-label", 0, OPTION_STRING, &options->rack_label, "KEY",
		 "the label that names racks in kubectl's node list (default: the usual ones)"},
		{"streams", 0, OPTION_U64, &options->streams, "N", "connections on each way (default 4)", .min = 1,
		 .max = BURST_EACH_MOST},
		{"seed", 0, OPTION_U64, &options->seed, "SEED", "of all that is left to chance (default 1)"},
		{0},
	};
	const struct options_usage usage = {
		"probe", "",
		"Measures how far hosts are from each other, finds out which of them share a switch, and writes that down\n"
		"as a topology. Started as the ranks of a job (espalier run, lab run, mpirun, torchrun) one rank of each\n"
		"host probes; by itself it starts them first:\n\n"
		"  espalier probe --hosts a,b,c,d --out topology.txt --html report.html\n"
		"  espalier lab run -- espalier probe --latency\n"
		"  espalier probe --matrix measured.txt --groups 4\n\n"
		"The network is busy while bandwidth is measured. Hosts that cannot be started or do not answer are named\n"
		"and left out. Returns 1 if nothing could be found out.",
		table, 0, 0,
	};
	int parsed = options_parse(&usage, &argc, argv);
	if (parsed >= 0)
		return parsed;
	if (!options->latency && !options->bandwidth)
		options->latency = options->bandwidth = true;
	return check(options);
}
