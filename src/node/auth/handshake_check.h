/*
 * handshake_check.h - does what the other end says of itself fit? The rules of a handshake, without its cryptography.
 */
#ifndef NODE_AUTH_HANDSHAKE_CHECK_H
#define NODE_AUTH_HANDSHAKE_CHECK_H

#include "node/auth/handshake.h"

/* The listener's view of a dialer. The order of the rules says what is named if several are broken. */
enum hello_verdict judge_dialer(const struct handshake_config *own, const struct hello *theirs);

/* The dialer's view of a listener that said welcome. */
enum hello_verdict judge_listener(const struct handshake_config *own, const struct hello *theirs);

/* Of a newcomer at a door that is welcome, as far as a handshake goes: is its job another, or its settings? Both ends see the same. */
bool judge_is_unfit(const struct hello *newcomer, const struct hello *listener);

#endif
