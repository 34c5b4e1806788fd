#include "base/log.h"

#include <unistd.h>

#include "base/check.h"

static char last[2048];
static int lines;

static void keep(void *context, enum log_level level, const char *line)
{
	CHECK(context == &lines);
	CHECK(level != LOG_LEVEL_OFF);
	snprintf(last, sizeof last, "%s", line);
	lines++;
}

static void test_shape(struct log *log)
{
	int pid, used = 0;
	long tid;
	log_write(log, LOG_LEVEL_WARN, "link to %s is slow", "b");
	const char *after_host = strchr(last, ':');
	CHECK(after_host);
	CHECK(sscanf(after_host, ":%d:%ld%n", &pid, &tid, &used) == 2);
	CHECK_U64(pid, getpid());
	CHECK_STR(after_host + used, " [-] ESPALIER WARN link to b is slow");
	log->rank = 3;
	log_write(log, LOG_LEVEL_ERROR, "gone");
	CHECK(strstr(last, " [3] ESPALIER ERROR gone"));
}

static void test_levels(struct log *log)
{
	lines = 0;
	log_write(log, LOG_LEVEL_INFO, "too quiet");
	log_write(log, LOG_LEVEL_OFF, "never");
	log_write(NULL, LOG_LEVEL_ERROR, "nobody");
	CHECK_U64(lines, 0);
	log_write(log, LOG_LEVEL_WARN, "heard");
	CHECK_U64(lines, 1);
}

static void test_hostile(struct log *log)
{
	log_write(log, LOG_LEVEL_WARN, "peer says %s", "x\nhost:1:1 [0] ESPALIER ERROR forged\x1b[31m\x7f");
	CHECK(!strchr(last, '\n') && !strchr(last, '\x1b') && !strchr(last, '\x7f'));

	char longer[5000];
	memset(longer, 'y', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	log_write(log, LOG_LEVEL_WARN, "%s", longer);
	CHECK_U64(strlen(strstr(last, "WARN ") + 5), 1000);
}

int main(void)
{
	struct log log;
	log_init(&log, LOG_LEVEL_WARN);
	log.sink = keep;
	log.context = &lines;
	test_shape(&log);
	test_levels(&log);
	test_hostile(&log);
	return 0;
}
