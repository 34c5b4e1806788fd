/*
 * vectors.h - loops that are compiled for wide vectors as well, and run by those where the processor has them.
 *
 * For functions whose loops treat every element, or every lane of a fixed number, by itself, without fused operations: wider vectors are then
 * faster and change no bit.
 */
#ifndef NETWORK_DISCOVER_VECTORS_H
#define NETWORK_DISCOVER_VECTORS_H

#include <stdlib.h> /* says whether this is glibc, whose loader picks the function */

/* Sanitizers are not ready yet when the loader asks. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

#endif
