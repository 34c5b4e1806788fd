/*
 * run_hosts.h - the hosts of a job: who is named, with how many ranks, and which ranks those are.
 *
 * Ranks are numbered in the order of the hosts. A host that is named twice has two stretches of
 * ranks, but one count of local ranks, as its ranks share the devices of that host.
 */
#ifndef TOOLS_LAUNCHER_RUN_HOSTS_H
#define TOOLS_LAUNCHER_RUN_HOSTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define RUN_RANKS_MAX 65536u /* in a job */
#define RUN_HOST_TEXT 256u   /* bytes of a host as given, with the NUL */

struct run_host {
	char *name;           /* for the remote shell: host or user@host, an IPv6 address without brackets */
	uint32_t slots;       /* ranks that it takes; 0: none, as there were fewer ranks than places */
	uint32_t first_rank;  /* after run_hosts_settle() */
	uint32_t local_first; /* number of the first rank among those of the same name */
	uint32_t local_size;  /* ranks on all hosts of the same name */
};

struct run_hosts {
	struct run_host *list;
	uint32_t count; /* 0: a local job */
	uint32_t ranks; /* sum of slots */
};

/* "a:4,user@b,[fe80::1]:2"; a host without a number has one rank. ESP_EINVAL, ESP_ELIMIT, ESP_ENOMEM. */
ESP_CHECKED enum esp_status run_hosts_parse(struct run_hosts *hosts, const char *text, struct error *err);

/*
 * A line for each host: "host", "host:4" or "host slots=4"; # starts a comment. name is for complaints.
 * Needs no NUL at the end.
 */
ESP_CHECKED enum esp_status run_hosts_decode(struct run_hosts *hosts, const char *text, size_t length,
                                             const char *name, struct error *err);

/* Numbers the ranks. size 0: as many as there are places; otherwise the first so many. */
ESP_CHECKED enum esp_status run_hosts_settle(struct run_hosts *hosts, uint32_t size, struct error *err);

/* The host of a rank below hosts->ranks. */
const struct run_host *run_hosts_of(const struct run_hosts *hosts, uint32_t rank);

/* The host alone, without the user that the remote shell logs in as. */
const char *run_host_address(const struct run_host *host);

void run_hosts_fini(struct run_hosts *hosts);

#endif
