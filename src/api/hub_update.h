/*
 * hub_update.h - the state of a worker's asynchronous updates, and what hub_update.c needs of hub.c. Private to
 * src/api.
 */
#ifndef API_HUB_UPDATE_H
#define API_HUB_UPDATE_H

#include "espalier/hub.h"
#include "hub/worker/hub_link.h"

struct api_updates;

void api_updates_close(struct api_updates *updates); /* NULL is fine */

enum esp_status api_hub_check(const char *who, const struct esp_hub *hub);
struct hub_link *api_hub_link(const struct esp_hub *hub);
struct api_updates **api_hub_updates(struct esp_hub *hub);
uint64_t api_hub_deadline(const struct esp_hub *hub, int64_t deadline_ns);

#endif
