#include "tools/diagnose/account_read.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/quote.h"
#include "base/status.h"

/* Reading one document: the first error ends it. */
struct reader {
	struct error *err;
	enum esp_status status;
};

static void fail_key(struct reader *reader, const char *key, const char *what)
{
	if (reader->status == ESP_OK)
		reader->status = error_set(reader->err, ESP_EPARSE, "\"%s\" is %s", key, what);
}

/* ---- values ---- */

/* A number from 0 to most. If the key is missing: *otherwise, or an error if that is NULL. */
static uint64_t number(struct reader *reader, const json_t *object, const char *key, uint64_t most,
                       const uint64_t *otherwise)
{
	const json_t *value = json_object_get(object, key);
	if (!value && otherwise)
		return *otherwise;
	if (!json_is_integer(value) || json_integer_value(value) < 0 || (uint64_t)json_integer_value(value) > most) {
		fail_key(reader, key, value ? "no number, or a bad one" : "missing");
		return 0;
	}
	return (uint64_t)json_integer_value(value);
}

static uint64_t needed(struct reader *reader, const json_t *object, const char *key, uint64_t most)
{
	return number(reader, object, key, most, NULL);
}

static uint64_t wished(struct reader *reader, const json_t *object, const char *key, uint64_t most, uint64_t otherwise)
{
	return number(reader, object, key, most, &otherwise);
}

/* Cut off if it is long; unprintable bytes become '?'. */
static void text(struct reader *reader, const json_t *object, const char *key, bool is_needed, char *out, size_t size)
{
	const json_t *value = json_object_get(object, key);
	out[0] = '\0';
	if (!json_is_string(value)) {
		if (value || is_needed)
			fail_key(reader, key, value ? "no text" : "missing");
		return;
	}
	snprintf(out, size, "%s", json_string_value(value));
	for (; *out; out++)
		if ((unsigned char)*out < 0x20 || (unsigned char)*out >= 0x7f)
			*out = '?';
}

/* 64 bits as text, as numbers in JSON are exact to 53 bits only. */
static uint64_t wide(struct reader *reader, const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));
	uint64_t found = 0;
	if (!value || !number_parse_u64(value, strlen(value), &found))
		fail_key(reader, key, "no number in quotes");
	return found;
}

static uint64_t hex(struct reader *reader, const json_t *object, const char *key)
{
	const char *value = json_string_value(json_object_get(object, key));
	char *end = NULL;
	errno = 0;
	uint64_t found = value ? strtoull(value, &end, 16) : 0;
	if (!value || strlen(value) != 16 || *end || strspn(value, "0123456789abcdef") != 16)
		fail_key(reader, key, "missing, or not 16 hexadecimal digits");
	return found;
}

static int32_t status_of(struct reader *reader, const json_t *object, const char *key)
{
	const char *name = json_string_value(json_object_get(object, key));
	if (!json_object_get(object, key))
		return ESP_OK;
	for (int32_t status = ESP_PENDING; name && status >= -64; status--)
		if (strcmp(name, status_name((enum esp_status)status)) == 0)
			return status;
	fail_key(reader, key, "no status");
	return ESP_OK;
}

/* The elements of an array; returns memory for as many structs. */
static void *array(struct reader *reader, const json_t *object, const char *key, size_t element,
                   const json_t **out_array, uint32_t *out_count)
{
	const json_t *value = json_object_get(object, key);
	*out_count = 0;
	if (!json_is_array(value)) {
		fail_key(reader, key, "missing, or no list");
		return NULL;
	}
	void *memory = calloc(json_array_size(value) + 1, element); /* bounded by the size of the text */
	if (!memory && reader->status == ESP_OK)
		reader->status = error_set(reader->err, ESP_ENOMEM, "no memory for an account");
	*out_array = value;
	*out_count = memory ? (uint32_t)json_array_size(value) : 0;
	return memory;
}

/* ---- parts ---- */

static void read_gone(struct reader *reader, const json_t *from, uint32_t size, struct account_gone *out)
{
	const char *how = json_string_value(json_object_get(from, "how"));
	out->rank = (uint32_t)needed(reader, from, "rank", size - 1);
	text(reader, from, "host", false, out->host, sizeof out->host);
	out->at_ns = needed(reader, from, "at_ns", INT64_MAX);
	for (out->fate = ACCOUNT_LEFT; out->fate < ACCOUNT_DIED; out->fate++)
		if (how && strcmp(how, account_fate_name(out->fate)) == 0)
			return;
	if (!how || strcmp(how, "died") != 0)
		fail_key(reader, "how", "neither left nor silent nor died");
}

static void read_members(struct reader *reader, const json_t *from, uint32_t size, struct account_group *out)
{
	const json_t *list;
	uint32_t count;
	if (!json_object_get(from, "ranks"))
		return;
	out->ranks = array(reader, from, "ranks", sizeof(*out->ranks), &list, &count);
	if (count != out->size) {
		fail_key(reader, "ranks", "not as long as the group's size");
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		const json_t *rank = json_array_get(list, i);
		if (!json_is_integer(rank) || json_integer_value(rank) < 0 || json_integer_value(rank) >= (json_int_t)size)
			fail_key(reader, "ranks", "no list of ranks");
		else
			out->ranks[i] = (uint32_t)json_integer_value(rank);
	}
}

static void read_group(struct reader *reader, const json_t *from, uint32_t size, struct account_group *out)
{
	uint64_t none = UINT32_MAX;
	out->channel = (uint32_t)needed(reader, from, "group", UINT16_MAX);
	out->first = (uint32_t)needed(reader, from, "first", size - 1);
	out->size = (uint32_t)needed(reader, from, "size", size);
	read_members(reader, from, size, out);
	out->calls = needed(reader, from, "calls", INT64_MAX);
	out->failed = status_of(reader, from, "failed");
	out->failed_ns = wished(reader, from, "failed_ns", INT64_MAX, 0);
	uint64_t culprit = wished(reader, from, "culprit", size - 1, none);
	out->culprit = culprit == none ? -1 : (int32_t)culprit;
	text(reader, from, "reason", false, out->reason, sizeof out->reason);
}

static void read_call(struct reader *reader, const json_t *from, uint32_t size, struct account_call *out)
{
	struct record *record = &out->record;
	const char *operation = json_string_value(json_object_get(from, "operation"));
	record->channel = (uint32_t)needed(reader, from, "group", UINT16_MAX);
	record->first = (uint32_t)needed(reader, from, "first", size - 1);
	record->note.sequence = needed(reader, from, "number", INT64_MAX);
	while (record->kind < RECORD_KINDS && !(operation && strcmp(operation, record_kind_name(record->kind)) == 0))
		record->kind++;
	if (record->kind == RECORD_KINDS)
		fail_key(reader, "operation", "none that there is");
	if (json_object_get(from, "key")) {
		record->note.flags = CALL_KEYED;
		record->note.key = wide(reader, from, "key");
	} else if (json_object_get(from, "tag")) {
		record->note.flags = CALL_LETTER;
		record->note.key = wide(reader, from, "tag");
	}
	record->peer = (uint32_t)wished(reader, from, "peer", size - 1, RECORD_NONE);
	out->digest = (uint32_t)needed(reader, from, "digest", UINT32_MAX);
	record->bytes = needed(reader, from, "bytes", INT64_MAX);
	record->members = (uint32_t)needed(reader, from, "members", size > 2 ? size : 2);
	record->started_ns = needed(reader, from, "started_ns", INT64_MAX);
	record->ended_ns = wished(reader, from, "ended_ns", INT64_MAX, 0);
	record->waited_ns = wished(reader, from, "waited_ns", INT64_MAX, 0);
	record->status = status_of(reader, from, "status");
	record->waits_for = (uint32_t)wished(reader, from, "waits_for", size - 1, RECORD_NONE);
	record->since_ns = wished(reader, from, "since_ns", INT64_MAX, 0);
	record->chunk = wished(reader, from, "chunk", INT64_MAX, RECORD_NO_CHUNK);
	record->step = (uint32_t)wished(reader, from, "step", UINT32_MAX, RECORD_NONE);
	text(reader, from, "plan", false, out->plan, sizeof out->plan);
	text(reader, from, "call", true, out->words, sizeof out->words);
	record->plan = "";
}

static void read_all(struct reader *reader, const json_t *from, struct account *out)
{
	const json_t *list;
	if (needed(reader, from, "espalier_account", UINT32_MAX) != ACCOUNT_FORM)
		fail_key(reader, "espalier_account", "of a form that this version does not know");
	text(reader, from, "job", true, out->job, sizeof out->job);
	out->instance = hex(reader, from, "instance");
	out->size = (uint32_t)needed(reader, from, "size", ACCOUNT_RANKS_MOST);
	if (out->size == 0)
		fail_key(reader, "size", "0");
	if (reader->status != ESP_OK)
		return; /* the rest is checked against it */
	out->rank = (uint32_t)needed(reader, from, "rank", out->size - 1);
	text(reader, from, "host", true, out->host, sizeof out->host);
	out->pid = (uint32_t)needed(reader, from, "pid", UINT32_MAX);
	out->now_ns = needed(reader, from, "now_ns", INT64_MAX);
	out->real_ns = needed(reader, from, "real_ns", INT64_MAX);
	out->joins_since_ns = wished(reader, from, "joins_since_ns", INT64_MAX, 0);
	text(reader, from, "joins_waits_for", false, out->joins_words, sizeof out->joins_words);
	out->forgotten = wished(reader, from, "forgotten", INT64_MAX, 0);
	out->gone = array(reader, from, "gone", sizeof(*out->gone), &list, &out->gone_count);
	for (uint32_t i = 0; i < out->gone_count; i++)
		read_gone(reader, json_array_get(list, i), out->size, &out->gone[i]);
	out->groups = array(reader, from, "groups", sizeof(*out->groups), &list, &out->group_count);
	for (uint32_t i = 0; i < out->group_count; i++)
		read_group(reader, json_array_get(list, i), out->size, &out->groups[i]);
	out->calls = array(reader, from, "calls", sizeof(*out->calls), &list, &out->call_count);
	for (uint32_t i = 0; i < out->call_count; i++)
		read_call(reader, json_array_get(list, i), out->size, &out->calls[i]);
}

enum esp_status diagnose_account_read(const char *bytes, size_t size, struct account *out, struct error *err)
{
	json_error_t where;
	char shown[QUOTE_TEXT];
	struct reader reader = {err, ESP_OK};
	*out = (struct account){0};
	if (size > ACCOUNT_BYTES_MOST)
		return error_set(err, ESP_EPARSE, "it has more than %u MiB: no account is that long", ACCOUNT_BYTES_MOST >> 20);
	json_t *document = json_loadb(bytes, size, 0, &where);
	if (!document)
		return error_set(err, ESP_EPARSE, "line %d: %s", where.line, quote(where.text, strlen(where.text), shown));
	read_all(&reader, document, out);
	json_decref(document);
	if (reader.status != ESP_OK)
		account_fini(out);
	return reader.status;
}
