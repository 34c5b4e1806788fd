/*
 * paper_figures.c - the series of figures 3 to 12. The paper's values are known only where its text mentions
 * them.
 */
#include <math.h>

#include "studies/paper_state.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))


static void tell(struct paper *paper, uint32_t number, double x, const struct paper_case *about, double value,
                 double known, const char *unit)
{
	paper_tell(paper, (struct paper_cell){.is_figure = true, .number = number, .model = (enum paper_model)about->model,
	                                      .column = about->mechanism, .x = x, .value = value, .paper = known,
	                                      .unit = unit});
}

/* ---- figures 3 to 8: seconds by bandwidth and by workers ---- */

static const char *const ranked[] = {"server", "aggregation", "multicast", "multicast+aggregation", "ring", "butterfly",
                                     "ring+multicast"};

static void by_bandwidth(struct paper *paper, uint32_t number, enum paper_model model)
{
	static const double gbps[] = {10, 25, 50, 100};

	for (size_t m = 0; m < COUNT(ranked) - 1; m++) { /* the last one is in figure 6 */
		for (size_t i = 0; i < COUNT(gbps); i++) {
			struct paper_case about = {.model = model, .mechanism = ranked[m], .gbps = gbps[i]};

			tell(paper, number, gbps[i], &about, paper_seconds(paper, about), NAN, "s");
		}
	}
}

static void by_workers(struct paper *paper, uint32_t number, enum paper_model model)
{
	static const uint32_t workers[] = {4, 8, 16, 32};

	for (size_t m = 0; m < COUNT(ranked); m++) {
		for (size_t i = 0; i < COUNT(workers); i++) {
			struct paper_case about = {.model = model, .mechanism = ranked[m], .workers = workers[i]};

			tell(paper, number, workers[i], &about, paper_seconds(paper, about), NAN, "s");
		}
	}
}

/* ---- figures 9 to 12: speedups by layers added and by speed ---- */

static const char *const faster[] = {"aggregation", "multicast", "multicast+aggregation", "ring", "butterfly"};

static void by_layers(struct paper *paper, uint32_t number, const char *module)
{
	static const uint32_t copies[] = {0, 5, 25, 125};

	for (size_t m = 0; m < COUNT(faster); m++) {
		for (size_t i = 0; i < COUNT(copies); i++) {
			struct paper_case about = {.model = PAPER_INCEPTION, .mechanism = faster[m], .added = module,
			                           .copies = copies[i]};

			tell(paper, number, copies[i], &about, paper_speedup(paper, about), NAN, "x");
		}
	}
}

/* Section 8.6 has for ResNet-200 at three times the speed: butterfly 10x, multicast with aggregation 19.5x. */
static double paper_value(enum paper_model model, const char *mechanism, double speed)
{
	if (model != PAPER_RESNET_200 || speed < 3)
		return NAN;
	return mechanism == faster[4] ? 10 : mechanism == faster[2] ? 19.5 : NAN;
}

static void by_speed(struct paper *paper, uint32_t number, enum paper_model model)
{
	static const double speeds[] = {1, 2, 2.5, 3};

	for (size_t m = 0; m < COUNT(faster); m++) {
		for (size_t i = 0; i < COUNT(speeds); i++) {
			struct paper_case about = {.model = model, .mechanism = faster[m], .compute = speeds[i]};

			tell(paper, number, speeds[i], &about, paper_speedup(paper, about),
			     paper_value(model, faster[m], speeds[i]), "x");
		}
	}
}

void paper_figure(struct paper *paper, uint32_t number)
{
	static const enum paper_model drawn[] = {PAPER_INCEPTION, PAPER_RESNET_200, PAPER_VGG};

	if (number <= 5)
		by_bandwidth(paper, number, drawn[number - 3]);
	else if (number <= 8)
		by_workers(paper, number, drawn[number - 6]);
	else if (number <= 10)
		by_layers(paper, number, number == 9 ? "mixed_17x17x768e" : "mixed_35x35x288b");
	else
		by_speed(paper, number, drawn[number - 11]);
}
