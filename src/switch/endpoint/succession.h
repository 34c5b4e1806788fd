/*
 * succession.h - a stream of elements that never runs out of numbers: generation follows generation.
 *
 * - G1 A call whose numbers do not fit below the limit begins the next generation, with number 0. All members count
 *   alike, so all change at the same call.
 * - G2 A member sends no number of a generation before it has all results of the one before.
 * - G3 The first result of a generation shows that all members have contributed to it, so that all have all results of
 *   the one before, which is forgotten then. Until then its owner answers members that lost results.
 *
 * Three generations are open at most: the former, whose owner answers; the current; the next, which gets to know the
 * switch before it is needed, and keeps what members send that are there already.
 *
 * Pure; one thread at a time.
 */
#ifndef SWITCH_ENDPOINT_SUCCESSION_H
#define SWITCH_ENDPOINT_SUCCESSION_H

#include "switch/endpoint/generation.h"

struct succession {
	struct generation_config config;
	uint32_t limit;                            /* numbers of a generation */
	struct generation *former, *current, *next; /* former, next: NULL: there is none */
	uint32_t counting, numbered; /* generation and number that the next call begins with, if it fits */
	struct sender_counters sent;   /* of generations that are closed */
	struct owner_counters owned;
};

/* A place in the stream. */
struct succession_number {
	uint32_t generation, sequence;
};

/* limit: at most SENDER_NUMBERS. ESP_ENOMEM. */
ESP_CHECKED enum esp_status succession_open(struct succession *succession, const struct generation_config *config,
                                            uint32_t limit, uint64_t now_ns, struct error *err);
void succession_close(struct succession *succession); /* zeroed: nothing */

/* ---- numbers ---- */

/* Numbers for a call of so many elements, at most the limit (G1). */
struct succession_number succession_number(struct succession *succession, uint32_t elements);
/* Is the current generation the last one that numbers were taken from? */
bool succession_is_settled(const struct succession *succession);
/* That are left in the generation that is counted in. */
uint32_t succession_left(const struct succession *succession);

/* ---- generations ---- */

/* Opens the next one, if it is not open. ESP_ENOMEM. */
ESP_CHECKED enum esp_status succession_prepare(struct succession *succession, uint64_t now_ns, struct error *err);
/* May elements of this generation be offered to the current sender and owner? Goes on to it if G2 allows. */
bool succession_reach(struct succession *succession, uint32_t generation);
/* It has ended all that it has to do before the next one, which is not open. */
bool succession_lacks(const struct succession *succession, uint32_t generation);
/* The generation with this flow number; NULL: none. */
struct generation *succession_find(const struct succession *succession, uint64_t flow);
/* Owners that are open: their memory is bounded by the driver. */
uint32_t succession_owners(const struct succession *succession);

/* ---- packets ---- */

/* Results are of the current generation. */
enum generation_event succession_packet(struct succession *succession, struct generation *at,
                                        const struct atp_packet *packet, const void *words, uint64_t now_ns);
/* An own number of the current generation is complete. */
void succession_own_complete(struct succession *succession, uint32_t sequence);

/* Waits a call? */
void succession_busy(struct succession *succession, bool is_busy, uint64_t now_ns);
bool succession_greet(struct succession *succession, uint64_t now_ns, struct endpoint_out *out);
bool succession_next(struct succession *succession, uint64_t now_ns, struct endpoint_out *out);
uint64_t succession_wake_ns(const struct succession *succession);

/* ---- for people: of all generations ---- */

struct sender_counters succession_sent(const struct succession *succession);
struct owner_counters succession_owned(const struct succession *succession);

#endif
