#include "proof.h"

#include <string.h>

#include "must.h"

uint64_t proof_hash(const float *weights, size_t count)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	const unsigned char *bytes = (const unsigned char *)weights;
	for (size_t i = 0; i < count * sizeof weights[0]; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	return hash;
}

void proof_gather(struct esp_group *group, uint64_t mine, uint64_t *out_hashes)
{
	must(esp_allgather(group, &mine, out_hashes, 1, ESP_U64), "esp_allgather");
}

void proof_corrupt(float *weights, size_t count)
{
	uint32_t bits;
	memcpy(&bits, &weights[count / 2], sizeof bits);
	bits ^= 1;
	memcpy(&weights[count / 2], &bits, sizeof bits);
}
