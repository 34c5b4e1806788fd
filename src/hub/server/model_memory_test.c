/* The memory of a model comes in steps, each of which is short. */
#include "hub/server/model_memory.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/check.h"

#define PAGE 4096u
#define STEP_MOST ((size_t)16 << 20)

static size_t present(void *memory, size_t bytes)
{
	size_t pages = (bytes + PAGE - 1) / PAGE, count = 0;
	unsigned char *are = malloc(pages);

	CHECK(are && mincore(memory, bytes, are) == 0);
	for (size_t i = 0; i < pages; i++)
		count += are[i] & 1;
	free(are);
	return count * PAGE;
}

int main(void)
{
	const struct layout_tensor tensor = {.name = 1, .elements = 5000001, .type = ESP_BF16};
	const struct optimizer optimizer = {.kind = OPTIMIZER_AVG};
	struct store_model model;
	struct hub_layout layout;
	struct error err;
	void *memory;
	size_t bytes, at = 0;

	CHECK(hub_layout_make(&tensor, 1, 32768, 2, &layout, &err) == ESP_OK);
	CHECK(model_memory_take(&layout, &optimizer, &model, &memory, &bytes, &err) == ESP_OK);
	CHECK(bytes > 2 * STEP_MOST && present(memory, bytes) == 0);
	while (at < bytes) {
		size_t next = model_memory_fill(memory, bytes, at);

		CHECK(next > at && next - at <= STEP_MOST && next <= bytes);
		at = next;
		CHECK(present(memory, at) >= at);
	}
	model_memory_free(memory, bytes);
	hub_layout_fini(&layout);
	return 0;
}
