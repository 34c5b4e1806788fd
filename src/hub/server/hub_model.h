/*
 * hub_model.h - the model of a session: its layout, its memory within the hub's quota, and its parts on the lanes. The
 * control thread's.
 */
#ifndef HUB_SERVER_HUB_MODEL_H
#define HUB_SERVER_HUB_MODEL_H

#include "hub/server/hub_session.h"

/* Once all workers have declared the same tensors: makes the layout and takes memory. ESP_ELIMIT: the quota is full. */
ESP_CHECKED enum esp_status hub_model_begin(struct hub_session *session, struct error *err);
/* Once the memory is present: the lanes have parts from here on. */
ESP_CHECKED enum esp_status hub_model_open(struct hub_session *session, struct error *err);

#endif
