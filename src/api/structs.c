#include <string.h>

#include "api/api.h"

enum esp_status api_read(const char *who, const void *from, void *to, size_t bytes, const char *name)
{
	size_t size;
	const uint8_t *at = from;

	memset(to, 0, bytes);
	memcpy(&size, from, sizeof(size));
	if (size < sizeof(size) || size > 65536)
		return api_refuse_with(who, ESP_EINVAL, "struct %s says that it has %zu bytes: begin with its INIT macro", name,
		                       size);
	for (size_t i = bytes; i < size; i++) {
		if (at[i] != 0)
			return api_refuse_with(who, ESP_EUNSUPPORTED,
			                       "struct %s has something set that this version (%s) does not know", name,
			                       ESP_VERSION_STRING);
	}
	memcpy(to, from, size < bytes ? size : bytes);
	return ESP_OK;
}

enum esp_status api_write(const char *who, void *to, const void *from, size_t bytes)
{
	size_t size;

	memcpy(&size, to, sizeof(size));
	if (size < sizeof(size) || size > 65536)
		return api_refuse_with(who, ESP_EINVAL, "the struct says that it has %zu bytes: begin with its INIT macro",
		                       size);
	memcpy((uint8_t *)to + sizeof(size), (const uint8_t *)from + sizeof(size),
	       (size < bytes ? size : bytes) - sizeof(size));
	return ESP_OK;
}
