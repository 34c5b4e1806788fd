#include "rank/join/announce.h"

#include <sodium.h>
#include <string.h>

enum esp_status announce_post(const struct announce_place *place, const char *name,
                              const struct announcement *announcement, uint32_t keep_seconds, uint64_t deadline_ns,
                              struct error *err)
{
	char text[ANNOUNCE_BYTES];
	size_t length = announce_encode(announcement, text);
	enum esp_status status = place->kind == ANNOUNCE_FILE
	                                 ? announce_file_post(place, name, text, length, err)
	                                 : announce_redis_post(place, name, text, length, keep_seconds, deadline_ns, err);
	sodium_memzero(text, sizeof(text));
	return status;
}

enum esp_status announce_look(const struct announce_place *place, const char *name, uint64_t deadline_ns,
                              struct announcement *out, struct error *err)
{
	char text[ANNOUNCE_BYTES], where[ANNOUNCE_PLACE_TEXT];
	size_t length = 0;
	enum esp_status status = place->kind == ANNOUNCE_FILE
	                                 ? announce_file_look(place, name, text, &length, err)
	                                 : announce_redis_look(place, name, deadline_ns, text, &length, err);
	if (status == ESP_OK && !announce_decode(text, length, out))
		status = error_set(err, ESP_ECORRUPT, "%s in %.100s is no announcement of rank 0", name,
		                   announce_place_describe(place, where));
	sodium_memzero(text, sizeof(text));
	return status;
}

void announce_remove(const struct announce_place *place, const char *name, const uint8_t nonce[ANNOUNCE_NONCE_BYTES],
                   uint64_t deadline_ns)
{
	struct announcement there;
	bool is_ours = announce_look(place, name, deadline_ns, &there, NULL) == ESP_OK &&
	               memcmp(there.nonce, nonce, ANNOUNCE_NONCE_BYTES) == 0;
	sodium_memzero(&there, sizeof(there));
	if (is_ours && place->kind == ANNOUNCE_FILE)
		announce_file_remove(place, name);
	else if (is_ours)
		announce_redis_remove(place, name, deadline_ns);
}
