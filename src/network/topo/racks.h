/*
 * racks.h - the places of hosts from a file: a rack map, Slurm's topology.conf, or Kubernetes' node labels.
 *
 * A place is a path of numbers, from the outermost level (region, row) to the rack. A reader gets the names of
 * a job's hosts: entries for other hosts are ignored, and a host without an entry is an error. Names are
 * compared ignoring case, and only up to the first dot if one of the two has no domain. Pure functions.
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
	uint32_t *place; /* by node, nodes * levels, outermost first; numbers are unique within their level */
	char **names;    /* names in the file: place p of level l is names[l * nodes + p]; NULL: there was no file */
	/*
	 * the node label of Kubernetes that names the rack; NULL: another kind of file. Borrowed from the caller,
	 * or constant
	 */
	const char *label;
};

void racks_fini(struct racks *racks); /* accepts a zeroed struct */

/* The nodes of one rack are a group. */
ESP_CHECKED enum esp_status racks_grouping(const struct racks *racks, struct grouping *out, struct error *err);

/* The number of levels on which two nodes share a place, from the outermost. */
uint32_t racks_common(const struct racks *racks, uint32_t a, uint32_t b);

/*
 * Lines "host rack", '#' starts a comment. A rack may be a path, outermost first: "node7 row1/rack3"; all have
 * equally many levels. ESP_EPARSE with "line 3: ..." in err, ESP_ENOMEM; the same for all readers.
 */
ESP_CHECKED enum esp_status racks_read_map(const char *text, size_t length, const char *const *hosts, uint32_t count,
                                           struct racks *out, struct error *err);

/*
 * Slurm's topology.conf: SwitchName=s1 Nodes=n[0-3], SwitchName=top Switches=s[0-1]; BlockName=b1 Nodes=... as
 * well. A leaf switch is a rack. In a tree with branches of different depths, racks repeat their number on the
 * missing levels.
 */
ESP_CHECKED enum esp_status racks_read_slurm(const char *text, size_t length, const char *const *hosts, uint32_t count,
                                             struct racks *out, struct error *err);

/*
 * The output of `kubectl get nodes -o json`. label: the key that names the rack; NULL: the first of
 * topology.kubernetes.io/rack and other usual ones that all hosts have, else their zone. Region and zone are
 * the levels above, if all hosts have them. A host is found by the node's name, its label
 * kubernetes.io/hostname or one of its addresses.
 */
ESP_CHECKED enum esp_status racks_read_kubernetes(const char *text, size_t length, const char *label,
                                                  const char *const *hosts, uint32_t count, struct racks *out,
                                                  struct error *err);

/*
 * Detects the kind by the beginning of the text: '{' is Kubernetes, SwitchName= or BlockName= is Slurm,
 * anything else is a rack map. A byte order mark is skipped.
 */
ESP_CHECKED enum esp_status racks_read(const char *text, size_t length, const char *label, const char *const *hosts,
                                       uint32_t count, struct racks *out, struct error *err);

/* The hosts of a file, in its order, each once. */
struct racks_names {
	char **list;
	uint32_t count;
	size_t capacity;
};

void racks_names_fini(struct racks_names *names); /* accepts a zeroed struct */

/* From any of the three kinds. ESP_EPARSE, also without a host; ESP_ELIMIT, ESP_ENOMEM. */
ESP_CHECKED enum esp_status racks_names_read(const char *text, size_t length, struct racks_names *out,
                                             struct error *err);

#endif
