#include "tools/diagnose/verdict.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "espalier/types.h"
#include "tools/diagnose/verdict_words.h"

/* ---- accounts ---- */

static const struct account *find_account(const struct verdict_case *c, uint32_t rank)
{
	for (uint32_t i = 0; i < c->count; i++) {
		if (c->accounts[i].rank == rank)
			return &c->accounts[i];
	}
	return NULL;
}

static bool is_of_group(const struct record *record, const struct verdict_call *call)
{
	return record->channel == call->channel && record->first == call->first;
}

/* Has not ended, or has ended with the failure that is looked into. */
static bool is_open(const struct record *record)
{
	return record->ended_ns == 0 || record->status != ESP_OK;
}

const struct account_call *diagnose_verdict_current(const struct account *account)
{
	const struct account_call *oldest = NULL;
	for (uint32_t i = 0; i < account->call_count; i++) {
		const struct account_call *call = &account->calls[i];
		if (is_open(&call->record) && (!oldest || call->record.started_ns < oldest->record.started_ns))
			oldest = call;
	}
	return oldest;
}

static const struct account_group *find_group(const struct account *account, uint32_t channel, uint32_t first)
{
	for (uint32_t i = 0; i < account->group_count; i++) {
		if (account->groups[i].channel == channel && account->groups[i].first == first)
			return &account->groups[i];
	}
	return NULL;
}

static bool is_member(const struct account_group *group, uint32_t rank)
{
	for (uint32_t i = 0; group->ranks && i < group->size; i++) {
		if (group->ranks[i] == rank)
			return true;
	}
	return !group->ranks;
}

/* True if a record is of the same call, on another rank. */
static bool is_same_call(const struct record *record, const struct verdict_call *call)
{
	const struct record *mine = &call->call->record;
	if (!is_of_group(record, call) || record->note.flags != mine->note.flags)
		return false;
	return mine->note.flags & CALL_KEYED ? record->note.key == mine->note.key
	                                     : record->note.sequence == mine->note.sequence;
}

static const struct account_call *find_same(const struct account *account, const struct verdict_call *call)
{
	const struct account_call *found = NULL;
	for (uint32_t i = 0; i < account->call_count; i++) {
		const struct record *record = &account->calls[i].record;
		/* A key is used again once its call has ended: only an open call counts. */
		if (is_same_call(record, call) && (!(record->note.flags & CALL_KEYED) || is_open(record)))
			found = &account->calls[i];
	}
	return found;
}

static struct verdict_call as_call(const struct account *account, const struct account_call *call)
{
	assert(account && call);
	return (struct verdict_call){account, call, call->record.channel, call->record.first};
}

/* When the first communicator of this rank failed: ranks that went later went because of that. */
static uint64_t first_failure(const struct account *account)
{
	uint64_t first = UINT64_MAX;
	for (uint32_t i = 0; i < account->group_count; i++) {
		const struct account_group *group = &account->groups[i];
		if (group->failed != ESP_OK && group->failed != ESP_EABORTED && group->failed_ns < first)
			first = group->failed_ns;
	}
	return first;
}

/* How a rank was gone before anything failed, as far as accounts tell; 0: it was not. */
static uint8_t fate_of(const struct verdict_case *c, uint32_t rank)
{
	uint8_t fate = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		uint64_t until = first_failure(&c->accounts[i]);
		for (uint32_t k = 0; k < c->accounts[i].gone_count; k++) {
			const struct account_gone *gone = &c->accounts[i].gone[k];
			if (gone->rank == rank && gone->at_ns <= until && gone->fate > fate)
				fate = gone->fate;
		}
	}
	return fate;
}

/* ---- the rank that is waited for ---- */

/* True if this member has made the call; also if its account does not tell. */
static bool has_made(const struct account *member, const struct verdict_call *call)
{
	const struct account_group *group = find_group(member, call->channel, call->first);
	const struct record *record = &call->call->record;
	if (record->note.flags & CALL_KEYED)
		return find_same(member, call) != NULL;
	return !group || group->calls >= record->note.sequence;
}

/* The member furthest behind of those that have not made the call. NULL: all known members have. */
static const struct account *find_absent(const struct verdict_case *c, const struct verdict_call *call)
{
	const struct account_group *group = find_group(call->account, call->channel, call->first);
	const struct account *furthest = NULL;
	uint64_t least = UINT64_MAX;
	for (uint32_t i = 0; group && i < c->count; i++) {
		const struct account *member = &c->accounts[i];
		if (!is_member(group, member->rank) || has_made(member, call))
			continue;
		const struct account_group *its = find_group(member, call->channel, call->first);
		uint64_t made = its ? its->calls : 0;
		if (made < least || (made == least && furthest && member->rank < furthest->rank)) {
			least = made;
			furthest = member;
		}
	}
	return furthest;
}

/* The other rank that this call waits for; RECORD_NONE: not known. */
static uint32_t waited_for(const struct verdict_call *call)
{
	uint32_t rank = call->call->record.waits_for;
	return rank < call->account->size && rank != call->account->rank ? rank : RECORD_NONE;
}

/* A rank without an account that a member waits for in this call; RECORD_NONE. */
static uint32_t find_silent(const struct verdict_case *c, const struct verdict_call *call)
{
	for (uint32_t i = 0; i < c->count; i++) {
		const struct account_call *same = find_same(&c->accounts[i], call);
		if (!same || !is_open(&same->record))
			continue;
		struct verdict_call theirs = as_call(&c->accounts[i], same);
		uint32_t rank = waited_for(&theirs);
		if (rank != RECORD_NONE && !find_account(c, rank))
			return rank;
	}
	return RECORD_NONE;
}

/* A member that was asked and did not answer; RECORD_NONE. */
static uint32_t find_mute(const struct verdict_case *c, const struct verdict_call *call)
{
	const struct account_group *group = find_group(call->account, call->channel, call->first);
	bool is_letter = call->call->record.note.flags & CALL_LETTER; /* point-to-point: its two ranks are known */
	for (uint32_t i = 0; group && !is_letter && i < c->mute_count; i++) {
		if (is_member(group, c->mute[i]) && !find_account(c, c->mute[i]))
			return c->mute[i];
	}
	return RECORD_NONE;
}

/* Ranks of one host share a monotonic clock, ranks of several do not: calls are compared by wall-clock time. */
static uint64_t started_at(const struct account *account, const struct account_call *call)
{
	uint64_t ago = account->now_ns - call->record.started_ns;
	return account->real_ns > ago ? account->real_ns - ago : 0;
}

/* The member that made the call last. */
static const struct account *find_last(const struct verdict_case *c, const struct verdict_call *call)
{
	const struct account *last = NULL;
	uint64_t latest = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		const struct account_call *same = find_same(&c->accounts[i], call);
		if (same && (!last || started_at(&c->accounts[i], same) > latest)) {
			last = &c->accounts[i];
			latest = started_at(last, same);
		}
	}
	return last;
}

/* ---- following the chain ---- */

static struct verdict conclude(const struct verdict_case *c, enum verdict_kind kind, uint32_t rank,
                               const struct verdict_call *call)
{
	struct verdict verdict = {.kind = kind, .rank = rank == RECORD_NONE ? -1 : (int32_t)rank, .other = -1};
	if (call) {
		const struct record *record = &call->call->record;
		uint64_t until = record->ended_ns ? record->ended_ns : call->account->now_ns;
		verdict.channel = call->channel;
		verdict.first = call->first;
		verdict.number = record->note.sequence;
		verdict.waited_ns = until > record->started_ns ? until - record->started_ns : 0;
	}
	diagnose_verdict_put_words(c, call, rank == RECORD_NONE ? NULL : find_account(c, rank), &verdict);
	return verdict;
}

static enum verdict_kind kind_of(uint8_t fate)
{
	return fate == ACCOUNT_DIED ? VERDICT_DIED : fate == ACCOUNT_LEFT ? VERDICT_LEFT : VERDICT_SILENT;
}

/* The rank that is waited for cannot answer, or does not. */
static struct verdict conclude_missing(const struct verdict_case *c, uint32_t rank, const struct verdict_call *call)
{
	return conclude(c, kind_of(fate_of(c, rank)), rank, call);
}

static struct verdict conclude_deadlock(const struct verdict_case *c, const struct verdict_call *from,
                                        const struct verdict_call *to)
{
	struct verdict verdict = conclude(c, VERDICT_DEADLOCK, to->account->rank, to);
	verdict.other = (int32_t)from->account->rank;
	diagnose_verdict_put_cycle(from, to, &verdict);
	return verdict;
}

/*
 * All known members are in the call: follows the ranks that wait for each other within it. A rank that does not
 * answer is held responsible before one that does.
 */
static struct verdict judge_within(const struct verdict_case *c, const struct verdict_call *call)
{
	uint32_t silent = find_silent(c, call), next = waited_for(call);
	if (silent == RECORD_NONE)
		silent = find_mute(c, call);
	if (silent != RECORD_NONE)
		return conclude_missing(c, silent, call);
	for (uint32_t steps = 0; next != RECORD_NONE && steps < c->count; steps++) {
		const struct account *member = find_account(c, next);
		const struct account_call *same = member ? find_same(member, call) : NULL;
		if (!same || !is_open(&same->record))
			/* it has ended the call there: its messages have not arrived */
			return conclude(c, VERDICT_SLOW, next, call);
		struct verdict_call theirs = as_call(member, same);
		uint32_t after = waited_for(&theirs);
		if (after == RECORD_NONE)
			return conclude(c, VERDICT_SLOW, next, call);
		next = after;
	}
	const struct account *last = find_last(c, call);
	return conclude(c, VERDICT_SLOW, last ? last->rank : RECORD_NONE, call);
}

/* True if the peer has an open call at the other end of this message. */
static bool has_other_end(const struct account *peer, const struct verdict_call *call)
{
	const struct record *mine = &call->call->record;
	for (uint32_t i = 0; i < peer->call_count; i++) {
		const struct record *theirs = &peer->calls[i].record;
		if (is_open(theirs) && is_of_group(theirs, call) && theirs->note.key == mine->note.key &&
		    theirs->kind != mine->kind && (theirs->kind == RECORD_SEND || theirs->kind == RECORD_RECEIVE))
			return true;
	}
	return false;
}

/*
 * The rank that has to act before this call can go on. NULL: the call is held up from within, or *out_missing
 * is that rank and has no account.
 */
static const struct account *find_next(const struct verdict_case *c, const struct verdict_call *call,
                                       uint32_t *out_missing)
{
	bool is_letter = call->call->record.note.flags & CALL_LETTER;
	uint32_t rank = waited_for(call);
	*out_missing = RECORD_NONE;
	if (!is_letter) {
		const struct account *absent = find_absent(c, call);
		if (absent || rank == RECORD_NONE || find_account(c, rank))
			return absent;
		*out_missing = rank;
		return NULL;
	}
	const struct account *peer = rank != RECORD_NONE ? find_account(c, rank) : NULL;
	if (rank != RECORD_NONE && !peer)
		*out_missing = rank;
	return peer && !has_other_end(peer, call) ? peer : NULL;
}

static struct verdict follow_calls(const struct verdict_case *c, struct verdict_call call)
{
	struct verdict_call *path = calloc((size_t)c->count + 1, sizeof(*path));
	struct verdict verdict = {.rank = -1, .other = -1};
	bool found = false;
	for (uint32_t length = 0; path && length < c->count && !found; length++) {
		uint32_t missing;
		path[length] = call;
		const struct account *next = find_next(c, &call, &missing);
		found = true;
		if (missing != RECORD_NONE) {
			verdict = conclude_missing(c, missing, &call);
		} else if (!next) {
			verdict = judge_within(c, &call);
		} else {
			const struct account_call *its = diagnose_verdict_current(next);
			uint32_t before = 0;
			while (before <= length && path[before].account != next)
				before++;
			if (before <= length && its) {
				verdict = conclude_deadlock(c, &call, &path[before]);
			} else if (fate_of(c, next->rank) == ACCOUNT_LEFT) {
				verdict = conclude(c, VERDICT_LEFT, next->rank, &call);
			} else if (!its || its->record.started_ns >= next->now_ns) {
				verdict = conclude(c, VERDICT_ABSENT, next->rank, &call);
			} else {
				call = as_call(next, its);
				found = false;
			}
		}
	}
	free(path);
	return verdict;
}

/* ---- the first call ---- */

/* The first failure in any account, by wall-clock time. */
static const struct account_group *find_failure(const struct verdict_case *c, const struct account **out_account)
{
	const struct account_group *first = NULL;
	uint64_t first_ns = UINT64_MAX;
	for (uint32_t i = 0; i < c->count; i++) {
		const struct account *account = &c->accounts[i];
		for (uint32_t k = 0; k < account->group_count; k++) {
			const struct account_group *group = &account->groups[k];
			uint64_t ago = account->now_ns - group->failed_ns;
			uint64_t at = account->real_ns > ago ? account->real_ns - ago : 0;
			if (group->failed != ESP_OK && group->failed != ESP_EABORTED && at < first_ns) {
				first = group;
				first_ns = at;
				*out_account = account;
			}
		}
	}
	return first;
}

/* The open call that has lasted longest; of a communicator, unless group is NULL. */
static bool find_longest(const struct verdict_case *c, const struct account_group *group, struct verdict_call *out)
{
	uint64_t first = UINT64_MAX;
	for (uint32_t i = 0; i < c->count; i++) {
		const struct account *account = &c->accounts[i];
		for (uint32_t k = 0; k < account->call_count; k++) {
			const struct account_call *call = &account->calls[k];
			bool counts = is_open(&call->record) &&
			              (!group || (call->record.channel == group->channel && call->record.first == group->first));
			if (counts && started_at(account, call) < first) {
				first = started_at(account, call);
				*out = as_call(account, call);
			}
		}
	}
	return first != UINT64_MAX;
}

/* The first call that differs between accounts: the rank in the minority, or the higher of two. */
static bool find_mismatch(const struct verdict_case *c, const struct account_group *group, struct verdict_call *out_odd,
                          struct verdict_call *out_usual)
{
	uint64_t lowest = UINT64_MAX;
	for (uint32_t i = 0; i < c->count; i++) {
		for (uint32_t k = 0; k < c->accounts[i].call_count; k++) {
			struct verdict_call one = as_call(&c->accounts[i], &c->accounts[i].calls[k]);
			const struct record *record = &one.call->record;
			bool counts = record->channel == group->channel && record->first == group->first && record->note.flags == 0;
			if (!counts || record->note.sequence >= lowest)
				continue;
			uint32_t alike = 0, others = 0;
			struct verdict_call other = one;
			for (uint32_t m = 0; m < c->count; m++) {
				const struct account_call *same = find_same(&c->accounts[m], &one);
				if (same && same->digest == one.call->digest)
					alike++;
				if (same && same->digest != one.call->digest) {
					others++;
					other = as_call(&c->accounts[m], same);
				}
			}
			if (others == 0)
				continue;
			lowest = record->note.sequence;
			bool is_odd = alike < others || (alike == others && one.account->rank > other.account->rank);
			*out_odd = is_odd ? one : other;
			*out_usual = is_odd ? other : one;
		}
	}
	return lowest != UINT64_MAX;
}

static struct verdict judge_mismatch(const struct verdict_case *c, const struct account_group *group)
{
	struct verdict_call odd, usual;
	if (!find_mismatch(c, group, &odd, &usual)) {
		struct verdict verdict = conclude(c, VERDICT_MISMATCH,
		                                  group->culprit >= 0 ? (uint32_t)group->culprit : RECORD_NONE, NULL);
		diagnose_verdict_put_reason(group, &verdict);
		return verdict;
	}
	struct verdict verdict = conclude(c, VERDICT_MISMATCH, odd.account->rank, &odd);
	diagnose_verdict_put_mismatch(c, &odd, &usual, &verdict);
	return verdict;
}

static struct verdict judge_failure(const struct verdict_case *c, const struct account_group *group)
{
	struct verdict_call call;
	bool has_call = find_longest(c, group, &call);
	uint32_t culprit = group->culprit >= 0 ? (uint32_t)group->culprit : RECORD_NONE;
	if (group->failed == ESP_EMISMATCH)
		return judge_mismatch(c, group);
	if (group->failed == ESP_EPEER && culprit != RECORD_NONE && fate_of(c, culprit) != 0)
		return conclude(c, kind_of(fate_of(c, culprit)), culprit, has_call ? &call : NULL);
	if (group->failed == ESP_ETIMEOUT && has_call)
		return follow_calls(c, call);
	struct verdict verdict = conclude(c, VERDICT_OTHER, culprit, has_call ? &call : NULL);
	diagnose_verdict_put_reason(group, &verdict);
	return verdict;
}

static struct verdict find_verdict(const struct verdict_case *c)
{
	const struct account *reporter = NULL;
	const struct account_group *failure = find_failure(c, &reporter);
	struct verdict_call call;
	if (failure)
		return judge_failure(c, failure);
	if (find_longest(c, NULL, &call))
		return follow_calls(c, call);
	return conclude(c, VERDICT_NONE, RECORD_NONE, NULL);
}

struct verdict diagnose_verdict_find(const struct account *accounts, uint32_t count, bool live)
{
	return find_verdict(&(struct verdict_case){.accounts = accounts, .count = count, .live = live});
}

struct verdict diagnose_verdict_find_live(const struct account *accounts, uint32_t count, const uint32_t *mute,
                                          uint32_t mute_count)
{
	return find_verdict(&(struct verdict_case){.accounts = accounts, .count = count, .live = true, .mute = mute,
	                                           .mute_count = mute_count});
}
