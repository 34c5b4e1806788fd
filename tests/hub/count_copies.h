/*
 * count_copies.h - memcpy(), memmove() and malloc() of a program that count what the threads of hubs and their workers
 * ("esp-hub...") do. For tests; not with sanitizers, which have their own.
 */
#ifndef TESTS_HUB_COUNT_COPIES_H
#define TESTS_HUB_COUNT_COPIES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define COUNT_COPIES_FROM 64u /* bytes: a frame's header is no copy of data */

extern atomic_bool count_copies_on;
extern _Atomic uint64_t count_copies_bytes, count_copies_allocations;

#endif
