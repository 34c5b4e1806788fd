#include "hub/store/store_value.h"

#include "base/check.h"

static struct optimizer sgd(double lr)
{
	return (struct optimizer){.kind = OPTIMIZER_SGD, .lr = lr};
}

static void check_lr(struct store_values *values, uint32_t worker, uint32_t group, uint64_t version, double lr)
{
	uint32_t value = store_values_use(values, worker, group, version);

	CHECK(value != STORE_NO_VALUE);
	CHECK_MSG(store_values_get(values, value)->lr == lr, "lr is %g at version %" PRIu64 ", expected %g",
	          store_values_get(values, value)->lr, version, lr);
	store_values_release(values, value);
}

static void set_lr(struct store_values *values, uint32_t worker, uint32_t group, uint64_t from, double lr)
{
	struct optimizer optimizer = sgd(lr);

	CHECK(store_values_set(values, worker, group, from, &optimizer) == ESP_OK);
}

static void test_holds(void)
{
	const struct optimizer first[2] = {sgd(0.5), sgd(0.25)};
	struct store_values values;

	CHECK(store_values_init(&values, first, 2, 3) == ESP_OK);
	check_lr(&values, 2, 1, 7, 0.25);
	set_lr(&values, 1, 0, 4, 0.125);
	check_lr(&values, 1, 0, 3, 0.5);
	check_lr(&values, 1, 0, 4, 0.125);
	check_lr(&values, 1, 1, 4, 0.25);
	check_lr(&values, 0, 0, 4, 0.5);
	set_lr(&values, 1, 0, 4, 1); /* replaces what was to hold from then on */
	check_lr(&values, 1, 0, 100, 1);
	set_lr(&values, 1, 0, 0, 2);
	check_lr(&values, 1, 0, 0, 2);
	check_lr(&values, 1, 0, 4, 2);
	store_values_fini(&values);
}

/* The same value of two workers has one number, and differs from another. */
static void test_numbers(void)
{
	const struct optimizer first = sgd(0.5);
	struct store_values values;

	CHECK(store_values_init(&values, &first, 1, 2) == ESP_OK);
	set_lr(&values, 0, 0, 1, 3);
	set_lr(&values, 1, 0, 2, 3);
	uint32_t a = store_values_use(&values, 0, 0, 1), b = store_values_use(&values, 1, 0, 2);
	uint32_t c = store_values_use(&values, 1, 0, 1);
	CHECK(a == b && a != c);
	store_values_fini(&values);
}

static void test_oldest(void)
{
	const struct optimizer first = sgd(0.5);
	struct store_values values;

	CHECK(store_values_init(&values, &first, 1, 1) == ESP_OK);
	for (uint64_t from = 1; from <= STORE_VALUES_PAST; from++)
		set_lr(&values, 0, 0, from, (double)from);
	set_lr(&values, 0, 0, 50, (double)STORE_VALUES_PAST); /* no change, which pushes nothing out */
	CHECK_U64(store_values_oldest(&values, 0, 0), 1);
	CHECK(store_values_use(&values, 0, 0, 0) == STORE_NO_VALUE);
	check_lr(&values, 0, 0, 1, 1);
	store_values_fini(&values);
}

/* Values are freed as they go out of use; too many that are used at a time are refused. */
static void test_room(void)
{
	struct optimizer optimizer = sgd(0.5);
	uint32_t used[STORE_VALUES_SPARE + 1], count = 0;
	struct store_values values;

	CHECK(store_values_init(&values, &optimizer, 1, 1) == ESP_OK);
	for (int i = 1; i < 1000; i++)
		set_lr(&values, 0, 0, 7, i);
	do {
		CHECK(count < STORE_VALUES_SPARE + 1);
		used[count++] = store_values_use(&values, 0, 0, 7);
		optimizer.lr = 1000 + count;
	} while (store_values_set(&values, 0, 0, 7, &optimizer) == ESP_OK);
	CHECK_U64(count, STORE_VALUES_SPARE); /* one more is remembered as what held before version 7 */
	store_values_release(&values, used[0]);
	CHECK(store_values_set(&values, 0, 0, 7, &optimizer) == ESP_OK);
	store_values_fini(&values);
}

int main(void)
{
	test_holds();
	test_numbers();
	test_oldest();
	test_room();
	return 0;
}
