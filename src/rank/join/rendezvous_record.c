#include "rank/join/rendezvous_record.h"

#include <sodium.h>
#include <string.h>

enum esp_status notice_post(const struct notice_place *place, const char *name, const struct notice *notice,
                            uint32_t keep_seconds, uint64_t deadline_ns, struct error *err)
{
	char text[NOTICE_BYTES];
	size_t length = notice_encode(notice, text);
	enum esp_status status = place->kind == NOTICE_FILE
	                                 ? notice_file_post(place, name, text, length, err)
	                                 : notice_redis_post(place, name, text, length, keep_seconds, deadline_ns, err);
	sodium_memzero(text, sizeof(text));
	return status;
}

enum esp_status notice_look(const struct notice_place *place, const char *name, uint64_t deadline_ns, struct notice *out,
                            struct error *err)
{
	char text[NOTICE_BYTES], where[NOTICE_PLACE_TEXT];
	size_t length = 0;
	enum esp_status status = place->kind == NOTICE_FILE
	                                 ? notice_file_look(place, name, text, &length, err)
	                                 : notice_redis_look(place, name, deadline_ns, text, &length, err);
	if (status == ESP_OK && !notice_decode(text, length, out))
		status = error_set(err, ESP_ECORRUPT, "%s in %.100s is no notice of rank 0", name,
		                   notice_place_describe(place, where));
	sodium_memzero(text, sizeof(text));
	return status;
}

void notice_remove(const struct notice_place *place, const char *name, const uint8_t nonce[NOTICE_NONCE_BYTES],
                   uint64_t deadline_ns)
{
	struct notice there;
	bool is_ours = notice_look(place, name, deadline_ns, &there, NULL) == ESP_OK &&
	               memcmp(there.nonce, nonce, NOTICE_NONCE_BYTES) == 0;
	sodium_memzero(&there, sizeof(there));
	if (is_ours && place->kind == NOTICE_FILE)
		notice_file_remove(place, name);
	else if (is_ours)
		notice_redis_remove(place, name, deadline_ns);
}
