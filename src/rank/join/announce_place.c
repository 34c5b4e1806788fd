#include "rank/join/announce_place.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"

#define REDIS_PORT 6379u
#define REDIS_DATABASES 65536u

static enum esp_status bad_place(const char *what, const char *why, struct error *err)
{
	return error_set(err, ESP_EINVAL, "%s is file:/FOLDER or redis://[USER:PASSWORD@]HOST[:PORT][/NUMBER]: %s", what,
	                 why);
}

static enum esp_status parse_file(const char *path, const char *what, struct announce_place *out, struct error *err)
{
	if (strncmp(path, "//", 2) == 0)
		path += 2; /* file:///folder: an empty host */
	if (path[0] != '/')
		return bad_place(what, "the folder begins with /, as processes may be started in different ones", err);
	if (strlen(path) >= ANNOUNCE_PATH)
		return bad_place(what, "the folder's name is too long", err);
	out->kind = ANNOUNCE_FILE;
	snprintf(out->path, sizeof(out->path), "%s", path);
	return ESP_OK;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Copies a part of the text and decodes %XX; false if it is too long or malformed. */
static bool decode_secret(const char *text, size_t length, char out[ANNOUNCE_SECRET])
{
	size_t used = 0;
	for (size_t i = 0; i < length; i++) {
		char c = text[i];
		if (c == '%') {
			bool whole = length - i > 2;
			int high = whole ? hex_digit(text[i + 1]) : -1, low = whole ? hex_digit(text[i + 2]) : -1;
			if (high < 0 || low < 0 || (high == 0 && low == 0))
				return false;
			c = (char)(high * 16 + low);
			i += 2;
		}
		if (used + 1 >= ANNOUNCE_SECRET)
			return false;
		out[used++] = c;
	}
	out[used] = '\0';
	return true;
}

/* USER:PASSWORD, :PASSWORD, or PASSWORD alone. */
static bool parse_login(const char *text, size_t length, struct announce_place *out)
{
	const char *colon = memchr(text, ':', length);
	size_t user = colon ? (size_t)(colon - text) : 0, skip = colon ? user + 1 : 0;
	return decode_secret(text, user, out->user) && decode_secret(text + skip, length - skip, out->password) &&
	       length > skip;
}

/* HOST, HOST:PORT, [V6], [V6]:PORT. */
static enum esp_status parse_server(const char *text, size_t length, const char *what, struct announce_place *out,
                                    struct error *err)
{
	char server[ADDRESS_TEXT + 8];
	if (length == 0 || length >= ADDRESS_TEXT)
		return bad_place(what, "there is no host in it", err);
	const char *bracket = memchr(text, ']', length), *from = bracket ? bracket : text;
	bool has_port = memchr(from, ':', length - (size_t)(from - text)) != NULL;
	snprintf(server, sizeof(server), "%.*s", (int)length, text);
	if (!has_port)
		snprintf(server + length, sizeof(server) - length, ":%u", REDIS_PORT);
	return address_parse(server, what, &out->server, err);
}

static enum esp_status parse_redis(const char *text, const char *what, struct announce_place *out, struct error *err)
{
	const char *at = strrchr(text, '@'), *server = at ? at + 1 : text;
	size_t length = strcspn(server, "/");
	uint64_t database = 0;
	if (at && !parse_login(text, (size_t)(at - text), out))
		return bad_place(what, "what stands before @ is no user and password", err);
	if (server[length] == '/' && server[length + 1]) {
		const char *number = server + length + 1;
		if (!number_parse_u64(number, strlen(number), &database) || database >= REDIS_DATABASES)
			return bad_place(what, "a number of a database stands behind the last /", err);
	}
	out->kind = ANNOUNCE_REDIS;
	out->database = (uint32_t)database;
	return parse_server(server, length, what, out, err);
}

enum esp_status announce_place_parse(const char *text, const char *what, struct announce_place *out, struct error *err)
{
	static const char file[] = "file:", redis[] = "redis://";
	struct announce_place place = {0};
	enum esp_status status;
	if (strncmp(text, file, strlen(file)) == 0)
		status = parse_file(text + strlen(file), what, &place, err);
	else if (strncmp(text, redis, strlen(redis)) == 0)
		status = parse_redis(text + strlen(redis), what, &place, err);
	else
		status = bad_place(what, "it begins with neither of the two", err);
	if (status == ESP_OK)
		*out = place;
	return status;
}

const char *announce_place_describe(const struct announce_place *place, char text[ANNOUNCE_PLACE_TEXT])
{
	char server[ADDRESS_TEXT];
	text[0] = '\0';
	if (place->kind == ANNOUNCE_FILE)
		snprintf(text, ANNOUNCE_PLACE_TEXT, "file:%s", place->path);
	if (place->kind == ANNOUNCE_REDIS)
		snprintf(text, ANNOUNCE_PLACE_TEXT, "redis://%s/%u", address_format(&place->server, server), place->database);
	return text;
}
