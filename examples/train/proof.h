/*
 * proof.h - that all ranks hold the same weights: bit for bit, not nearly.
 */
#ifndef TRAIN_PROOF_H
#define TRAIN_PROOF_H

#include <espalier/espalier.h>

/* FNV-1a over the bytes of the floats: one bit more or less gives another number. */
uint64_t proof_hash(const float *weights, size_t count);

/* The hashes of all ranks, by rank, on every rank. */
void proof_gather(struct esp_group *group, uint64_t mine, uint64_t *out_hashes);

/* What the proof has to find: the lowest bit of one weight in the middle. */
void proof_corrupt(float *weights, size_t count);

#endif
