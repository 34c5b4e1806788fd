/*
 * lane_state.h - the parts of a lane. Private to src/engine.
 *
 *     lane ─┬─ streams, by channel: an executor each, and its nodes
 *           ├─ peers: per peer, the streams that have something for it, which take turns
 *           └─ ports: per transport, the peers that there is something for
 *
 * What happens to a stream *stirs* it: only streams that were stirred since are asked what has
 * become ready, so that idle ones cost nothing.
 */
#ifndef ENGINE_LANE_STATE_H
#define ENGINE_LANE_STATE_H

#include "base/list.h"
#include "engine/exec_state.h"
#include "engine/lane.h"

/*
 * The members of a group, by place. Most groups are regular (every rank from a on, every k-th rank) and need no table.
 */
struct members {
	uint32_t count;
	uint32_t first, stride; /* regular: place p is first + p * stride                          */
	uint32_t *peers;        /* otherwise, by place; NULL: regular                              */
	uint32_t *by_peer;      /* the places, by ascending peer                                   */
};

ESP_CHECKED enum esp_status lane_members_init(struct members *members, const uint32_t *peers, uint32_t count,
                                              uint32_t peer_count, struct error *err);
void lane_members_fini(struct members *members);
/* PLAN_NONE: is none of them. */
uint32_t lane_members_place(const struct members *members, uint32_t peer);

static inline uint32_t members_peer(const struct members *members, uint32_t place)
{
	if (place == PLAN_NONE)
		return PLAN_NONE;
	return members->peers ? members->peers[place] : members->first + place * members->stride;
}

/* Streams that wait for something; each is in a list once. */
enum stream_list {
	STIRRED, /* to be asked what has become ready           */
	DONE,    /* have results that were not taken            */
	FAILED,  /* have failed, and their owner was not told */
	STREAM_LISTS,
};

/* A stream of a group. */
struct stream {
	struct lane *lane;
	struct exec *exec;
	struct members members;
	uint16_t channel;
	uint32_t unfinished; /* calls started and not taken                                     */
	uint64_t *queued;    /* bits by place: waits for its turn at that peer; NULL: never did */
	bool failed;
	struct exec_failure why; /* in ranks                                                    */
	bool is_in[STREAM_LISTS];
	struct stream *next_in[STREAM_LISTS];
	struct list_node link; /* among all of its lane                                        */
};

/* A stream waits for its turn to send to a peer. */
struct turn {
	struct turn *next;
	struct stream *stream;
	uint32_t place; /* of the peer in it */
};

struct lane_peer {
	struct turn *first, *last;
	struct lane_peer *next_ready;
	bool ready; /* is in its port's list */
	bool lost;
};

struct port {
	struct lane *lane;
	struct lane_peer *first, *last; /* peers that there is something for */
};

#define PAGE_STREAMS 256u

struct lane {
	struct lane_config config; /* without port_of */
	uint8_t *port_of;          /* NULL: all are port 0's */
	struct port ports[LANE_PORTS_MAX];
	struct lane_peer *peers;
	uint32_t lost_count;
	struct exec_failure failure; /* of the lane as a whole */
	uint32_t unfinished;
	uint16_t started; /* the channel of the last call */
	struct stream **pages[65536 / PAGE_STREAMS]; /* streams by channel; NULL where there are none */
	struct list streams;                         /* all of them */
	struct stream *first_in[STREAM_LISTS], *last_in[STREAM_LISTS];
	struct turn *turn_free;
	uint8_t *staging; /* of all executors: made by the first that needs it */
	struct exec_stats closed; /* of streams that were closed */
};

static inline struct stream *lane_first_stream(const struct lane *lane)
{
	return list_item(lane->streams.first, struct stream, link);
}
static inline struct stream *lane_next_stream(const struct stream *stream)
{
	return list_item(stream->link.next, struct stream, link);
}

/* lane_stream.c */
static inline struct stream *stream_find(const struct lane *lane, uint16_t channel)
{
	struct stream *const *page = lane->pages[channel / PAGE_STREAMS];

	return page ? page[channel % PAGE_STREAMS] : NULL;
}

struct stream *lane_list_take(struct lane *lane, enum stream_list list); /* NULL: is empty */
void lane_list_add(struct stream *stream, enum stream_list list);        /* to the end, if it is not in it */

/* Something was done to the stream: there may be something to send, a result, a failure. */
void lane_stream_stir(struct stream *stream);
/* Fails the stream; peer: PLAN_NONE, or a rank, which need not be a member. */
void lane_stream_fail(struct stream *stream, uint32_t peer, enum esp_status status);
void lane_stream_free(struct stream *stream);
void lane_stats_add(struct exec_stats *sum, const struct exec_stats *one);

/* lane_user.c */
/* Takes the turns of the stream out of the queues of its peers. */
void lane_turns_drop(struct stream *stream);

#endif
