/*
 * bench_options.h - the command line of `espalier bench`. Main thread; prints errors on stderr.
 */
#ifndef TOOLS_BENCH_BENCH_OPTIONS_H
#define TOOLS_BENCH_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/bench/bench_data.h"
#include "tools/bench/bench_sizes.h"

#define BENCH_COLLECTIVES 9u
#define BENCH_PLANS_MAX 32u
#define BENCH_SETTINGS_MAX 64u
#define BENCH_RANKS_MAX 4096u /* the most that may be started on one machine */

/* How calls are made. */
enum bench_calls {
	BENCH_BLOCKING,   /* esp_run() */
	BENCH_ASYNC,      /* esp_start(), esp_wait() */
	BENCH_PERSISTENT, /* esp_prepare() once, then esp_restart(), esp_wait() */
};

enum bench_memory {
	BENCH_ALLOC,  /* esp_alloc() */
	BENCH_MALLOC,
	BENCH_SHARED, /* malloc(), esp_share() */
};
/* As on the command line. */
extern const char *const bench_memories[];

struct bench_options {
	enum esp_collective collectives[BENCH_COLLECTIVES];
	uint32_t collective_count;
	uint64_t ranks; /* 0: not given */
	struct bench_sizes sizes;
	const char *plans[BENCH_PLANS_MAX]; /* NULL: the library chooses */
	uint32_t plan_count;                /* at least 1 */
	const char *settings[BENCH_SETTINGS_MAX + 1]; /* "lanes=2" ..., then NULL */
	enum esp_type type;
	enum esp_op op;
	enum esp_numerics numerics; /* of allreduces; ESP_NUMERICS_DEFAULT: as the setting of the job says */
	uint64_t root;
	uint64_t iters, warmup;
	double seconds;
	bool check;
	bool in_place; /* out of place is not measured */
	enum bench_memory memory; /* of the buffers */
	enum bench_calls calls;
	bool json;
	char *plan_text, *setting_text; /* owned: plans and settings point into these */
};

/* Returns -1 to go on, otherwise the exit status to return at once, as options_parse() does. Changes argv. */
int bench_options_parse(struct bench_options *options, int argc, char **argv);
void bench_options_fini(struct bench_options *options);

const char *bench_calls_name(enum bench_calls calls);

#endif
