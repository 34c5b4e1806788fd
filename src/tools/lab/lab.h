/*
 * lab.h - a lab as plain data: racks, hosts, links, and what is set on them.
 *
 *      core     a bridge for each rail
 *      /  \
 *   rack0 rack1     a bridge for each rail; uplinks upK to the core
 *    / \   / \
 *   hosts: interface eK on rail K
 *
 * Rails are networks of their own, one for each interface of a host, that share nothing but the hosts. Core,
 * racks and hosts are spaces: network namespaces, numbered hosts first, then racks, then the core.
 *
 * The whole struct is flat, so that the keeper can share it as memory: it writes settings, relays write their
 * counters, everybody else only reads. Nothing in this file does I/O.
 */
#ifndef TOOLS_LAB_LAB_H
#define TOOLS_LAB_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LAB_NAME_TEXT 24        /* name of a lab, with the NUL */
#define LAB_CONGESTION_TEXT 16  /* as the kernel has it */
#define LAB_HOST_TEXT 16
#define LAB_DEVICE_TEXT 16
#define LAB_ADDRESS_TEXT 48
#define LAB_RAILS_MAX 4u
#define LAB_PORTS_MAX 1000u     /* hosts in a rack, racks: a bridge has 1024 ports */
#define LAB_HOSTS_MAX 4096u
#define LAB_NOBODY UINT32_MAX   /* no such host */

/* What was asked for when it was made. */
struct lab_config {
	char name[LAB_NAME_TEXT];
	uint32_t racks, hosts; /* hosts: in each rack */
	uint32_t rails;
	uint64_t rate[LAB_RAILS_MAX]; /* bit/s of a host's interface, each way */
	double oversubscribe;         /* an uplink has hosts * rate / oversubscribe */
	uint64_t delay_ns;            /* one way, of each host's link   */
	uint64_t uplink_delay_ns;     /* one way, of each uplink        */
	uint32_t mtu;
	bool ipv6;                    /* IPv6 addresses alone */
	uint64_t seed;                /* shuffles names and addresses; the relays' chances */
	char congestion[LAB_CONGESTION_TEXT]; /* congestion control of TCP; empty: the machine's */
};

struct lab_host {
	char name[LAB_HOST_TEXT];
	uint32_t rack, slot;
	uint32_t number[LAB_RAILS_MAX]; /* the last bits of its address on each rail */
};

/* A link has two ends: the far one is at a host or at the uplink of a rack, the near one at the switch above it. */
enum lab_way {
	LAB_FROM, /* away from the host or rack */
	LAB_TO,
	LAB_WAYS,
};

/* What happens to frames that go one way. Shares are millionths (units.h). */
struct lab_faults {
	uint32_t loss, reorder, duplicate, corrupt;
	uint64_t delay_ns;
	uint64_t jitter_ns; /* delay is more or less by up to so much; the order stays */
	uint64_t hold_ns;   /* reorder: up to so much longer than the others */
	bool cut;           /* nothing passes, and nobody is told */
};

struct lab_settings {
	uint64_t rate; /* bit/s each way */
	struct lab_faults faults[LAB_WAYS];
	uint32_t background; /* TCP flows that come from this host, or this rack, on this rail */
	bool down;           /* no carrier, as if the cable were pulled */
};

/* Written by the relay of the link alone. */
struct lab_counts {
	uint64_t frames, lost, reordered, duplicated, corrupted;
	uint64_t overrun; /* frames that the relay had no time or no room for */
};

struct lab_link {
	uint32_t rail, rack;
	uint32_t host; /* LAB_NOBODY: the uplink of the rack */
	uint32_t version; /* odd while settings are written; relays look at it */
	struct lab_settings made; /* as the lab was made: what heal brings back */
	struct lab_settings set;
	int32_t relay; /* process of the relay; 0: none is needed, -1: it has ended and cannot be started again */
	struct lab_counts counts[LAB_WAYS];
	uint64_t background_bytes; /* that background flows have delivered */
};

struct lab {
	uint64_t magic; /* LAB_MAGIC: this layout */
	uint64_t bytes; /* of all of it, hosts and links included */
	struct lab_config config;
	int32_t keeper; /* its process */
	uint32_t host_count, link_count;
};

/* ---- making one ---- */

/* Says what is wrong with a configuration, if anything: ESP_EINVAL, ESP_ELIMIT. */
ESP_CHECKED enum esp_status lab_config_check(const struct lab_config *config, struct error *err);

size_t lab_bytes(const struct lab_config *config);

/* Writes lab_bytes() bytes: everything but the keeper. config must have passed lab_config_check(). */
void lab_init(struct lab *lab, const struct lab_config *config);

/* Is this memory of so many bytes a lab of this version? */
bool lab_is_valid(const struct lab *lab, size_t bytes);

/* ---- looking at one ---- */

struct lab_host *lab_host(const struct lab *lab, uint32_t host);
struct lab_link *lab_link(const struct lab *lab, uint32_t link);

/* The links of a host and of a rack on a rail. There are no uplinks if there is one rack. */
uint32_t lab_host_link(const struct lab *lab, uint32_t host, uint32_t rail);
uint32_t lab_uplink(const struct lab *lab, uint32_t rack, uint32_t rail);
bool lab_has_core(const struct lab *lab);

uint32_t lab_space_count(const struct lab *lab);
uint32_t lab_rack_space(const struct lab *lab, uint32_t rack);
uint32_t lab_core_space(const struct lab *lab);
/* "node07", "rack1", "core". Returns text. */
const char *lab_space_name(const struct lab *lab, uint32_t space, char text[LAB_HOST_TEXT]);
/* The space of that name; a host also as rack1/2, its place. LAB_NOBODY: there is none. */
uint32_t lab_find_space(const struct lab *lab, const char *name);

struct lab_end {
	uint32_t space;
	char device[LAB_DEVICE_TEXT];
};
struct lab_end lab_far_end(const struct lab *lab, uint32_t index);
struct lab_end lab_near_end(const struct lab *lab, uint32_t index);
/* "node07:e0", "rack1:e0". Returns text. */
#define LAB_LINK_TEXT 32
const char *lab_link_name(const struct lab *lab, uint32_t index, char text[LAB_LINK_TEXT]);

/* Address of a host on a rail, without the length of the prefix. Returns text. */
const char *lab_address(const struct lab *lab, uint32_t host, uint32_t rail, char text[LAB_ADDRESS_TEXT]);
unsigned lab_prefix_length(const struct lab *lab);

/* ---- choosing ---- */

/*
 * The links that a target names: all (every host), racks (every uplink), a space's name, each with ":e1" for one
 * rail. Writes at most link_count numbers. ESP_EINVAL.
 */
ESP_CHECKED enum esp_status lab_targets(const struct lab *lab, const char *target, uint32_t *out_links,
                                        uint32_t *out_count, struct error *err);

enum lab_place { LAB_CONTIGUOUS, LAB_INTERLEAVED, LAB_RANDOM };

/* The host of each of the first count ranks, as many as there are hosts or fewer. */
void lab_place(const struct lab *lab, enum lab_place place, uint64_t seed, uint32_t *out_hosts);

/* ---- settings ---- */

enum lab_ways_given { LAB_BOTH_WAYS, LAB_ONLY_FROM, LAB_ONLY_TO };

/*
 * Applies words such as "rate 200mbit", "loss 1%", "cut", "heal" to settings; made is what heal brings back.
 * All or nothing. ESP_EINVAL.
 */
ESP_CHECKED enum esp_status lab_settings_apply(struct lab_settings *settings, const struct lab_settings *made,
                                               enum lab_ways_given ways, char *const *words, size_t count,
                                               struct error *err);

/* Does a link with these settings need a relay, or packets that are cut before they are dropped? */
bool lab_needs_relay(const struct lab_settings *settings);
bool lab_needs_packets(const struct lab_settings *settings);

/* What differs from made, as words that would set it; "-" for nothing. Returns text. */
#define LAB_SETTINGS_TEXT 256
const char *lab_settings_text(const struct lab_settings *settings, const struct lab_settings *made,
                              char text[LAB_SETTINGS_TEXT]);

#endif
