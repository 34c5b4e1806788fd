/*
 * local_socket.h - the Unix socket by which nodes of a host reach each other: its name follows from a node's port and
 * process id. Any thread.
 */
#ifndef NODE_CONTROL_LOCAL_SOCKET_H
#define NODE_CONTROL_LOCAL_SOCKET_H

#include <sys/socket.h>
#include <sys/un.h>

#include "base/error.h"
#include "wire/rendezvous_msg.h"

/*
 * The name of a node's socket, from port and process id: another process of the host may have the same port at another
 * address. Returns its length.
 */
socklen_t local_socket_name(const struct node_info *info, struct sockaddr_un *out);

/* A listening socket of that name, for this process. ESP_ELIMIT, ESP_EIO. */
ESP_CHECKED enum esp_status control_local_socket(const struct node_info *info, int *out_fd, struct error *err);

/* One of the addresses of a node, for connect(2). Returns its length. */
socklen_t node_info_socket_name(const struct node_info *info, uint32_t address, struct sockaddr_storage *out);

#endif
