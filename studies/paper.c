/*
 * paper.c - runs for the paper's results, each made once.
 */
#include "studies/paper.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/workload/model_repeat.h"
#include "studies/paper_state.h"

const char *const paper_model_names[PAPER_MODELS] = {"inception-v3", "vgg-16", "resnet-101", "resnet-200"};

static const struct paper_part parts[] = {
	{false, 1, "iteration time by number of servers; 8 workers, 5 Gbps (the paper's simulation beside it)", NULL},
	{false, 4, "what support in the network gains; 32 workers, 25 Gbps, 1 server", NULL},
	{false, 6, "what mechanisms of the hosts gain; 32 workers, 25 Gbps", NULL},
	{false, 7, "share of the bytes on the emptiest and on the fullest server", NULL},
	{false, 8, "8 servers that share every parameter; 32 workers, 25 Gbps", NULL},
	{false, 9, "without the global barrier; 32 workers, 25 Gbps", NULL},
	{false, 10, "aggregation in the network against distribution in blocks; 32 workers", NULL},
	{true, 3, "Inception-v3 by bandwidth; 32 workers", "Gbps"},
	{true, 4, "ResNet-200 by bandwidth; 32 workers", "Gbps"},
	{true, 5, "VGG-16 by bandwidth; 32 workers", "Gbps"},
	{true, 6, "Inception-v3 by workers; 25 Gbps", "workers"},
	{true, 7, "ResNet-200 by workers; 25 Gbps", "workers"},
	{true, 8, "VGG-16 by workers; 25 Gbps", "workers"},
	{true, 9, "Inception-v3 with more 17x17x768 modules (network-heavy); 32 workers, 25 Gbps", "modules added"},
	{true, 10, "Inception-v3 with more 35x35x288 modules (compute-heavy); 32 workers, 25 Gbps", "modules added"},
	{true, 11, "Inception-v3 on faster accelerators; 32 workers, 25 Gbps", "times faster"},
	{true, 12, "ResNet-200 on faster accelerators; 32 workers, 25 Gbps", "times faster"},
};

const struct paper_part *paper_part_at(size_t index)
{
	return index < sizeof(parts) / sizeof(parts[0]) ? &parts[index] : NULL;
}

/* ---- one run ---- */

static struct paper_case filled(struct paper_case about)
{
	about.workers = about.workers ? about.workers : 32;
	about.gbps = about.gbps > 0 ? about.gbps : 25;
	about.servers = workload_mechanism_find(about.mechanism)->spread ? about.servers ? about.servers : 1 : 0;
	about.compute = about.compute > 0 ? about.compute : 1;
	about.added = about.copies ? about.added : NULL;
	return about;
}

static bool is_same(const struct paper_case *a, const struct paper_case *b)
{
	return a->model == b->model && strcmp(a->mechanism, b->mechanism) == 0 && a->workers == b->workers &&
	       a->gbps == b->gbps &&
	       a->servers == b->servers && a->even_split == b->even_split && a->block == b->block &&
	       a->no_barrier == b->no_barrier &&
	       a->compute == b->compute && a->copies == b->copies &&
	       (!a->added || !b->added || strcmp(a->added, b->added) == 0);
}

static enum esp_status run_load(const struct load *load, const struct paper_case *about, double *out_s,
                                struct error *err)
{
	const struct trial trial = {
		.train = {.load = load,
	              .mechanism = workload_mechanism_find(about->mechanism),
	              .servers = about->servers,
	              .even_split = about->even_split,
	              .block = about->block,
	              .no_barrier = about->no_barrier,
	              .compute = about->compute},
		.gbps = about->gbps,
	};
	struct train_result result;
	enum esp_status status = sim_trial_run(&trial, &result, err);

	if (status == ESP_OK)
		*out_s = result.iteration_s;
	return status;
}

static enum esp_status run_case(const struct paper *paper, const struct paper_case *about, double *out_s,
                                struct error *err)
{
	const struct model *model = &paper->request.models[about->model];
	struct model grown = {0};
	struct load load = {0};
	enum esp_status status =
		about->added ? workload_model_repeat(model, about->added, about->copies, &grown, err) : ESP_OK;

	if (status == ESP_OK)
		status = workload_load_init(&load, about->added ? &grown : model, about->workers, paper->request.seed, err);
	if (status == ESP_OK)
		status = run_load(&load, about, out_s, err);
	workload_load_fini(&load);
	workload_model_fini(&grown);
	return status;
}

/* Caches the result of a run. */
static void cache_result(struct paper *paper, const struct paper_case *about, double seconds)
{
	if (paper->known_count == paper->known_room) {
		size_t room = paper->known_room ? paper->known_room * 2 : 64;
		struct paper_known *known = realloc(paper->known, room * sizeof(*known));

		if (!known)
			return; /* it would only be computed again */
		paper->known = known;
		paper->known_room = room;
	}
	paper->known[paper->known_count++] = (struct paper_known){*about, seconds};
}

double paper_seconds(struct paper *paper, struct paper_case about)
{
	double seconds = NAN;

	about = filled(about);
	for (size_t i = 0; i < paper->known_count; i++) {
		if (is_same(&paper->known[i].about, &about))
			return paper->known[i].iteration_s;
	}
	if (paper->status != ESP_OK)
		return NAN;
	paper->status = run_case(paper, &about, &seconds, paper->err);
	cache_result(paper, &about, seconds);
	return seconds;
}

double paper_speedup(struct paper *paper, struct paper_case about)
{
	struct paper_case base = about;

	base.mechanism = "server";
	return paper_seconds(paper, base) / paper_seconds(paper, about);
}

void paper_tell(struct paper *paper, struct paper_cell cell)
{
	cell.set = paper->request.models[cell.model].set;
	if (paper->status == ESP_OK)
		paper->request.fn(paper->request.user, &cell);
}

static bool is_wanted(const struct paper_request *request, const struct paper_part *part)
{
	return request->only ? request->only == part : !(part->is_figure && request->no_figures);
}

enum esp_status paper_run(const struct paper_request *request, struct error *err)
{
	struct paper paper = {.request = *request, .err = err};

	for (size_t i = 0; paper_part_at(i) && paper.status == ESP_OK; i++) {
		if (!is_wanted(request, paper_part_at(i)))
			continue;
		if (paper_part_at(i)->is_figure)
			paper_figure(&paper, paper_part_at(i)->number);
		else
			paper_table(&paper, paper_part_at(i)->number);
	}
	free(paper.known);
	return paper.status;
}
