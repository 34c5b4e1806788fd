/*
 * fuzz.h - what a fuzz target is: one function over bytes that nobody has checked.
 *
 * The function must return 0 and touch nothing beyond size; a broken promise of the
 * decoder is shown by abort() (or FUZZ_CHECK), never by a return value.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition) \
	((condition) ? (void)0 : (fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition), abort()))

#endif
