#include "node/auth/key.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "node/auth/key_user.h"
#include "node/auth/private_file.h"

static const char passphrase_label[32] = "espalier key 1 passphrase";
static const char open_label[32] = "espalier key 1 open to all";

static void hash_to_key(const char label[32], const void *text, size_t length, struct key *out)
{
	crypto_generichash_state state;
	crypto_generichash_init(&state, NULL, 0, sizeof(out->bytes));
	crypto_generichash_update(&state, (const uint8_t *)label, 32);
	crypto_generichash_update(&state, text, length);
	crypto_generichash_final(&state, out->bytes, sizeof(out->bytes));
	sodium_memzero(&state, sizeof(state));
}

enum esp_status key_from_text(const char *text, size_t length, const char *what, struct key *out, struct error *err)
{
	size_t bytes = 0;
	if (length == 2 * HANDSHAKE_KEY_BYTES &&
	    sodium_hex2bin(out->bytes, sizeof(out->bytes), text, length, NULL, &bytes, NULL) == 0 &&
	    bytes == HANDSHAKE_KEY_BYTES)
		return ESP_OK;
	if (length < KEY_PASSPHRASE_MIN)
		return error_set(err, ESP_EINVAL, "%.150s holds %zu bytes: a key is 64 hexadecimal digits or a text of at "
		                                  "least %u bytes", what, length, KEY_PASSPHRASE_MIN);
	hash_to_key(passphrase_label, text, length, out);
	return ESP_OK;
}

enum esp_status key_read(const char *path, const char *what, int flags, struct key *out, struct error *err)
{
	char text[PRIVATE_FILE_MOST + 1];
	size_t length = 0;
	enum esp_status status = private_file_read(path, what, flags, text, &length, err);

	if (status == ESP_OK)
		status = key_from_text(text, length, path, out, err);
	sodium_memzero(text, sizeof(text));
	return status;
}

enum esp_status key_from_file(const char *path, struct key *out, struct error *err)
{
	enum esp_status status = key_read(path, "ESP_KEY_FILE", 0, out, err);
	if (status == ESP_OK)
		out->origin = KEY_FILE;
	return status;
}

enum esp_status key_find(conf_lookup_fn *lookup, void *context, struct key *out, struct error *err)
{
	const char *path = lookup(context, "ESP_KEY_FILE");
	if (path && path[0])
		return key_from_file(path, out, err);
	const char *text = lookup(context, "ESP_KEY");
	if (!text || !text[0]) {
		*out = (struct key){.origin = KEY_NONE};
		return ESP_OK;
	}
	enum esp_status status = key_from_text(text, strlen(text), "ESP_KEY", out, err);
	if (status == ESP_OK)
		out->origin = KEY_ENVIRONMENT;
	key_hide(text, strlen(text));
	return status;
}

void key_generate(struct key *out)
{
	int ready = sodium_init();
	assert(ready >= 0);
	(void)ready;
	randombytes_buf(out->bytes, sizeof(out->bytes));
	out->origin = KEY_GENERATED;
}

const char *key_to_hex(const struct key *key, char hex[KEY_HEX])
{
	return sodium_bin2hex(hex, KEY_HEX, key->bytes, sizeof(key->bytes));
}

void key_wipe(struct key *key)
{
	sodium_memzero(key, sizeof(*key));
}

void key_hide(const void *secret, size_t bytes)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), first = (uintptr_t)secret & ~(page - 1);

	(void)madvise((void *)first, (uintptr_t)secret + bytes - first, MADV_DONTDUMP); /* any address may be given */
}

enum key_policy key_policy(const struct key_situation *situation)
{
	if (situation->origin != KEY_NONE || situation->alone)
		return KEY_SECRET;
	if (situation->store)
		return KEY_POSTED;
	if (situation->loopback)
		return situation->insecure ? KEY_OPEN_LOCAL : KEY_SHARED_BY_USER;
	return situation->insecure ? KEY_OPEN_INSECURE : KEY_REFUSED;
}

const char *key_describe(const struct key_situation *situation)
{
	static const char *const origins[] = {
		[KEY_NONE] = "none, for a group of one",
		[KEY_FILE] = "from the file that ESP_KEY_FILE names",
		[KEY_ENVIRONMENT] = "from ESP_KEY",
		[KEY_GENERATED] = "made by rank 0",
		[KEY_STORE] = "made by rank 0, in a file of the store that only this user can read",
		[KEY_USER] = "this user's on this machine, in a file that no other user can read",
	};
	switch (key_policy(situation)) {
	case KEY_OPEN_LOCAL:
		return "none, as the setting insecure allows: any process on this machine could join";
	case KEY_OPEN_INSECURE:
		return "none, as the setting insecure allows: any process on the network can join";
	case KEY_REFUSED:
		return "none";
	case KEY_POSTED:
		return origins[KEY_STORE];
	case KEY_SHARED_BY_USER:
		return origins[KEY_USER];
	case KEY_SECRET:
		break;
	}
	return origins[situation->origin];
}

enum esp_status key_settle(struct key *key, const struct key_situation *situation, enum key_policy *out_policy,
                           struct error *err)
{
	enum key_policy policy = key_policy(situation);
	enum esp_status status = ESP_OK;
	struct key_user_folders folders;
	switch (policy) {
	case KEY_SECRET:
		if (situation->origin == KEY_NONE)
			key_generate(key);
		break;
	case KEY_POSTED:
		key_generate(key);
		key->origin = KEY_STORE;
		break;
	case KEY_SHARED_BY_USER:
		status = key_of_user(key_user_folders(conf_environment, NULL, &folders), key, err);
		break;
	case KEY_OPEN_LOCAL:
	case KEY_OPEN_INSECURE:
		hash_to_key(open_label, "", 0, key);
		break;
	case KEY_REFUSED:
		return error_set(err, ESP_EINVAL, "a job over a network needs a key: write 16 bytes or more into a file, chmod "
		                                  "600, and set ESP_KEY_FILE on all hosts, or the same text as ESP_KEY; or "
		                                  "ESP_STORE=file:/FOLDER that all hosts see; or ESP_INSECURE=yes to let "
		                                  "any process join");
	}
	*out_policy = policy;
	return status;
}
