/*
 * fabric_logs.c - writes the logs of asynchronous jobs in virtual time: fabric_logs FOLDER RUNS. One file each, RUN.log:
 * every way of adding, one and two updates in flight, lost workers, killed schedulers.
 */
#include <stdlib.h>

#include "base/check.h"
#include "base/clock.h"
#include "sim/fabric/fabric_world.h"

static struct fabric_config make(uint32_t run)
{
	uint32_t workers = 2 + run % 9;

	return (struct fabric_config){
		.workers = workers,
		.per_host = 1 + run % 2,
		.bound = run % 3 == 0 ? workers : 3 * workers,
		.in_flight = 1 + run / 2 % 2,
		.aggregates = run % 4 != 0,
		.chains = run % 4 == 1,
		.batch_ns = 20 * NS_PER_MS,
		.bytes = 3000000,
		.compute_ns = (20 + 10 * (run % 7)) * NS_PER_MS,
		.host_rate = 125000000,
		.hub_rate = 125000000 / (1 + run % 4),
		.weather = &fabric_weathers[run % FABRIC_WEATHERS],
		.stragglers = &fabric_stragglers[run / 3 % FABRIC_STRAGGLERS],
		.period_ns = 500 * NS_PER_MS,
		.wrong_percent = run % 5 == 0 ? 30 : 0,
		.worker_kills = run % 3 == 1 ? workers / 2 : 0,
		.sched_kills = run % 5 == 2 ? 2 : 0,
		.faults_ns = NS_PER_S,
		.updates = 12,
		.seed = run + 1,
	};
}

int main(int argc, char **argv)
{
	uint32_t runs = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;

	CHECK_MSG(runs > 0, "usage: fabric_logs FOLDER RUNS");
	for (uint32_t run = 0; run < runs; run++) {
		struct fabric_config config = make(run);
		struct fabric_result result;
		char path[4096];

		snprintf(path, sizeof(path), "%s/%u.log", argv[1], run);
		config.log = fopen(path, "w");
		CHECK(config.log && fabric_world_run(&config, &result, NULL) == ESP_OK);
		CHECK_MSG(!result.failure[0], "run %u: %s", run, result.failure);
		CHECK(fclose(config.log) == 0);
	}
	return 0;
}
