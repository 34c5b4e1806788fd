/*
 * switch_stage.h - where a sum through a switch is compared with others: this machine, or a lab with a rack of workers
 * and a host for the switch. Main thread; starts this program's own commands.
 */
#ifndef TOOLS_BENCH_SWITCH_STAGE_H
#define TOOLS_BENCH_SWITCH_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

#define SWITCH_STAGE_PATH 512u

struct switch_stage_config {
	uint64_t rate; /* bits a second of a worker's link in a lab; 0: this machine, without a lab */
	double links;  /* the switch's link has so many times that rate */
	uint32_t workers, iterations;
	uint64_t bytes;
	double seconds; /* that one run may take */
};

struct switch_stage {
	struct switch_stage_config config;
	char self[SWITCH_STAGE_PATH];      /* this program */
	char log[64];                      /* the switch's; "": none */
	char lab[24];                      /* name; "": none */
	char address[64];                  /* of the switch */
	char gloo[SWITCH_STAGE_PATH + 24]; /* Gloo's program; "": there is none */
	pid_t server;                      /* 0: none */
};

/* Makes the lab and starts the switch. On failure nothing is left. ESP_EIO and what commands say on stderr. */
ESP_CHECKED enum esp_status bench_switch_stage_open(struct switch_stage *stage,
                                                    const struct switch_stage_config *config, struct error *err);
void bench_switch_stage_close(struct switch_stage *stage);

/* A way to sum. */
struct switch_way {
	const char *name;
	const char *gloo;     /* Gloo's algorithm; NULL: this library */
	bool is_switched;
	const char *type, *numerics, *plan; /* as espalier bench has them */
	double word_share;    /* bytes that travel for each byte of the caller's */
};

struct switch_result {
	double seconds, least, most; /* of a call: the median, and the range */
	uint64_t wrong;
	bool went_through; /* the library said that the sum went through the switch */
};

/* One run, in processes of their own. */
ESP_CHECKED enum esp_status bench_switch_stage_run(const struct switch_stage *stage, const struct switch_way *way,
                                                   struct switch_result *out, struct error *err);

#endif
