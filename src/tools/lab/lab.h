/*
 * lab.h - a lab as plain data: racks, hosts, links, and their settings. Pure.
 *
 *      core     a bridge per rail
 *      /  \
 *   rack0 rack1     a bridge per rail; uplinks upK to the core
 *    / \   / \
 *   hosts: interface eK on rail K
 *
 * Rails are separate networks, one per interface of a host; they have only the hosts in common. Core, racks and
 * hosts are spaces: network namespaces, numbered hosts first, then racks, then the core.
 *
 * The struct is flat, so that the keeper can share it as memory: the keeper writes settings, relays write their
 * counters, other processes only read.
 */
#ifndef TOOLS_LAB_LAB_H
#define TOOLS_LAB_LAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define LAB_NAME_TEXT 24        /* bytes of a lab's name with its NUL */
#define LAB_CONGESTION_TEXT 16  /* as in the kernel */
#define LAB_HOST_TEXT 16
#define LAB_DEVICE_TEXT 16
#define LAB_ADDRESS_TEXT 48
#define LAB_RAILS_MAX 4u
#define LAB_PORTS_MAX 1000u     /* hosts in a rack, racks: a bridge has 1024 ports */
#define LAB_HOSTS_MAX 4096u
#define LAB_NOBODY UINT32_MAX   /* no such host */

/* The configuration that a lab is made from. */
struct lab_config {
	char name[LAB_NAME_TEXT];
	uint32_t racks, hosts; /* hosts: per rack */
	uint32_t rails;
	uint64_t rate[LAB_RAILS_MAX]; /* bit/s of a host's interface, each way */
	double oversubscribe;         /* an uplink has hosts * rate / oversubscribe */
	uint64_t delay_ns;            /* one way, of each host's link   */
	uint64_t uplink_delay_ns;     /* one way, of each uplink        */
	uint32_t mtu;
	bool ipv6;                    /* IPv6 addresses only */
	uint64_t seed;                /* shuffles names and addresses; seed of the relays */
	char congestion[LAB_CONGESTION_TEXT]; /* TCP's congestion control; empty: the machine's default */
	char through[LAB_HOST_TEXT]; /* where a switch in user space runs: a rack, or a host; empty: nowhere */
	double through_links;        /* of a host that runs it: its link's rate by that of others */
};

struct lab_host {
	char name[LAB_HOST_TEXT];
	uint32_t rack, slot;
	uint32_t number[LAB_RAILS_MAX]; /* lowest bits of its address on each rail */
};

/* A link has two ends: the far end is at a host, or at a rack for an uplink; the near end is at the switch above. */
enum lab_way {
	LAB_FROM, /* away from the host or rack */
	LAB_TO,
	LAB_WAYS,
};

/* The faults of one direction. Shares are in millionths (units.h). */
struct lab_faults {
	uint32_t loss, reorder, duplicate, corrupt;
	uint64_t delay_ns;
	uint64_t jitter_ns; /* the delay varies by up to this; frames keep their order */
	uint64_t hold_ns;   /* reorder: longest additional delay of a held frame */
	bool cut;           /* all frames are lost, without an error */
};

struct lab_settings {
	uint64_t rate; /* bit/s each way */
	struct lab_faults faults[LAB_WAYS];
	uint32_t background; /* TCP flows from this host, or this rack, on this rail */
	bool down;           /* no carrier, as with the cable pulled */
};

/* Written by the relay of the link only. */
struct lab_counts {
	uint64_t frames, lost, reordered, duplicated, corrupted;
	uint64_t overrun; /* frames that the relay dropped for lack of time or room */
};

struct lab_link {
	uint32_t rail, rack;
	uint32_t host; /* LAB_NOBODY: the uplink of the rack */
	uint32_t version; /* odd while settings are written; relays check it */
	struct lab_settings made; /* as the lab was made; heal restores it */
	struct lab_settings set;
	int32_t relay; /* pid of the relay; 0: none is needed, -1: it has ended and cannot be started again */
	struct lab_counts counts[LAB_WAYS];
	uint64_t background_bytes; /* delivered by background flows */
};

struct lab {
	uint64_t magic; /* LAB_MAGIC: identifies this layout */
	uint64_t bytes; /* of the whole, hosts and links included */
	struct lab_config config;
	int32_t keeper; /* its pid */
	uint32_t host_count, link_count;
	uint32_t through; /* the space where the switch in user space runs; LAB_NOBODY: there is none */
};

/* ---- making one ---- */

/* Checks a configuration: ESP_EINVAL, ESP_ELIMIT. */
ESP_CHECKED enum esp_status lab_config_check(const struct lab_config *config, struct error *err);

size_t lab_bytes(const struct lab_config *config);

/* Writes lab_bytes() bytes: all but the keeper. config must have passed lab_config_check(). */
void lab_init(struct lab *lab, const struct lab_config *config);

/* Finds the place of the switch in user space, and gives its host the rate. ESP_EINVAL: there is no such place. */
ESP_CHECKED enum esp_status lab_place_switch(struct lab *lab, struct error *err);

/* True if this memory is a lab of this version. */
bool lab_is_valid(const struct lab *lab, size_t bytes);

/* ---- reading one ---- */

struct lab_host *lab_host(const struct lab *lab, uint32_t host);
struct lab_link *lab_link(const struct lab *lab, uint32_t link);

/* The links of a host and of a rack on a rail. A lab of one rack has no uplinks. */
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

/* The address of a host on a rail, without a prefix length. Returns text. */
const char *lab_address(const struct lab *lab, uint32_t host, uint32_t rail, char text[LAB_ADDRESS_TEXT]);
/* Of the bridge that the switch in user space runs at, on rail 0. */
const char *lab_bridge_address(const struct lab *lab, char text[LAB_ADDRESS_TEXT]);
unsigned lab_prefix_length(const struct lab *lab);

/* ---- choosing ---- */

/*
 * The links of a target: all (every host), racks (every uplink), or a space's name, each with ":e1" for one
 * rail. Writes at most link_count numbers. ESP_EINVAL.
 */
ESP_CHECKED enum esp_status lab_targets(const struct lab *lab, const char *target, uint32_t *out_links,
                                        uint32_t *out_count, struct error *err);

enum lab_place { LAB_CONTIGUOUS, LAB_INTERLEAVED, LAB_RANDOM };

/* The host of each rank; there are as many ranks as hosts. */
void lab_place(const struct lab *lab, enum lab_place place, uint64_t seed, uint32_t *out_hosts);

/* ---- settings ---- */

enum lab_ways_given { LAB_BOTH_WAYS, LAB_ONLY_FROM, LAB_ONLY_TO };

/*
 * Applies words such as "rate 200mbit", "loss 1%", "cut", "heal" to settings; heal restores `made`. All or
 * nothing. ESP_EINVAL.
 */
ESP_CHECKED enum esp_status lab_settings_apply(struct lab_settings *settings, const struct lab_settings *made,
                                               enum lab_ways_given ways, char *const *words, size_t count,
                                               struct error *err);

/* Whether a link with these settings needs a relay, or segments that are split into packets before they are dropped. */
bool lab_needs_relay(const struct lab_settings *settings);
bool lab_needs_packets(const struct lab_settings *settings);

/* Writes the differences from `made` as words that would set them; "-" for none. Returns text. */
#define LAB_SETTINGS_TEXT 256
const char *lab_settings_text(const struct lab_settings *settings, const struct lab_settings *made,
                              char text[LAB_SETTINGS_TEXT]);

#endif
