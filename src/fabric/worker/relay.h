/*
 * relay.h - the model as this worker gets it, and gives it to the workers behind it in a tree.
 *
 *     hub, or a worker ──> relay_advance() ... relay_finish() ──> other workers, as it comes
 *
 * A model has the bytes of its tensors one after the other. It leaves in order while it comes, and its version behind
 * it, as that is known when all of it is there. A model that fails ends for all workers that fetch it: they read from
 * the hub. One thread gets a model at a time; relay_advance() may be called by any.
 */
#ifndef FABRIC_WORKER_RELAY_H
#define FABRIC_WORKER_RELAY_H

#include "fabric/worker/peer_port.h"

struct relay_model;

/* Announces the model of a tree: from here on workers that want it wait for it. NULL: no memory. */
struct relay_model *relay_open(struct peer_port *port, uint64_t epoch, uint64_t tree);
/* Its memory: written by the caller, in order, and not again. */
uint8_t *relay_data(struct relay_model *model);
/* So many bytes from the beginning are there. */
void relay_advance(struct peer_port *port, struct relay_model *model, uint64_t ready);
/* All of it is there, and each chunk has at least this version. */
void relay_finish(struct peer_port *port, struct relay_model *model, uint64_t version);
/* The caller has done with it. One that is not finished fails. NULL is fine. */
void relay_put(struct peer_port *port, struct relay_model *model);

#endif
