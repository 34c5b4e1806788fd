/*
 * gate_parts.h - functions that gate.c and gate_sum.c share. Private to the gate.
 */
#ifndef FABRIC_GATE_PARTS_H
#define FABRIC_GATE_PARTS_H

#include "fabric/gate.h"

/* ---- gate.c ---- */
/* The delay that the update would have if it were applied next. */
uint64_t gate_delay_now(const struct gate *gate, const struct gate_offer *offer);
/* Has it a place in the order of the present epoch? */
bool gate_has_place(const struct gate *gate, const struct gate_update *update);
/* The turn of a position and of all before it has passed. */
void gate_pass(struct gate *gate, uint64_t position);
/* This position does not come; those before it still may. */
void gate_give_up(struct gate *gate, uint64_t position);
/* The update leaves the gate, with a count of 1. */
void gate_leave(struct gate *gate, uint32_t worker, uint8_t why, struct gate_result *out);

/* ---- gate_sum.c ---- */
/* Does the offer say of bundles what it may? */
bool gate_sum_is_good(const struct gate *gate, const struct gate_offer *offer);
/* Of updates that are held for the aggregator, those that its offer (NULL: none) does not have are broken. */
void gate_sum_break_held(struct gate *gate, uint32_t aggregator, const struct gate_offer *offer);
/* The same for held updates whose patience has ended. */
void gate_sum_break_impatient(struct gate *gate, uint64_t now);
/* The aggregator's update is SENDING. ESP_ETIMEOUT: a member is late or is not there, *out is of the aggregator. */
enum esp_status gate_sum_offer(struct gate *gate, uint32_t aggregator, struct gate_result *out);
/* All members of a sum but the aggregator are broken. */
void gate_sum_break(struct gate *gate, uint32_t aggregator);
/* The turn of a whole sum: applied or dropped as a whole; *out is of the aggregator. */
void gate_sum_turn(struct gate *gate, uint32_t aggregator, uint64_t now, struct gate_result *out);
/* The next end of a member that has not been told. */
bool gate_sum_tell(struct gate *gate, struct gate_result *out);

#endif
