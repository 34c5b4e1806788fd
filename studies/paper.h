/*
 * paper.h - the tables and figures of "How to Train your DNN: The Network Operator Edition" (Chang et al.),
 * computed.
 *
 * Every value comes from runs of train.h, except table 7, which is a count. The paper's values are given beside
 * them where they are known, and are not used otherwise. Each set of values (enum model_set) is computed
 * separately.
 */
#ifndef STUDIES_PAPER_H
#define STUDIES_PAPER_H

#include "sim/workload/model.h"

enum paper_model { PAPER_INCEPTION, PAPER_VGG, PAPER_RESNET_101, PAPER_RESNET_200, PAPER_MODELS };
/* "inception-v3": the argument for workload_model_load(). */
extern const char *const paper_model_names[PAPER_MODELS];

struct paper_cell {
	bool is_figure;
	uint32_t number;     /* of the table or figure                        */
	enum model_set set;
	enum paper_model model;
	const char *column;  /* "4 servers", or a mechanism                   */
	const char *row;     /* in tables with several rows per model; or NULL */
	double x;            /* figures: NAN in tables                        */
	double value;
	double paper;        /* NAN: unknown */
	const char *unit;    /* "s", "x" (times faster than server), "share"  */
};

/* A table or figure: "Table 4", ... */
struct paper_part {
	bool is_figure;
	uint32_t number;
	const char *title;
	const char *x; /* figures: the varied quantity; NULL */
};
/* In the order of the paper's numbers, tables first; NULL behind the last. */
const struct paper_part *paper_part_at(size_t index);

/* Called for each computed value; copies what it keeps. */
typedef void paper_fn(void *user, const struct paper_cell *cell);

struct paper_request {
	const struct model *models; /* PAPER_MODELS of them, all of one set */
	uint64_t seed;              /* 0, or a new order of sending and new speeds (load.h) */
	const struct paper_part *only; /* NULL: all parts                                         */
	bool no_figures;
	paper_fn *fn;
	void *user;
};

/* Computes one set, part by part. ESP_ENOMEM, or errors of sim_train_run(). */
ESP_CHECKED enum esp_status paper_run(const struct paper_request *request, struct error *err);

#endif
