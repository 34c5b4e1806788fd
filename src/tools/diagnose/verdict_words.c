#include "tools/diagnose/verdict_words.h"

#include <inttypes.h>
#include <string.h>

#include "espalier/types.h"

#define RANK_TEXT 96u
#define WHICH 256u

static const char *const names[] = {
	[VERDICT_NONE] = "none",         [VERDICT_DIED] = "died",     [VERDICT_LEFT] = "left",
	[VERDICT_MISMATCH] = "mismatch", [VERDICT_ABSENT] = "absent", [VERDICT_SILENT] = "silent",
	[VERDICT_SLOW] = "slow",         [VERDICT_DEADLOCK] = "deadlock", [VERDICT_OTHER] = "other",
};

const char *diagnose_verdict_kind_name(enum verdict_kind kind)
{
	return names[kind];
}

/* Writes "rank 3 on node7". Returns text. */
static const char *put_name(const struct verdict_case *c, const struct account *account, int32_t rank,
                            char text[RANK_TEXT])
{
	const char *host = account ? account->host : "";
	for (uint32_t i = 0; i < c->count && !host[0]; i++) {
		for (uint32_t k = 0; k < c->accounts[i].gone_count; k++) {
			if ((int32_t)c->accounts[i].gone[k].rank == rank)
				host = c->accounts[i].gone[k].host;
		}
	}
	snprintf(text, RANK_TEXT, "rank %d%s%.70s", rank, host[0] ? " on " : "", host);
	return text;
}

/* Writes "call 42 (allreduce of 10 f32, sum) of group 4". Returns text. */
static const char *put_which(const struct verdict_call *call, char text[WHICH])
{
	const struct record *record = &call->call->record;
	char number[32] = "", group[32] = "";
	if (call->channel != 0)
		snprintf(group, sizeof group, " of group %u", call->channel);
	if (record->note.flags & (CALL_LETTER | CALL_KEYED) || record->note.sequence == 0) {
		snprintf(text, WHICH, "a %s%s", call->call->words, group);
		return text;
	}
	snprintf(number, sizeof number, "call %" PRIu64, record->note.sequence);
	snprintf(text, WHICH, "%s (%s)%s", number, call->call->words, group);
	return text;
}

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* The number of ranks that are in this call, or were when it failed. */
static uint32_t count_waiting(const struct verdict_case *c, const struct verdict_call *call)
{
	const struct record *mine = &call->call->record;
	uint32_t count = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		bool waits = false;
		for (uint32_t k = 0; k < c->accounts[i].call_count; k++) {
			const struct record *record = &c->accounts[i].calls[k].record;
			waits |= record->channel == call->channel && record->first == call->first &&
			         record->note.flags == mine->note.flags &&
			         record->note.sequence == mine->note.sequence && record->note.key == mine->note.key &&
			         (record->ended_ns == 0 || record->status != ESP_OK);
		}
		count += waits;
	}
	return count;
}

/* Writes the last call of the culprit, if it is known: "; its last one, ..., ended 3.2 s before". */
static void put_last(const struct account *culprit, char *text, size_t size)
{
	const struct account_call *last = NULL;
	for (uint32_t i = 0; culprit && i < culprit->call_count; i++) {
		const struct account_call *call = &culprit->calls[i];
		if (call->record.ended_ns && (!last || call->record.ended_ns >= last->record.ended_ns))
			last = call;
	}
	text[0] = '\0';
	if (!culprit)
		return;
	if (!last) {
		snprintf(text, size, "; it has made no call at all");
		return;
	}
	char which[WHICH];
	struct verdict_call call = {culprit, last, last->record.channel, last->record.first};
	uint64_t ago = culprit->now_ns > last->record.ended_ns ? culprit->now_ns - last->record.ended_ns : 0;
	snprintf(text, size, "; its last one, %s, ended %.1f s before", put_which(&call, which), seconds(ago));
}

static void put_late(const struct verdict_case *c, const struct verdict_call *call, const struct account *culprit,
                     char *text, size_t size)
{
	uint64_t first = UINT64_MAX, its = 0;
	const struct record *mine = &call->call->record;
	for (uint32_t i = 0; i < c->count; i++) {
		const struct account *account = &c->accounts[i];
		for (uint32_t k = 0; k < account->call_count; k++) {
			const struct record *record = &account->calls[k].record;
			if (record->channel != call->channel || record->first != call->first ||
			    record->note.flags != mine->note.flags || record->note.sequence != mine->note.sequence)
				continue;
			uint64_t at = account->real_ns - (account->now_ns - record->started_ns);
			first = at < first ? at : first;
			its = account == culprit ? at : its;
		}
	}
	text[0] = '\0';
	if (its > first && its - first >= UINT64_C(1000000))
		snprintf(text, size, " (it came %.3f s after the first)", seconds(its - first));
}

static bool is_mute(const struct verdict_case *c, int32_t rank)
{
	for (uint32_t i = 0; i < c->mute_count; i++) {
		if ((int32_t)c->mute[i] == rank)
			return true;
	}
	return false;
}

/* The rank was given up, or has left, while no known rank was in a call with it. */
static void put_idle(const struct verdict_case *c, const char *name, const struct account *culprit,
                     struct verdict *verdict)
{
	if (verdict->kind == VERDICT_LEFT)
		snprintf(verdict->text, VERDICT_TEXT,
		         "%s left the job by esp_fini(); no rank that is known was in a call with it.", name);
	else
		snprintf(verdict->text, VERDICT_TEXT,
		         "%s %s, and was given up while no rank that is known was in a call with it: it is stopped, cut "
		         "off%s.", name, c->live ? "is not heard of here" : culprit ? "was not heard of" : "left no account",
		         c->live ? "" : culprit ? ", or was for a while" : ", or its account is elsewhere");
}

void diagnose_verdict_put_words(const struct verdict_case *c, const struct verdict_call *call,
                                const struct account *culprit, struct verdict *verdict)
{
	char name[RANK_TEXT], which[WHICH] = "a call", more[WHICH + 96] = "";
	uint32_t waiting = call ? count_waiting(c, call) : 0;
	double waited = seconds(verdict->waited_ns);
	const char *tense = c->live ? "wait" : "waited", *s = waiting == 1 ? "s" : "";
	put_name(c, culprit, verdict->rank, name);
	if (call)
		put_which(call, which);
	name[0] = 'R';
	if (!c->live)
		s = "";
	if (!call && (verdict->kind == VERDICT_LEFT || verdict->kind == VERDICT_SILENT)) {
		put_idle(c, name, culprit, verdict);
		return;
	}
	switch (verdict->kind) {
	case VERDICT_NONE:
		snprintf(verdict->text, VERDICT_TEXT, "%s.", c->live ? "No rank waits for another" : "Nothing has failed here");
		break;
	case VERDICT_DIED:
		snprintf(verdict->text, VERDICT_TEXT, call ? "%s died, or ended without esp_fini(), while others were in %s."
		                                           : "%s died, or ended without esp_fini().", name, which);
		break;
	case VERDICT_LEFT:
		snprintf(verdict->text, VERDICT_TEXT, "%s left the job by esp_fini(), and %u rank%s %s%s for it in %s.", name,
		         waiting, waiting == 1 ? "" : "s", tense, s, which);
		break;
	case VERDICT_ABSENT:
		put_last(culprit, more, sizeof more);
		snprintf(verdict->text, VERDICT_TEXT, "%s %s not made %s, in which %u rank%s %s%s for %.1f s%s.", name,
		         c->live ? "has" : "had", which, waiting, waiting == 1 ? "" : "s", tense, s, waited, more);
		break;
	case VERDICT_SILENT:
		if (is_mute(c, verdict->rank))
			snprintf(verdict->text, VERDICT_TEXT,
			         "%s is on this host and does not answer, and %u rank%s %s%s for it in %s for %.1f s: it is "
			         "stopped, or has no time on a processor.", name, waiting, waiting == 1 ? "" : "s", tense, s, which,
			         waited);
		else
			snprintf(verdict->text, VERDICT_TEXT,
			         "%s %s, and %u rank%s %s%s for it in %s for %.1f s: it is stopped, cut off%s.", name,
			         c->live ? "is not heard of here" : culprit ? "was not heard of" : "left no account", waiting,
			         waiting == 1 ? "" : "s", tense, s, which, waited, c->live ? ", or on another host" : culprit
			         ? ", or was for a while" : ", or its account is elsewhere");
		break;
	case VERDICT_SLOW:
		if (call)
			put_late(c, call, culprit, more, sizeof more);
		snprintf(verdict->text, VERDICT_TEXT,
		         "All ranks that are known are in %s, and r%s is the one that is waited for, for %.1f s%s.", which,
		         name + 1, waited, more);
		break;
	case VERDICT_MISMATCH:
	case VERDICT_DEADLOCK:
	case VERDICT_OTHER: /* their sentences are written elsewhere */
		verdict->text[0] = '\0';
		break;
	}
}

void diagnose_verdict_put_cycle(const struct verdict_call *from, const struct verdict_call *to, struct verdict *verdict)
{
	char one[WHICH], other[WHICH];
	const struct account_call *its = diagnose_verdict_current(to->account);
	struct verdict_call mine = *to;
	if (its)
		mine = (struct verdict_call){to->account, its, its->record.channel, its->record.first};
	snprintf(verdict->text, VERDICT_TEXT, "Rank %u and rank %u wait for each other: rank %u is in %s, rank %u in %s.",
	         to->account->rank, from->account->rank, to->account->rank, put_which(&mine, one), from->account->rank,
	         put_which(from, other));
}

void diagnose_verdict_put_mismatch(const struct verdict_case *c, const struct verdict_call *odd,
                                   const struct verdict_call *usual, struct verdict *verdict)
{
	char name[RANK_TEXT], group[32] = "";
	put_name(c, odd->account, verdict->rank, name);
	name[0] = 'R';
	if (odd->channel != 0)
		snprintf(group, sizeof group, " of group %u", odd->channel);
	snprintf(verdict->text, VERDICT_TEXT, "%s made %s as call %" PRIu64 "%s, where rank %u made %s.", name,
	         odd->call->words, verdict->number, group, usual->account->rank, usual->call->words);
}

void diagnose_verdict_put_reason(const struct account_group *group, struct verdict *verdict)
{
	char upper = group->reason[0] >= 'a' && group->reason[0] <= 'z' ? (char)(group->reason[0] - 'a' + 'A')
	                                                                : group->reason[0];
	if (group->reason[0])
		snprintf(verdict->text, VERDICT_TEXT, "%c%s.", upper, group->reason + 1);
	else
		snprintf(verdict->text, VERDICT_TEXT, "A group has failed, for an unknown reason.");
}
