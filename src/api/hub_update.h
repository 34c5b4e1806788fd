/*
 * hub_update.h - the state of a worker's asynchronous updates, and what hub_update.c and hub_model.c need of hub.c.
 * Private to src/api.
 */
#ifndef API_HUB_UPDATE_H
#define API_HUB_UPDATE_H

#include <pthread.h>

#include "espalier/hub.h"
#include "fabric/worker/peer_port.h"
#include "fabric/worker/sched_link.h"
#include "hub/worker/hub_link.h"

struct api_updates {
	pthread_mutex_t lock;         /* of the connection to the scheduler */
	struct sched_link *scheduler; /* NULL: the job has none */
	struct peer_port *port;       /* NULL: the job has no scheduler, or there is no port */
	bool takes_sums;              /* one step with a sum of updates is the same as a step with each */
	uint64_t announced;
};

/* Once the model is declared, of an asynchronous job. ESP_ENOMEM. */
ESP_CHECKED enum esp_status api_updates_open(struct hub_link *link, struct api_updates **out, struct error *err);
void api_updates_close(struct api_updates *updates); /* NULL is fine */

/* Until when a call waits for a scheduler: half of the time that it has, the rest is for the hub. */
uint64_t api_scheduler_until(uint64_t until_ns);

enum esp_status api_hub_check(const char *who, const struct esp_hub *hub);
struct hub_link *api_hub_link(const struct esp_hub *hub);
struct api_updates *api_hub_updates(const struct esp_hub *hub); /* NULL: the job trains in rounds */
uint64_t api_hub_deadline(const struct esp_hub *hub, int64_t deadline_ns);

#endif
