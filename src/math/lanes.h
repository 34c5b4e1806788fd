/*
 * lanes.h - a vector of halves as two vectors of floats.
 *
 * Included after `vector`, a type of VECTOR floats, is defined; GCC and clang give such
 * types their operators. A store may take the two parts in any order as long as it undoes
 * that of the load: f16 may keep low and high, bf16 takes even and odd places, which needs
 * no shuffle.
 */
#define LANES (2 * VECTOR)

typedef struct {
	vector first, second;
} lanes;

static inline lanes lanes_add(lanes x, lanes y)
{
	return (lanes){x.first + y.first, x.second + y.second};
}

static inline lanes lanes_mul(lanes x, lanes y)
{
	return (lanes){x.first * y.first, x.second * y.second};
}

static inline lanes lanes_div(lanes x, lanes y)
{
	return (lanes){x.first / y.first, x.second / y.second};
}
