/*
 * paper_tables.c - tables 1, 4 and 6 to 10.
 */
#include <math.h>

#include "studies/paper_state.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* ---- table 1: the paper's simulation, by servers ---- */

static void table_1(struct paper *paper)
{
	static const struct {
		enum paper_model model;
		double seconds[4];
	} rows[] = {
		{PAPER_VGG, {21.0, 22.5, 19.3, 18.2}},
		{PAPER_INCEPTION, {2.29, 2.29, 1.37, 0.852}},
		{PAPER_RESNET_200, {7.15, 3.34, 2.3, 2.29}},
		{PAPER_RESNET_101, {4.57, 2.37, 1.52, 1.5}},
	};
	static const char *const columns[] = {"1 server", "2 servers", "4 servers", "8 servers"};

	for (size_t i = 0; i < COUNT(rows); i++) {
		for (uint32_t c = 0; c < 4; c++) {
			struct paper_case about = {.model = rows[i].model, .mechanism = "server", .workers = 8, .gbps = 5,
			                           .servers = 1u << c};

			paper_tell(paper, (struct paper_cell){.number = 1, .model = rows[i].model, .column = columns[c], .x = NAN,
			                                      .value = paper_seconds(paper, about), .paper = rows[i].seconds[c],
			                                      .unit = "s"});
		}
	}
}

/* ---- tables 4 and 6: speedups ---- */

struct speedups {
	enum paper_model model;
	double speedup[3];
};

static void speedup_table(struct paper *paper, uint32_t number, const char *const columns[3],
                          const struct speedups rows[4])
{
	for (size_t i = 0; i < 4; i++) {
		for (size_t c = 0; c < 3; c++) {
			struct paper_case about = {.model = rows[i].model, .mechanism = columns[c]};

			paper_tell(paper, (struct paper_cell){.number = number, .model = rows[i].model, .column = columns[c],
			                                      .x = NAN,
			                                      .value = paper_speedup(paper, about), .paper = rows[i].speedup[c],
			                                      .unit = "x"});
		}
	}
}

static void table_4(struct paper *paper)
{
	static const char *const columns[] = {"aggregation", "multicast", "multicast+aggregation"};
	static const struct speedups rows[] = {
		{PAPER_INCEPTION, {1.34, 1.69, 3.28}},
		{PAPER_VGG, {1.89, 1.94, 22.0}},
		{PAPER_RESNET_101, {1.65, 1.79, 6.07}},
		{PAPER_RESNET_200, {1.65, 1.85, 6.7}},
	};

	speedup_table(paper, 4, columns, rows);
}

static void table_6(struct paper *paper)
{
	static const char *const columns[] = {"ring", "ring+multicast", "butterfly"};
	static const struct speedups rows[] = {
		{PAPER_VGG, {24.6, 24.6, 11.3}},
		{PAPER_RESNET_200, {6.75, 6.76, 6.79}},
		{PAPER_RESNET_101, {6.55, 6.71, 6.46}},
		{PAPER_INCEPTION, {3.35, 3.41, 3.41}},
	};

	speedup_table(paper, 6, columns, rows);
}

/* ---- table 7: the shares of the servers ---- */

#define SERVERS_MOST 8

/* Of all variables, moving averages included: they have places too. */
static void server_shares(const struct model *model, uint32_t servers, double *out_least, double *out_most)
{
	double bytes[SERVERS_MOST] = {0}, sum = 0;

	for (uint32_t i = 0; i < model->parameter_count; i++)
		bytes[model->parameters[i].variable % servers] += (double)model->parameters[i].bytes;
	for (uint32_t i = 0; i < model->average_count; i++)
		bytes[model->averages[i].variable % servers] += (double)model->averages[i].bytes;
	*out_least = INFINITY;
	*out_most = 0;
	for (uint32_t i = 0; i < servers; i++) {
		sum += bytes[i];
		*out_least = fmin(*out_least, bytes[i]);
		*out_most = fmax(*out_most, bytes[i]);
	}
	*out_least /= sum;
	*out_most /= sum;
}

static void table_7(struct paper *paper)
{
	static const struct {
		uint32_t servers;
		enum paper_model model;
		double least, most;
	} rows[] = {
		{4, PAPER_VGG, 4e-5, 0.918},        {8, PAPER_VGG, 1e-5, 0.859},       {4, PAPER_INCEPTION, 0.0007, 0.451},
		{8, PAPER_INCEPTION, 0.0003, 0.292}, {4, PAPER_RESNET_200, 0.165, 0.33}, {8, PAPER_RESNET_200, 0.002, 0.22},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *row = rows[i].servers == 4 ? "4 servers" : "8 servers";
		double least, most;

		server_shares(&paper->request.models[rows[i].model], rows[i].servers, &least, &most);
		paper_tell(paper, (struct paper_cell){.number = 7, .model = rows[i].model, .row = row, .column = "least",
		                                      .x = NAN,
		                                      .value = least, .paper = rows[i].least, .unit = "share"});
		paper_tell(paper, (struct paper_cell){.number = 7, .model = rows[i].model, .row = row, .column = "most",
		                                      .x = NAN,
		                                      .value = most, .paper = rows[i].most, .unit = "share"});
	}
}

/* ---- tables 8 to 10: the paper's values are unknown ---- */

static void tell_seconds(struct paper *paper, uint32_t number, const char *row, const char *column,
                         struct paper_case about)
{
	paper_tell(paper, (struct paper_cell){.number = number, .model = (enum paper_model)about.model, .row = row,
	                                      .column = column, .x = NAN,
	                                      .value = paper_seconds(paper, about), .paper = NAN, .unit = "s"});
}

static const enum paper_model by_size[] = {PAPER_VGG, PAPER_RESNET_200, PAPER_RESNET_101, PAPER_INCEPTION};

static void table_8(struct paper *paper)
{
	for (size_t i = 0; i < COUNT(by_size); i++) {
		struct paper_case both = {.model = by_size[i], .mechanism = "multicast+aggregation"}, even = both, ring = both;

		even.servers = 8;
		even.even_split = true;
		ring.mechanism = "ring";
		tell_seconds(paper, 8, NULL, "multicast+aggregation", both);
		tell_seconds(paper, 8, NULL, "multicast+aggregation, 8 servers", even);
		tell_seconds(paper, 8, NULL, "ring", ring);
	}
}

static void table_9(struct paper *paper)
{
	for (size_t i = 0; i < COUNT(by_size); i++) {
		struct paper_case both = {.model = by_size[i], .mechanism = "multicast+aggregation"}, free = both, ring = both;

		free.no_barrier = true;
		ring.mechanism = "ring";
		tell_seconds(paper, 9, NULL, "multicast+aggregation", both);
		tell_seconds(paper, 9, NULL, "ring", ring);
		tell_seconds(paper, 9, NULL, "multicast+aggregation, no barrier", free);
	}
}

static void table_10(struct paper *paper)
{
	static const enum paper_model order[] = {PAPER_INCEPTION, PAPER_VGG, PAPER_RESNET_101, PAPER_RESNET_200};

	for (size_t i = 0; i < COUNT(order) * 2; i++) {
		bool is_fast = i >= COUNT(order);
		struct paper_case aggregation = {.model = order[i % COUNT(order)], .mechanism = "aggregation",
		                                 .gbps = is_fast ? 100 : 10};
		struct paper_case block = aggregation;

		block.mechanism = "server";
		block.block = true;
		tell_seconds(paper, 10, is_fast ? "100 Gbps" : "10 Gbps", "aggregation", aggregation);
		tell_seconds(paper, 10, is_fast ? "100 Gbps" : "10 Gbps", "block distribution", block);
	}
}

void paper_table(struct paper *paper, uint32_t number)
{
	static void (*const tables[])(struct paper *) = {[1] = table_1, [4] = table_4, [6] = table_6, [7] = table_7,
	                                                 [8] = table_8, [9] = table_9, [10] = table_10};

	tables[number](paper);
}
