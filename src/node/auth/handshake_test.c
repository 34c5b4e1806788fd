#include "node/auth/handshake.h"

#include "base/check.h"
#include "base/rng.h"

/* Two ends and the bytes on the wire in each direction. */
struct pair {
	struct handshake dialer, listener;
	enum esp_status dialer_status, listener_status;
	struct error dialer_error, listener_error;
	uint8_t to_listener[512], to_dialer[512];
	size_t to_listener_bytes, to_dialer_bytes;
};

static const struct handshake_config lane_dialer = {
	.key = "a key of thirty-two bytes ......",
	.hello = {.from = 3, .to = 5, .size = 8, .epoch = 7, .purpose = HELLO_LANE, .lane = 1, .job = "job"},
};
static const struct handshake_config lane_listener = {
	.key = "a key of thirty-two bytes ......",
	.hello = {.from = 5, .to = HANDSHAKE_ANY_RANK, .size = 8, .epoch = 7, .job = "job"},
	.purposes = 1u << HELLO_LANE | 1u << HELLO_CONTROL,
	.lanes = 2,
};

static void pair_init(struct pair *pair, const struct handshake_config *dialer, const struct handshake_config *listener)
{
	memset(pair, 0, sizeof(*pair));
	handshake_init(&pair->dialer, HANDSHAKE_DIALER, dialer);
	handshake_init(&pair->listener, HANDSHAKE_LISTENER, listener);
	pair->dialer_status = pair->listener_status = ESP_PENDING;
}

/* Moves at most limit bytes from one end to the other; flip (or SIZE_MAX) is the bit of the stream to invert. */
static bool move(struct handshake *from, struct handshake *to, size_t limit, size_t flip, uint8_t *record,
                 size_t *record_bytes, enum esp_status *status, struct error *err)
{
	const uint8_t *bytes;
	uint8_t copy[512];
	size_t n, used;

	handshake_output(from, &bytes, &n);
	n = n < limit ? n : limit;
	if (n == 0)
		return false;
	memcpy(copy, bytes, n);
	handshake_sent(from, n);
	if (flip / 8 >= *record_bytes && flip / 8 < *record_bytes + n)
		copy[flip / 8 - *record_bytes] ^= (uint8_t)(1u << flip % 8);
	memcpy(record + *record_bytes, copy, n);
	*record_bytes += n;
	*status = handshake_input(to, copy, n, &used, err);
	return true;
}

/* Runs until no byte moves; then each pending end sees the connection closed. rng NULL: all bytes at once. */
static void pair_run(struct pair *pair, struct rng *rng, size_t flip_to_listener, size_t flip_to_dialer)
{
	bool moved = true;

	while (moved) {
		size_t limit = rng ? 1 + rng_below(rng, 60) : SIZE_MAX;
		moved = move(&pair->listener, &pair->dialer, limit, flip_to_dialer, pair->to_dialer, &pair->to_dialer_bytes,
		             &pair->dialer_status, &pair->dialer_error);
		moved |= move(&pair->dialer, &pair->listener, limit, flip_to_listener, pair->to_listener,
		              &pair->to_listener_bytes, &pair->listener_status, &pair->listener_error);
	}
	if (pair->dialer_status == ESP_PENDING)
		pair->dialer_status = handshake_closed(&pair->dialer, &pair->dialer_error);
	if (pair->listener_status == ESP_PENDING)
		pair->listener_status = handshake_closed(&pair->listener, &pair->listener_error);
}

static void check_met(const struct pair *pair)
{
	CHECK_MSG(pair->dialer_status == ESP_OK && pair->listener_status == ESP_OK, "%d %s, %d %s", pair->dialer_status,
	          pair->dialer_error.text, pair->listener_status, pair->listener_error.text);
	CHECK_U64(pair->listener.peer.purpose, HELLO_LANE);
	CHECK_U64(pair->listener.peer.lane, 1);
	CHECK_U64(pair->listener.peer.from, pair->dialer.config.hello.from);
	CHECK_U64(pair->dialer.peer.from, pair->listener.config.hello.from);
	CHECK(memcmp(pair->dialer.session, pair->listener.session, HANDSHAKE_KEY_BYTES) == 0);
	CHECK_U64(pair->to_dialer_bytes, CHALLENGE_BYTES + VERDICT_BYTES);
	CHECK_U64(pair->to_listener_bytes, PROOF_BYTES);
}

static void cut_anywhere(struct rng *rng)
{
	uint8_t last[HANDSHAKE_KEY_BYTES] = {0};

	for (int i = 0; i < 500; i++) {
		struct pair pair;
		pair_init(&pair, &lane_dialer, &lane_listener);
		pair_run(&pair, i ? rng : NULL, SIZE_MAX, SIZE_MAX);
		check_met(&pair);
		CHECK(memcmp(last, pair.dialer.session, sizeof(last)) != 0); /* fresh each time */
		memcpy(last, pair.dialer.session, sizeof(last));
		handshake_fini(&pair.dialer);
		CHECK(pair.dialer.config.key[0] == 0 && pair.dialer.session[0] == 0);
	}
}

/* With any one bit inverted the two ends never both succeed; before the verdict, neither does. */
static void any_bit(void)
{
	for (size_t bit = 0; bit < 8 * (CHALLENGE_BYTES + VERDICT_BYTES); bit++) {
		struct pair pair;
		pair_init(&pair, &lane_dialer, &lane_listener);
		pair_run(&pair, NULL, SIZE_MAX, bit);
		CHECK_MSG(pair.dialer_status < 0, "bit %zu", bit);
		CHECK_MSG((pair.listener_status == ESP_OK) == (bit >= 8 * CHALLENGE_BYTES), "bit %zu", bit);
		CHECK(pair.dialer.session[0] == 0 && pair.dialer.session[31] == 0);
	}
	for (size_t bit = 0; bit < 8 * PROOF_BYTES; bit++) {
		struct pair pair;
		pair_init(&pair, &lane_dialer, &lane_listener);
		pair_run(&pair, NULL, bit, SIZE_MAX);
		CHECK_MSG(pair.listener_status == ESP_ECORRUPT && pair.dialer_status == ESP_ELINK, "bit %zu", bit);
		CHECK_U64(pair.to_dialer_bytes, CHALLENGE_BYTES); /* a dialer without proof gets no answer */
	}
}

/* The dialer's fault, and the complaint of both ends. */
struct mismatch {
	enum hello_verdict verdict;
	const char *text;
	struct hello hello; /* the dialer's */
};

#define DIALER(...) \
	{.from = 3, .to = 5, .size = 8, .epoch = 7, .purpose = HELLO_LANE, .lane = 1, .job = "job", __VA_ARGS__}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
#ifdef __clang__
#pragma clang diagnostic ignored "-Winitializer-overrides"
#endif
static const struct mismatch mismatches[] = {
	{HELLO_OTHER_VERSION, "rank 3 speaks version 1 of the protocol, rank 5 version " CHECK_TEXT(HELLO_VERSION)
	 ": install the same "
	 "release on all hosts",
	 DIALER(.version = 1, .purpose = 200)},
	{HELLO_OTHER_JOB, "rank 3 and rank 5 have the same key but belong to different jobs", DIALER(.job = "jab")},
	{HELLO_OTHER_EPOCH, "rank 3 belongs to start 6 of the job, rank 5 to start 7", DIALER(.epoch = 6)},
	{HELLO_NOT_ME, "rank 3 looked for rank 4 and found rank 5", DIALER(.to = 4)},
	{HELLO_OTHER_SIZE, "rank 3 was started for 9 ranks, rank 5 for 8", DIALER(.size = 9)},
	{HELLO_OTHER_SETTINGS, "rank 3 has other settings than rank 5: compare what `espalier conf` prints on both",
	 DIALER(.settings = {1})},
	{HELLO_NOT_YOU, "rank 8 is not the rank that rank 5 expects, or not one of its 8 ranks", DIALER(.from = 8)},
	{HELLO_NOT_YOU, "rank 5 is not the rank that rank 5 expects, or not one of its 8 ranks", DIALER(.from = 5)},
	{HELLO_OTHER_PURPOSE, "rank 3 wants a connection for joining, which rank 5 does not take now",
	 DIALER(.purpose = HELLO_RENDEZVOUS, .lane = 0)},
	/* whatever its job */
	{HELLO_OTHER_PURPOSE, "rank 3 wants a connection for joining, which rank 5 does not take now",
	 DIALER(.purpose = HELLO_RENDEZVOUS, .lane = 0, .job = "jab", .size = 9)},
	{HELLO_OTHER_ROLE, "node 3, a worker, looked for a hub and found node 5, a worker", DIALER(.to_role = NODE_HUB)},
	{HELLO_OTHER_LANE, "rank 3 wants to connect lane 2, which rank 5 does not have", DIALER(.lane = 2)},
	{HELLO_OTHER_VERSION, "rank 3 speaks version 1 of the protocol, rank 5 version " CHECK_TEXT(HELLO_VERSION)
	 ": install the same "
	 "release on all hosts",
	 DIALER(.version = 1, .size = 4, .epoch = 1)}, /* the first broken rule is named */
};
#pragma GCC diagnostic pop

static void named_mismatches(void)
{
	for (size_t i = 0; i < sizeof(mismatches) / sizeof(mismatches[0]); i++) {
		struct handshake_config dialer = lane_dialer;
		struct pair pair;
		dialer.hello = mismatches[i].hello;
		pair_init(&pair, &dialer, &lane_listener);
		pair_run(&pair, NULL, SIZE_MAX, SIZE_MAX);
		CHECK(pair.dialer_status == ESP_EMISMATCH && pair.listener_status == ESP_EMISMATCH);
		CHECK_STR(pair.dialer_error.text, mismatches[i].text);
		CHECK_STR(pair.listener_error.text, mismatches[i].text);
		CHECK(pair.dialer.verdict == mismatches[i].verdict && pair.listener.verdict == mismatches[i].verdict);
	}
}

static void expected_peer(void)
{
	struct handshake_config listener = lane_listener;
	struct pair pair;

	listener.hello.to = 3;
	pair_init(&pair, &lane_dialer, &listener);
	pair_run(&pair, NULL, SIZE_MAX, SIZE_MAX);
	check_met(&pair);
	listener.hello.to = 2;
	pair_init(&pair, &lane_dialer, &listener);
	pair_run(&pair, NULL, SIZE_MAX, SIZE_MAX);
	CHECK(pair.dialer.verdict == HELLO_NOT_YOU && pair.listener.verdict == HELLO_NOT_YOU);
}

/* Size and settings are those of workers: a hub has neither, and is beyond the ranks in the roster. */
static void other_roles(void)
{
	struct handshake_config dialer = lane_dialer, listener = lane_listener;
	struct pair pair;

	dialer.hello.to = listener.hello.from = 8;
	dialer.hello.to_role = listener.hello.role = NODE_HUB;
	listener.hello.size = 0;
	memset(listener.hello.settings, 7, sizeof(listener.hello.settings));
	pair_init(&pair, &dialer, &listener);
	pair_run(&pair, NULL, SIZE_MAX, SIZE_MAX);
	check_met(&pair);
	CHECK(pair.dialer.peer.role == NODE_HUB && pair.listener.peer.role == NODE_WORKER);
	/* A hub that dials is no rank either, and a rank that expects another rank says so. */
	dialer = lane_dialer;
	dialer.hello.role = NODE_HUB;
	dialer.hello.from = 8;
	pair_init(&pair, &dialer, &lane_listener);
	pair_run(&pair, NULL, SIZE_MAX, SIZE_MAX);
	check_met(&pair);
	listener = lane_listener;
	listener.hello.to = 8;
	listener.hello.to_role = NODE_SWITCH;
	pair_init(&pair, &dialer, &listener);
	pair_run(&pair, NULL, SIZE_MAX, SIZE_MAX);
	CHECK(pair.dialer.verdict == HELLO_OTHER_ROLE && pair.listener.verdict == HELLO_OTHER_ROLE);
}

/* A listener with two jobs, whose keys are found by the number that the proof names. */
static bool find_job(void *context, uint64_t job, uint8_t out_key[HANDSHAKE_KEY_BYTES], struct hello *out_own)
{
	const struct handshake_config *jobs = context;

	for (int i = 0; i < 2; i++) {
		if (handshake_job_number(jobs[i].key, jobs[i].hello.job) == job) {
			memcpy(out_key, jobs[i].key, HANDSHAKE_KEY_BYTES);
			*out_own = jobs[i].hello;
			return true;
		}
	}
	return false;
}

static void many_jobs(void)
{
	struct handshake_config jobs[2] = {lane_listener, lane_listener}, dialer = lane_dialer;
	struct handshake_config listener = {
		.find = find_job, .find_context = jobs, .purposes = lane_listener.purposes, .lanes = lane_listener.lanes};
	struct pair pair;

	jobs[1].key[0] ^= 1;
	memcpy(jobs[1].hello.job, "another", 8);
	CHECK(handshake_job_number(jobs[0].key, jobs[0].hello.job) != handshake_job_number(jobs[1].key, jobs[0].hello.job));
	for (int i = 0; i < 2; i++) {
		memcpy(dialer.key, jobs[i].key, sizeof(dialer.key));
		memcpy(dialer.hello.job, jobs[i].hello.job, sizeof(dialer.hello.job));
		dialer.job = 0;
		pair_init(&pair, &dialer, &listener);
		pair_run(&pair, NULL, SIZE_MAX, SIZE_MAX);
		check_met(&pair);
	}
	/* The right number with the key of another job proves nothing, and a number that is not known neither. */
	dialer.job = handshake_job_number(jobs[0].key, jobs[0].hello.job);
	pair_init(&pair, &dialer, &listener);
	pair_run(&pair, NULL, SIZE_MAX, SIZE_MAX);
	CHECK(pair.listener_status == ESP_ECORRUPT && pair.dialer_status != ESP_OK);
	dialer.job = 1;
	pair_init(&pair, &dialer, &listener);
	pair_run(&pair, NULL, SIZE_MAX, SIZE_MAX);
	CHECK(pair.listener_status == ESP_ECORRUPT && pair.dialer_status != ESP_OK);
}

static void other_key(void)
{
	struct handshake_config dialer = lane_dialer;
	struct pair pair;

	dialer.key[31] ^= 1;
	pair_init(&pair, &dialer, &lane_listener);
	pair_run(&pair, NULL, SIZE_MAX, SIZE_MAX);
	CHECK(pair.listener_status == ESP_ECORRUPT);
	CHECK_STR(pair.listener_error.text, "the connecting process did not prove that it has the job's key");
	CHECK(pair.dialer_status == ESP_ELINK);
	CHECK(strstr(pair.dialer_error.text, "another key?"));
	CHECK(pair.dialer.refused);
	CHECK_U64(pair.to_dialer_bytes, CHALLENGE_BYTES);
	CHECK_U64(pair.listener.peer.size, 0);
}

/* Gives bytes to one end, then closes. Returns the status. */
static enum esp_status feed(struct handshake *hs, const uint8_t *bytes, size_t n)
{
	struct error err;
	size_t used;
	enum esp_status status = handshake_input(hs, bytes, n, &used, &err);

	CHECK(used <= n);
	return status == ESP_PENDING ? handshake_closed(hs, &err) : status;
}

/* A recorded handshake proves nothing the second time, to either end, nor in the other role. */
static void replayed(void)
{
	struct pair old;
	struct handshake fresh;

	pair_init(&old, &lane_dialer, &lane_listener);
	pair_run(&old, NULL, SIZE_MAX, SIZE_MAX);
	check_met(&old);
	handshake_init(&fresh, HANDSHAKE_LISTENER, &lane_listener);
	CHECK(feed(&fresh, old.to_listener, old.to_listener_bytes) == ESP_ECORRUPT);
	handshake_init(&fresh, HANDSHAKE_DIALER, &lane_dialer);
	CHECK(feed(&fresh, old.to_dialer, old.to_dialer_bytes) == ESP_ECORRUPT);
	handshake_init(&fresh, HANDSHAKE_LISTENER, &lane_listener);
	CHECK(feed(&fresh, old.to_dialer, old.to_dialer_bytes) == ESP_ECORRUPT);
	handshake_init(&fresh, HANDSHAKE_DIALER, &lane_dialer);
	CHECK(feed(&fresh, old.to_listener, old.to_listener_bytes) == ESP_ECORRUPT);
}

/* A peer that only sends back the bytes it gets, even behind the right magic. */
static void reflected(void)
{
	struct handshake hs, other;
	struct error err;
	const uint8_t *bytes;
	uint8_t copy[VERDICT_BYTES];
	size_t n, used;

	handshake_init(&hs, HANDSHAKE_LISTENER, &lane_listener);
	handshake_output(&hs, &bytes, &n);
	CHECK(feed(&hs, bytes, n) == ESP_ECORRUPT);

	handshake_init(&hs, HANDSHAKE_DIALER, &lane_dialer);
	handshake_init(&other, HANDSHAKE_LISTENER, &lane_listener);
	handshake_output(&other, &bytes, &n);
	CHECK(handshake_input(&hs, bytes, n, &used, &err) == ESP_PENDING);
	handshake_output(&hs, &bytes, &n);
	memcpy(copy, hello_verdict_magic, HELLO_MAGIC_BYTES);
	memcpy(copy + HELLO_MAGIC_BYTES, bytes + HELLO_MAGIC_BYTES + HELLO_NONCE_BYTES, HELLO_BYTES + HELLO_TAG_BYTES);
	handshake_sent(&hs, n);
	CHECK(feed(&hs, copy, sizeof(copy)) == ESP_ECORRUPT);
}

static void every_truncation(void)
{
	struct pair whole;

	pair_init(&whole, &lane_dialer, &lane_listener);
	pair_run(&whole, NULL, SIZE_MAX, SIZE_MAX);
	for (size_t n = 0; n < PROOF_BYTES; n++) {
		struct handshake hs;
		handshake_init_with(&hs, HANDSHAKE_LISTENER, &lane_listener, whole.listener.nonce);
		CHECK(feed(&hs, whole.to_listener, n) == ESP_ELINK);
	}
	for (size_t n = 0; n < CHALLENGE_BYTES + VERDICT_BYTES; n++) {
		struct handshake hs;
		handshake_init_with(&hs, HANDSHAKE_DIALER, &lane_dialer, whole.dialer.nonce);
		CHECK(feed(&hs, whole.to_dialer, n) == ESP_ELINK);
	}
}

static void strangers(struct rng *rng)
{
	static const char *const texts[] = {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\x16\x03\x01\x02\0\x01"};
	struct handshake hs;

	for (size_t i = 0; i < 3; i++) {
		handshake_init(&hs, i % 2 ? HANDSHAKE_DIALER : HANDSHAKE_LISTENER, i % 2 ? &lane_dialer : &lane_listener);
		CHECK(feed(&hs, (const uint8_t *)texts[i], strlen(texts[i]) + 1) == ESP_ECORRUPT);
	}
	for (int i = 0; i < 20000; i++) {
		uint8_t bytes[400];
		size_t n = rng_below(rng, sizeof(bytes));
		bool dials = rng_chance(rng, 1, 2);
		for (size_t k = 0; k < n; k++)
			bytes[k] = (uint8_t)rng_next(rng);
		if (rng_chance(rng, 3, 4) && n >= HELLO_MAGIC_BYTES)
			memcpy(bytes, dials ? hello_challenge_magic : hello_proof_magic, HELLO_MAGIC_BYTES);
		handshake_init(&hs, dials ? HANDSHAKE_DIALER : HANDSHAKE_LISTENER, dials ? &lane_dialer : &lane_listener);
		CHECK(feed(&hs, bytes, n) < 0);
	}
}

/* Bytes that follow the handshake in the same packet are not used. */
static void leaves_the_rest(void)
{
	struct pair pair;
	uint8_t more[CHALLENGE_BYTES + VERDICT_BYTES + 10];
	struct handshake hs;
	struct error err;
	size_t used;

	pair_init(&pair, &lane_dialer, &lane_listener);
	pair_run(&pair, NULL, SIZE_MAX, SIZE_MAX);
	memcpy(more, pair.to_dialer, pair.to_dialer_bytes);
	memset(more + pair.to_dialer_bytes, 7, 10);
	handshake_init_with(&hs, HANDSHAKE_DIALER, &lane_dialer, pair.dialer.nonce);
	CHECK(handshake_input(&hs, more, sizeof(more), &used, &err) == ESP_OK);
	CHECK_U64(used, sizeof(more) - 10);
	CHECK(handshake_input(&hs, more, 10, &used, &err) == ESP_OK);
	CHECK_U64(used, 0);
	CHECK(handshake_closed(&hs, &err) == ESP_OK);
}

/* A joiner is no rank, and complaints do not call it one. */
static void joiners(void)
{
	struct hello joiner = {.purpose = HELLO_JOINER, .from = 0}, rank = {.from = 3};
	struct error err;

	for (unsigned verdict = HELLO_WELCOME + 1; verdict <= HELLO_OTHER_LANE; verdict++) {
		CHECK(handshake_explain((enum hello_verdict)verdict, &joiner, &rank, &err) == ESP_EMISMATCH);
		CHECK_MSG(strstr(err.text, "rank 3") && !strstr(err.text, "rank 0"), "%s", err.text);
	}
	CHECK(handshake_explain(HELLO_OTHER_VERSION, &joiner, &rank, &err) == ESP_EMISMATCH && strstr(err.text, "release"));
	CHECK(handshake_explain(HELLO_WELCOME, &joiner, &rank, &err) == ESP_OK);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	cut_anywhere(&rng);
	any_bit();
	named_mismatches();
	expected_peer();
	other_roles();
	many_jobs();
	other_key();
	replayed();
	reflected();
	every_truncation();
	strangers(&rng);
	leaves_the_rest();
	joiners();
	return 0;
}
