/*
 * proof.h - the handshake of one connection, over its socket, within a deadline. Does I/O and blocks the caller.
 */
#ifndef NODE_AUTH_PROOF_H
#define NODE_AUTH_PROOF_H

#include "node/auth/handshake.h"

/*
 * Runs a handshake over a connected socket until until_ns (base/clock.h). Bytes behind it stay in the socket. ESP_OK:
 * *out_hs holds the peer's hello and the session's key; the caller calls handshake_fini(). Otherwise as
 * handshake_input() and handshake_closed(), or ESP_ETIMEOUT: the peer does not answer in time; *out_hs is wiped
 * then, but for `refused`.
 * The descriptor stays the caller's.
 */
ESP_CHECKED enum esp_status proof_run(int fd, enum handshake_role role, const struct handshake_config *config,
                                      uint64_t until_ns, struct handshake *out_hs, struct error *err);

#endif
