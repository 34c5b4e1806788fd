/*
 * job.h - a job whose ranks are threads of one process, each with a context of its own.
 *
 * They join through an all-gather in memory and share nothing else but the library, so the
 * same code runs as in separate processes, and sanitizers see all of it.
 */
#ifndef TESTS_JOB_JOB_H
#define TESTS_JOB_JOB_H

#include <sys/types.h>

#include "espalier/espalier.h"

struct job_rank {
	struct esp_context *context;
	struct esp_group *world;
	uint32_t rank, size;
	void *argument;
};

typedef void job_fn(struct job_rank *rank);

/* Runs the function on every rank; a rank that cannot join ends the test. settings: "name=value", ends with NULL; or NULL. */
void job_run(uint32_t size, const char *const *settings, job_fn *function, void *argument);

/* Ends the test with the library's sentence, unless status is what was expected. */
void job_expect(enum esp_status status, enum esp_status expected, const char *what);
#define EXPECT(call, status) job_expect(call, status, #call)
#define OK(call) job_expect(call, ESP_OK, #call)

/* All ranks of the job wait for each other, without the library. */
void job_meet(struct job_rank *rank);

/*
 * As fork(), for a process that is a rank of a test. It does not outlive this one; and if a CHECK fails in it, or it crashes, this
 * one ends as well, and the others with it, which might wait for it for ever.
 */
pid_t job_fork(void);
/* All of them have ended well, but for the victim, which was killed. */
#define JOB_NOBODY UINT32_MAX
void job_wait(const pid_t *children, uint32_t count, uint32_t victim);

/* Members in processes of their own, at a leader's address that is made for them, and behind them in children one more, who comes in by the door. */
typedef void job_member_fn(uint32_t rank, const char *leader);
void job_fork_with_newcomer(pid_t *children, uint32_t members, job_member_fn *be_member, void (*be_newcomer)(void));
/* In a member: shows its door, and waits until somebody stands there. In the newcomer: waits until it is shown, and knows it then (ESP_DOOR). */
void job_open_door(struct esp_context *context);
void job_go_to_door(void);

/* A port that nobody listens on now, of either family. */
uint16_t job_free_port(void);
/* The first of some in a row, which the kernel gives to nobody by itself; held until the next call. */
uint16_t job_free_ports(uint32_t count);

#endif
