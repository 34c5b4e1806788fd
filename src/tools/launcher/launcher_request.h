/*
 * launcher_request.h - a job as espalier run was asked for it, parsed and checked.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_REQUEST_H
#define TOOLS_LAUNCHER_LAUNCHER_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/launcher/launcher_env.h"
#include "tools/launcher/launcher_group.h"
#include "tools/launcher/launcher_hosts.h"
#include "tools/launcher/launcher_output.h"

/* Hosts that are namespaces of this machine, such as those of a lab. */
struct run_place {
	/* Called in the process of the rank, before it becomes the command. */
	enum esp_status (*enter)(void *context, uint32_t rank, struct error *err);
	void *context;
	uint32_t per_host; /* ranks that share a host */
	int gone_fd;       /* readable when the hosts are gone: then the ranks are ended. -1: unknown */
};

struct run_job;

/* A command that starts a job for its own purpose, and reports the result itself. */
struct run_watch {
	void (*on_over)(void *context, const struct run_job *job); /* all processes of the ranks are gone */
	run_take_fn *take;                                         /* sees every line of the ranks; NULL: none */
	/* the job is not needed any more: remaining ranks have the grace, and are ended. NULL: never */
	bool (*is_done)(void *context, const struct run_job *job);
	void *context;
};

struct run_request {
	const char *said_by; /* the command that was typed, behind "espalier" */
	/* that was another command, which starts its ranks through espalier run: messages must not mention our options */
	bool is_inner;
	uint32_t size;          /* ranks */
	char *const *command;   /* ends with NULL; borrowed */
	struct run_hosts hosts; /* none: all ranks are processes of this machine */
	struct run_place place; /* enter NULL: on this host */
	struct run_env env;     /* variables of the ranks, but for those that differ between ranks */
	const char *cwd;        /* NULL: the current folder */
	char *here;             /* the current folder, for other hosts */
	char **rsh;             /* the remote shell's command, a place for the host, the bootstrap, NULL */
	size_t rsh_host;        /* index of the host's place */
	const char *output;     /* folder for the output of the ranks; NULL: our own output */
	bool prefixed;          /* lines begin with the rank */
	bool json;
	uint32_t lose; /* so many ranks may fail, and the job goes on */
	uint64_t grace_ns;
	uint64_t limit_ns;             /* 0: none */
	const struct run_watch *watch; /* NULL: failures are reported on stderr */
	char leader[RUN_LEADER_TEXT];
	int held_port;   /* keeps the leader's port for rank 0; -1: it is on another host, or was given */
	int held_master; /* keeps MASTER_PORT */
	char job[RUN_JOB_TEXT];
};

#endif
