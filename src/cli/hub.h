/*
 * hub.h - the commands of espalier hub, and what they share.
 */
#ifndef CLI_HUB_H
#define CLI_HUB_H

#include "cli/cli.h"
#include "hub/control/msg_socket.h"
#include "node/auth/key.h"

#define HUB_DEFAULT "127.0.0.1:7700"
#define HUB_KEY_FILE "hub.key"
#define HUB_PORT 7700u

extern const struct cli_command cli_hub_create, cli_hub_remove, cli_hub_status;

/* The hub itself: espalier hub --listen ... */
int cli_hub_serve(int argc, char **argv);

/* The hub's key; a hub that is being started may not have written it yet. */
ESP_CHECKED enum esp_status cli_hub_key(const char *path, struct key *out, struct error *err);
/* A connection of an operator that has the hub's key. */
ESP_CHECKED enum esp_status cli_hub_dial(const struct address *hub, const char *key_file, uint64_t timeout_seconds,
                                         struct msg_socket *out, uint64_t *out_until_ns, struct error *err);

/* Removes a job from one of its hubs, as 'espalier hub remove' does. */
ESP_CHECKED enum esp_status cli_hub_remove_at(const struct address *hub, const char *key_file, uint64_t timeout_seconds,
                                              const char *name, struct error *err);

#endif
