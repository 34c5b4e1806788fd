#include <inttypes.h>

#include "api/api.h"
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
	if (!math_type_name(type))
		return api_refuse_with(__func__, ESP_EINVAL, "type is %d, which is none of enum esp_type", (int)type);
	if (!math_op_name(op))
		return api_refuse_with(__func__, ESP_EINVAL, "op is %d, which is none of enum esp_op", (int)op);
	math_fold_fn *fold = math_fold(type, op);
	if (!fold)
		return api_refuse_with(__func__, ESP_EUNSUPPORTED, "%s is not defined for %s", math_op_name(op),
		                       math_type_name(type));
	if (count == 0)
		return ESP_OK;
	if (!dst || !a || !b)
		return api_refuse_with(__func__, ESP_EINVAL, "%s is NULL, and there are elements to combine",
		                       !dst ? "dst"
		                       : !a ? "a"
		                            : "b");
	if (__builtin_mul_overflow(count, math_type_bytes(type), &bytes) || bytes > PTRDIFF_MAX)
		return api_refuse_with(__func__, ESP_EINVAL,
		                       "count is %" PRIu64 ": such buffers would be larger than memory can be", count);
	if (overlaps_in_part(dst, a, bytes) || overlaps_in_part(dst, b, bytes))
		return api_refuse_with(__func__, ESP_EINVAL, "dst overlaps %s in part: give the same buffer, or another one",
		                       overlaps_in_part(dst, a, bytes) ? "a" : "b");
	fold(dst, a, b, (size_t)count);
	return ESP_OK;
}
