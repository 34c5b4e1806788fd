#include <stdbool.h>
#include <stdint.h>

#include "espalier/espalier.h"
#include "math/math.h"

/* The same buffer is fine, part of it is not: the fold would read what it has already written. */
static bool overlaps_in_part(const void *dst, const void *source, size_t bytes)
{
	uintptr_t to = (uintptr_t)dst, from = (uintptr_t)source;
	return to != from && (to > from ? to - from : from - to) < bytes;
}

enum esp_status esp_reduce_local(void *dst, const void *a, const void *b, uint64_t count, enum esp_type type,
                                 enum esp_op op)
{
	size_t bytes;
	if (!math_type_name(type) || !math_op_name(op))
		return ESP_EINVAL;
	math_fold_fn *fold = math_fold(type, op);
	if (!fold)
		return ESP_EUNSUPPORTED;
	if (count == 0)
		return ESP_OK;
	if (!dst || !a || !b)
		return ESP_EINVAL;
	if (__builtin_mul_overflow(count, math_type_bytes(type), &bytes) || bytes > PTRDIFF_MAX)
		return ESP_EINVAL;
	if (overlaps_in_part(dst, a, bytes) || overlaps_in_part(dst, b, bytes))
		return ESP_EINVAL;
	fold(dst, a, b, (size_t)count);
	return ESP_OK;
}
