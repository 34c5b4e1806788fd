/* optimizer.c - valid optimizers, their bytes on the wire, and one step of each. */
#include "math/optimizer.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "math/fpenv.h"
#include "math/kernels.h"
#include "math/optimizer_kernels.h"
#include "math/optimizer_values.h"

/* ---- values ---- */

static const char *const kind_names[OPTIMIZER_KINDS] = {
	[OPTIMIZER_AVG] = "avg",
	[OPTIMIZER_SGD] = "sgd",
	[OPTIMIZER_ADAM] = "adam",
	[OPTIMIZER_ADAMW] = "adamw",
};

#define OF(kind) (1u << (kind))
#define OF_ADAM (OF(OPTIMIZER_ADAM) | OF(OPTIMIZER_ADAMW))

static const struct optimizer_value values[OPTIMIZER_VALUES] = {
	{"lr", offsetof(struct optimizer, lr), OF(OPTIMIZER_SGD) | OF_ADAM, false},
	{"momentum", offsetof(struct optimizer, momentum), OF(OPTIMIZER_SGD), false},
	{"dampening", offsetof(struct optimizer, dampening), OF(OPTIMIZER_SGD), false},
	{"weight_decay", offsetof(struct optimizer, weight_decay), OF(OPTIMIZER_SGD) | OF_ADAM, false},
	{"beta1", offsetof(struct optimizer, beta1), OF_ADAM, true},
	{"beta2", offsetof(struct optimizer, beta2), OF_ADAM, true},
	{"eps", offsetof(struct optimizer, eps), OF_ADAM, false},
};

const char *optimizer_kind_name(uint8_t kind)
{
	return kind < OPTIMIZER_KINDS ? kind_names[kind] : NULL;
}

const struct optimizer_value *optimizer_value_at(uint32_t index)
{
	assert(index < OPTIMIZER_VALUES);
	return &values[index];
}

bool optimizer_value_is_of(const struct optimizer_value *value, uint8_t kind)
{
	assert(kind < OPTIMIZER_KINDS);
	return (value->kinds & 1u << kind) != 0;
}

double *optimizer_value_in(const struct optimizer_value *value, struct optimizer *optimizer)
{
	return (double *)(void *)((char *)optimizer + value->offset);
}

double optimizer_value_of(const struct optimizer_value *value, const struct optimizer *optimizer)
{
	return *(const double *)(const void *)((const char *)optimizer + value->offset);
}

const char *optimizer_value_range(const struct optimizer_value *value)
{
	return value->is_below_one ? "a number from 0 to below 1" : "a number from 0 to 1e30";
}

bool optimizer_value_is_good(const struct optimizer_value *value, double number)
{
	if (!(number >= 0) || signbit(number))
		return false;
	return value->is_below_one ? number < 1 : number <= 1e30;
}

/* ---- checks ---- */

static enum esp_status check_value(const struct optimizer *optimizer, const struct optimizer_value *value,
                                   struct error *err)
{
	const double number = optimizer_value_of(value, optimizer);

	if (!optimizer_value_is_of(value, optimizer->kind)) {
		if (number == 0 && !signbit(number))
			return ESP_OK;
		return error_set(err, ESP_EINVAL, "optimizer %s: %s is %g, but %s has none", kind_names[optimizer->kind],
		                 value->name, number, kind_names[optimizer->kind]);
	}
	if (optimizer_value_is_good(value, number))
		return ESP_OK;
	return error_set(err, ESP_EINVAL, "optimizer %s: %s is %g: %s is expected", kind_names[optimizer->kind],
	                 value->name, number, optimizer_value_range(value));
}

enum esp_status optimizer_check(const struct optimizer *optimizer, struct error *err)
{
	assert(optimizer);
	if (optimizer->kind >= OPTIMIZER_KINDS)
		return error_set(err, ESP_EINVAL, "optimizer: kind %u is unknown: 0 to %u are expected", optimizer->kind,
		                 OPTIMIZER_KINDS - 1);
	for (uint32_t i = 0; i < OPTIMIZER_VALUES; i++) {
		enum esp_status status = check_value(optimizer, &values[i], err);
		if (status)
			return status;
	}
	if (!optimizer->nesterov)
		return ESP_OK;
	if (optimizer->kind != OPTIMIZER_SGD)
		return error_set(err, ESP_EINVAL, "optimizer %s: nesterov is yes, but only sgd has it",
		                 kind_names[optimizer->kind]);
	if (optimizer->momentum == 0 || optimizer->dampening != 0)
		return error_set(err, ESP_EINVAL, "optimizer sgd: nesterov=yes needs a momentum above 0 and dampening=0");
	return ESP_OK;
}

bool optimizer_equal(const struct optimizer *a, const struct optimizer *b)
{
	bool equal = a->kind == b->kind && a->nesterov == b->nesterov;

	for (uint32_t i = 0; i < OPTIMIZER_VALUES; i++)
		equal &= optimizer_value_of(&values[i], a) == optimizer_value_of(&values[i], b);
	return equal;
}

uint32_t optimizer_states(const struct optimizer *optimizer)
{
	assert(optimizer->kind < OPTIMIZER_KINDS);
	if (optimizer->kind == OPTIMIZER_SGD)
		return optimizer->momentum != 0;
	return optimizer->kind == OPTIMIZER_AVG ? 0 : 2;
}

bool optimizer_is_linear(const struct optimizer *optimizer)
{
	return optimizer->kind == OPTIMIZER_SGD && optimizer->momentum == 0 && optimizer->weight_decay == 0;
}

/* ---- the wire ---- */

enum {
	AT_KIND = 0,
	AT_NESTEROV = 1,
	AT_ZEROS = 2,
	AT_VALUES = 8,
};
static_assert(AT_VALUES + OPTIMIZER_VALUES * sizeof(double) == OPTIMIZER_BYTES, "all bytes have a meaning");

void optimizer_encode(const struct optimizer *optimizer, uint8_t out[OPTIMIZER_BYTES])
{
	assert(optimizer_check(optimizer, NULL) == ESP_OK);
	memset(out, 0, OPTIMIZER_BYTES);
	out[AT_KIND] = optimizer->kind;
	out[AT_NESTEROV] = optimizer->nesterov;
	for (uint32_t i = 0; i < OPTIMIZER_VALUES; i++) {
		const double number = optimizer_value_of(&values[i], optimizer);
		uint64_t bits;

		memcpy(&bits, &number, sizeof(bits));
		for (uint32_t byte = 0; byte < sizeof(bits); byte++)
			out[AT_VALUES + i * sizeof(bits) + byte] = (uint8_t)(bits >> 8 * byte);
	}
}

static double number_at(const uint8_t *in)
{
	uint64_t bits = 0;
	double number;

	for (uint32_t byte = 0; byte < sizeof(bits); byte++)
		bits |= (uint64_t)in[byte] << 8 * byte;
	memcpy(&number, &bits, sizeof(number));
	return number;
}

bool optimizer_decode(const uint8_t in[OPTIMIZER_BYTES], struct optimizer *out)
{
	struct optimizer optimizer = {.kind = in[AT_KIND], .nesterov = in[AT_NESTEROV] == 1};

	if (in[AT_NESTEROV] > 1)
		return false;
	for (uint32_t i = AT_ZEROS; i < AT_VALUES; i++)
		if (in[i] != 0)
			return false;
	for (uint32_t i = 0; i < OPTIMIZER_VALUES; i++)
		*optimizer_value_in(&values[i], &optimizer) = number_at(in + AT_VALUES + i * sizeof(double));
	if (optimizer_check(&optimizer, NULL) != ESP_OK)
		return false;
	*out = optimizer;
	return true;
}

/* ---- steps ---- */

static void set_gradient(struct optimizer_loop *loop, uint32_t contributors)
{
	loop->divides = (contributors & (contributors - 1)) != 0;
	loop->by = loop->divides ? (float)contributors : 1.0f / (float)contributors;
}

static void set_sgd(struct optimizer_loop *loop, const struct optimizer *sgd, uint64_t step)
{
	const bool is_first = step == 1;

	loop->decays = sgd->weight_decay != 0;
	loop->decay = (float)sgd->weight_decay;
	loop->rate = (float)-sgd->lr;
	loop->momentum = (float)sgd->momentum;
	loop->taken = (float)(1 - sgd->dampening);
	if (sgd->momentum == 0)
		loop->kind = MOMENTUM_NONE;
	else if (sgd->nesterov)
		loop->kind = is_first ? MOMENTUM_FIRST_NESTEROV : MOMENTUM_NESTEROV;
	else
		loop->kind = is_first ? MOMENTUM_FIRST : MOMENTUM_HEAVY;
}

static void set_adam(struct optimizer_loop *loop, const struct optimizer *adam, uint64_t step)
{
	const double correction1 = 1 - pow(adam->beta1, (double)step), correction2 = 1 - pow(adam->beta2, (double)step);

	loop->decays = adam->weight_decay != 0;
	loop->decay = (float)(adam->kind == OPTIMIZER_ADAMW ? 1 - adam->lr * adam->weight_decay : adam->weight_decay);
	loop->lerp = (float)(1 - adam->beta1);
	loop->lerps_back = loop->lerp >= 0.5f;
	loop->beta2 = (float)adam->beta2;
	loop->square = (float)(1 - adam->beta2);
	loop->correction = (float)sqrt(correction2);
	loop->eps = (float)adam->eps;
	loop->step_size = (float)-(adam->lr / correction1);
}

static const struct optimizer_kernels *kernels_at(enum math_level level)
{
	static const struct optimizer_kernels *const tables[MATH_LEVEL_COUNT] = {
		[MATH_PORTABLE] = &optimizer_kernels_portable,
#if defined(__x86_64__)
		[MATH_AVX2] = &optimizer_kernels_avx2,
		[MATH_AVX512] = &optimizer_kernels_avx512,
#endif
	};
	return (unsigned)level <= (unsigned)math_level_best() ? tables[level] : NULL;
}

static void run_loop(const struct optimizer_kernels *kernels, const struct optimizer_step *step, size_t count)
{
	const struct optimizer *optimizer = step->optimizer;
	struct optimizer_loop loop = {
		.weights = step->weights, .sum = step->sum, .first = step->states[0], .second = step->states[1]};

	set_gradient(&loop, step->contributors);
	switch (optimizer->kind) {
	case OPTIMIZER_AVG:
		kernels->mean(&loop, count);
		break;
	case OPTIMIZER_SGD:
		set_sgd(&loop, optimizer, step->step);
		kernels->sgd(&loop, count);
		break;
	case OPTIMIZER_ADAM:
		set_adam(&loop, optimizer, step->step);
		kernels->adam(&loop, count);
		break;
	case OPTIMIZER_ADAMW:
		set_adam(&loop, optimizer, step->step);
		kernels->adamw(&loop, count);
		break;
	default:
		assert(false); /* optimizer_check() takes no other */
	}
}

static void check_step(const struct optimizer_step *step)
{
	const uint32_t states = optimizer_states(step->optimizer);

	assert(step->step >= 1 && step->contributors >= 1);
	assert(step->weights && step->sum);
	assert((states < 1 || step->states[0]) && (states < 2 || step->states[1]));
}

void optimizer_run(const struct optimizer_step *step, size_t count)
{
	bool ran = optimizer_run_at(math_level_best(), step, count);
	assert(ran);
	(void)ran;
}

bool optimizer_run_at(enum math_level level, const struct optimizer_step *step, size_t count)
{
	const struct optimizer_kernels *kernels = kernels_at(level);

	if (!kernels)
		return false;
	if (count == 0)
		return true;
	check_step(step);
	if (step->optimizer->kind == OPTIMIZER_AVG && step->contributors == 1) {
		memcpy(step->weights, step->sum, count * sizeof(float));
		return true;
	}
	uint32_t host = fpenv_enter();
	run_loop(kernels, step, count);
	fpenv_leave(host);
	return true;
}
