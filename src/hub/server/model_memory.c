#include "hub/server/model_memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/units.h"

#define ARRAY_ALIGN 4096u
#define PAGE 4096u                      /* the least that there is */
#define FILL_STEP ((size_t)4 << 20)     /* milliseconds of the kernel's time */

enum esp_status model_memory_take(const struct hub_layout *layout, const struct optimizer *optimizer,
                                  struct store_model *out, void **out_memory, size_t *out_bytes, struct error *err)
{
	uint32_t states = optimizer_states(optimizer);
	size_t each = (layout->elements * sizeof(float) + ARRAY_ALIGN - 1) / ARRAY_ALIGN * ARRAY_ALIGN;
	size_t floats = each * (2 + states), halves = layout->has_halves ? layout->elements * sizeof(uint16_t) : 0;
	size_t bytes = floats + halves;
	char text[UNITS_TEXT];

	*out = (struct store_model){0};
	*out_memory = NULL;
	*out_bytes = 0;
	if (bytes == 0)
		return ESP_OK;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return error_set(err, ESP_ENOMEM, "the hub's host has no %s of memory: %s", units_format_bytes(bytes, text),
		                 strerror(errno));
	float *at = memory;
	out->weights = at;
	out->sums = at + each / sizeof(float);
	for (uint32_t i = 0; i < states; i++)
		out->states[i] = at + (2 + i) * (each / sizeof(float));
	if (halves > 0)
		out->halves = (uint16_t *)(void *)((uint8_t *)memory + floats);
	*out_memory = memory;
	*out_bytes = bytes;
	return ESP_OK;
}

size_t model_memory_fill(void *memory, size_t bytes, size_t from)
{
	volatile uint8_t *at = memory;
	size_t until = bytes - from < FILL_STEP ? bytes : from + FILL_STEP;

	for (; from < until; from += PAGE)
		at[from] = 0;
	return until;
}

void model_memory_free(void *memory, size_t bytes)
{
	if (memory)
		munmap(memory, bytes);
}
