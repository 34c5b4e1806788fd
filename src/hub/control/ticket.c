#include "hub/control/ticket.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "node/auth/private_file.h"

#define HEAD "espalier hub ticket 1"
#define KEY_HEX (2 * HUB_KEY_BYTES + 1)
_Static_assert(TICKET_TEXT_MOST <= PRIVATE_FILE_MOST, "a ticket is read as a private file");

size_t ticket_print(const struct ticket *ticket, char text[TICKET_TEXT_MOST])
{
	char hub[ADDRESS_TEXT], scheduler[ADDRESS_TEXT], key[KEY_HEX];

	sodium_bin2hex(key, sizeof(key), ticket->key, sizeof(ticket->key));
	int length = snprintf(text, TICKET_TEXT_MOST, HEAD "\n");
	for (uint32_t i = 0; i < ticket->hub_count; i++)
		length += snprintf(text + length, TICKET_TEXT_MOST - (size_t)length, "hub %s\n",
		                   address_format(&ticket->hubs[i], hub));
	length += snprintf(text + length, TICKET_TEXT_MOST - (size_t)length,
	                   "name %s\njob %016" PRIx64 "\nworkers %u\nkey %s\n", ticket->name, ticket->job,
	                   ticket->workers, key);
	sodium_memzero(key, sizeof(key));
	if (ticket->has_scheduler)
		length += snprintf(text + length, TICKET_TEXT_MOST - (size_t)length, "scheduler %s\n",
		                   address_format(&ticket->scheduler, scheduler));
	return (size_t)length;
}

/* ---- reading ---- */

struct line {
	const char *text;
	size_t length;
	size_t number; /* from 1 */
};

static bool next_line(const char **text, size_t *size, struct line *line)
{
	if (*size == 0)
		return false;
	const char *end = memchr(*text, '\n', *size);
	size_t length = end ? (size_t)(end - *text) : *size, used = length + (end ? 1 : 0);

	*line = (struct line){*text, length, line->number + 1};
	*text += used;
	*size -= used;
	return true;
}

static bool take_name(const char *value, size_t length, struct ticket *out)
{
	if (length >= sizeof(out->name))
		return false;
	memcpy(out->name, value, length);
	out->name[length] = '\0';
	return hub_msg_name_is_good(out->name);
}

static bool take_address(const char *value, size_t length, struct address *out)
{
	char text[ADDRESS_TEXT];
	struct error unused;

	if (length >= sizeof(text))
		return false;
	memcpy(text, value, length);
	text[length] = '\0';
	return address_parse(text, "ticket", out, &unused) == ESP_OK;
}

static bool take_hub(const char *value, size_t length, struct ticket *out)
{
	return out->hub_count < TICKET_HUBS_MOST && take_address(value, length, &out->hubs[out->hub_count++]);
}

static bool take_scheduler(const char *value, size_t length, struct ticket *out)
{
	out->has_scheduler = true;
	return take_address(value, length, &out->scheduler);
}

static bool take_job(const char *value, size_t length, struct ticket *out)
{
	uint8_t bytes[8];
	size_t got = 0;

	if (length != 16 || sodium_hex2bin(bytes, sizeof(bytes), value, length, NULL, &got, NULL) != 0 ||
	    got != sizeof(bytes))
		return false;
	out->job = 0;
	for (size_t i = 0; i < sizeof(bytes); i++)
		out->job = out->job << 8 | bytes[i];
	return out->job != 0;
}

static bool take_workers(const char *value, size_t length, struct ticket *out)
{
	uint64_t workers;

	if (!number_parse_u64(value, length, &workers) || workers == 0 || workers > UINT32_MAX)
		return false;
	out->workers = (uint32_t)workers;
	return true;
}

static bool take_key(const char *value, size_t length, struct ticket *out)
{
	size_t got = 0;

	return length == 2 * HUB_KEY_BYTES &&
	       sodium_hex2bin(out->key, sizeof(out->key), value, length, NULL, &got, NULL) == 0 && got == sizeof(out->key);
}

static const struct field {
	const char *name, *expected;
	bool (*take)(const char *value, size_t length, struct ticket *out);
} fields[] = {
	{"hub", "hub HOST:PORT", take_hub},
	{"name", "name NAME", take_name},
	{"job", "job and 16 hexadecimal digits", take_job},
	{"workers", "workers and a number", take_workers},
	{"key", "key and 64 hexadecimal digits", take_key},
};
#define FIELDS (sizeof(fields) / sizeof(fields[0]))
/* May stand behind them. */
static const struct field scheduler_field = {"scheduler", "scheduler HOST:PORT, or the end", take_scheduler};

/* The fields stand in the order of the table, once each but for hubs. */
static bool take_field(const struct line *line, const struct field *field, struct ticket *out)
{
	size_t name = strlen(field->name);

	return line->length > name + 1 && memcmp(line->text, field->name, name) == 0 && line->text[name] == ' ' &&
	       field->take(line->text + name + 1, line->length - name - 1, out);
}

/* The lines behind the first, up to the key. */
static bool take_fields(const char **text, size_t *size, struct line *line, const struct field **field,
                        struct ticket *out)
{
	for (*field = fields; *field < fields + FIELDS; (*field)++) {
		bool is_there = next_line(text, size, line);

		while (is_there && out->hub_count > 0 && take_field(line, &fields[0], out))
			is_there = next_line(text, size, line);
		if (!is_there || !take_field(line, *field, out))
			return false;
	}
	return true;
}

enum esp_status ticket_parse(const char *text, size_t size, struct ticket *out, struct error *err)
{
	struct ticket ticket = {0};
	const struct field *field;
	struct line line = {0};

	if (!next_line(&text, &size, &line) || line.length != strlen(HEAD) || memcmp(line.text, HEAD, line.length) != 0)
		return error_set(err, ESP_EPARSE, "it is no ticket: the first line is not '" HEAD
		                                  "'; espalier hub create makes tickets");
	if (!take_fields(&text, &size, &line, &field, &ticket)) {
		sodium_memzero(&ticket, sizeof(ticket));
		return error_set(err, ESP_EPARSE, "line %zu: expected %s", line.number, field->expected);
	}
	bool has_more = next_line(&text, &size, &line);
	if (has_more && !take_field(&line, &scheduler_field, &ticket)) {
		sodium_memzero(&ticket, sizeof(ticket));
		return error_set(err, ESP_EPARSE, "line %zu: expected %s", line.number, scheduler_field.expected);
	}
	if (has_more && next_line(&text, &size, &line)) {
		sodium_memzero(&ticket, sizeof(ticket));
		return error_set(err, ESP_EPARSE, "line %zu: a ticket has %zu lines", line.number, line.number - 1);
	}
	*out = ticket;
	sodium_memzero(&ticket, sizeof(ticket));
	return ESP_OK;
}

enum esp_status ticket_parse_hubs(const char *text, const char *what, struct ticket *out, struct error *err)
{
	char one[ADDRESS_TEXT + 1];

	out->hub_count = 0;
	for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		if (out->hub_count == TICKET_HUBS_MOST)
			return error_set(err, ESP_ELIMIT, "%s: a job has %u hubs at most", what, TICKET_HUBS_MOST);
		snprintf(one, sizeof(one), "%.*s", (int)strcspn(at, ","), at);
		struct address *hub = &out->hubs[out->hub_count];
		enum esp_status status = address_parse(one, what, hub, err);
		if (status != ESP_OK)
			return status;
		for (uint32_t i = 0; i < out->hub_count; i++) {
			if (out->hubs[i].port == hub->port && strcmp(out->hubs[i].host, hub->host) == 0)
				return error_set(err, ESP_EINVAL, "%s: %.100s stands there twice", what, one);
		}
		out->hub_count++;
	}
	return ESP_OK;
}

/* ---- files ---- */

enum esp_status ticket_write(const struct ticket *ticket, const char *path, struct error *err)
{
	char text[TICKET_TEXT_MOST];
	enum esp_status status = private_file_write(path, text, ticket_print(ticket, text), PRIVATE_FILE_REPLACE, err);

	sodium_memzero(text, sizeof(text));
	return status;
}

enum esp_status ticket_read(const char *path, struct ticket *out, struct error *err)
{
	char text[PRIVATE_FILE_MOST + 1];
	size_t length = 0;
	struct error why;
	enum esp_status status = private_file_read(path, "ticket", 0, text, &length, err);

	if (status == ESP_OK) {
		status = ticket_parse(text, length, out, &why);
		if (status != ESP_OK)
			error_set(err, status, "ticket %.120s: %.120s", path, why.text);
	}
	sodium_memzero(text, sizeof(text));
	return status;
}
