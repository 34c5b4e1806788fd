/*
 * stages.h - the functions of calls that have stages, as queues and works call them: allreduces in fixed point
 * (numerics.c) and sums through a switch (switched.h). These call the queue and works in turn.
 *
 * An allreduce of floats as a sum of integers:
 *
 *     begin      each rank finds the exponents of its blocks; first stage: an allreduce (max) of one byte per block
 *     agreed     each rank quantizes its part; second stage: an allreduce (sum) of integers
 *     end        each rank dequantizes the sum, and divides it for an average
 *
 * A NaN or an infinity in a block (math/fixed.h) makes the second stage the call itself, in floating point, on all
 * ranks alike. Each stage is a call of its own as far as plans and lanes are concerned: any plan, any transport, on
 * the stream of the group's ordinary calls. To the caller, to other ranks and to the recorder all stages are one call,
 * with one number, one digest, one deadline.
 *
 * The call stays at the head of its group's queue until its second stage has been started, so all ranks start all
 * stages of all calls in one order. Lanes end a stage; the thread that drives the lane starts the next one, or lane 0's
 * thread, if another thread has the queue.
 *
 * All memory is taken when the work is made, so a rank without memory refuses the call before it is started.
 */
#ifndef RANK_COMM_STAGES_H
#define RANK_COMM_STAGES_H

#include "rank/comm/comm_state.h"

/* ---- in fixed point ---- */

enum numerics_stage {
	NUMERICS_IDLE,     /* not begun, or beyond the queue                             */
	NUMERICS_AGREEING, /* exponents are under way: the call is the head of the queue */
	NUMERICS_AGREED,   /* numerics_go_on() is to be called                           */
};

/* For work whose call_is_fixed(), with elements: its stages, planned. No lock is held. ESP_ENOMEM, errors of plans. */
ESP_CHECKED enum esp_status numerics_make(struct work *work, struct failure *failure);
/* NULL is fine. No stage is under way. */
void numerics_free(struct numerics *numerics);

/* Of work that has stages. Any thread. */
enum numerics_stage numerics_stage(const struct work *work);
/* The work whose plan moves the data: that of the integers, or after a NaN the call itself. */
const struct work *numerics_planned(const struct work *work);

/* Under the group's lock: starts the first stage. ESP_ENOMEM: the group has failed, and the work is to be ended. */
ESP_CHECKED enum esp_status numerics_begin(struct work *work, enum drive_by help);
/* Under the group's lock, off the queue: the second stage is started, or the work ends as the first one has failed. */
void numerics_go_on(struct work *work, enum drive_by help);

/* ---- through a switch ---- */

/* Under the communicator's lock, when parts are planned: may this call go through the switch? Then it is prepared. */
ESP_CHECKED enum esp_status comm_switched_prepare(struct work *work, struct failure *failure);
void comm_switched_forget(struct work *work);
/* Its turn has come: asks the members. */
void comm_switched_launch(struct work *work, enum drive_by help);
/* True while the members of this communicator decide about a call: no other one may be launched. */
bool comm_switched_decides(const struct comm *comm);
/* True if the sums of this call travelled through the switch. */
bool comm_switched_is_through(const struct work *work);

#endif
