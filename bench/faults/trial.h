/*
 * trial.h - one run of a job in which something happens to one rank: what, to whom, when, and what everybody saw.
 *
 * A trial is drawn from its seed. The ranks are processes that write what they do and what they see into memory that they share
 * with the referee (referee.h), which started them, does the harm and takes the time.
 */
#ifndef BENCH_FAULTS_TRIAL_H
#define BENCH_FAULTS_TRIAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TRIAL_RANKS 16u
#define TRIAL_TEXT 256u

enum way {
	WAY_KILL, /* SIGKILL                                        */
	WAY_STOP, /* SIGSTOP; SIGCONT when all others are through   */
	WAY_COUNT,
};

/* What the victim is doing when it happens. */
enum phase {
	PHASE_JOINING,    /* in esp_init()                                            */
	PHASE_CONNECTING, /* in the first call, which makes connections over TCP      */
	PHASE_IDLE,       /* nobody is in a call                                      */
	PHASE_LATE,       /* the others wait in a call for the victim, which computes */
	PHASE_CALLS,      /* anywhere in calls that follow each other                 */
	PHASE_FIRST,      /* the first chunks of its result are there                 */
	PHASE_MIDDLE,     /* about half of them                                       */
	PHASE_LAST,       /* almost all                                               */
	PHASE_SHRINK,     /* in esp_group_shrink()                                    */
	PHASE_LEAVING,    /* in esp_fini()                                            */
	PHASE_COUNT,
};

extern const char *const way_names[WAY_COUNT + 1];
extern const char *const phase_names[PHASE_COUNT + 1];

/* Of what trials are drawn. */
struct trial_range {
	uint32_t ranks[8], rank_count;
	bool ways[WAY_COUNT], phases[PHASE_COUNT];
	bool shm, tcp;
	uint32_t liveness_ms, join_seconds;
};

struct trial {
	uint64_t seed;
	enum way way;
	enum phase phase;
	uint32_t size, victim;
	uint32_t first_victim;  /* shrink: kills itself before, so that there is a reason to; or UINT32_MAX */
	uint32_t target_call;   /* the call in which it happens                                             */
	uint64_t count;         /* elements of a call                                                       */
	uint64_t delay_ns;      /* from the moment that the phase has begun                                 */
	bool from_alloc;        /* inputs are in memory of esp_alloc()                                      */
	bool is_tcp;
	uint32_t liveness_ms, join_seconds;
};

void trial_draw(const struct trial_range *range, uint64_t seed, struct trial *trial);

/* How far a rank is. */
enum place {
	AT_START,
	AT_JOIN,
	AT_CALL,    /* number `call` of the world           */
	AT_PAUSE,   /* waits for the referee's word         */
	AT_SHRINK,
	AT_LEAVE,
	AT_END,
};

/* What a rank tells. Written by it, read by the referee. */
struct witness {
	_Atomic uint32_t place;
	_Atomic uint32_t call;
	_Atomic uint32_t shrinks;   /* begun                                                            */
	_Atomic uint64_t error_ns;  /* it knows that the victim is lost: a call has told so; 0: not yet */
	_Atomic uint64_t went_on_ns;/* a call without the victim has ended well                         */
	_Atomic uint32_t wrong;     /* elements, or reports of esp_group_shrink()                       */
	_Atomic uint32_t misnamed;  /* errors that blamed another one                                   */
	_Atomic uint32_t broken;    /* something else that must not be: see text                        */
	char text[TRIAL_TEXT];      /* the last error                                                   */
};

/* Shared by all. The outputs of the calls follow it, one for each rank. */
struct stage {
	struct trial trial;
	_Atomic bool is_released;   /* whoever is in AT_PAUSE goes on */
	char leader[32];
	struct witness witnesses[TRIAL_RANKS];
	int64_t *outputs[TRIAL_RANKS];
};

#define STAGE_UNTOUCHED (-1) /* in an output: no result has come yet */

/* The life of a rank; returns what its process exits with. */
int rank_live(struct stage *stage, uint32_t number);

#endif
