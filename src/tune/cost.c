#include "tune/cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "plan/check.h"

/*
 * Where only latency is known: what one byte of a connection costs that has so many under way, there and back. Any
 * number would do to compare distances with each other; this one also weighs them against latency as a network does.
 */
#define WINDOW_BYTES 65536.0
#define SAMPLE_CHUNK 64u /* bytes */
#define NICS_SPREAD 7919u /* a prime, so that neighbours in number use different ones of several NICs */

/* Loads: of the links of a topology, or of each node's way out and way in. */
struct walk {
	const struct tune_network *network;
	uint32_t resources;
	uint32_t rounds;
	size_t capacity;
	double **seconds;  /* by round and resource    */
	double *delay;     /* by round: the longest    */
	uint64_t *messages; /* by node, out and in     */
	uint64_t *of_chunk; /* the same, of the chunk  */
	/* of the rows of what was measured, for pairs that are not known; NULL: a topology */
	double *byte_means, *latency_means;
	uint64_t chunk, peak;
	bool failed;       /* out of memory            */
};

/* ---- distances ---- */

static double row_mean(const double *row, uint32_t nodes, uint32_t self)
{
	double sum = 0;
	uint32_t count = 0;

	for (uint32_t i = 0; i < nodes; i++) {
		if (i == self || isnan(row[i]))
			continue;
		sum += row[i];
		count++;
	}
	return count ? sum / count : 0;
}

/* NULL: no memory. */
static double *row_means(const double *matrix, uint32_t nodes)
{
	double *means = calloc(nodes, sizeof(*means));

	for (uint32_t i = 0; means && i < nodes; i++)
		means[i] = row_mean(&matrix[(size_t)i * nodes], nodes, i);
	return means;
}

static double distance(const double *matrix, const double *means, uint32_t nodes, uint32_t from, uint32_t to)
{
	double known = matrix[(size_t)from * nodes + to];

	return isnan(known) ? means[from] : known;
}

static double latency_between(const struct walk *walk, uint32_t from, uint32_t to)
{
	return distance(walk->network->latency, walk->latency_means, walk->network->nodes, from, to);
}

static double byte_distance(const struct walk *walk, uint32_t from, uint32_t to)
{
	const struct tune_network *network = walk->network;

	if (network->seconds_per_byte)
		return distance(network->seconds_per_byte, walk->byte_means, network->nodes, from, to);
	return 2 * latency_between(walk, from, to) / WINDOW_BYTES;
}

/* ---- the walk ---- */

static bool walk_grow(struct walk *walk, uint32_t rounds)
{
	size_t seconds = walk->capacity, delay = walk->capacity;

	if (!vec_reserve(&walk->seconds, &seconds, rounds, sizeof(*walk->seconds)) ||
	    !vec_reserve(&walk->delay, &delay, rounds, sizeof(*walk->delay)))
		return false;
	walk->capacity = delay; /* and that of the other: they are grown alike */
	for (; walk->rounds < rounds; walk->rounds++) {
		double *row = calloc(walk->resources, sizeof(*row));

		if (!row)
			return false;
		walk->seconds[walk->rounds] = row;
		walk->delay[walk->rounds] = 0;
	}
	return true;
}

static double load_links(struct walk *walk, uint64_t chunk, uint32_t from, uint32_t to, uint64_t bytes, double *row)
{
	const struct tune_network *network = walk->network;
	uint32_t links[TOPOLOGY_HOPS_MAX];
	uint32_t nic = (uint32_t)(chunk + (uint64_t)from * NICS_SPREAD);
	uint32_t count = topology_path(network->topology, network->place[from], network->place[to], nic, links);

	for (uint32_t i = 0; i < count; i++)
		row[links[i]] += (double)bytes / network->topology->links[links[i]].rate;
	return topology_delay(network->topology, links, count);
}

static double load_pair(struct walk *walk, uint32_t from, uint32_t to, uint64_t bytes, double *row)
{
	const struct tune_network *network = walk->network;
	double seconds = (double)bytes * byte_distance(walk, from, to);

	row[from] += seconds;
	row[network->nodes + to] += seconds;
	return network->latency ? latency_between(walk, from, to) : 0;
}

static void count_message(struct walk *walk, uint64_t chunk, uint32_t node)
{
	if (chunk != walk->chunk) {
		memset(walk->of_chunk, 0, walk->network->nodes * sizeof(*walk->of_chunk));
		walk->chunk = chunk;
	}
	walk->messages[node]++;
	if (++walk->of_chunk[node] > walk->peak)
		walk->peak = walk->of_chunk[node];
}

static void on_message(void *context, uint64_t chunk, uint32_t from, uint32_t to, uint32_t round, uint64_t bytes,
                       bool reduced)
{
	struct walk *walk = context;
	(void)reduced;

	if (walk->failed || !walk_grow(walk, round + 1)) {
		walk->failed = true;
		return;
	}
	double *row = walk->seconds[round];
	double delay = walk->network->topology ? load_links(walk, chunk, from, to, bytes, row)
	                                       : load_pair(walk, from, to, bytes, row);
	if (delay > walk->delay[round])
		walk->delay[round] = delay;
	count_message(walk, chunk, from);
	count_message(walk, chunk, to);
}

static bool walk_init(struct walk *walk, const struct tune_network *network)
{
	*walk = (struct walk){.network = network};
	walk->resources = network->topology ? network->topology->link_count : 2 * network->nodes;
	walk->messages = calloc(network->nodes, sizeof(*walk->messages));
	walk->of_chunk = calloc(network->nodes, sizeof(*walk->of_chunk));
	bool has_bytes = !network->topology && network->seconds_per_byte,
	     has_latency = !network->topology && network->latency;
	if (has_bytes)
		walk->byte_means = row_means(network->seconds_per_byte, network->nodes);
	if (has_latency)
		walk->latency_means = row_means(network->latency, network->nodes);
	return walk->messages && walk->of_chunk && (walk->byte_means || !has_bytes) &&
	       (walk->latency_means || !has_latency);
}

static void walk_fini(struct walk *walk)
{
	for (uint32_t i = 0; i < walk->rounds; i++)
		free(walk->seconds[i]);
	free(walk->seconds);
	free(walk->delay);
	free(walk->messages);
	free(walk->of_chunk);
	free(walk->byte_means);
	free(walk->latency_means);
}

/* ---- what it adds up to ---- */

static uint64_t buffer_bytes(const struct chunks *chunks)
{
	uint64_t bytes = 0;

	for (uint64_t c = 0; c < chunks->chunk_count; c++)
		bytes += plan_chunks_piece(chunks, c).bytes;
	return bytes;
}

static void sum_up(const struct walk *walk, const struct chunks *chunks, struct tune_load *out)
{
	double bytes = (double)buffer_bytes(chunks);
	uint64_t busiest = 0;

	*out = (struct tune_load){
		.wave = (uint32_t)chunks->chunk_count,
		.rounds = walk->rounds > 0 ? walk->rounds - 1 : 0,
		.peak = (double)walk->peak,
	};
	for (uint32_t round = 1; round < walk->rounds; round++) { /* the checker counts them from 1 */
		double most = 0;

		for (uint32_t i = 0; i < walk->resources; i++)
			most = walk->seconds[round][i] > most ? walk->seconds[round][i] : most;
		out->apart += most;
		out->latency += walk->delay[round] + TUNE_ROUND;
	}
	for (uint32_t i = 0; i < walk->resources; i++) {
		double sum = 0;

		for (uint32_t round = 1; round < walk->rounds; round++)
			sum += walk->seconds[round][i];
		out->overlapped = sum > out->overlapped ? sum : out->overlapped;
	}
	for (uint32_t node = 0; node < walk->network->nodes; node++)
		busiest = walk->messages[node] > busiest ? walk->messages[node] : busiest;
	if (bytes > 0) {
		out->apart /= bytes;
		out->overlapped /= bytes;
	}
	out->messages = chunks->chunk_count ? (double)busiest / (double)chunks->chunk_count : 0;
}

enum esp_status tune_load_of(const struct plan *plan, const struct tune_network *network, struct tune_load *out,
                             struct error *err)
{
	struct walk walk;
	struct plan_report report;
	struct plan_observer observer = {.message = on_message, .context = &walk};

	if (plan->nodes != network->nodes)
		return error_set(err, ESP_EINVAL, "a plan of %u nodes, and a network of %u", plan->nodes, network->nodes);
	enum esp_status status = walk_init(&walk, network) ? plan_check(plan, &observer, &report, NULL, err) : ESP_ENOMEM;
	if (status == ESP_ENOMEM || walk.failed)
		status = error_set(err, ESP_ENOMEM, "no memory to walk a plan of %u nodes", plan->nodes);
	if (status == ESP_OK)
		sum_up(&walk, &plan->chunks, out);
	walk_fini(&walk);
	return status;
}

enum esp_status tune_load_planner(const struct planner *planner, const struct plan_spec *how,
                                  const struct tune_network *network, struct tune_load *out, struct error *err)
{
	enum plan_collective collective = how->chunks.collective;
	bool has_blocks = collective == PLAN_REDUCE_SCATTER || collective == PLAN_ALLGATHER;
	uint64_t chunk = collective == PLAN_BARRIER ? 0 : SAMPLE_CHUNK;
	struct plan_spec spec = {
		.chunks = {
			.collective = collective,
			.workers = network->nodes,
			.bytes = has_blocks ? chunk : chunk * network->nodes,
			.chunk_bytes = chunk,
		},
		.order = how->order,
		.group_of = how->group_of,
		.zone_of = how->zone_of,
	};
	struct plan *plan = NULL;
	enum esp_status status = plan_open(planner, &spec, &plan, err);

	if (status == ESP_OK)
		status = tune_load_of(plan, network, out, err);
	plan_close(plan);
	return status;
}

double tune_seconds(const struct tune_load *load, uint64_t bytes, uint64_t chunk_bytes)
{
	double chunks = chunk_bytes && bytes ? ceil((double)bytes / (double)chunk_bytes) : 1;
	double waves = load->wave && chunks > load->wave ? chunks / load->wave : 1;

	double lag = load->rounds > 2 ? TUNE_LAG * (load->rounds - 2) : 0, share = fmin(1, 1 / waves + lag);

	return (double)bytes * (load->overlapped + (load->apart - load->overlapped) * share) + load->latency +
	       TUNE_MESSAGE * fmax(load->messages * chunks, load->peak);
}
