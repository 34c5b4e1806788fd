/*
 * convert.c - halves as floats, and floats as halves.
 */
#include <assert.h>
#include <string.h>

#include "math/fpenv.h"
#include "math/kernels.h"

void math_widen(enum esp_type type, float *dst, const void *src, size_t count)
{
	const struct math_kernels *kernels = math_kernels_at(math_level_best());

	if (type == ESP_F32) {
		memcpy(dst, src, count * sizeof(float));
		return;
	}
	assert((unsigned)type < ESP_TYPE_COUNT && kernels->widen[type]);
	uint32_t host = fpenv_enter();
	kernels->widen[type](dst, src, count);
	fpenv_leave(host);
}

void math_narrow(enum esp_type type, void *dst, const float *src, size_t count)
{
	const struct math_kernels *kernels = math_kernels_at(math_level_best());

	if (type == ESP_F32) {
		memcpy(dst, src, count * sizeof(float));
		return;
	}
	assert((unsigned)type < ESP_TYPE_COUNT && kernels->narrow[type]);
	uint32_t host = fpenv_enter();
	kernels->narrow[type](dst, src, count);
	fpenv_leave(host);
}
