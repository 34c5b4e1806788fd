#include "base/log_limit.h"

#include "base/check.h"

static const char one[] = "one", other[] = "other";

static bool admits(struct log_limit *limit, const char *format, enum log_level level, uint64_t now, uint32_t *left_out)
{
	struct log_verdict verdict = log_limit_ask(limit, format, level, now);
	*left_out = verdict.left_out;
	return verdict.admitted;
}

static void test_flood(void)
{
	struct log_limit limit;
	uint32_t left_out, written = 0;
	log_limit_init(&limit);
	for (uint32_t i = 0; i < 1000; i++)
		written += admits(&limit, one, LOG_LEVEL_INFO, 5 + i, &left_out);
	CHECK_U64(written, LOG_LIMIT_BURST);
	CHECK(admits(&limit, other, LOG_LEVEL_INFO, 1005, &left_out));
	CHECK_U64(left_out, 0);
	CHECK(admits(&limit, one, LOG_LEVEL_INFO, LOG_LIMIT_AGAIN + 1005, &left_out));
	CHECK_U64(left_out, 1000 - LOG_LIMIT_BURST);
	CHECK(!admits(&limit, one, LOG_LEVEL_INFO, LOG_LIMIT_AGAIN + 1006, &left_out));
	log_limit_fini(&limit);
}

/* However many kinds of lines there are, and however long it takes. */
static void test_total(void)
{
	struct log_limit limit;
	char formats[500];
	uint32_t left_out, written = 0, last = 0;
	log_limit_init(&limit);
	for (uint64_t i = 0; i < 5000; i++) {
		struct log_verdict verdict =
			log_limit_ask(&limit, &formats[i % sizeof formats], LOG_LEVEL_WARN, i * LOG_LIMIT_AGAIN);
		written += verdict.admitted;
		last += verdict.is_last;
		CHECK(!verdict.is_last || written == LOG_LIMIT_LINES);
	}
	CHECK_U64(written, LOG_LIMIT_LINES);
	CHECK_U64(last, 1);
	CHECK(admits(&limit, one, LOG_LEVEL_INFO, 0, &left_out)); /* a log of that level gets them */
	log_limit_fini(&limit);
}

int main(void)
{
	test_flood();
	test_total();
	return 0;
}
