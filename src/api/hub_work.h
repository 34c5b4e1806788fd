/*
 * hub_work.h - esp_work of a parameter hub: what work.c hands over to hub.c. Private to src/api.
 */
#ifndef API_HUB_WORK_H
#define API_HUB_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "espalier/espalier.h"
#include "hub/worker/hub_link.h"

/* The first member of a call on a hub tells it from work of a rank, which begins with another pointer. */
static inline bool api_is_hub_work(const struct esp_work *work)
{
	return work && *(const void *const *)(const void *)work == &hub_op_kind;
}

static inline struct hub_op *api_hub_op(struct esp_work *work)
{
	return (struct hub_op *)(void *)work;
}

/* ESP_PENDING: until_ns has come first. */
enum esp_status hub_work_wait(const char *who, struct esp_work *work, uint64_t until_ns);
enum esp_status hub_work_error(const char *who, struct esp_work *work, struct esp_error *out);
void hub_work_free(struct esp_work *work);

#endif
