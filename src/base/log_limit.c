#include "base/log_limit.h"

void log_limit_init(struct log_limit *limit)
{
	*limit = (struct log_limit){0};
	pthread_mutex_init(&limit->lock, NULL);
}

void log_limit_fini(struct log_limit *limit)
{
	pthread_mutex_destroy(&limit->lock);
}

/* Its own place, an unused one, or that of the line that was written longest ago. */
static struct log_limit_kind *find_kind(struct log_limit *limit, const char *format)
{
	struct log_limit_kind *oldest = &limit->kinds[0];
	for (uint32_t i = 0; i < LOG_LIMIT_KINDS; i++) {
		struct log_limit_kind *kind = &limit->kinds[i];
		if (kind->format == format)
			return kind;
		if (oldest->format && (!kind->format || kind->written_ns < oldest->written_ns))
			oldest = kind;
	}
	*oldest = (struct log_limit_kind){.format = format};
	return oldest;
}

static struct log_verdict ask(struct log_limit *limit, const char *format, enum log_level level, uint64_t now_ns)
{
	bool counts = level <= LOG_LEVEL_WARN;
	if (counts && limit->lines >= LOG_LIMIT_LINES)
		return (struct log_verdict){0};
	struct log_limit_kind *kind = find_kind(limit, format);
	if (kind->written >= LOG_LIMIT_BURST && now_ns < kind->written_ns + LOG_LIMIT_AGAIN) {
		kind->left_out++;
		return (struct log_verdict){0};
	}
	struct log_verdict verdict = {.admitted = true, .left_out = kind->left_out};
	kind->written++;
	kind->left_out = 0;
	kind->written_ns = now_ns;
	limit->lines += counts;
	verdict.is_last = counts && limit->lines == LOG_LIMIT_LINES;
	return verdict;
}

struct log_verdict log_limit_ask(struct log_limit *limit, const char *format, enum log_level level, uint64_t now_ns)
{
	pthread_mutex_lock(&limit->lock);
	struct log_verdict verdict = ask(limit, format, level, now_ns);
	pthread_mutex_unlock(&limit->lock);
	return verdict;
}
