/*
 * vectors.h - functions that are also compiled for wide vectors, which are used if the processor has them.
 *
 * For functions whose loops treat every element, or every lane of a fixed number, separately, without fused
 * operations: wider vectors are then faster and change no bit.
 */
#ifndef NETWORK_DISCOVER_VECTORS_H
#define NETWORK_DISCOVER_VECTORS_H

#include <stdlib.h> /* says whether this is glibc, whose loader picks the function */

/* Sanitizers are not initialized yet when the loader resolves the clones. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE __attribute__((target_clones("avx2", "default")))
#else
#define WIDE
#endif

#endif
