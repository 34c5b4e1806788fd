/*
 * paper.h - the tables and figures of "How to Train your DNN: The Network Operator Edition" (Chang et al.), computed.
 *
 * Every value comes from runs of train.h, but for table 7, which is a count. What the paper has stands beside it where it is known
 * and is used nowhere else. Each set of values (enum model_set) is computed on its own.
 */
#ifndef STUDIES_PAPER_H
#define STUDIES_PAPER_H

#include "sim/workload/model.h"

enum paper_model { PAPER_INCEPTION, PAPER_VGG, PAPER_RESNET_101, PAPER_RESNET_200, PAPER_MODELS };
/* "inception-v3": what model_load() is to be asked for. */
extern const char *const paper_model_names[PAPER_MODELS];

struct paper_cell {
	bool is_figure;
	uint32_t number;     /* of the table or figure                        */
	enum model_set set;
	enum paper_model model;
	const char *column;  /* "4 servers", or a mechanism                   */
	const char *row;     /* in tables where a model has several; or NULL  */
	double x;            /* figures: NAN in tables                        */
	double value;
	double paper;        /* NAN: the paper's copy does not have it        */
	const char *unit;    /* "s", "x" (times faster than server), "share"  */
};

/* What is computed and what it is about: "Table 4", ... */
struct paper_part {
	bool is_figure;
	uint32_t number;
	const char *title;
	const char *x; /* figures: what varies; NULL */
};
/* In the order of the paper's numbers, tables first; NULL after the last. */
const struct paper_part *paper_part_at(size_t index);

/* A value of cell is known to the caller when this is called; it keeps what it needs. */
typedef void paper_fn(void *user, const struct paper_cell *cell);

struct paper_request {
	const struct model *models; /* PAPER_MODELS of them, all of one set                       */
	uint64_t seed;              /* 0, or a fresh order of sending and fresh speeds (load.h)   */
	const struct paper_part *only; /* NULL: all parts                                         */
	bool no_figures;
	paper_fn *fn;
	void *user;
};

/* Computes one set, part by part. ESP_ENOMEM, or what train_run() says. */
ESP_CHECKED enum esp_status paper_run(const struct paper_request *request, struct error *err);

#endif
