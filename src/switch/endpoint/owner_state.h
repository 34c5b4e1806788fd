/*
 * owner_state.h - the state of an owner; private to owner*.c.
 */
#ifndef SWITCH_ENDPOINT_OWNER_STATE_H
#define SWITCH_ENDPOINT_OWNER_STATE_H

#include "switch/endpoint/owner.h"

#define OWNER_NO_BUFFER UINT32_MAX

enum entry_state {
	ENTRY_FREE,     /* nothing is known of the number, or it is forgotten */
	ENTRY_OPEN,     /* contributions or the own part are held             */
	ENTRY_COMPLETE, /* the sum is, and answers members that lost it       */
};


enum pending {
	PENDING_NONE,
	PENDING_ASK, /* of an open entry: to members whose contributions are missing */
	PENDING_ONE, /* of a complete one: the result, to the asker */
	PENDING_ALL,
	PENDING_EACH, /* to all, past the switch: several have asked, and it may not reach one of them */
	PENDING_BOTH, /* through the switch, which frees its slot, and to each: one of them does without it */
};

struct entry {
	uint32_t sequence;
	uint32_t call;
	uint32_t buffer; /* OWNER_NO_BUFFER while free */
	uint16_t words;
	uint16_t asker; /* of PENDING_ONE */
	bool is_straight; /* of PENDING_ONE: the asker came past the switch */
	uint8_t scale, kind;
	uint8_t state;   /* enum entry_state */
	uint8_t pending; /* enum pending: waits in the queue */
	bool has_own;
	bool is_marked;
	bool is_repaired; /* a member sent its contribution again */
	bool is_bypassed; /* a contribution came past the switch: its sender may not hear it */
	bool is_queued;
	const uint32_t *own;
	uint32_t answers; /* to members that asked through the switch */
	uint32_t bypasses, ask_at; /* straight contributions that have come; asks go out when there are so many */
};

struct owner {
	struct owner_config config;
	uint32_t entry_count; /* 2 * window */
	struct entry *entries; /* of a number: at its remainder */
	uint32_t *free_buffers, free_count;
	uint64_t *held;  /* of a buffer: shape_groups() */
	uint32_t *words; /* of a buffer: words_max */
	uint32_t *queue, queue_head, queue_count; /* places of entries for which packets are to be sent */
	uint32_t spread_at; /* the next member of packets that go out one by one */
	uint32_t kept_from; /* numbers below it are forgotten, or not this owner's */
	uint32_t last;      /* the highest complete number + 1 */
	uint32_t *done;     /* by member: it has all results below */
	bool uses_switch;
	uint32_t lingers; /* times that the last result was sent again */
	struct owner_counters counters;
};

/* Equal in all contributions to a number. */
struct contents {
	uint32_t sequence, call;
	uint16_t words;
	uint8_t scale, kind;
};

/* ---- owner_entry.c ---- */

/* The place of a number, whatever is there. */
struct entry *owner_entry(const struct owner *owner, uint32_t sequence);
struct element owner_element(const struct owner *owner, const struct entry *entry);
void owner_entry_enter(struct entry *entry, enum entry_state to);
bool owner_entry_has(const struct entry *entry, const struct contents *contents);
void owner_entry_set(struct entry *entry, const struct contents *contents);
void owner_entry_clear(struct owner *owner, struct entry *entry);
/* Complete numbers below end; all below are complete, or other owners'. */
void owner_forget_up_to(struct owner *owner, uint32_t end);
/* The entry of a number, opened if need be. NULL and *out_why: the number is too old, or there is no room. */
struct entry *owner_entry_open(struct owner *owner, const struct contents *contents, enum owner_event *out_why);

/* ---- owner_result.c ---- */

/* Is it the entry whose packets go out one by one now? */
bool owner_is_head(const struct owner *owner, const struct entry *entry);
void owner_queue_push(struct owner *owner, struct entry *entry);
/* A second member that asks while the first waits makes it a result for all. */
void owner_queue_result(struct owner *owner, struct entry *entry, enum pending receivers, uint16_t asker,
                        bool is_straight);

#endif
