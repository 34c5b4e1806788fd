#include "node/observe/account.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/status.h"
#include "report/json.h"

const char *account_fate_name(enum account_fate fate)
{
	return fate == ACCOUNT_LEFT ? "left" : fate == ACCOUNT_SILENT ? "silent" : "died";
}

void account_fini(struct account *account)
{
	for (uint32_t i = 0; i < account->group_count; i++)
		free(account->groups[i].ranks);
	free(account->gone);
	free(account->groups);
	free(account->calls);
	*account = (struct account){0};
}

static void put_hex(struct json *json, const char *key, uint64_t value)
{
	char text[20];
	snprintf(text, sizeof text, "%016" PRIx64, value);
	json_put_string(json, key, text);
}

/* As a string: readers of JSON numbers keep 53 or 63 bits. */
static void put_wide(struct json *json, const char *key, uint64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRIu64, value);
	json_put_string(json, key, text);
}

static void write_gone(struct json *json, const struct account *account)
{
	json_key(json, "gone");
	json_array_begin(json);
	for (uint32_t i = 0; i < account->gone_count; i++) {
		json_object_begin(json);
		json_put_u64(json, "rank", account->gone[i].rank);
		json_put_string(json, "host", account->gone[i].host);
		json_put_string(json, "how", account_fate_name(account->gone[i].fate));
		json_put_u64(json, "at_ns", account->gone[i].at_ns);
		json_object_end(json);
	}
	json_array_end(json);
}

static void write_group(struct json *json, const struct account_group *group)
{
	json_object_begin(json);
	json_put_u64(json, "group", group->channel);
	json_put_u64(json, "first", group->first);
	json_put_u64(json, "size", group->size);
	if (group->ranks) {
		json_key(json, "ranks");
		json_array_begin(json);
		for (uint32_t i = 0; i < group->size; i++)
			json_u64(json, group->ranks[i]);
		json_array_end(json);
	}
	json_put_u64(json, "calls", group->calls);
	if (group->failed != ESP_OK) {
		json_put_string(json, "failed", status_name((enum esp_status)group->failed));
		json_put_u64(json, "failed_ns", group->failed_ns);
		if (group->culprit >= 0)
			json_put_i64(json, "culprit", group->culprit);
		json_put_string(json, "reason", group->reason);
	}
	json_object_end(json);
}

static void write_wait(struct json *json, const struct record *record)
{
	if (record->waits_for == RECORD_NONE)
		return;
	json_put_u64(json, "waits_for", record->waits_for);
	if (record->since_ns)
		json_put_u64(json, "since_ns", record->since_ns);
	if (record->chunk != RECORD_NO_CHUNK)
		json_put_u64(json, "chunk", record->chunk);
	if (record->step != RECORD_NONE)
		json_put_u64(json, "step", record->step);
}

static void write_call(struct json *json, const struct account_call *call)
{
	const struct record *record = &call->record;
	json_object_begin(json);
	json_put_u64(json, "group", record->channel);
	json_put_u64(json, "first", record->first);
	json_put_u64(json, "number", record->note.sequence);
	json_put_string(json, "operation", record_kind_name(record->kind));
	json_put_string(json, "call", call->words);
	if (record->note.flags & (CALL_KEYED | CALL_LETTER))
		put_wide(json, record->note.flags & CALL_KEYED ? "key" : "tag", record->note.key);
	if (record->peer != RECORD_NONE)
		json_put_u64(json, "peer", record->peer);
	json_put_u64(json, "digest", call->digest);
	json_put_u64(json, "bytes", record->bytes);
	json_put_u64(json, "members", record->members);
	if (call->plan[0])
		json_put_string(json, "plan", call->plan);
	json_put_u64(json, "started_ns", record->started_ns);
	if (record->ended_ns) {
		json_put_u64(json, "ended_ns", record->ended_ns);
		json_put_u64(json, "waited_ns", record->waited_ns);
		json_put_string(json, "status", status_name((enum esp_status)record->status));
	}
	write_wait(json, record);
	json_object_end(json);
}

enum esp_status account_write(const struct account *account, FILE *out)
{
	struct json json;
	json_init(&json, out);
	json.flat_depth = 2;
	json_object_begin(&json);
	json_put_u64(&json, "espalier_account", ACCOUNT_FORM);
	json_put_string(&json, "job", account->job);
	put_hex(&json, "instance", account->instance);
	json_put_u64(&json, "rank", account->rank);
	json_put_u64(&json, "size", account->size);
	json_put_string(&json, "host", account->host);
	json_put_u64(&json, "pid", account->pid);
	json_put_u64(&json, "now_ns", account->now_ns);
	json_put_u64(&json, "real_ns", account->real_ns);
	if (account->joins_since_ns) {
		json_put_u64(&json, "joins_since_ns", account->joins_since_ns);
		json_put_string(&json, "joins_waits_for", account->joins_words);
	}
	json_put_u64(&json, "forgotten", account->forgotten);
	write_gone(&json, account);
	json_key(&json, "groups");
	json_array_begin(&json);
	for (uint32_t i = 0; i < account->group_count; i++)
		write_group(&json, &account->groups[i]);
	json_array_end(&json);
	json_key(&json, "calls");
	json_array_begin(&json);
	for (uint32_t i = 0; i < account->call_count; i++)
		write_call(&json, &account->calls[i]);
	json_array_end(&json);
	json_object_end(&json);
	return json_fini(&json);
}
