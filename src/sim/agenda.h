/*
 * agenda.h - virtual time: which event happens when.
 *
 * Time is a double, in seconds from the start of the run. Compute times are measured in seconds and transfer times are
 * quotients of bytes and rates, so nothing is rounded twice and nothing overflows; after a year of virtual time the
 * resolution is still four nanoseconds, after an hour half a picosecond. The folder is compiled without contraction of
 * floating-point operations: one run has the same bits on every machine with IEEE doubles.
 *
 * Events that are due at the same time happen in the order in which they were put down. One thread.
 */
#ifndef SIM_AGENDA_H
#define SIM_AGENDA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

typedef void agenda_fn(void *user);

/*
 * The bits of a time that is not negative, which are in the order of times, and behind them a number: compared at once.
 */
__extension__ typedef unsigned __int128 agenda_key;

/*
 * Entries of one time that were put down one after the other, with none of another time in between, are a *moment*: one
 * place in the heap for all of them. Events of many nodes at once, such as the messages of a round, are a moment or a
 * few.
 */
struct agenda_entry {
	agenda_key key; /* of the first of a moment that waits in a queue */
	agenda_fn *call;
	void *user;
	struct agenda_entry *next;   /* of the same moment, or free         */
	struct agenda_entry *behind; /* the first of the next moment in its queue */
};

/*
 * Moments that come one after the other, such as those at which messages have passed a link. Only the first of them has
 * a place in the heap, which stays small then, however much is under way. Zeroed is empty.
 */
struct agenda_queue {
	struct agenda_entry *first, *last; /* of those that wait behind the one in the heap */
	double latest;                     /* of them and that one                          */
	bool is_busy;                      /* there is one in the heap                      */
};

struct agenda_moment {
	agenda_key key; /* the time, and of those of one time, which was begun first */
	struct agenda_entry *first;
	struct agenda_queue *queue; /* whose next one takes its place; NULL: none */
};

struct agenda_slab;

struct agenda {
	double now;
	uint64_t order; /* of the next moment */
	struct agenda_moment *moments; /* a heap by key */
	size_t count, capacity;
	struct agenda_entry *newest; /* the entry that was put down last; NULL: it has happened */
	double newest_at;
	struct agenda_entry *free;
	struct agenda_slab *slabs;
	struct agenda_entry *last_first, *last_newest; /* entries that wait for the end of this instant, in order */
	uint64_t happened; /* entries that were called */
	bool failed;   /* an entry was lost for want of memory */
};

/* Zeroed is an empty agenda at time 0. */
void sim_agenda_fini(struct agenda *agenda);

/* Calls at that time, which is not before now. */
void sim_agenda_at(struct agenda *agenda, double at, agenda_fn *call, void *user);
/*
 * The same, in the same order among all others; cheaper where times in the queue do not fall. The queue stays where it
 * is.
 */
void sim_agenda_at_queue(struct agenda *agenda, struct agenda_queue *queue, double at, agenda_fn *call, void *user);

/*
 * Calls when everything else that is due now has happened, but before time goes on: for work that is done once for many
 * changes. Events that it puts down for now happen before the next of these.
 */
void sim_agenda_at_last(struct agenda *agenda, agenda_fn *call, void *user);

/*
 * Lets everything happen that is due up to that time (INFINITY: all), and sets now to it unless it is INFINITY.
 * ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status sim_agenda_run(struct agenda *agenda, double until, struct error *err);

#endif
