/*
 * paper_state.h - one set of the paper's results while they are computed. Private to studies/paper*.c.
 */
#ifndef STUDIES_PAPER_STATE_H
#define STUDIES_PAPER_STATE_H

#include "sim/trial.h"
#include "studies/paper.h"

/* One run, by all its parameters; zero is the default. */
struct paper_case {
	uint32_t model;       /* enum paper_model */
	const char *mechanism;
	uint32_t workers;     /* 0: 32 */
	double gbps;          /* 0: 25 */
	uint32_t servers;     /* 0: 1  */
	bool even_split, block, no_barrier;
	double compute;       /* 0: 1  */
	const char *added;    /* layers to copy, or NULL */
	uint32_t copies;
};

struct paper_known {
	struct paper_case about;
	double iteration_s;
};

struct paper {
	struct paper_request request;
	struct error *err;
	enum esp_status status; /* after an error nothing more is computed */
	struct paper_known *known; /* cache: several tables have the same runs */
	size_t known_count, known_room;
};

/* Seconds of an iteration; NAN after a failure. */
double paper_seconds(struct paper *paper, struct paper_case about);
/* The speedup over servers without help from the network. */
double paper_speedup(struct paper *paper, struct paper_case about);
void paper_tell(struct paper *paper, struct paper_cell cell);

void paper_table(struct paper *paper, uint32_t number);
void paper_figure(struct paper *paper, uint32_t number);

#endif
