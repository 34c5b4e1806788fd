/*
 * lane.h - one lane of a rank: the streams of its groups behind the connections of transports.
 *
 * A lane has streams, each an executor of its own. A stream belongs to a group of ranks and has a channel number that
 * all members know it by. Calls on different streams do not wait for each other, so a small call need not queue behind
 * a large one; calls on one stream must be started in the same order on all members. All streams of a lane share one
 * connection per peer; the channel in each frame says which stream it is for. A lane is driven by one thread at a time
 * and shares nothing with other lanes.
 *
 * Peers are numbered as transports know them: by rank in the job. Within a stream nodes are numbered by their place in
 * the group; the lane translates.
 *
 * Each peer is reached by one of a few transports (shared memory, TCP ...), which are the lane's *ports*. A transport's
 * user is lane_user with lane_port() as its context.
 *
 * Failure. Streams fail one by one: by lane_fail_stream(), by themselves (no memory, a call of another size or kind),
 * or because a peer that is a member is lost. The thread that drives the lane asks lane_take_failure() after each turn,
 * has every transport forget() the channel and only then hands out results, because from then on callers may use their
 * buffers for anything.
 */
#ifndef ENGINE_LANE_H
#define ENGINE_LANE_H

#include "engine/exec.h"

struct lane;

#define LANE_PORTS_MAX 4u

struct lane_config {
	struct exec_config exec;    /* of each stream; node is ignored                          */
	uint32_t peers;             /* ranks in the job                                         */
	uint32_t ports;             /* transports                                               */
	const uint8_t *port_of;     /* by peer: its transport; copied. NULL: port 0 for all     */
};

ESP_CHECKED enum esp_status lane_open(const struct lane_config *config, struct lane **out, struct error *err);
void lane_close(struct lane *lane); /* NULL is fine */

struct lane_stream_config {
	uint16_t channel;
	uint32_t node;         /* our place among the members                                    */
	uint32_t members;
	const uint32_t *peers; /* by place in the group: the peer; copied. NULL: place == peer */
};

/*
 * Opens a stream. ESP_EINVAL: the channel is open; ESP_EPEER: a member is lost; ESP_ENOMEM. Messages of peers on a
 * channel that is not open are dropped, so all members must have opened it before any of them starts a call: the group
 * sees to that.
 */
ESP_CHECKED enum esp_status lane_stream_open(struct lane *lane, const struct lane_stream_config *config,
                                             struct error *err);
/* True: the connections to this peer have broken, and it was not readmitted. */
bool lane_has_lost(const struct lane *lane, uint32_t peer);
/*
 * A peer that was lost is back: streams that are opened from now on may have it as a member. Streams that failed stay
 * failed.
 */
void lane_readmit(struct lane *lane, uint32_t peer);
/* Every call on it is done and taken, or it has failed; the transports have forgotten it. Unknown channel: nothing. */
void lane_stream_close(struct lane *lane, uint16_t channel);

/* As exec_start(), on one of the streams. ESP_EINVAL: there is no such channel. */
ESP_CHECKED enum esp_status lane_start(struct lane *lane, uint16_t channel, const struct exec_call *call,
                                       struct error *err);
bool lane_take_done(struct lane *lane, struct exec_done *out);
/* Calls that have been started and not taken. */
uint32_t lane_unfinished(const struct lane *lane);
/*
 * The wait of a stream; node is translated: wait.peer is a rank of the job. False: nothing is unfinished, no such
 * channel.
 */
bool lane_waits(const struct lane *lane, uint16_t channel, struct exec_wait *out);

/* The same of the first of its streams that waits for a peer. False: none does. */
bool lane_waits_any(const struct lane *lane, struct exec_wait *out);
struct lane_failure {
	uint16_t channel;
	struct exec_failure why; /* node and wait.peer: ranks of the job */
};

void lane_fail_stream(struct lane *lane, uint16_t channel, uint32_t peer, enum esp_status status);
/* Fails every stream and the lane itself: transports close. */
void lane_fail(struct lane *lane, uint32_t peer, enum esp_status status);
/* The next stream that has failed and was not asked about yet; false: none. */
bool lane_take_failure(struct lane *lane, struct lane_failure *out);

struct exec_stats lane_stats(const struct lane *lane); /* over its streams, closed ones too */

/* The functions that a transport calls, and their context. */
extern const struct transport_user lane_user;
void *lane_port(struct lane *lane, uint32_t port);

/*
 * Which lane each chunk of a plan belongs to: out_lane[chunk], by longest first. weights: by lane, in proportion to
 * which they get bytes; NULL: all alike. All nodes compute the same.
 */
ESP_CHECKED enum esp_status lanes_assign(const struct plan *plan, uint32_t lanes, const uint64_t *weights,
                                         uint8_t *out_lane);

#endif
