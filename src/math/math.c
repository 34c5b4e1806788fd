/*
 * math.c - names, the choice of kernels, and the rules of what finishes a sum.
 */
#include "math/math.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "math/kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* ---- types and operations ---- */

enum kind { KIND_FLOAT, KIND_SIGNED, KIND_UNSIGNED, KIND_OPAQUE };

static const struct {
	const char *name;
	uint8_t bytes;
	uint8_t kind;
} types[ESP_TYPE_COUNT] = {
	[ESP_F32] = {"f32", 4, KIND_FLOAT},
	[ESP_F64] = {"f64", 8, KIND_FLOAT},
	[ESP_F16] = {"f16", 2, KIND_FLOAT},
	[ESP_BF16] = {"bf16", 2, KIND_FLOAT},
	[ESP_I8] = {"i8", 1, KIND_SIGNED},
	[ESP_U8] = {"u8", 1, KIND_UNSIGNED},
	[ESP_I16] = {"i16", 2, KIND_SIGNED},
	[ESP_U16] = {"u16", 2, KIND_UNSIGNED},
	[ESP_I32] = {"i32", 4, KIND_SIGNED},
	[ESP_U32] = {"u32", 4, KIND_UNSIGNED},
	[ESP_I64] = {"i64", 8, KIND_SIGNED},
	[ESP_U64] = {"u64", 8, KIND_UNSIGNED},
	[ESP_BYTES] = {"bytes", 1, KIND_OPAQUE},
};

static const char *const op_names[ESP_OP_COUNT] = {
	[ESP_SUM] = "sum",   [ESP_AVG] = "avg",   [ESP_PROD] = "prod", [ESP_MIN] = "min",
	[ESP_MAX] = "max",   [ESP_BAND] = "band", [ESP_BOR] = "bor",   [ESP_BXOR] = "bxor",
	[ESP_LAND] = "land", [ESP_LOR] = "lor",   [ESP_LXOR] = "lxor", [ESP_SCALED] = "scaled",
};

/* Values come from callers and from the wire: negative ones are as unknown as large ones. */
static bool type_known(enum esp_type type)
{
	return (unsigned)type < ESP_TYPE_COUNT;
}

static bool op_known(enum esp_op op)
{
	return (unsigned)op < ESP_OP_COUNT;
}

size_t math_type_bytes(enum esp_type type)
{
	return type_known(type) ? types[type].bytes : 0;
}

const char *math_type_name(enum esp_type type)
{
	return type_known(type) ? types[type].name : NULL;
}

const char *math_op_name(enum esp_op op)
{
	return op_known(op) ? op_names[op] : NULL;
}

bool math_type_parse(const char *name, enum esp_type *out)
{
	for (int i = 0; i < ESP_TYPE_COUNT; i++) {
		if (strcmp(name, types[i].name) == 0) {
			*out = (enum esp_type)i;
			return true;
		}
	}
	return false;
}

bool math_op_parse(const char *name, enum esp_op *out)
{
	for (int i = 0; i < ESP_OP_COUNT; i++) {
		if (strcmp(name, op_names[i]) == 0) {
			*out = (enum esp_op)i;
			return true;
		}
	}
	return false;
}

bool math_op_defined(enum esp_type type, enum esp_op op)
{
	return type_known(type) && op_known(op) && math_kernels_portable.fold[type][op] != NULL;
}

/* ---- the choice of kernels ---- */

#if defined(__x86_64__)

/* __builtin_cpu_supports() also asks whether the operating system saves the registers. */
static enum math_level detect_level(void)
{
	unsigned eax, ebx, ecx, edx;

	__builtin_cpu_init();
	if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	    __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
		return MATH_AVX512;
	/* clang 14 does not know "f16c" as a name. */
	if (__builtin_cpu_supports("avx2") && __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & bit_F16C))
		return MATH_AVX2;
	return MATH_PORTABLE;
}

#else

static enum math_level detect_level(void)
{
	return MATH_PORTABLE;
}

#endif

/* CPUID takes microseconds in a virtual machine, so ask once. Threads that race here store the same value. */
enum math_level math_level_best(void)
{
	static _Atomic int known; /* level + 1; 0 is not asked yet */
	int value = atomic_load_explicit(&known, memory_order_relaxed);

	if (value == 0) {
		value = (int)detect_level() + 1;
		atomic_store_explicit(&known, value, memory_order_relaxed);
	}
	return (enum math_level)(value - 1);
}

const char *math_level_name(enum math_level level)
{
	static const char *const names[MATH_LEVEL_COUNT] = {"portable", "avx2", "avx512"};
	return (unsigned)level < MATH_LEVEL_COUNT ? names[level] : NULL;
}

const struct math_kernels *math_kernels_at(enum math_level level)
{
	static const struct math_kernels *const tables[MATH_LEVEL_COUNT] = {
		[MATH_PORTABLE] = &math_kernels_portable,
#if defined(__x86_64__)
		[MATH_AVX2] = &math_kernels_avx2,
		[MATH_AVX512] = &math_kernels_avx512,
#endif
	};
	return (unsigned)level <= (unsigned)math_level_best() ? tables[level] : NULL;
}

math_fold_fn *math_fold_at(enum math_level level, enum esp_type type, enum esp_op op)
{
	const struct math_kernels *kernels = math_kernels_at(level);
	return kernels != NULL && math_op_defined(type, op) ? kernels->fold[type][op] : NULL;
}

math_fold_fn *math_fold(enum esp_type type, enum esp_op op)
{
	return math_fold_at(math_level_best(), type, op);
}

/* ---- finishing ---- */

bool math_finish_needed(enum esp_op op)
{
	return op == ESP_AVG || op == ESP_SCALED;
}

/* Whole, and a value of the type. The bounds are powers of two, which doubles hold exactly. */
static bool integer_factor_valid(enum esp_type type, double factor)
{
	bool is_signed = types[type].kind == KIND_SIGNED;
	double end = ldexp(1, 8 * types[type].bytes - is_signed);

	return factor >= (is_signed ? -end : 0) && factor < end && factor == trunc(factor);
}

/* Finite also as the float that it is used as. Halves are scaled in float, so their own range does not count. */
static bool float_factor_valid(enum esp_type type, double factor)
{
	return isfinite(factor) && (type == ESP_F64 || fabs(factor) <= FLT_MAX);
}

bool math_finish_valid(enum esp_type type, enum esp_op op, double factor, uint32_t contributors)
{
	if (!math_op_defined(type, op))
		return false;
	if (op == ESP_AVG)
		return contributors >= 1;
	if (op == ESP_SCALED && types[type].kind == KIND_FLOAT)
		return float_factor_valid(type, factor);
	if (op == ESP_SCALED)
		return integer_factor_valid(type, factor);
	return true;
}

struct math_finisher math_kernels_finisher(const struct math_kernels *kernels, enum esp_type type, enum esp_op op,
                                           double factor, uint32_t contributors)
{
	if (op == ESP_AVG)
		return (struct math_finisher){kernels->divide[type], contributors};
	if (op == ESP_SCALED)
		return (struct math_finisher){kernels->multiply[type], factor};
	return (struct math_finisher){NULL, 0};
}

void math_finish(void *data, size_t count, enum esp_type type, enum esp_op op, double factor, uint32_t contributors)
{
	struct math_finisher finisher =
		math_kernels_finisher(math_kernels_at(math_level_best()), type, op, factor, contributors);

	assert(math_finish_valid(type, op, factor, contributors));
	if (finisher.run)
		finisher.run(data, count, finisher.operand);
}
