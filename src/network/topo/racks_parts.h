/*
 * racks_parts.h - shared by the readers of racks.h. Private to src/network/topo.
 */
#ifndef NETWORK_TOPO_RACKS_PARTS_H
#define NETWORK_TOPO_RACKS_PARTS_H

#include <stdbool.h>

#include "network/topo/racks.h"

#define RACKS_HOSTS_MAX 65536u

/* The hosts of the job, found by name. Several may have one name: ranks of one host. */
struct racks_hosts {
	const char *const *names; /* borrowed */
	uint32_t count;
	uint32_t *sorted; /* by name up to the first dot */
};

ESP_CHECKED enum esp_status racks_hosts_init(struct racks_hosts *hosts, const char *const *names, uint32_t count,
                                             struct error *err);
void racks_hosts_fini(struct racks_hosts *hosts);

/* The next host of this name; *at is the iterator, 0 at first. Returns count if there is none. */
uint32_t racks_hosts_next(const struct racks_hosts *hosts, const char *name, size_t length, uint32_t *at);

/*
 * Numbers the places: cells has for each host the names of its levels, outermost first, count * levels. On
 * success *out is complete. ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status racks_number(const char *const *cells, uint32_t count, uint32_t levels, struct racks *out,
                                         struct error *err);

/*
 * ESP_EPARSE for the first host without a place (cells[host * levels] is NULL); `what` names the file: "the
 * rack map".
 */
ESP_CHECKED enum esp_status racks_all_placed(const struct racks_hosts *hosts, const char *const *cells, uint32_t levels,
                                             const char *what, struct error *err);

/* The names of hosts in each kind of file, perhaps with repetitions. After a failure the caller frees *out, too. */
ESP_CHECKED enum esp_status racks_names_add(struct racks_names *names, const char *name, size_t length,
                                            struct error *err);
ESP_CHECKED enum esp_status racks_names_map(const char *text, size_t length, struct racks_names *out,
                                            struct error *err);
ESP_CHECKED enum esp_status racks_names_slurm(const char *text, size_t length, struct racks_names *out,
                                              struct error *err);
ESP_CHECKED enum esp_status racks_names_kubernetes(const char *text, size_t length, struct racks_names *out,
                                                   struct error *err);

#endif
