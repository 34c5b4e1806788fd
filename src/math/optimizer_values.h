/*
 * optimizer_values.h - the numbers of an optimizer as a table, for checks, texts and the wire; private to math.
 */
#ifndef MATH_OPTIMIZER_VALUES_H
#define MATH_OPTIMIZER_VALUES_H

#include "math/optimizer.h"

#define OPTIMIZER_VALUES 7u

struct optimizer_value {
	const char *name;
	size_t offset;     /* of a double in struct optimizer */
	uint32_t kinds;    /* bit k: kind k uses it */
	bool is_below_one; /* otherwise up to 1e30, so that it is finite as a float */
};

/* NULL: no kind. */
const char *optimizer_kind_name(uint8_t kind);
/* index < OPTIMIZER_VALUES; in the order in which texts and the wire have them. */
const struct optimizer_value *optimizer_value_at(uint32_t index);
bool optimizer_value_is_of(const struct optimizer_value *value, uint8_t kind);
double *optimizer_value_in(const struct optimizer_value *value, struct optimizer *optimizer);
double optimizer_value_of(const struct optimizer_value *value, const struct optimizer *optimizer);
/* "a number from 0 to 1e30" */
const char *optimizer_value_range(const struct optimizer_value *value);
bool optimizer_value_is_good(const struct optimizer_value *value, double number);

#endif
