/*
 * Steps at every level against PyTorch's sequence of operations and against the textbook in double; texts and bytes.
 */
#include <float.h>
#include <math.h>

#include "base/check.h"
#include "base/rng.h"
#include "math/fpenv.h"
#include "math/optimizer.h"

#define COUNT_MOST 70000u
#define GUARD 16u /* bytes before and after an array */
#define ARRAYS 4u /* weights, sum, states */
#define ROOM (GUARD + 4 + COUNT_MOST * sizeof(float) + GUARD)

static uint32_t bits_of(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	return bits;
}

static float of_bits(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Which NaN it is depends on the order in which a compiler puts operands. */
static bool is_same(float a, float b)
{
	return bits_of(a) == bits_of(b) || (isnan(a) && isnan(b));
}

/* ---- one element, in PyTorch's operations ---- */

struct scalar {
	float weight, state[OPTIMIZER_STATES];
};

static float op_add(float x, float y, double alpha)
{
	volatile float product = (float)alpha * y;
	return x + product;
}

static float op_mul(float x, double factor)
{
	volatile float product = x * (float)factor;
	return product;
}

static float op_lerp(float x, float end, double weight)
{
	volatile float w = (float)weight, apart = end - x, part;
	if (fabsf(w) < 0.5f) {
		part = w * apart;
		return x + part;
	}
	part = apart * (1 - w);
	return end - part;
}

static void ref_sgd(const struct optimizer *o, uint64_t step, float gradient, struct scalar *at)
{
	if (o->weight_decay != 0)
		gradient = op_add(gradient, at->weight, o->weight_decay);
	if (o->momentum != 0) {
		at->state[0] = step == 1 ? gradient : op_add(op_mul(at->state[0], o->momentum), gradient, 1 - o->dampening);
		gradient = o->nesterov ? op_add(gradient, at->state[0], o->momentum) : at->state[0];
	}
	at->weight = op_add(at->weight, gradient, -o->lr);
}

static void ref_adam(const struct optimizer *o, uint64_t step, float gradient, struct scalar *at)
{
	const double step_size = o->lr / (1 - pow(o->beta1, (double)step));
	const double root = sqrt(1 - pow(o->beta2, (double)step));

	if (o->weight_decay != 0 && o->kind == OPTIMIZER_ADAMW)
		at->weight = op_mul(at->weight, 1 - o->lr * o->weight_decay);
	else if (o->weight_decay != 0)
		gradient = op_add(gradient, at->weight, o->weight_decay);
	at->state[0] = op_lerp(at->state[0], gradient, 1 - o->beta1);
	volatile float scaled = (float)(1 - o->beta2) * gradient, squared = scaled * gradient;
	at->state[1] = op_mul(at->state[1], o->beta2) + squared;
	volatile float quotient = sqrtf(at->state[1]) / (float)root, denominator = quotient + (float)o->eps;
	volatile float numerator = (float)-step_size * at->state[0];
	quotient = numerator / denominator;
	at->weight = at->weight + quotient;
}

static void ref_step(const struct optimizer_step *step, float sum, struct scalar *at)
{
	volatile float gradient = sum / (float)step->contributors;

	switch (step->optimizer->kind) {
	case OPTIMIZER_AVG:
		at->weight = gradient;
		break;
	case OPTIMIZER_SGD:
		ref_sgd(step->optimizer, step->step, gradient, at);
		break;
	default:
		ref_adam(step->optimizer, step->step, gradient, at);
		break;
	}
}

/* ---- levels ---- */

static char before[ARRAYS][ROOM], want[ARRAYS][ROOM], room[ARRAYS][ROOM];

struct trial {
	struct optimizer optimizer;
	uint64_t step;
	uint32_t contributors;
	size_t count, offset[ARRAYS];
};

static float random_float(struct rng *rng)
{
	static const uint32_t specials[] = {0,          0x80000000u, 1,           0x80000001u, 0x007fffffu, 0x00800000u,
	                                    0x7f7fffffu, 0xff7fffffu, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc12345u};

	if (rng_chance(rng, 1, 4))
		return of_bits(specials[rng_below(rng, sizeof(specials) / sizeof(specials[0]))]);
	if (rng_chance(rng, 1, 4))
		return of_bits((uint32_t)rng_next(rng));
	return (float)(rng_unit(rng) * 4 - 2);
}

static double pick(struct rng *rng, double a, double b, double c)
{
	return rng_chance(rng, 1, 3) ? a : rng_chance(rng, 1, 2) ? b : c;
}

static struct optimizer random_optimizer(struct rng *rng)
{
	struct optimizer o = {.kind = (uint8_t)rng_below(rng, OPTIMIZER_KINDS)};

	if (o.kind == OPTIMIZER_AVG)
		return o;
	o.lr = pick(rng, 0.1, 1e-3, rng_unit(rng));
	o.weight_decay = pick(rng, 0, 1e-2, rng_unit(rng));
	if (o.kind == OPTIMIZER_SGD) {
		o.momentum = pick(rng, 0, 0.9, rng_unit(rng));
		o.dampening = pick(rng, 0, 0, rng_unit(rng));
		o.nesterov = o.momentum != 0 && o.dampening == 0 && rng_chance(rng, 1, 2);
		return o;
	}
	o.beta1 = pick(rng, 0.9, 0.5, rng_unit(rng));
	o.beta2 = pick(rng, 0.999, 0, rng_unit(rng));
	o.eps = pick(rng, 1e-8, 0, rng_unit(rng));
	return o;
}

static char *start(char arrays[ARRAYS][ROOM], const struct trial *trial, uint32_t array)
{
	return arrays[array] + GUARD + trial->offset[array];
}

static float load(const char *array, size_t at)
{
	float value;
	memcpy(&value, array + at * sizeof(value), sizeof(value));
	return value;
}

static void store(char *array, size_t at, float value)
{
	memcpy(array + at * sizeof(value), &value, sizeof(value));
}

/* The pointers need not be aligned, so they are made from bytes. */
static struct optimizer_step step_of(const struct trial *trial, char arrays[ARRAYS][ROOM], size_t from)
{
	const uint32_t states = optimizer_states(&trial->optimizer);
	struct optimizer_step step = {
		.optimizer = &trial->optimizer, .step = trial->step, .contributors = trial->contributors};

	step.weights = (float *)(void *)(start(arrays, trial, 0) + from * sizeof(float));
	step.sum = (const float *)(const void *)(start(arrays, trial, 1) + from * sizeof(float));
	for (uint32_t i = 0; i < states; i++)
		step.states[i] = (float *)(void *)(start(arrays, trial, 2 + i) + from * sizeof(float));
	return step;
}

static void prepare(const struct trial *trial, struct rng *rng)
{
	const struct optimizer_step step = step_of(trial, want, 0);
	const uint32_t states = optimizer_states(&trial->optimizer);

	for (uint32_t array = 0; array < ARRAYS; array++) {
		memset(before[array], 0xa5, sizeof(before[array]));
		for (size_t i = 0; i < trial->count; i++)
			store(start(before, trial, array), i, random_float(rng));
		memcpy(want[array], before[array], sizeof(want[array]));
	}
	for (size_t i = 0; i < trial->count; i++) {
		struct scalar at = {.weight = load(start(before, trial, 0), i)};
		for (uint32_t state = 0; state < states; state++)
			at.state[state] = load(start(before, trial, 2 + state), i);
		ref_step(&step, load(start(before, trial, 1), i), &at);
		store(start(want, trial, 0), i, at.weight);
		for (uint32_t state = 0; state < states; state++)
			store(start(want, trial, 2 + state), i, at.state[state]);
	}
}

/* NaNs apart, all bytes are as they should be, also those around and those of the sum. */
static void compare(const struct trial *trial, enum math_level level)
{
	char text[OPTIMIZER_TEXT];

	for (uint32_t array = 0; array < ARRAYS; array++) {
		char *got = start(room, trial, array), *expected = start(want, trial, array);
		for (size_t i = 0; i < trial->count; i++)
			CHECK_MSG(is_same(load(got, i), load(expected, i)),
			          "%s, %s, step %" PRIu64 ", %u contributors: array %u, element %zu of %zu: %a, expected %a",
			          math_level_name(level), optimizer_print(&trial->optimizer, text), trial->step,
			          trial->contributors, array, i, trial->count, (double)load(got, i),
			          (double)load(expected, i));
		memcpy(got, expected, trial->count * sizeof(float));
		CHECK(test_same_bits(room[array], want[array], sizeof(room[array])));
	}
}

/* In one call, or cut anywhere. */
static bool run(const struct trial *trial, enum math_level level, bool cuts, struct rng *rng)
{
	memcpy(room, before, sizeof(room));
	for (size_t at = 0, now; at < trial->count; at += now) {
		const struct optimizer_step step = step_of(trial, room, at);
		now = cuts ? 1 + rng_below(rng, trial->count - at) : trial->count;
		if (!optimizer_run_at(level, &step, now))
			return false;
	}
	compare(trial, level);
	return true;
}

static struct trial random_trial(struct rng *rng)
{
	struct trial trial = {.optimizer = random_optimizer(rng),
	                      .step = rng_chance(rng, 1, 3) ? 1 : 1 + rng_below(rng, 100000),
	                      .contributors = 1 + (uint32_t)rng_below(rng, 64)};

	for (uint32_t array = 0; array < ARRAYS; array++)
		trial.offset[array] = rng_chance(rng, 1, 2) ? 0 : rng_below(rng, 4);
	return trial;
}

static void run_levels(const struct trial *trial, struct rng *rng)
{
	prepare(trial, rng);
	for (int level = 0; level < MATH_LEVEL_COUNT; level++)
		for (int cuts = 0; cuts < 2; cuts++)
			if (!run(trial, (enum math_level)level, cuts, rng))
				CHECK(trial->count == 0 || level != MATH_PORTABLE);
}

static void test_lengths(struct rng *rng)
{
	for (uint32_t round = 0; round < 4; round++)
		for (size_t count = 0; count <= 200; count++) {
			struct trial trial = random_trial(rng);
			trial.count = count;
			run_levels(&trial, rng);
		}
	for (uint32_t round = 0; round < 8; round++) {
		struct trial trial = random_trial(rng);
		trial.count = COUNT_MOST - rng_below(rng, 100);
		run_levels(&trial, rng);
	}
}

#if defined(__x86_64__)
#define FLUSHES 0x8040u /* denormals become zero, as operands and as results */

/* A host that flushes denormals gets the same bits, and keeps its mode. */
static void test_host_mode(struct rng *rng)
{
	for (uint32_t i = 0; i < 20; i++) {
		struct trial trial = random_trial(rng);
		trial.count = 100;
		prepare(&trial, rng);
		memcpy(room, before, sizeof(room));
		const struct optimizer_step step = step_of(&trial, room, 0);
		fpenv_write(FPENV_DEFAULT | FLUSHES);
		optimizer_run(&step, trial.count);
		uint32_t mode = fpenv_read();
		fpenv_write(FPENV_DEFAULT);
		CHECK_U64(mode & ~FPENV_STICKY, FPENV_DEFAULT | FLUSHES);
		compare(&trial, math_level_best());
	}
}
#else
static void test_host_mode(struct rng *rng)
{
	(void)rng;
}
#endif

/* ---- the textbook ---- */

struct textbook {
	double weight, first, second;
};

static void textbook_sgd(const struct optimizer *o, uint64_t step, double gradient, struct textbook *at)
{
	gradient += o->weight_decay * at->weight;
	at->first = step == 1 ? gradient : o->momentum * at->first + (1 - o->dampening) * gradient;
	if (o->momentum == 0)
		at->weight -= o->lr * gradient;
	else
		at->weight -= o->lr * (o->nesterov ? gradient + o->momentum * at->first : at->first);
}

static void textbook_adam(const struct optimizer *o, uint64_t step, double gradient, struct textbook *at)
{
	const double old = at->weight;

	if (o->kind == OPTIMIZER_ADAM)
		gradient += o->weight_decay * at->weight;
	at->first = o->beta1 * at->first + (1 - o->beta1) * gradient;
	at->second = o->beta2 * at->second + (1 - o->beta2) * gradient * gradient;
	const double mean = at->first / (1 - pow(o->beta1, (double)step));
	const double square = at->second / (1 - pow(o->beta2, (double)step));
	at->weight -= o->lr * mean / (sqrt(square) + o->eps);
	if (o->kind == OPTIMIZER_ADAMW)
		at->weight -= o->lr * o->weight_decay * old;
}

static void check_textbook(const char *text, struct rng *rng)
{
	enum { WORKERS = 3, STEPS = 50 };
	struct optimizer optimizer;
	struct textbook book = {.weight = 0.75};
	float weight = 0.75f, sum, states[OPTIMIZER_STATES] = {0};
	struct optimizer_step step = {.optimizer = &optimizer, .contributors = WORKERS, .weights = &weight, .sum = &sum,
	                              .states = {&states[0], &states[1]}};

	CHECK(optimizer_parse(text, &optimizer, NULL) == ESP_OK);
	for (step.step = 1; step.step <= STEPS; step.step++) {
		sum = (float)(rng_unit(rng) * 6 - 3);
		optimizer_run(&step, 1);
		if (optimizer.kind == OPTIMIZER_SGD)
			textbook_sgd(&optimizer, step.step, (double)sum / WORKERS, &book);
		else
			textbook_adam(&optimizer, step.step, (double)sum / WORKERS, &book);
		CHECK_MSG(fabs((double)weight - book.weight) < 1e-4, "%s: %g after step %" PRIu64 ", expected %g", text,
		          (double)weight, step.step, book.weight);
	}
}

static void test_textbook(struct rng *rng)
{
	static const char *const texts[] = {
		"sgd lr=0.1",
		"sgd lr=0.1 weight_decay=0.01",
		"sgd lr=0.05 momentum=0.9",
		"sgd lr=0.05 momentum=0.9 dampening=0.3 weight_decay=1e-3",
		"sgd lr=0.05 momentum=0.8 nesterov=yes weight_decay=1e-3",
		"adam",
		"adam lr=0.05 weight_decay=0.1",
		"adam lr=0.05 beta1=0.3 beta2=0.9 eps=1e-3",
		"adamw",
		"adamw lr=0.05 weight_decay=0.2",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_textbook(texts[i], rng);
}

/* A mean of one is copied, whatever it is: a signalling NaN stays one. No contribution at all is fine for count 0. */
static void test_mean_of_one(void)
{
	const struct optimizer avg = {.kind = OPTIMIZER_AVG};
	const uint32_t sum[2] = {0x7f800001u, 0xff812345u};
	uint32_t weights[2] = {0};
	struct optimizer_step step = {.optimizer = &avg, .step = 1, .contributors = 1};

	step.weights = (float *)(void *)weights;
	step.sum = (const float *)(const void *)sum;
	optimizer_run(&step, 2);
	CHECK(weights[0] == sum[0] && weights[1] == sum[1]);
	step.sum = NULL;
	step.weights = NULL;
	optimizer_run(&step, 0);
}

/* ---- texts ---- */

static void check_error(const char *text, const char *expected)
{
	struct optimizer optimizer;
	struct error err = {0};

	CHECK_MSG(optimizer_parse(text, &optimizer, &err) == ESP_EINVAL, "'%s' was taken", text);
	CHECK_U64(err.status, ESP_EINVAL);
	CHECK_STR(err.text, expected);
}

static void test_parse_errors(void)
{
	check_error("", "optimizer: there is no word: avg, sgd, adam or adamw is expected");
	check_error(" \t", "optimizer: there is no word: avg, sgd, adam or adamw is expected");
	check_error("sgdx lr=1", "optimizer: the first word is 'sgdx': avg, sgd, adam or adamw is expected");
	check_error("lr=1 sgd", "optimizer: the first word is 'lr=1': avg, sgd, adam or adamw is expected");
	check_error("sgd=1", "optimizer: the first word is 'sgd=1': avg, sgd, adam or adamw is expected");
	check_error("sgd", "optimizer sgd: there is no lr: lr=NUMBER is expected, such as lr=0.1");
	check_error("sgd lr=0.1 beta1=0.9",
	            "optimizer sgd: 'beta1' is unknown: lr, momentum, dampening, weight_decay, nesterov is expected");
	check_error("adam nesterov=yes",
	            "optimizer adam: 'nesterov' is unknown: lr, weight_decay, beta1, beta2, eps is expected");
	check_error("avg lr=1", "optimizer avg: 'lr' is unknown: nothing is expected");
	check_error("adam =1", "optimizer adam: '' is unknown: lr, weight_decay, beta1, beta2, eps is expected");
	check_error("sgd lr", "optimizer sgd: 'lr' has no value: NAME=NUMBER is expected");
	check_error("sgd lr=1 nesterov", "optimizer sgd: 'nesterov' has no value: nesterov=yes is expected");
	check_error("sgd lr=1 lr=2", "optimizer sgd: 'lr' is given twice: one value is expected");
	check_error("sgd lr=1 nesterov=no nesterov=no", "optimizer sgd: 'nesterov' is given twice: one value is expected");
	check_error("sgd lr=", "optimizer sgd: lr='': a number from 0 to 1e30 is expected");
	check_error("sgd lr=1x", "optimizer sgd: lr='1x': a number from 0 to 1e30 is expected");
	check_error("sgd lr=-1", "optimizer sgd: lr='-1': a number from 0 to 1e30 is expected");
	check_error("sgd lr=-0", "optimizer sgd: lr='-0': a number from 0 to 1e30 is expected");
	check_error("sgd lr=nan", "optimizer sgd: lr='nan': a number from 0 to 1e30 is expected");
	check_error("sgd lr=1e31", "optimizer sgd: lr='1e31': a number from 0 to 1e30 is expected");
	check_error("adam beta1=1", "optimizer adam: beta1='1': a number from 0 to below 1 is expected");
	check_error("sgd lr=1 nesterov=maybe", "optimizer sgd: nesterov='maybe': yes or no is expected");
	check_error("sgd lr=1 nesterov=yes", "optimizer sgd: nesterov=yes needs a momentum above 0 and dampening=0");
	check_error("sgd lr=1 momentum=0.9 dampening=0.1 nesterov=yes",
	            "optimizer sgd: nesterov=yes needs a momentum above 0 and dampening=0");
}

static void test_defaults(void)
{
	const struct optimizer adam = {
		.kind = OPTIMIZER_ADAM, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8};
	struct optimizer adamw = adam, got;
	const struct optimizer sgd = {.kind = OPTIMIZER_SGD, .lr = 0.5}, avg = {.kind = OPTIMIZER_AVG};
	char text[OPTIMIZER_TEXT];

	adamw.kind = OPTIMIZER_ADAMW;
	adamw.weight_decay = 1e-2;
	CHECK(optimizer_parse("adam", &got, NULL) == ESP_OK && optimizer_equal(&got, &adam));
	CHECK(optimizer_parse(" adamw ", &got, NULL) == ESP_OK && optimizer_equal(&got, &adamw));
	CHECK(optimizer_parse("sgd\tlr=.5", &got, NULL) == ESP_OK && optimizer_equal(&got, &sgd));
	CHECK(optimizer_parse("sgd nesterov=no lr=5e-1", &got, NULL) == ESP_OK && optimizer_equal(&got, &sgd));
	CHECK(optimizer_parse("avg", &got, NULL) == ESP_OK && optimizer_equal(&got, &avg));
	CHECK(!optimizer_equal(&adam, &adamw) && !optimizer_equal(&sgd, &avg));
	CHECK_STR(optimizer_print(&sgd, text), "sgd lr=0.5 momentum=0 dampening=0 weight_decay=0");
	CHECK_STR(optimizer_print(&avg, text), "avg");
	CHECK_U64(optimizer_states(&avg), 0);
	CHECK_U64(optimizer_states(&sgd), 0);
	CHECK_U64(optimizer_states(&adam), 2);
	CHECK(optimizer_is_linear(&sgd) && !optimizer_is_linear(&avg) && !optimizer_is_linear(&adam));
	CHECK(optimizer_parse("sgd lr=1 momentum=0.5 nesterov=yes", &got, NULL) == ESP_OK);
	CHECK_U64(optimizer_states(&got), 1);
	CHECK_STR(optimizer_print(&got, text), "sgd lr=1 momentum=0.5 dampening=0 weight_decay=0 nesterov=yes");
}

static void check_refused(struct optimizer optimizer, const char *expected)
{
	struct error err = {0};

	CHECK_U64(optimizer_check(&optimizer, &err), ESP_EINVAL);
	CHECK_STR(err.text, expected);
	CHECK_U64(optimizer_check(&optimizer, NULL), ESP_EINVAL);
}

static void test_check(void)
{
	check_refused((struct optimizer){.kind = 4}, "optimizer: kind 4 is unknown: 0 to 3 are expected");
	check_refused((struct optimizer){.kind = OPTIMIZER_SGD, .lr = NAN},
	              "optimizer sgd: lr is nan: a number from 0 to 1e30 is expected");
	check_refused((struct optimizer){.kind = OPTIMIZER_SGD, .lr = INFINITY},
	              "optimizer sgd: lr is inf: a number from 0 to 1e30 is expected");
	check_refused((struct optimizer){.kind = OPTIMIZER_ADAM, .beta2 = 1},
	              "optimizer adam: beta2 is 1: a number from 0 to below 1 is expected");
	check_refused((struct optimizer){.kind = OPTIMIZER_SGD, .eps = 0.5}, "optimizer sgd: eps is 0.5, but sgd has none");
	check_refused((struct optimizer){.kind = OPTIMIZER_AVG, .lr = -0.0}, "optimizer avg: lr is -0, but avg has none");
	check_refused((struct optimizer){.kind = OPTIMIZER_ADAM, .nesterov = true},
	              "optimizer adam: nesterov is yes, but only sgd has it");
	check_refused((struct optimizer){.kind = OPTIMIZER_SGD, .lr = 1, .nesterov = true},
	              "optimizer sgd: nesterov=yes needs a momentum above 0 and dampening=0");
}

/* Any number from tiny to huge. */
static double random_value(struct rng *rng, double most)
{
	double value = rng_chance(rng, 1, 4) ? rng_unit(rng) * most : ldexp(rng_unit(rng), -(int)rng_below(rng, 1060));
	return value < most ? value : 0;
}

static void test_difference(void)
{
	struct optimizer a = {.kind = OPTIMIZER_SGD, .lr = 0.1, .momentum = 0.9}, b = a;
	char left[OPTIMIZER_VALUE_TEXT], right[OPTIMIZER_VALUE_TEXT];

	optimizer_print_difference(&a, &b, left, right);
	CHECK_STR(left, "");
	b.lr = 0.2;
	optimizer_print_difference(&a, &b, left, right);
	CHECK_STR(left, "lr=0.1");
	CHECK_STR(right, "lr=0.2");
	b.lr = a.lr;
	b.nesterov = true;
	optimizer_print_difference(&a, &b, left, right);
	CHECK_STR(left, "nesterov=no");
	CHECK_STR(right, "nesterov=yes");
}

static void test_round_trips(struct rng *rng)
{
	for (uint32_t i = 0; i < 2000; i++) {
		struct optimizer o = random_optimizer(rng), got;
		char text[OPTIMIZER_TEXT];
		uint8_t bytes[OPTIMIZER_BYTES], again[OPTIMIZER_BYTES];

		if (o.kind != OPTIMIZER_AVG) {
			o.lr = random_value(rng, 1e30);
			o.weight_decay = random_value(rng, 1e30);
		}
		if (o.kind == OPTIMIZER_ADAM || o.kind == OPTIMIZER_ADAMW)
			o.beta1 = random_value(rng, 1);
		CHECK(optimizer_check(&o, NULL) == ESP_OK);
		CHECK_MSG(optimizer_parse(optimizer_print(&o, text), &got, NULL) == ESP_OK, "%s", text);
		CHECK_MSG(optimizer_equal(&o, &got), "%s", text);
		optimizer_encode(&o, bytes);
		CHECK(optimizer_decode(bytes, &got) && optimizer_equal(&o, &got));
		optimizer_encode(&got, again);
		CHECK(test_same_bits(bytes, again, sizeof(bytes)));
	}
}

/* Bytes from the wire: what is taken is an optimizer that encodes to the same bytes. */
static void test_decode(struct rng *rng)
{
	const struct optimizer o = {.kind = OPTIMIZER_SGD, .lr = 0.1, .momentum = 0.9, .nesterov = true};
	uint8_t good[OPTIMIZER_BYTES], bytes[OPTIMIZER_BYTES], again[OPTIMIZER_BYTES];
	uint32_t taken = 0;

	optimizer_encode(&o, good);
	CHECK(good[0] == 1 && good[1] == 1 && good[2] == 0 && good[15] == 0x3f); /* the top byte of lr */
	for (uint32_t i = 0; i < 20000; i++) {
		struct optimizer got;
		memcpy(bytes, good, sizeof(bytes));
		bytes[rng_below(rng, OPTIMIZER_BYTES)] ^= (uint8_t)(1u << rng_below(rng, 8));
		if (!optimizer_decode(bytes, &got))
			continue;
		taken++;
		optimizer_encode(&got, again);
		CHECK(test_same_bits(bytes, again, sizeof(bytes)));
	}
	CHECK(taken > 0 && taken < 20000);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	test_lengths(&rng);
	test_host_mode(&rng);
	test_textbook(&rng);
	test_mean_of_one();
	test_parse_errors();
	test_defaults();
	test_check();
	test_difference();
	test_round_trips(&rng);
	test_decode(&rng);
	return 0;
}
