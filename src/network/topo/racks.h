/*
 * racks.h - where hosts stand, as somebody wrote it down: a rack map, Slurm's topology.conf, Kubernetes' node labels.
 *
 * A place is a path of numbers, from the outermost level (region, row) to the rack. Readers are asked for the hosts of a job
 * by name: what a file says of others is ignored, and a host of which it says nothing is an error. Names are compared without
 * regard to case; where one of two has no domain, only up to the first dot. Pure functions.
 */
#ifndef NETWORK_TOPO_RACKS_H
#define NETWORK_TOPO_RACKS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "network/topo/grouping.h"

#define RACKS_LEVELS_MAX 8u

struct racks {
	uint32_t nodes;
	uint32_t levels; /* 1 .. RACKS_LEVELS_MAX                                                                */
	uint32_t *place; /* node by node, nodes * levels, outermost first; numbers are unique within their level */
	char **names;    /* what the file calls them: place p of level l is names[l * nodes + p]; NULL: nobody read a file */
	const char *label; /* of Kubernetes' nodes that names the rack; NULL: another kind of file. Borrowed: the caller's, or constant */
};

void racks_fini(struct racks *racks); /* of zeros: nothing happens */

/* All of one rack are a group. */
ESP_CHECKED enum esp_status racks_grouping(const struct racks *racks, struct grouping *out, struct error *err);

/* How many levels two nodes have in common, from the outside. */
uint32_t racks_common(const struct racks *racks, uint32_t a, uint32_t b);

/*
 * Lines "host rack", '#' starts a comment. A rack may be a path, outermost first: "node7 row1/rack3"; all have as many levels.
 * ESP_EPARSE with "line 3: ..." in err, ESP_ENOMEM; so for all readers.
 */
ESP_CHECKED enum esp_status racks_read_map(const char *text, size_t length, const char *const *hosts, uint32_t count,
                                           struct racks *out, struct error *err);

/*
 * Slurm's topology.conf: SwitchName=s1 Nodes=n[0-3], SwitchName=top Switches=s[0-1]; BlockName=b1 Nodes=... as well. A leaf
 * switch is a rack. A tree whose branches are not equally deep gets its racks' numbers repeated on the missing levels.
 */
ESP_CHECKED enum esp_status racks_read_slurm(const char *text, size_t length, const char *const *hosts, uint32_t count,
                                             struct racks *out, struct error *err);

/*
 * What `kubectl get nodes -o json` prints. label: the key that names the rack; NULL: the first that all hosts have of
 * topology.kubernetes.io/rack and other usual ones, else their zone. Region and zone are the levels above, if all have them. Hosts are known by the node's name, its label kubernetes.io/hostname or one of
 * its addresses.
 */
ESP_CHECKED enum esp_status racks_read_kubernetes(const char *text, size_t length, const char *label, const char *const *hosts,
                                                  uint32_t count, struct racks *out, struct error *err);

/*
 * By what the text begins with: '{' is Kubernetes', SwitchName= or BlockName= is Slurm's, all else a rack map. The mark of
 * UTF-8 before it is skipped.
 */
ESP_CHECKED enum esp_status racks_read(const char *text, size_t length, const char *label, const char *const *hosts,
                                       uint32_t count, struct racks *out, struct error *err);

/* The hosts that a file is about, in its order, each once. */
struct racks_names {
	char **list;
	uint32_t count;
};

void racks_names_fini(struct racks_names *names); /* of zeros: nothing happens */

/* Of any of the three kinds. ESP_EPARSE, also where there is no host; ESP_ELIMIT, ESP_ENOMEM. */
ESP_CHECKED enum esp_status racks_names_read(const char *text, size_t length, struct racks_names *out, struct error *err);

#endif
