#include "tools/diagnose/accounts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "base/vec.h"
#include "node/net/listen.h"
#include "report/complain.h"
#include "report/table.h"

void diagnose_accounts_fini(struct accounts *accounts)
{
	for (size_t i = 0; i < accounts->count; i++)
		account_fini(&accounts->list[i]);
	free(accounts->list);
	*accounts = (struct accounts){0};
}

enum esp_status diagnose_accounts_add(struct accounts *accounts, struct account *account)
{
	if (!vec_reserve(&accounts->list, &accounts->capacity, accounts->count + 1, sizeof(*accounts->list))) {
		account_fini(account);
		return ESP_ENOMEM;
	}
	accounts->list[accounts->count++] = *account;
	return ESP_OK;
}

static int compare(const void *a, const void *b)
{
	const struct account *x = a, *y = b;
	if (x->instance != y->instance)
		return x->instance < y->instance ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->real_ns > y->real_ns ? -1 : x->real_ns < y->real_ns; /* the later one first */
}

void diagnose_accounts_sort(struct accounts *accounts)
{
	size_t kept = 0;
	if (accounts->count > 0)
		qsort(accounts->list, accounts->count, sizeof(*accounts->list), compare);
	for (size_t i = 0; i < accounts->count; i++) {
		struct account *before = kept > 0 ? &accounts->list[kept - 1] : NULL, *account = &accounts->list[i];
		if (before && before->instance == account->instance && before->rank == account->rank)
			account_fini(account);
		else
			accounts->list[kept++] = *account;
	}
	accounts->count = kept;
}

bool diagnose_accounts_next(const struct accounts *accounts, size_t *at, struct accounts_job *out)
{
	if (*at >= accounts->count)
		return false;
	*out = (struct accounts_job){.list = &accounts->list[*at]};
	while (*at < accounts->count && accounts->list[*at].instance == out->list->instance) {
		uint64_t real = accounts->list[(*at)++].real_ns;
		out->latest_ns = real > out->latest_ns ? real : out->latest_ns;
		out->count++;
	}
	return true;
}

const char *diagnose_accounts_title(const struct accounts_job *job, char text[ACCOUNTS_TITLE])
{
	const struct account *first = job->list;
	snprintf(text, ACCOUNTS_TITLE, "job %s%s%016" PRIx64 "%s, %u rank%s", first->job, first->job[0] ? " (" : "",
	         first->instance, first->job[0] ? ")" : "", first->size, plural(first->size));
	return text;
}

/* ---- tables ---- */

static const char *state_of(const struct account *account)
{
	const struct account_call *call = diagnose_verdict_current(account);
	if (account->joins_since_ns)
		return "joins";
	for (uint32_t i = 0; i < account->group_count; i++)
		if (account->groups[i].failed != ESP_OK)
			return "failed";
	if (!call)
		return "idle";
	return call->record.waits_for == RECORD_NONE ? "busy" : "waits";
}

static void put_call(struct table *table, const struct account_call *call)
{
	const struct record *record = &call->record;
	if (record->note.flags == 0 && record->channel == 0)
		table_cell(table, "#%" PRIu64 " %s", record->note.sequence, call->words);
	else if (record->note.flags == 0)
		table_cell(table, "#%" PRIu64 " of group %u: %s", record->note.sequence, record->channel, call->words);
	else
		table_cell(table, "%s", call->words);
}

static void put_seconds(struct table *table, uint64_t from_ns, uint64_t to_ns)
{
	if (from_ns == 0 || from_ns > to_ns)
		table_cell(table, "-");
	else
		table_cell(table, "%.1f s", (double)(to_ns - from_ns) / 1e9);
}

static void put_wait(struct table *table, const struct record *record)
{
	if (record->waits_for == RECORD_NONE)
		table_cell(table, "-");
	else if (record->chunk == RECORD_NO_CHUNK || record->step == RECORD_NONE)
		table_cell(table, "rank %u", record->waits_for);
	else
		table_cell(table, "rank %u, chunk %" PRIu64 ", step %u", record->waits_for, record->chunk, record->step);
}

static void put_rank(struct table *table, const struct account *account)
{
	const struct account_call *call = diagnose_verdict_current(account);
	table_cell(table, "%u", account->rank);
	table_cell(table, "%s", account->host);
	table_cell(table, "%u", account->pid);
	table_cell(table, "%s", state_of(account));
	if (account->joins_since_ns) {
		table_cell(table, "-");
		put_seconds(table, account->joins_since_ns, account->now_ns);
		table_cell(table, "%s", account->joins_words);
		table_cell(table, "-");
		return;
	}
	if (!call) {
		table_cell(table, "-");
		table_cell(table, "-");
		table_cell(table, "-");
		table_cell(table, "-");
		return;
	}
	uint64_t until = call->record.ended_ns ? call->record.ended_ns : account->now_ns;
	put_call(table, call);
	put_seconds(table, call->record.started_ns, until);
	put_wait(table, &call->record);
	put_seconds(table, call->record.waits_for == RECORD_NONE ? 0 : call->record.since_ns, until);
}

/* A process that listens on a local socket is on this host, and the kernel knows its pid. */
static const char *own_host(char text[ACCOUNT_HOST])
{
	_Static_assert(ACCOUNT_HOST >= NODE_INFO_HOST_NAME, "the names of hosts fit");
	return host_info_name(text);
}

static void put_silent(struct table *table, const struct accounts_silent *silent)
{
	char host[ACCOUNT_HOST];
	table_cell(table, "%u", silent->rank);
	table_cell(table, "%s", own_host(host));
	if (silent->pid > 0)
		table_cell(table, "%u", silent->pid);
	else
		table_cell(table, "-");
	table_cell(table, "does not answer");
	for (int i = 0; i < 4; i++)
		table_cell(table, "-");
}

enum esp_status diagnose_accounts_print(const struct accounts_job *job, const struct accounts_silent *silent,
                                        uint32_t silent_count)
{
	static const char *const headers[] = {"rank", "host", "pid", "state", "call", "for", "waits for", "since", NULL};
	struct table table;
	table_init(&table, headers);
	uint32_t at = 0;
	for (uint32_t i = 0; i < job->count; i++) {
		for (; at < silent_count && silent[at].rank < job->list[i].rank; at++)
			put_silent(&table, &silent[at]);
		put_rank(&table, &job->list[i]);
	}
	for (; at < silent_count; at++)
		put_silent(&table, &silent[at]);
	enum esp_status status = table_print(&table, stdout);
	table_fini(&table);
	return status;
}

/* ---- JSON ---- */

static void print_call(const struct account *account, const struct account_call *call, struct json *json)
{
	const struct record *record = &call->record;
	uint64_t until = record->ended_ns ? record->ended_ns : account->now_ns;
	json_object_begin(json);
	json_put_u64(json, "group", record->channel);
	json_put_u64(json, "number", record->note.sequence);
	json_put_string(json, "operation", record_kind_name(record->kind));
	json_put_string(json, "call", call->words);
	json_put_string(json, "plan", call->plan);
	json_put_double(json, "seconds", until > record->started_ns ? (double)(until - record->started_ns) / 1e9 : 0);
	if (record->ended_ns)
		json_put_string(json, "status", status_name((enum esp_status)record->status));
	if (record->waits_for != RECORD_NONE) {
		json_put_u64(json, "waits_for", record->waits_for);
		if (record->since_ns && record->since_ns < until)
			json_put_double(json, "waits_seconds", (double)(until - record->since_ns) / 1e9);
		if (record->chunk != RECORD_NO_CHUNK)
			json_put_u64(json, "chunk", record->chunk);
		if (record->step != RECORD_NONE)
			json_put_u64(json, "step", record->step);
	}
	json_object_end(json);
}

static void print_rank(const struct account *account, struct json *json)
{
	json_object_begin(json);
	json_put_u64(json, "rank", account->rank);
	json_put_string(json, "host", account->host);
	json_put_u64(json, "pid", account->pid);
	json_put_string(json, "state", state_of(account));
	if (account->joins_since_ns) {
		json_put_double(json, "joins_seconds",
		                account->now_ns > account->joins_since_ns
		                ? (double)(account->now_ns - account->joins_since_ns) / 1e9 : 0);
		json_put_string(json, "joins_waits_for", account->joins_words);
	}
	json_key(json, "calls");
	json_array_begin(json);
	for (uint32_t i = 0; i < account->call_count; i++) {
		const struct record *record = &account->calls[i].record;
		if (record->ended_ns == 0 || record->status != ESP_OK)
			print_call(account, &account->calls[i], json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void print_verdict(const struct verdict *verdict, struct json *json)
{
	json_object_begin(json);
	json_put_string(json, "kind", diagnose_verdict_kind_name(verdict->kind));
	json_key(json, "rank");
	if (verdict->rank >= 0)
		json_i64(json, verdict->rank);
	else
		json_none(json);
	if (verdict->other >= 0)
		json_put_i64(json, "other", verdict->other);
	if (verdict->number > 0) {
		json_put_u64(json, "group", verdict->channel);
		json_put_u64(json, "number", verdict->number);
	}
	json_put_double(json, "waited_seconds", (double)verdict->waited_ns / 1e9);
	json_put_string(json, "text", verdict->text);
	json_object_end(json);
}

void diagnose_accounts_print_json(const struct accounts_job *job, const struct verdict *verdict,
                                  const struct accounts_silent *silent, uint32_t silent_count, struct json *json)
{
	char instance[20];
	snprintf(instance, sizeof instance, "%016" PRIx64, job->list->instance);
	json_object_begin(json);
	json_put_string(json, "job", job->list->job);
	json_put_string(json, "instance", instance);
	json_put_u64(json, "size", job->list->size);
	json_key(json, "verdict");
	print_verdict(verdict, json);
	json_key(json, "ranks");
	json_array_begin(json);
	for (uint32_t i = 0; i < job->count; i++)
		print_rank(&job->list[i], json);
	json_array_end(json);
	json_key(json, "silent");
	json_array_begin(json);
	for (uint32_t i = 0; i < silent_count; i++)
		json_u64(json, silent[i].rank);
	json_array_end(json);
	json_key(json, "silent_processes"); /* in the same order */
	json_array_begin(json);
	for (uint32_t i = 0; i < silent_count; i++)
		json_u64(json, silent[i].pid);
	json_array_end(json);
	json_object_end(json);
}
