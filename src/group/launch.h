/*
 * launch.h - who am I? Rank, size and leader, from whatever started this process.
 *
 * Pure: the environment is asked through a function. Each value is taken from the first
 * place that has it:
 *     1. arguments of the program,
 *     2. ESP_RANK, ESP_SIZE, ESP_LEADER (and ESP_JOB, ESP_EPOCH),
 *     3. RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT as torchrun sets them (and
 *        TORCHELASTIC_RUN_ID, TORCHELASTIC_RESTART_COUNT). MASTER_PORT itself belongs to
 *        PyTorch's own store, so the leader listens one above.
 */
#ifndef GROUP_LAUNCH_H
#define GROUP_LAUNCH_H

#include <stdint.h>

#include "base/error.h"
#include "group/address.h"

#define LAUNCH_SIZE_MAX 65536u /* ranks in a group */
#define LAUNCH_JOB 128u        /* bytes of a job's name, with the NUL */
#define LAUNCH_LAUNCHER 64u    /* bytes of a launcher's name, with the NUL */

/* The value of a variable, NULL if it is not set: conf_environment(), or a table in tests. */
typedef const char *launch_lookup_fn(void *context, const char *name);

struct launch_arguments {
	int64_t rank, size; /* below 0: not given */
	const char *leader; /* host:port; NULL: not given */
	const char *job;    /* NULL: not given */
};
#define LAUNCH_NO_ARGUMENTS ((struct launch_arguments){-1, -1, NULL, NULL})

struct launch {
	uint32_t rank, size;
	struct address leader;     /* port 0 (and only then) for a group of one that needs none */
	char job[LAUNCH_JOB];      /* "" unless somebody named the job */
	uint64_t epoch;            /* how often the job was started anew */
	char launcher[LAUNCH_LAUNCHER]; /* whom to ask who has ended (launcher.h); "": nobody */
	const char *rank_source;   /* "ESP_RANK", "the argument rank"; static text */
	const char *size_source;
	const char *leader_source;
};

/*
 * ESP_EINVAL names the variable that is missing or bad and says what was expected. *warning
 * (which may be NULL) holds a text if two places contradict each other, and status ESP_OK otherwise.
 */
ESP_CHECKED enum esp_status launch_find(const struct launch_arguments *arguments, launch_lookup_fn *lookup,
                                        void *context, struct launch *out, struct error *warning, struct error *err);

/* For the log: "rank 3 of 8 (ESP_RANK, ESP_SIZE), leader node7:29501 (MASTER_ADDR, MASTER_PORT + 1)". Returns text. */
#define LAUNCH_TEXT (ADDRESS_TEXT + 160u)
const char *launch_describe(const struct launch *launch, char text[LAUNCH_TEXT]);

#endif
