/*
 * run_request.h - what espalier run was asked for, parsed and checked.
 */
#ifndef TOOLS_LAUNCHER_RUN_REQUEST_H
#define TOOLS_LAUNCHER_RUN_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/launcher/run_env.h"
#include "tools/launcher/run_group.h"
#include "tools/launcher/run_hosts.h"
#include "tools/launcher/run_output.h"

/* Where ranks live that are processes of this machine and yet not of this host. */
struct run_place {
	/* In the process of the rank, before it becomes the command. */
	enum esp_status (*enter)(void *context, uint32_t rank, struct error *err);
	void *context;
	uint32_t per_host; /* ranks that share a place */
	int gone_fd;       /* readable when the places are no more: then the ranks end as well. -1: that cannot be known */
};

struct run_job;

/* Somebody who starts a job for a purpose of his own, and says himself what its end means. */
struct run_watch {
	void (*on_over)(void *context, const struct run_job *job); /* nothing of the ranks is left */
	run_take_fn *take; /* looks at every line of the ranks; NULL: nobody does */
	bool (*is_done)(void *context, const struct run_job *job); /* nothing more comes of the job: who is left has the grace, and is ended. NULL: never */
	void *context;
};

struct run_request {
	const char *said_by;    /* the command that was typed, behind "espalier" */
	bool is_inner;          /* that was another one, which starts its ranks by espalier run: our options are not known to whoever typed it */
	uint32_t size;          /* ranks */
	char *const *command;   /* ends with NULL; borrowed */
	struct run_hosts hosts; /* none: all ranks are processes of this machine */
	struct run_place place; /* enter NULL: and of this host */
	struct run_env env;     /* what the ranks are told, but for what differs between them */
	const char *cwd;        /* NULL: where we are */
	char *here;             /* where we are, for other hosts */
	char **rsh;             /* the words of the remote shell's command, a place for the host, the bootstrap, NULL */
	size_t rsh_host;        /* which of them is the host's place */
	const char *output; /* folder for what the ranks print; NULL: our own output */
	bool prefixed;      /* lines begin with the rank */
	bool json;
	uint32_t lose;     /* so many may fail, and the job goes on */
	uint64_t grace_ns;
	uint64_t limit_ns; /* 0: none */
	const struct run_watch *watch; /* NULL: what happens is told on stderr */
	char leader[RUN_LEADER_TEXT];
	int held_port; /* keeps the leader's port for rank 0; -1: it is on another host, or was given */
	int held_master; /* the same of MASTER_PORT */
	char job[RUN_JOB_TEXT];
};

#endif
