#include "node/auth/handshake_check.h"

#include <inttypes.h>
#include <string.h>

static enum hello_verdict judge(const struct handshake_config *own, const struct hello *theirs)
{
	const struct hello *mine = &own->hello;
	if (theirs->version != mine->version)
		return HELLO_OTHER_VERSION;
	bool joins = theirs->purpose == HELLO_RENDEZVOUS;
	/*
	 * A rank that joins, and a joiner, sends the name of its job and its settings with its node info, so that a
	 * complaint can name them; digests cannot. A rank of another job is told about the job only.
	 */
	if (memcmp(theirs->job, mine->job, HELLO_JOB_BYTES) != 0)
		return joins || theirs->purpose == HELLO_JOINER ? HELLO_WELCOME : HELLO_OTHER_JOB;
	/* A joiner has no rank, size or epoch to compare. Its job and settings are compared later: judge_is_unfit(). */
	if (theirs->purpose == HELLO_JOINER)
		return HELLO_WELCOME;
	if (theirs->epoch != mine->epoch)
		return HELLO_OTHER_EPOCH;
	if (theirs->to != mine->from)
		return HELLO_NOT_ME;
	if (theirs->to_role != mine->role || (mine->to != HANDSHAKE_ANY_RANK && theirs->role != mine->to_role))
		return HELLO_OTHER_ROLE;
	bool are_workers = theirs->role == NODE_WORKER && mine->role == NODE_WORKER;
	if (are_workers && theirs->size != mine->size)
		return HELLO_OTHER_SIZE;
	if (are_workers && !joins && memcmp(theirs->settings, mine->settings, HELLO_DIGEST_BYTES) != 0)
		return HELLO_OTHER_SETTINGS;
	/* A second rank 0 that joins sends its node info, so that the complaint can name both. */
	if ((are_workers && theirs->from >= mine->size) || (theirs->from == mine->from && !joins))
		return HELLO_NOT_YOU;
	if (mine->to != HANDSHAKE_ANY_RANK && theirs->from != mine->to)
		return HELLO_NOT_YOU;
	return HELLO_WELCOME;
}

enum hello_verdict judge_dialer(const struct handshake_config *own, const struct hello *theirs)
{
	enum hello_verdict verdict = judge(own, theirs);
	if (verdict != HELLO_WELCOME)
		return verdict;
	if (theirs->purpose > HELLO_PURPOSE_LAST || !(own->purposes & 1u << theirs->purpose))
		return HELLO_OTHER_PURPOSE;
	bool has_lane = theirs->purpose == HELLO_LANE || theirs->purpose == HELLO_PROBE || theirs->purpose == HELLO_AGAIN;
	if (has_lane && theirs->lane >= own->lanes)
		return HELLO_OTHER_LANE;
	return HELLO_WELCOME;
}

enum hello_verdict judge_listener(const struct handshake_config *own, const struct hello *theirs)
{
	enum hello_verdict verdict = judge(own, theirs);
	if (verdict != HELLO_WELCOME)
		return verdict;
	if (theirs->purpose != own->hello.purpose)
		return HELLO_OTHER_PURPOSE;
	if (theirs->lane != own->hello.lane)
		return HELLO_OTHER_LANE;
	return HELLO_WELCOME;
}

bool judge_is_unfit(const struct hello *joiner, const struct hello *listener)
{
	return memcmp(joiner->job, listener->job, HELLO_JOB_BYTES) != 0 ||
	       memcmp(joiner->settings, listener->settings, HELLO_DIGEST_BYTES) != 0;
}

static const char *purpose_name(uint8_t purpose)
{
	static const char *const names[] = {
		[HELLO_RENDEZVOUS] = "joining",
		[HELLO_CONTROL] = "control",
		[HELLO_LANE] = "data",
		[HELLO_JOINER] = "being let in",
		[HELLO_PROBE] = "measuring",
		[HELLO_FDS] = "descriptors",
		[HELLO_AGAIN] = "data, in place of another",
		[HELLO_FABRIC] = "scheduling updates",
	};
	return purpose >= HELLO_RENDEZVOUS && purpose <= HELLO_PURPOSE_LAST ? names[purpose] : "nothing known";
}

/* The dialer is a joiner, which is no rank yet. */
static enum esp_status explain_joiner(enum hello_verdict verdict, const struct hello *joiner,
                                      const struct hello *listener, struct error *err)
{
	enum esp_status status = ESP_EMISMATCH;
	uint32_t l = listener->from;
	if (verdict == HELLO_OTHER_VERSION)
		return error_set(err, status, "the joiner speaks version %u of the protocol, rank %u, which it asks for "
		                              "admission, version %u: install the same release on all hosts", joiner->version,
		                 l, listener->version);
	return error_set(err, status, "a joiner asks to be admitted, and rank %u takes only ranks that join", l);
}

enum esp_status handshake_explain(enum hello_verdict verdict, const struct hello *dialer, const struct hello *listener,
                                  struct error *err)
{
	enum esp_status status = ESP_EMISMATCH;
	uint32_t d = dialer->from, l = listener->from;
	if (dialer->purpose == HELLO_JOINER && verdict != HELLO_WELCOME)
		return explain_joiner(verdict, dialer, listener, err);
	switch (verdict) {
	case HELLO_WELCOME:
		return ESP_OK;
	case HELLO_OTHER_VERSION:
		return error_set(err, status, "rank %u speaks version %u of the protocol, rank %u version %u: install the same "
		                 "release on all hosts", d, dialer->version, l, listener->version);
	case HELLO_OTHER_JOB:
		return error_set(err, status, "rank %u and rank %u have the same key but belong to different jobs", d, l);
	case HELLO_OTHER_EPOCH:
		return error_set(err, status, "rank %u belongs to start %" PRIu64 " of the job, rank %u to start %" PRIu64, d,
		                 dialer->epoch, l, listener->epoch);
	case HELLO_NOT_ME:
		return error_set(err, status, "rank %u looked for rank %u and found rank %u", d, dialer->to, l);
	case HELLO_OTHER_SIZE:
		return error_set(err, status, "rank %u was started for %u ranks, rank %u for %u", d, dialer->size, l,
		                 listener->size);
	case HELLO_OTHER_SETTINGS:
		return error_set(err, status, "rank %u has other settings than rank %u: compare what `espalier conf` prints on "
		                 "both", d, l);
	case HELLO_NOT_YOU:
		return error_set(err, status, "rank %u is not the rank that rank %u expects, or not one of its %u ranks", d, l,
		                 listener->size);
	case HELLO_OTHER_PURPOSE:
		return error_set(err, status, "rank %u wants a connection for %s, which rank %u does not take now", d,
		                 purpose_name(dialer->purpose), l);
	case HELLO_OTHER_ROLE:
		return error_set(err, status, "node %u, a %s, looked for a %s and found node %u, a %s", d,
		                 node_role_name(dialer->role), node_role_name(dialer->to_role), l,
		                 node_role_name(listener->role));
	case HELLO_OTHER_LANE:
		return error_set(err, status, "rank %u wants to connect lane %u, which rank %u does not have", d, dialer->lane,
		                 l);
	}
	return error_set(err, status, "rank %u was refused by rank %u for a reason that has no name here", d, l);
}
