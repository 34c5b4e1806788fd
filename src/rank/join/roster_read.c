/*
 * roster_read.c - makes a roster of the node infos that the leader sent, and describes it for the log.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "rank/join/join_parts.h"
#include "rank/join/rendezvous.h"

enum esp_status roster_decode(const uint8_t *bytes, uint32_t size, struct roster *out, struct error *err)
{
	struct node_info *nodes = calloc(size, sizeof(*nodes));
	if (!nodes)
		return error_set(err, ESP_ENOMEM, "no memory for the node infos of %u ranks", size);
	enum esp_status status = ESP_OK;
	for (uint32_t i = 0; i < size && status == ESP_OK; i++)
		if (!node_info_decode(bytes + (size_t)i * NODE_INFO_BYTES, &nodes[i]))
			status = error_set(err, ESP_ECORRUPT, "the node info of rank %u is damaged", i);
	if (status == ESP_OK)
		status = rendezvous_check_nodes(nodes, size, err);
	if (status == ESP_OK)
		return roster_init(out, nodes, size, err);
	free(nodes);
	return status;
}

const char *join_describe(const struct join_config *config, const struct roster *roster, char text[JOIN_TEXT])
{
	const struct node_info *info = &roster->nodes[config->launch.rank];
	int used = snprintf(text, JOIN_TEXT, "joined %u rank%s on %u host%s; rank %u listens on port %u", roster->size,
	                    roster->size == 1 ? "" : "s", roster->hosts, roster->hosts == 1 ? "" : "s", info->rank,
	                    info->port);
	for (uint32_t i = 0; i < info->address_count && used > 0 && (size_t)used < JOIN_TEXT; i++) {
		char address[INET6_ADDRSTRLEN];
		int family = info->addresses[i].family == NODE_IPV4 ? AF_INET : AF_INET6;
		inet_ntop(family, info->addresses[i].bytes, address, sizeof(address));
		used += snprintf(text + used, JOIN_TEXT - (size_t)used, "%s%s", i ? ", " : " of ", address);
	}
	return text;
}
