/*
 * shm_state.h - the parts of a lane of shm. Private to shm.
 *
 * shm.c has the peers, the turns and sleeping; shm_send.c the messages that we leave for others, shm_settle.c their
 * end, shm_receive.c messages that others leave for us. All of it belongs to the thread that drives the lane, but for
 * the fields that shm_wake() and shm_nudge() use.
 */
#ifndef TRANSPORT_SHM_SHM_STATE_H
#define TRANSPORT_SHM_SHM_STATE_H

#include "transport/shm/flow.h"
#include "transport/shm/ring.h"
#include "transport/shm/shm.h"
#include "transport/shm/slots.h"

/* Events that a sleeping lane wants to be woken for. */
enum doze {
	DOZE_NEWS = 1, /* a descriptor; a message in the heap was consumed */
	DOZE_ROOM = 2, /* descriptors were copied out; slots are free      */
};

struct peer {
	/* On every poll. */
	_Alignas(LAYOUT_LINE) const struct ring_descriptor *from; /* its ring for us; NULL: not there yet, or lost */
	uint64_t from_position;
	uint32_t number; /* as the user has it; UINT32_MAX: ourselves */
	uint32_t local;
	bool wants;          /* user->next() has not been asked to the end                          */
	bool holds;          /* held was pulled, and waits for a slot                               */
	bool is_lost;
	uint8_t tell;        /* enum doze: events left for it and not told */
	uint32_t brief_slot; /* its content was not copied out yet; SLOT_NONE: there is none */
	struct flows flows;  /* its lists */

	struct transport_message held;
	uint16_t brief_channel;
	uint64_t brief_position;
	struct ring_descriptor *to;      /* our ring for it */
	_Atomic uint64_t *to_replies;    /* by its places: where answers may be stored */
	const _Atomic uint64_t *from_replies;
	uint64_t to_position, to_taken;
	const _Atomic uint32_t *taken;   /* theirs: what they have copied out of to */
	const _Atomic uint32_t *storing; /* theirs */
	uint32_t stands_at;              /* storing, when it did not change for too long; 0: it never did */
	_Atomic uint32_t *our_taken;
	const struct segment_view *view; /* NULL: not adopted */
	uint64_t *revoked;               /* channels whose memory was taken back, a bit each; NULL: none was */
	bool lacks_revoked;              /* there was no memory for that: the peer cannot come back          */

	/* For any thread: set once, the descriptor last; it stays open until the end. */
	const _Atomic uint32_t *doze;
	_Atomic int wake_fd;
};

struct shm {
	const struct transport_user *user;
	void *context;
	struct segment *segment;
	const struct layout *layout;
	uint32_t lane, self;
	int wakeup;
	_Atomic uint32_t *doze; /* ours */
	_Atomic uint32_t *storing; /* ours: odd while we store into others' memory */
	bool has_ended;         /* the user has failed: nothing is done any more */
	bool tells;             /* a peer has something to be told */
	bool is_crowded;        /* ranks share cores                             */
	bool is_only_lane;      /* no other lane works for the rank while we wait */
	unsigned moved;         /* in this call of shm_poll()                    */
	uint32_t stamps;        /* given out                                     */
	struct slots slots;
	struct parcels parcels;
	struct shm_stats stats;
	uint32_t user_peers;
	uint32_t *local_of;     /* by the user's number; UINT32_MAX: not of this host */
	uint32_t peer_count;
	struct peer *peers;     /* by local number */
};

/* ---- shm.c ---- */

/* Asked after calls of the user: if it has failed, all is taken back, and nothing follows. */
bool shm_has_ended(struct shm *shm);
/* Leaves what the user has to send, and says what was consumed. */
void shm_hand_over(struct shm *shm);
void shm_peer_lose(struct shm *shm, struct peer *peer, enum esp_status why);
static inline void peer_tell(struct shm *shm, struct peer *peer, enum doze what)
{
	peer->tell |= (uint8_t)what;
	shm->tells = true;
}

/* ---- shm_send.c ---- */

/* Pulls what the user has for the peer, as far as there is room. */
void shm_peer_pull(struct shm *shm, struct peer *peer);
/* Could something be pulled, or what is held be copied? */
bool shm_peer_can_pull(struct shm *shm, struct peer *peer);
/* Was the message that lies in a slot only briefly copied out? Then the slot is free. */
void shm_peer_settle_brief(struct shm *shm, struct peer *peer);
/* The last descriptor. */
void shm_peer_put_end(struct shm *shm, struct peer *peer);

/* ---- shm_settle.c ---- */

/* Looks at what the peer has consumed. */
void shm_peer_settle(struct shm *shm, struct peer *peer);
bool shm_peer_has_consumed(const struct peer *peer);
/* Says that memory in the heap is taken back; the fence is the caller's. No peer stores into it any more. */
void shm_peer_revoke_heap(struct shm *shm, struct peer *peer);
/* Takes back everything that was left for the peer, slots too. */
void shm_peer_take_back(struct shm *shm, struct peer *peer);
/*
 * Of a lost peer: no channel counts as taken back any more, and nothing as consumed. False: not known which, or no
 * memory.
 */
ESP_CHECKED bool shm_peer_clear_marks(struct shm *shm, struct peer *peer);
/* Forgets all flows with the peer, and frees them. */
void shm_peer_release(struct shm *shm, struct peer *peer);
/* The part of shm_forget() that is about what we sent; the fence is the caller's. */
void shm_peer_forget_sent(struct shm *shm, struct peer *peer, struct flow *flow);

/* ---- shm_receive.c ---- */

void shm_peer_receive(struct shm *shm, struct peer *peer);
/* Tells the peer what was consumed of what it offered. */
void shm_peer_publish(struct shm *shm, struct peer *peer);
/* Would that tell anything? */
bool shm_peer_has_to_publish(const struct shm *shm, const struct peer *peer);
/* The part of shm_forget() that is about what was offered to us. */
void shm_peer_forget_offered(struct shm *shm, struct peer *peer, struct flow *flow);

#endif
