/*
 * handshake_check.h - the rules by which each end of a handshake accepts the other's hello. Pure; no
 * cryptography.
 */
#ifndef NODE_AUTH_HANDSHAKE_CHECK_H
#define NODE_AUTH_HANDSHAKE_CHECK_H

#include "node/auth/handshake.h"

/* The listener's verdict on a dialer. If several rules are broken, the first one in order is named. */
enum hello_verdict judge_dialer(const struct handshake_config *own, const struct hello *theirs);

/* The dialer's verdict on a listener that accepted it. */
enum hello_verdict judge_listener(const struct handshake_config *own, const struct hello *theirs);

/* True if a joiner that passed its handshake is of another job or has other settings. Both ends get the same result. */
bool judge_is_unfit(const struct hello *joiner, const struct hello *listener);

#endif
