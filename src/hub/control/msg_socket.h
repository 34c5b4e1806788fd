/*
 * msg_socket.h - a control connection to a parameter hub, driven by a thread that waits: for operators, and for workers
 * until their job runs. One thread at a time.
 */
#ifndef HUB_CONTROL_MSG_SOCKET_H
#define HUB_CONTROL_MSG_SOCKET_H

#include "hub/control/hub_dial.h"
#include "hub/control/msg_stream.h"

struct msg_socket {
	int fd; /* -1: none */
	struct msg_stream stream;
	char hub[ADDRESS_TEXT]; /* for complaints */
};

/* As hub_dial(), with purpose HELLO_CONTROL. The caller calls msg_socket_close() if it succeeds. */
ESP_CHECKED enum esp_status msg_socket_open(struct msg_socket *socket, const struct hub_dial *dial, struct error *err);
void msg_socket_close(struct msg_socket *socket);

/*
 * ESP_ETIMEOUT: until_ns has come; ESP_ELINK: the hub has closed the connection, or it broke; ESP_ECORRUPT. A message
 * WHY of the hub is returned as its status and sentence.
 */
ESP_CHECKED enum esp_status msg_socket_put(struct msg_socket *socket, const struct hub_msg *msg, uint64_t until_ns,
                                           struct error *err);
/* The next message but for PING, which is answered; it must be of this type. It borrows from the socket until the next
 * call. until_ns 0: ESP_PENDING if none is there. */
ESP_CHECKED enum esp_status msg_socket_take(struct msg_socket *socket, enum hub_msg_type type, uint64_t until_ns,
                                            struct hub_msg *out, struct error *err);

#endif
