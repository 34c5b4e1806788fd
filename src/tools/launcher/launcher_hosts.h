/*
 * launcher_hosts.h - the hosts of a job, the number of ranks on each, and which ranks those are. Pure.
 *
 * Ranks are numbered in the order of the hosts. A host that is named twice has two ranges of ranks, but one
 * count of local ranks, as they share the devices of that host.
 */
#ifndef TOOLS_LAUNCHER_LAUNCHER_HOSTS_H
#define TOOLS_LAUNCHER_LAUNCHER_HOSTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define RUN_RANKS_MAX 65536u /* in a job */
#define RUN_HOST_TEXT 256u   /* bytes of a host as given, with its NUL */

struct run_host {
	char *name;           /* for the remote shell: host or user@host, an IPv6 address without brackets */
	uint32_t slots;       /* ranks on it; 0: none, as there were fewer ranks than slots */
	uint32_t first_rank;  /* after launcher_hosts_settle() */
	uint32_t local_first; /* index of its first rank among the ranks on hosts of its name */
	uint32_t local_size;  /* ranks on all hosts of the same name */
};

struct run_hosts {
	struct run_host *list;
	size_t capacity;
	uint32_t count; /* 0: a local job */
	uint32_t ranks; /* sum of slots */
};

/* "a:4,user@b,[fe80::1]:2"; a host without a number has one rank. ESP_EINVAL, ESP_ELIMIT, ESP_ENOMEM. */
ESP_CHECKED enum esp_status launcher_hosts_parse(struct run_hosts *hosts, const char *text, struct error *err);

/*
 * One host per line: "host", "host:4" or "host slots=4"; # starts a comment. name is for messages. The text
 * needs no NUL.
 */
ESP_CHECKED enum esp_status launcher_hosts_decode(struct run_hosts *hosts, const char *text, size_t length,
                                                  const char *name, struct error *err);

/* Numbers the ranks. size 0: as many as there are slots; otherwise the first `size` of them. */
ESP_CHECKED enum esp_status launcher_hosts_settle(struct run_hosts *hosts, uint32_t size, struct error *err);

/* The host of a rank below hosts->ranks. */
const struct run_host *launcher_hosts_of(const struct run_hosts *hosts, uint32_t rank);

/* The host alone, without the user of the remote shell. */
const char *launcher_host_address(const struct run_host *host);

void launcher_hosts_fini(struct run_hosts *hosts);

#endif
