/*
 * Requests that are refused, and the hyper-parameters of terms.
 */
#include "base/rng.h"
#include "support/store_rig.h"

/* ---- protocol errors ---- */

static void check_refused(uint32_t worker, uint8_t kind, uint32_t chunk, uint32_t version, uint32_t bytes,
                          const char *words)
{
	struct rig rig;

	rig_open(&rig, WORKERS, &plain_sgd);
	set_all(&rig, 10);
	CHECK(begin(&rig, worker, kind, chunk, version, bytes) == ESP_ECORRUPT);
	user->lost(rig.lane, worker, ESP_ECORRUPT);
	check_trouble(&rig, ESP_ECORRUPT, worker, words);
	CHECK(begin(&rig, 0, HUB_PULL, 0, 0, 0) == ESP_PENDING);
	rig_close(&rig);
}

static void test_refused(void)
{
	check_refused(1, HUB_PUSH, 0, 1, 256, "worker 1 sent a push of chunk 0 for version 1 where version 0 collects");
	check_refused(2, HUB_PUSHPULL, 0, UINT32_MAX, 256, "version 4294967295");
	check_refused(1, HUB_PUSH, 0, 0, 252, "worker 1 sent a push of 252 bytes where 256 were expected");
	check_refused(1, HUB_PUSHPULL, 1, 0, 256, "256 bytes where 144");
	check_refused(1, HUB_PUSH, CHUNKS, 0, 256, "worker 1 sent a push of chunk 4, which lane 0 does not have");
	check_refused(1, HUB_PULL, UINT32_MAX, 0, 0, "chunk 4294967295");
	check_refused(1, HUB_PULL, 0, 0, 4, "worker 1 sent a pull of 4 bytes where 0 were expected");
	check_refused(1, HUB_SET, 0, 0, 256, "worker 1 set the weights of chunk 0");
	check_refused(0, HUB_SET, 0, 0, 256, "worker 0 set the weights of chunk 0");
	check_refused(2, HUB_HYPER, 2, 0, OPTIMIZER_BYTES, "worker 2 sent values of parameter group 2, where there are 2");
	check_refused(2, HUB_HYPER, 0, 0, OPTIMIZER_BYTES - 1, "63 bytes where 64");
	check_refused(2, HUB_WEIGHTS, 0, 0, 256, "worker 2 sent a frame of kind 6");
	check_refused(2, HUB_DONE, 0, 0, 0, "kind 7");
	check_refused(2, HUB_ARRAY, 0, 0, 0, "kind 8");
	check_refused(2, HUB_SHARED, 0, 0, 0, "worker 2 sent a shared push of chunk 0 without shared memory");
	check_refused(2, HUB_SHARED, 0, 0, 4, "worker 2 sent a shared push of 4 bytes where 0 were expected");
	check_refused(2, HUB_SHARED + 1, 0, 0, 0, "kind 16");
	check_refused(2, 0, 0, 0, 0, "kind 0");
	check_refused(2, 255, 0, 0, 0, "kind 255");
}

/* ---- the optimizer's state ---- */

static const struct optimizer heavy_sgd = {.kind = OPTIMIZER_SGD, .lr = 0.5, .momentum = 0.5};

static void check_array_refused(uint32_t worker, uint8_t kind, uint32_t chunk, uint32_t bytes, const char *words)
{
	struct rig rig;

	rig_open(&rig, WORKERS, &heavy_sgd);
	set_all(&rig, 10);
	CHECK(begin(&rig, worker, kind, chunk, 0, bytes) == ESP_ECORRUPT);
	check_trouble(&rig, ESP_ECORRUPT, worker, words);
	rig_close(&rig);
}

static void test_arrays_refused(void)
{
	check_array_refused(1, HUB_READ + 2, 0, 0, "worker 1 sent a read of array 2 of the optimizer, which has 2");
	check_array_refused(0, HUB_WRITE + 2, 0, 256, "worker 0 sent a write of array 2");
	check_array_refused(1, HUB_READ + 1, 0, 256, "worker 1 sent a read of 256 bytes where 0 were expected");
	check_array_refused(0, HUB_WRITE + 1, 1, 256, "worker 0 sent a write of 256 bytes where 144 were expected");
	check_array_refused(0, HUB_WRITE + 1, CHUNKS, 256, "worker 0 sent a write of chunk 4, which lane 0 does not have");
	check_array_refused(1, HUB_WRITE + 1, 0, 256, "worker 1 wrote array 1 of the optimizer's state of chunk 0");
	check_array_refused(0, HUB_WRITE, 0, 256, "worker 0 wrote array 0");
}

/* Before the first weights, and after a round. */
static void test_write_out_of_turn(void)
{
	struct rig rig;

	rig_open(&rig, 1, &heavy_sgd);
	CHECK(begin(&rig, 0, HUB_WRITE + 1, 0, 0, 256) == ESP_ECORRUPT);
	check_trouble(&rig, ESP_ECORRUPT, 0, "worker 0 wrote array 1");
	rig_close(&rig);
	rig_open(&rig, 1, &heavy_sgd);
	set_all(&rig, 10);
	send(&rig, 0, HUB_PUSH, 0, 0, 1);
	answer(&rig, 0, HUB_DONE, 0, 1);
	CHECK(begin(&rig, 0, HUB_WRITE + 1, 0, 0, 256) == ESP_ECORRUPT);
	check_trouble(&rig, ESP_ECORRUPT, 0, "at version 1");
	rig_close(&rig);
}

/* No worker reads an array while worker 0 writes it. */
static void test_read_and_write(void)
{
	struct rig rig;

	rig_open(&rig, 2, &heavy_sgd);
	set_all(&rig, 10);
	CHECK(begin(&rig, 0, HUB_WRITE + 1, 0, 7, 256) == ESP_OK);
	CHECK(begin(&rig, 1, HUB_READ + 1, 0, 0, 0) == ESP_EMISMATCH);
	check_trouble(&rig, ESP_EMISMATCH, 1, "read and written by two workers");
	rig_close(&rig);
	rig_open(&rig, 2, &heavy_sgd);
	set_all(&rig, 10);
	CHECK(begin(&rig, 1, HUB_READ + 1, 0, 0, 0) == ESP_OK);
	finish(&rig, 1, HUB_READ + 1, NULL, 0);
	struct transport_message message = answer(&rig, 1, HUB_ARRAY, 0, 0);
	CHECK(begin(&rig, 0, HUB_WRITE + 1, 0, 7, 256) == ESP_EMISMATCH);
	check_trouble(&rig, ESP_EMISMATCH, 0, "read and written by two workers");
	CHECK(((const float *)message.data)[0] == 0);
	rig_close(&rig);
}

/* Momentum goes on where it was, and an answer that is under way holds up the update of what it lends. */
static void test_state(void)
{
	struct rig rig;

	rig_open(&rig, 1, &heavy_sgd);
	set_all(&rig, 10);
	send(&rig, 0, HUB_WRITE + 1, 0, 3, 8);
	answer(&rig, 0, HUB_DONE, 0, 0);
	send(&rig, 0, HUB_PUSHPULL, 0, 0, 2);
	weights(&rig, 0, 0, 1, 7); /* 10 - (8 / 2 + 2) / 2 */
	CHECK(begin(&rig, 0, HUB_READ + 1, 0, 1, 0) == ESP_OK);
	finish(&rig, 0, HUB_READ + 1, NULL, 0);
	struct transport_message message = answer(&rig, 0, HUB_ARRAY, 0, 1);
	for (uint32_t i = 0; i < ELEMENTS && i < 64; i++)
		CHECK(((const float *)message.data)[i] == 6);
	send(&rig, 0, HUB_PUSHPULL, 0, 1, 2);
	CHECK(!has_answer(&rig, 0) && ((const float *)message.data)[0] == 6);
	user->sent(rig.lane, 0, HUB_ARRAY, message.cookie);
	weights(&rig, 0, 0, 2, 4.5f); /* 7 - (6 / 2 + 2) / 2 */
	check_calm(&rig);
	rig_close(&rig);
}

/* A chunk of another lane. */
static void test_lane(void)
{
	struct rig rig;

	rig_open_of(&rig, 2, 1, &plain_sgd);
	CHECK(rig.layout.chunk[0].lane == 0 && rig.layout.chunk[1].lane == 1);
	send(&rig, 0, HUB_SET, 0, 0, 1);
	CHECK(begin(&rig, 0, HUB_SET, 1, 0, 144) == ESP_ECORRUPT);
	check_trouble(&rig, ESP_ECORRUPT, 0, "worker 0 sent a set of chunk 1, which lane 0 does not have");
	rig_close(&rig);
}

static void test_second_request(void)
{
	static const uint8_t kinds[] = {HUB_PUSH, HUB_PULL, HUB_PUSHPULL};

	for (uint32_t i = 0; i < sizeof(kinds); i++) {
		struct rig rig;

		rig_open(&rig, WORKERS, &plain_sgd);
		set_all(&rig, 10);
		send(&rig, 1, HUB_PUSH, 0, 0, 1);
		CHECK(begin(&rig, 1, kinds[i], 0, 0, kinds[i] == HUB_PULL ? 0 : 256) == ESP_ECORRUPT);
		check_trouble(&rig, ESP_ECORRUPT, 1, "of chunk 0 while its push of that chunk is not answered");
		rig_close(&rig);
	}
}

static void test_index(void)
{
	struct transport_message message = {.channel = HUB_PULL, .index = 1};
	struct rig rig;

	rig_open(&rig, WORKERS, &plain_sgd);
	CHECK(user->begin(rig.lane, 2, &message) == ESP_ECORRUPT);
	check_trouble(&rig, ESP_ECORRUPT, 2, "worker 2 sent message 1 where 0 was expected");
	rig_close(&rig);
}

static void test_unset(void)
{
	struct rig rig;

	rig_open(&rig, WORKERS, &plain_sgd);
	CHECK(begin(&rig, 0, HUB_PUSH, 0, 0, 256) == ESP_ECORRUPT);
	check_trouble(&rig, ESP_ECORRUPT, 0, "worker 0 sent a push of chunk 0, whose first weights it has not set");
	rig_close(&rig);
	rig_open(&rig, WORKERS, &plain_sgd);
	CHECK(begin(&rig, 0, HUB_SET, 0, 1, 256) == ESP_ECORRUPT);
	check_trouble(&rig, ESP_ECORRUPT, 0, "as version 1");
	rig_close(&rig);
}

/* ---- hyper-parameters ---- */

static void test_hyper(void)
{
	struct optimizer slow = plain_sgd;
	struct rig rig;

	slow.lr = 0.25;
	rig_open(&rig, 2, &plain_sgd);
	set_all(&rig, 10);
	for (uint32_t worker = 0; worker < 2; worker++)
		hyper(&rig, worker, 0, 1, &slow);
	for (uint32_t version = 0; version < 2; version++) {
		for (uint32_t worker = 0; worker < 2; worker++) {
			send(&rig, worker, HUB_PUSHPULL, 0, version, 4);
			send(&rig, worker, HUB_PUSHPULL, 2, version, 4);
		}
		for (uint32_t worker = 0; worker < 2; worker++) {
			weights(&rig, worker, 0, version + 1, version == 0 ? 8 : 7);
			weights(&rig, worker, 2, version + 1, version == 0 ? 8 : 6); /* of another group */
		}
	}
	check_calm(&rig);
	rig_close(&rig);
}

/* The value that held when the term began belongs to it, also if the worker's next one comes while it waits. */
static void test_hyper_waits(void)
{
	struct optimizer slow = plain_sgd;
	struct rig rig;

	slow.lr = 0.25;
	rig_open(&rig, 2, &plain_sgd);
	set_all(&rig, 10);
	send(&rig, 1, HUB_PUSHPULL, 0, 0, 4);
	hyper(&rig, 1, 0, 0, &slow);
	send(&rig, 0, HUB_PUSHPULL, 0, 0, 4);
	weights(&rig, 0, 0, 1, 8);
	check_calm(&rig);
	rig_close(&rig);
}

/* Values that no term has any more make room for others, in rounds without end. */
static void test_hyper_often(void)
{
	struct optimizer optimizer = plain_sgd;
	struct rig rig;

	rig_open(&rig, 2, &plain_sgd);
	set_all(&rig, 10);
	for (uint32_t version = 0; version < 200; version++) {
		optimizer.lr = version + 1;
		for (uint32_t i = 0; i < 2; i++) {
			uint32_t worker = (version + i) % 2;

			hyper(&rig, worker, 0, version, &optimizer);
			send(&rig, worker, HUB_PUSH, 0, version, 0);
		}
		answer(&rig, 0, HUB_DONE, 0, version + 1);
		answer(&rig, 1, HUB_DONE, 0, version + 1);
	}
	check_calm(&rig);
	rig_close(&rig);
}

/* Whichever term comes first, the worker that differs from worker 0 is named. */
static void test_mismatch(void)
{
	for (int i = 0; i < 2; i++) {
		struct optimizer other = plain_sgd;
		struct rig rig;

		other.lr = 0.1;
		rig_open(&rig, WORKERS, &plain_sgd);
		set_all(&rig, 10);
		hyper(&rig, 2, 0, 0, &other);
		send(&rig, i == 0 ? 2 : 0, HUB_PUSHPULL, 0, 0, 4);
		send(&rig, 1, HUB_PUSHPULL, 0, 0, 4);
		check_calm(&rig);
		send(&rig, i == 0 ? 0 : 2, HUB_PUSHPULL, 0, 0, 4);
		check_trouble(&rig, ESP_EMISMATCH, 2, "worker 2 uses lr=0.1 for parameter group 0 where worker 0 uses lr=0.5");
		CHECK(!has_answer(&rig, 0) && !has_answer(&rig, 1) && rig.model.weights[0] == 10);
		rig_close(&rig);
	}
}

static void check_hyper_trouble(const struct optimizer *optimizer, enum esp_status status, const char *words)
{
	struct rig rig;

	rig_open(&rig, WORKERS, &plain_sgd);
	hyper(&rig, 1, 1, 0, optimizer);
	check_trouble(&rig, status, 1, words);
	rig_close(&rig);
}

static void test_hyper_refused(void)
{
	const struct optimizer adam = {.kind = OPTIMIZER_ADAM, .lr = 0.1, .beta1 = 0.9, .beta2 = 0.99, .eps = 1e-8};
	const uint8_t noise[OPTIMIZER_BYTES] = {[0 ... OPTIMIZER_BYTES - 1] = 0xff};
	struct optimizer momentum = plain_sgd;
	struct rig rig;

	check_hyper_trouble(&adam, ESP_EMISMATCH, "worker 1 uses optimizer 2 for parameter group 1 where the job uses 1");
	momentum.momentum = 0.9;
	check_hyper_trouble(&momentum, ESP_EMISMATCH, "worker 1 uses momentum");
	rig_open(&rig, WORKERS, &plain_sgd);
	CHECK(begin(&rig, 1, HUB_HYPER, 0, 0, OPTIMIZER_BYTES) == ESP_OK);
	finish(&rig, 1, HUB_HYPER, noise, OPTIMIZER_BYTES);
	check_trouble(&rig, ESP_ECORRUPT, 1, "out of range");
	rig_close(&rig);
}

/* So many changes ahead of a chunk are remembered, and no more. */
static void test_hyper_past(void)
{
	struct optimizer optimizer = plain_sgd;
	struct rig rig;

	rig_open(&rig, 1, &plain_sgd);
	set_all(&rig, 10);
	for (uint32_t from = 1; from <= 3; from++) {
		optimizer.lr = from;
		hyper(&rig, 0, 0, from, &optimizer);
	}
	send(&rig, 0, HUB_PUSHPULL, 0, 0, 1);
	weights(&rig, 0, 0, 1, 9.5f);
	optimizer.lr = 4;
	hyper(&rig, 0, 0, 4, &optimizer);
	send(&rig, 0, HUB_PUSHPULL, 0, 1, 1);
	weights(&rig, 0, 0, 2, 8.5f);
	CHECK(begin(&rig, 0, HUB_PUSH, 1, 0, 144) == ESP_ECORRUPT);
	check_trouble(&rig, ESP_ECORRUPT, 0, "hold from version 1 on");
	rig_close(&rig);
}

/* ---- noise ---- */

#define NOISE_WORKERS 3u
#define NOISE_LENT 8u

/* Answers that are being sent, and requests that have none. */
struct lent {
	bool is_asked[NOISE_WORKERS][CHUNKS];
	uint32_t version[CHUNKS];
	uint32_t worker[NOISE_LENT], count;
	struct transport_message message[NOISE_LENT];
};

static void noise_answers(struct rig *rig, struct rng *rng, struct lent *lent)
{
	uint32_t worker = (uint32_t)rng_below(rng, NOISE_WORKERS), i = lent->count;

	if (i < NOISE_LENT && user->next(rig->lane, worker, &lent->message[i])) {
		lent->worker[i] = worker;
		lent->is_asked[worker][lent->message[i].call] = false;
		lent->version[lent->message[i].call] = lent->message[i].ack;
		lent->count++;
	} else if (i > 0 && rng_chance(rng, 1, 2)) {
		i = --lent->count;
		user->sent(rig->lane, lent->worker[i], lent->message[i].channel, lent->message[i].cookie);
	}
}

/* Mostly right, so that it gets far. */
static uint32_t noise_or(struct rng *rng, uint32_t right)
{
	if (!rng_chance(rng, 1, 400))
		return right;
	return rng_chance(rng, 1, 2) ? (uint32_t)rng_next(rng) : (uint32_t)rng_below(rng, 300);
}

static uint32_t noise_bytes(const struct rig *rig, uint8_t kind, uint32_t call)
{
	if (kind == HUB_HYPER)
		return OPTIMIZER_BYTES;
	return kind == HUB_PULL || hub_kind_is_read(kind) || call >= CHUNKS ? 0 : rig->layout.chunk[call].elements * 4;
}

static void noise_data(struct rig *rig, struct rng *rng, uint32_t worker, uint8_t kind, uint32_t bytes)
{
	uint8_t data[64 * sizeof(float)];
	struct optimizer optimizer = plain_sgd;

	CHECK(bytes <= sizeof(data));
	for (uint32_t i = 0; i < bytes; i++)
		data[i] = (uint8_t)rng_next(rng);
	optimizer.lr = rng_chance(rng, 1, 50) ? 0.25 : 0.5;
	if (kind == HUB_HYPER && !rng_chance(rng, 1, 50))
		optimizer_encode(&optimizer, data);
	finish(rig, worker, kind, data, bytes);
}

/* False: the connection breaks. */
static bool noise_request(struct rig *rig, struct rng *rng, struct lent *lent)
{
	static const uint8_t kinds[] = {HUB_PUSH, HUB_PULL, HUB_PUSHPULL, HUB_PUSHPULL, HUB_PUSHPULL, HUB_HYPER,
	                                HUB_READ, HUB_READ + 1};
	uint32_t worker = (uint32_t)rng_below(rng, NOISE_WORKERS);
	uint8_t usual = rng_chance(rng, 1, 50) ? HUB_WRITE + 1 : kinds[rng_below(rng, sizeof(kinds))];
	uint8_t kind = (uint8_t)noise_or(rng, usual);
	uint32_t call = noise_or(rng, (uint32_t)rng_below(rng, kind == HUB_HYPER ? 2 : CHUNKS));
	uint32_t bytes = noise_or(rng, noise_bytes(rig, kind, call));

	if (kind != HUB_HYPER && call < CHUNKS && lent->is_asked[worker][call] && !rng_chance(rng, 1, 100))
		return true;
	if (rng_chance(rng, 1, 200))
		rig->sent[worker]++;
	uint32_t version = kind == HUB_HYPER || call >= CHUNKS ? 0 : lent->version[call];
	enum esp_status status = begin(rig, worker, kind, call, noise_or(rng, version), bytes);
	CHECK(status == ESP_OK || status == ESP_ECORRUPT || status == ESP_EMISMATCH || status == ESP_PENDING);
	if (status == ESP_OK && rng_chance(rng, 1, 500)) { /* it does not come whole */
		user->lost(rig->lane, worker, ESP_ELINK);
		return false;
	}
	if (status == ESP_OK)
		noise_data(rig, rng, worker, kind, bytes);
	if (status == ESP_OK && kind != HUB_HYPER)
		lent->is_asked[worker][call] = true;
	return status != ESP_ECORRUPT && status != ESP_EMISMATCH;
}

/* A lane names one worker at the most, and no assertion fails, for any frames that workers send. */
static void test_noise(uint64_t seed)
{
	struct rig rig;
	struct rng rng;
	struct lent lent = {0};
	struct store_trouble trouble;
	uint32_t troubles = 0;

	rng_init(&rng, seed);
	rig_open(&rig, NOISE_WORKERS, &heavy_sgd);
	if (rng_chance(&rng, 15, 16))
		set_all(&rig, 1);
	for (int i = 0; i < 200 && troubles == 0; i++) {
		bool lasts = noise_request(&rig, &rng, &lent);
		for (int j = 0; j < 4; j++)
			noise_answers(&rig, &rng, &lent);
		if (rng_chance(&rng, 1, 400))
			store_lane_leave(rig.lane, (uint32_t)rng_below(&rng, NOISE_WORKERS));
		while (store_lane_take_trouble(rig.lane, &trouble)) {
			CHECK(trouble.status < 0 && trouble.worker < NOISE_WORKERS);
			troubles++;
		}
		CHECK(lasts || troubles == 1);
	}
	CHECK(troubles <= 1);
	rig_close(&rig);
}

int main(int argc, char **argv)
{
	uint64_t seed = test_seed(argc, argv, 1);

	test_refused();
	test_arrays_refused();
	test_write_out_of_turn();
	test_read_and_write();
	test_state();
	test_lane();
	test_second_request();
	test_index();
	test_unset();
	test_hyper();
	test_hyper_waits();
	test_hyper_often();
	test_mismatch();
	test_hyper_refused();
	test_hyper_past();
	for (uint64_t i = 0; i < 20000; i++)
		test_noise(seed + i);
	return 0;
}
