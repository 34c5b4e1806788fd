/*
 * exec_bench.c - what the executor itself costs: nanoseconds per step, message and chunk.
 *
 * Executors of all nodes run a plan in one thread with data operations switched off. The
 * driver between them is as thin as it can be (a call per message, no queue, no copy), and
 * its cost is counted in. Steps are counted as the checker does: every term of a sum is one.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "engine/exec.h"
#include "report/json.h"

#define MAX_ROUNDS 101

struct options {
	const char *planner; /* NULL: a choice of them */
	uint32_t rounds;
	uint32_t credits, active_chunks;
	bool json;
};

struct sample {
	uint64_t ns, steps, messages, chunks;
};

struct result {
	const char *planner;
	uint32_t nodes;
	uint64_t chunks;
	struct sample size;   /* of one round */
	double low, median, high; /* ns per step: quartiles */
};

static void die(const char *what)
{
	fprintf(stderr, "exec_bench: %s\n", what);
	exit(1);
}

/* The thread's own time: what others do on the machine shows less. */
static uint64_t thread_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* ---- the driver ---- */

struct cluster {
	struct exec **exec;
	uint32_t nodes;
	uint32_t *busy; /* a stack of nodes that may have something to send */
	uint8_t *is_busy;
	uint32_t busy_count;
};

static void mark_busy(struct cluster *cluster, uint32_t node)
{
	if (!cluster->is_busy[node]) {
		cluster->is_busy[node] = 1;
		cluster->busy[cluster->busy_count++] = node;
	}
}

static void deliver(struct cluster *cluster, uint32_t from, uint32_t to, const struct transport_message *message)
{
	struct exec *receiver = cluster->exec[to];
	enum esp_status status = message->is_credit ? exec_credit(receiver, from, message)
	                                            : exec_begin(receiver, from, message);

	if (status != ESP_OK)
		die("a message was refused");
	if (!message->is_credit) {
		exec_arrived(receiver, from, message->bytes);
		exec_ended(receiver, from);
		exec_sent(cluster->exec[from], message->cookie);
	}
	mark_busy(cluster, to);
}

static void pump(struct cluster *cluster)
{
	while (cluster->busy_count > 0) {
		uint32_t node = cluster->busy[--cluster->busy_count], peer;

		cluster->is_busy[node] = 0;
		while ((peer = exec_ready(cluster->exec[node])) != UINT32_MAX) {
			struct transport_message message;

			while (exec_next(cluster->exec[node], peer, &message))
				deliver(cluster, node, peer, &message);
		}
	}
}

static void cluster_open(struct cluster *cluster, uint32_t nodes, const struct options *options)
{
	*cluster = (struct cluster){
		.exec = calloc(nodes, sizeof(struct exec *)),
		.nodes = nodes,
		.busy = calloc(nodes, sizeof(uint32_t)),
		.is_busy = calloc(nodes, 1),
	};
	if (!cluster->exec || !cluster->busy || !cluster->is_busy)
		die("out of memory");
	for (uint32_t i = 0; i < nodes; i++) {
		struct exec_config config = {
			.node = i,
			.credits = options->credits,
			.active_chunks = options->active_chunks,
			.slot_bytes = 65536,
			.dry = true,
		};

		if (exec_open(&config, &cluster->exec[i], NULL) != ESP_OK)
			die("out of memory");
	}
}

static void cluster_close(struct cluster *cluster)
{
	for (uint32_t i = 0; i < cluster->nodes; i++)
		exec_close(cluster->exec[i]);
	free(cluster->exec);
	free(cluster->busy);
	free(cluster->is_busy);
}

/* One call on all nodes, from start to the last completion. */
static struct sample run_once(struct cluster *cluster, const struct plan *plan)
{
	struct exec_call call = {.plan = plan, .type = ESP_F32, .op = ESP_SUM};
	struct sample sample = {0};
	struct exec_done done;

	for (uint32_t i = 0; i < cluster->nodes; i++) {
		struct exec_stats stats = exec_stats(cluster->exec[i]);

		sample.steps -= stats.steps;
		sample.messages -= stats.messages_sent;
		sample.chunks -= stats.chunks;
	}
	uint64_t begin = thread_ns();
	for (uint32_t i = 0; i < cluster->nodes; i++) {
		if (exec_start(cluster->exec[i], &call, NULL) != ESP_OK)
			die("a call could not be started");
		mark_busy(cluster, i);
	}
	pump(cluster);
	for (uint32_t i = 0; i < cluster->nodes; i++) {
		if (!exec_take_done(cluster->exec[i], &done) || done.status != ESP_OK)
			die("a call did not complete");
	}
	sample.ns = thread_ns() - begin;
	for (uint32_t i = 0; i < cluster->nodes; i++) {
		struct exec_stats stats = exec_stats(cluster->exec[i]);

		sample.steps += stats.steps;
		sample.messages += stats.messages_sent;
		sample.chunks += stats.chunks;
	}
	return sample;
}

/* ---- measuring ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static struct result measure(const struct options *options, const char *planner, uint32_t nodes, uint64_t chunks)
{
	uint32_t *group_of = calloc(nodes, sizeof(*group_of));
	struct plan_spec spec = {
		.chunks = {.collective = PLAN_ALLREDUCE, .workers = nodes, .bytes = chunks * 65536, .chunk_bytes = 65536, .align = 4},
		.group_of = group_of,
	};
	struct result result = {.planner = planner, .nodes = nodes, .chunks = chunks};
	double values[MAX_ROUNDS];
	struct cluster cluster;
	struct plan *plan;

	for (uint32_t i = 0; group_of && i < nodes; i++)
		group_of[i] = i / (nodes < 32 ? nodes : 32);
	if (!group_of || plan_open(plan_planner_find(planner), &spec, &plan, NULL) != ESP_OK)
		die("a plan could not be made");
	cluster_open(&cluster, nodes, options);
	run_once(&cluster, plan); /* the first one allocates */
	for (uint32_t i = 0; i < options->rounds; i++) {
		result.size = run_once(&cluster, plan);
		values[i] = (double)result.size.ns / (double)result.size.steps;
	}
	qsort(values, options->rounds, sizeof(values[0]), by_value);
	result.low = values[options->rounds / 4];
	result.median = values[options->rounds / 2];
	result.high = values[options->rounds * 3 / 4];
	cluster_close(&cluster);
	plan_close(plan);
	free(group_of);
	return result;
}

/* ---- output ---- */

static double per(const struct result *result, uint64_t count)
{
	return count ? result->median * (double)result->size.steps / (double)count : 0;
}

/* Rows are printed as they are measured: they take minutes together, and a pipe should show how far it is. */
struct output {
	bool is_json;
	struct json json;
};

static void check_written(void)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		die("the output could not be written");
}

static void begin(struct output *output, const struct options *options)
{
	output->is_json = options->json;
	if (!options->json) {
		printf("%-16s  %5s  %6s  %8s  %8s  %7s  %15s  %10s  %8s\n", "planner", "nodes", "chunks", "steps", "messages",
		       "ns/step", "quartiles", "ns/message", "ns/row");
		check_written();
		return;
	}
	json_init(&output->json, stdout);
	json_object_begin(&output->json);
	json_key(&output->json, "credits");
	json_u64(&output->json, options->credits);
	json_key(&output->json, "active_chunks");
	json_u64(&output->json, options->active_chunks);
	json_key(&output->json, "results");
	json_array_begin(&output->json);
}

static void put_json(struct json *json, const struct result *result)
{
	json_object_begin(json);
	json_key(json, "planner");
	json_text(json, result->planner);
	json_key(json, "nodes");
	json_u64(json, result->nodes);
	json_key(json, "chunks");
	json_u64(json, result->chunks);
	json_key(json, "steps");
	json_u64(json, result->size.steps);
	json_key(json, "messages");
	json_u64(json, result->size.messages);
	json_key(json, "ns_per_step_quartiles");
	json_array_begin(json);
	json_double(json, result->low);
	json_double(json, result->median);
	json_double(json, result->high);
	json_array_end(json);
	json_object_end(json);
}

static void put_line(const struct result *result)
{
	char quartiles[48];

	snprintf(quartiles, sizeof(quartiles), "%.1f-%.1f", result->low, result->high);
	printf("%-16s  %5u  %6" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "  %7.1f  %15s  %10.1f  %8.1f\n", result->planner,
	       result->nodes, result->chunks, result->size.steps, result->size.messages, result->median, quartiles,
	       per(result, result->size.messages), per(result, result->size.chunks));
}

static void put(struct output *output, const struct result *result)
{
	if (output->is_json)
		put_json(&output->json, result);
	else
		put_line(result);
	check_written();
}

static void end(struct output *output)
{
	if (!output->is_json)
		return;
	json_array_end(&output->json);
	json_object_end(&output->json);
	if (json_fini(&output->json) != ESP_OK)
		die("the output could not be written");
}

static void usage(FILE *out)
{
	fputs("usage: exec_bench [--planner NAME] [--rounds N] [--credits N] [--active N] [--json]\n"
	      "Nanoseconds per step, message and row of the executor, without data operations.\n"
	      "A row is what one node does with one chunk, a list of steps: fetch, send to one node, receive,\n"
	      "each term of a sum, copy, update, deliver; docs/plans.md explains them. Prints the median of N\n"
	      "rounds and the quartiles, a line for each measurement as soon as it is made.\n\n"
	      "  --planner NAME  this planner only (default: ring, halving-doubling, flat, two-level)\n"
	      "  --rounds N      measurements of each size, 1 to 101 (default 11)\n"
	      "  --credits N     messages that a peer may send ahead (default 16)\n"
	      "  --active N      chunks in flight (default 64)\n"
	      "  --json          print JSON\n",
	      out);
}

static struct options parse(int argc, char **argv)
{
	static const struct option names[] = {
		{"planner", required_argument, NULL, 'p'}, {"rounds", required_argument, NULL, 'r'},
		{"credits", required_argument, NULL, 'c'}, {"active", required_argument, NULL, 'a'},
		{"json", no_argument, NULL, 'j'},          {"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	struct options options = {.rounds = 11, .credits = 16, .active_chunks = 64};

	for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
		switch (c) {
		case 'p': options.planner = optarg; break;
		case 'r': options.rounds = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'c': options.credits = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'a': options.active_chunks = (uint32_t)strtoul(optarg, NULL, 10); break;
		case 'j': options.json = true; break;
		case 'h': usage(stdout); exit(0);
		default: usage(stderr); exit(2);
		}
	}
	if (options.rounds < 1 || options.rounds > MAX_ROUNDS || (options.planner && !plan_planner_find(options.planner))) {
		usage(stderr);
		exit(2);
	}
	return options;
}

int main(int argc, char **argv)
{
	static const uint32_t nodes[] = {1, 64, 1024};
	static const uint64_t chunks[] = {16, 256, 1600};
	static const char *const chosen[] = {"ring", "halving-doubling", "flat", "two-level"};
	struct options options = parse(argc, argv);
	struct output output;

	begin(&output, &options);
	for (unsigned p = 0; p < (options.planner ? 1u : 4u); p++) {
		for (unsigned n = 0; n < 3; n++) {
			for (unsigned c = 0; c < 3; c++) {
				struct result result =
					measure(&options, options.planner ? options.planner : chosen[p], nodes[n], chunks[c]);

				put(&output, &result);
			}
		}
	}
	end(&output);
	return 0;
}
