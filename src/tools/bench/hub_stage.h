/*
 * hub_stage.h - where ways to train are compared: this machine, or a lab with a rack of workers and a host for the hub;
 * with a hub, its job, and Gloo's program where there is one. Main thread; starts this program's own commands.
 */
#ifndef TOOLS_BENCH_HUB_STAGE_H
#define TOOLS_BENCH_HUB_STAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/bench/hub_contest.h"

#define HUB_STAGE_PATH 512u
#define HUB_STAGE_SHARDS 64u

struct hub_stage_config {
	uint64_t rate;    /* bits a second of a worker's link in a lab; 0: this machine, without a lab */
	double hub_links; /* the hub's link has so many times that rate */
	uint32_t workers;
	const char *optimizer;
	bool has_shards;  /* a job with a hub on each worker's host is wanted: of a lab */
	const char *const *model; /* words of the command line that name the model; borrowed, ends with NULL */
	uint32_t iterations, warmup;
	double seconds; /* that one run may take */
};

struct hub_stage {
	struct hub_stage_config config;
	char self[HUB_STAGE_PATH];      /* this program */
	char folder[64];                /* temporary: key and ticket; "": none */
	char lab[24];                   /* name; "": none */
	char address[64];               /* of the hub */
	char hub_host[32];              /* in the lab */
	char gloo[HUB_STAGE_PATH + 24]; /* Gloo's program; "": there is none */
	pid_t hub;                      /* 0: none */
	pid_t shards[HUB_STAGE_SHARDS]; /* hubs on the workers' hosts, in a lab; 0: none */
	uint32_t shard_count;
};

/*
 * Makes the lab, starts the hubs, creates the jobs. On failure nothing is left. ESP_EIO.
 */
ESP_CHECKED enum esp_status bench_hub_stage_open(struct hub_stage *stage, const struct hub_stage_config *config,
                                                 struct error *err);
void bench_hub_stage_close(struct hub_stage *stage);

/* One run of a way, in processes of their own. */
ESP_CHECKED enum esp_status bench_hub_stage_run(const struct hub_stage *stage, enum hub_way way,
                                                struct hub_contest_result *out, struct error *err);
/* Gloo's allreduce of so many bytes, by one of its algorithms: seconds and wrong elements alone. The stage has the
 * program. */
ESP_CHECKED enum esp_status bench_hub_stage_run_gloo(const struct hub_stage *stage, const char *variant, uint64_t bytes,
                                                     struct hub_contest_result *out, struct error *err);

/* The line that a worker prints, and what bench_hub_stage_run() reads. */
void bench_hub_stage_tell(const struct hub_contest_result *result);

#endif
