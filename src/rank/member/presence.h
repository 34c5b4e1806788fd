/*
 * presence.h - which ranks of the job are still here: heartbeats, silence, and news of it to all.
 *
 * Pure: it is told what happened and what time it is, and tells its owner what to send. One for each rank; the control
 * thread drives it, and tests drive hundreds in virtual time.
 *
 * A rank sends heartbeats to its neighbours, the ranks 1, 2, 4 ... ahead that are still here; they echo, and say the
 * same by themselves if no heartbeat comes: a message lost one way does not make the other silent. So every rank is
 * listened to by a few others in both directions, and a rank that hears nothing for seven eighths of the interval
 * accuses it. A heartbeat goes out every eighth, so a rank that was stopped for less than three quarters of the
 * interval is never accused, and one that stays away is accused before the interval is over.
 *
 * Only a rank that listened can accuse another of silence. The time by which a rank itself is late, as it gets no
 * processor, counts against no other, and if it was stopped it resets the timers of all others first. And heartbeats
 * are small messages on a connection of their own, which a network that others fill may hold up for long although both
 * ends are there; so before a rank is accused its owner is asked whether anything else has come from it. If so it has
 * twice the time, and no more: data that the kernel of a stopped process still had to send arrives too.
 *
 * There are two kinds of bad news, and both are passed on by all to all, once: a rank is *gone* (its connection was
 * closed: the process has ended, or it has left), and a rank is *accused* by another (it is silent: stopped, or cut
 * off). A rank that is gone does not come back under its old number; an accused one is pardoned only if all agree on
 * it. Ranks that are gone leave gaps, which new neighbours close, and new neighbours first tell each other all news
 * that there is, so news still reaches all ranks however many are gone.
 *
 * That a rank has left is never heard before the bad news that it knew: all news goes the same ways in the order in
 * which it came, and a rank that is told by another way that a rank leaves is told first of missing ranks, unless all
 * agreed to go on without them. So a rank that gives up because of another is not taken for the cause of it.
 */
#ifndef RANK_MEMBER_PRESENCE_H
#define RANK_MEMBER_PRESENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/control_msg.h"

#define PRESENCE_HOW 192u       /* with the NUL */
#define PRESENCE_EXCLUDED "the others agreed to go on without it"
#define PRESENCE_CLUELESS "its time was over, and it did not know which rank it waited for"
#define PRESENCE_ACCUSATIONS 4096u /* kept; each is about a rank that counts as silent already, so more say little */

enum fate {
	FATE_HERE,
	FATE_LEFT,   /* in good order                    */
	FATE_SILENT, /* nothing is heard of it           */
	FATE_DEAD,   /* its process has ended            */
};

struct presence_events {
	/* A connection is made if there is none. */
	void (*send)(void *context, uint32_t to, const struct control_msg *msg);
	/* A control connection is wanted. */
	void (*dial)(void *context, uint32_t rank);
	/*
	 * A rank is no longer here, for the reason `how`. SILENT may become DEAD or LEFT later. by: the rank that said so
	 * first.
	 */
	void (*fate)(void *context, uint32_t rank, enum fate fate, uint32_t by, const char *how);
	/* Rank `by` accuses us: for it and for all that believe it we are no longer here. Once for each. */
	void (*accused)(void *context, uint32_t by, const char *how);
	/* A rank is accused, perhaps not for the first time. */
	void (*accusation)(void *context, uint32_t rank, uint32_t by);
	/*
	 * This rank is about to be accused of silence: when did anything come from it last that was not told here, as data,
	 * or as a message that is not yet read? 0: never. NULL: there is nothing else.
	 */
	uint64_t (*last_sign)(void *context, uint32_t rank);
};

struct member {
	uint8_t fate;       /* enum fate */
	bool is_next;       /* we send it heartbeats */
	bool is_before;     /* it sends us heartbeats */
	bool lingers;       /* it has left, and waits for us to leave too           */
	bool is_accused_by_us;
	bool is_excluded;   /* by agreement: its messages count no more */
	bool is_settled;    /* all ranks that are here have agreed: none has to hear of it */
	uint64_t heard_ns;  /* last sign of life, or when we began to listen         */
	uint64_t told_ns;   /* when it was last told that we are here, by a heartbeat or an echo */
	char how[PRESENCE_HOW];
	uint32_t by;
	struct call_note last_call; /* of the world, if it has left and said so */
};

struct accusation {
	uint32_t by, about;
};

struct presence {
	uint32_t self, size;
	uint64_t interval_ns;
	const struct presence_events *events;
	void *context;
	struct member *all; /* by rank */
	struct accusation *accusations;
	uint32_t accusation_count;
	size_t accusation_room;
	uint64_t turned_ns; /* when the clock was last looked at */
	uint64_t due_ns;    /* when it was to be looked at next   */
	bool has_begun;
	bool is_seen;       /* a rank has had a connection to us, and may have begun before us */
	bool is_leaving;    /* we have said goodbye: no rank is accused any more */
	char why[PRESENCE_HOW]; /* we leave; "": all is well, or was said before */
	struct call_note last_call; /* of the world, that we have made when we leave; sequence 0: none */
	bool is_outcast;    /* we are accused: no rank beats us or listens to us any more, so silence says nothing */
	bool was_accused;   /* at any time, pardoned or not, or away for so long: others may have gone on without us */
};

ESP_CHECKED enum esp_status presence_init(struct presence *presence, uint32_t self, uint32_t size, uint64_t interval_ns,
                                         uint64_t now_ns, const struct presence_events *events, void *context);
void presence_fini(struct presence *presence);

/* Before was_accused is looked at elsewhere than in an event: have we just been away for so long? */
void presence_note_absence(struct presence *presence, uint64_t now_ns);
/* The control connections stand, the job begins: neighbours are dialled and beaten from now on. */
void presence_begin(struct presence *presence, uint64_t now_ns);
/* A control connection to a rank stands. There may have been one before, of which nothing was lost. */
void presence_connected(struct presence *presence, uint32_t rank, uint64_t now_ns);
/* One was closed by the other end. */
void presence_closed(struct presence *presence, uint32_t rank, const char *how, uint64_t now_ns);
/* A message of another kind came from it. */
void presence_heard(struct presence *presence, uint32_t rank, uint64_t now_ns);
/* CONTROL_LEFT, DEAD, SILENT, BEAT and ECHO; false: it is of another kind. */
bool presence_message(struct presence *presence, uint32_t from, const struct control_msg *msg, uint64_t now_ns);
/* A call has waited for that rank in vain. */
void presence_accuse(struct presence *presence, uint32_t rank, const char *how, uint64_t now_ns);
/* It is agreed that this rank, perhaps our own, goes on with us: whatever was said of it is forgotten. */
void presence_pardon(struct presence *presence, uint32_t rank, uint64_t now_ns);
/*
 * It is agreed that it does not: it counts as dead, and its messages about others count no more. by_all: all ranks that
 * are here have a part in that.
 */
void presence_exclude(struct presence *presence, uint32_t rank, bool by_all, uint64_t now_ns);
/*
 * We leave in good order: the news goes around, the first time. why: "", or PRESENCE_CLUELESS. last_call: of the
 * world, with sequence 0 if there was none.
 */
void presence_leave(struct presence *presence, const char *why, const struct call_note *last_call);
/* And straight to this rank, which may see a connection of ours end before that news comes. */
void presence_say_goodbye(struct presence *presence, uint32_t rank);

/* Does all that is due. Returns the time of the next call. */
uint64_t presence_turn(struct presence *presence, uint64_t now_ns);

static inline bool presence_is_gone(const struct presence *presence, uint32_t rank)
{
	return presence->all[rank].fate == FATE_DEAD || presence->all[rank].fate == FATE_LEFT;
}
/* How many are not gone, ourselves included. */
uint32_t presence_count(const struct presence *presence);
/* Does news go this way? */
bool presence_is_neighbour(const struct presence *presence, uint32_t rank);
bool presence_is_accused(const struct presence *presence, uint32_t rank);

/*
 * Says of a rank that is gone only what is known: "has died, or ended without esp_fini()" only where its end was seen,
 * as a connection that is closed or refused shows it; other ranks may be stopped, cut off, or left behind, and alive.
 */
const char *presence_verb(enum fate fate, const char *how);

#endif
