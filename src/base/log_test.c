#include "base/log.h"

#include <unistd.h>

#include "base/check.h"
#include "base/log_file.h"
#include "base/log_limit.h"

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
	log_write(log, LOG_LEVEL_WARN, LOG_NET, "link to %s is slow", "b");
	const char *after_host = strchr(last, ':');
	CHECK(after_host);
	CHECK(sscanf(after_host, ":%d:%ld%n", &pid, &tid, &used) == 2);
	CHECK_U64(pid, getpid());
	CHECK_STR(after_host + used, " [-] ESPALIER WARN NET link to b is slow");
	log->rank = 3;
	log_write(log, LOG_LEVEL_ERROR, LOG_CALL, "gone");
	CHECK(strstr(last, " [3] ESPALIER ERROR CALL gone"));
}

static void test_levels(struct log *log)
{
	lines = 0;
	log_write(log, LOG_LEVEL_INFO, LOG_CALL, "too quiet");
	log_write(log, LOG_LEVEL_OFF, LOG_CALL, "never");
	log_write(NULL, LOG_LEVEL_ERROR, LOG_CALL, "nobody");
	CHECK_U64(lines, 0);
	log_write(log, LOG_LEVEL_WARN, LOG_CALL, "heard");
	CHECK_U64(lines, 1);
}

static void test_hostile(struct log *log)
{
	log_write(log, LOG_LEVEL_WARN, LOG_CALL, "peer says %s", "x\nhost:1:1 [0] ESPALIER ERROR forged\x1b[31m\x7f");
	CHECK(!strchr(last, '\n') && !strchr(last, '\x1b') && !strchr(last, '\x7f'));

	char longer[5000];
	memset(longer, 'y', sizeof longer - 1);
	longer[sizeof longer - 1] = '\0';
	log_write(log, LOG_LEVEL_WARN, LOG_CALL, "%s", longer);
	CHECK_U64(strlen(strstr(last, "CALL ") + 5), 1000);
}

static uint32_t parse(const char *text)
{
	uint32_t subsystems = 0;
	struct error err;
	CHECK(log_parse_subsystems(text, &subsystems, &err) == ESP_OK);
	return subsystems;
}

static void test_subsystems(struct log *log)
{
	struct error err;
	uint32_t untouched = 7;
	CHECK_U64(parse(""), LOG_ALL);
	CHECK_U64(parse("ALL"), LOG_ALL);
	CHECK_U64(parse("join,NET"), 1u << LOG_JOIN | 1u << LOG_NET);
	CHECK_U64(parse("^PLAN"), LOG_ALL & ~(1u << LOG_PLAN));
	CHECK(log_parse_subsystems("JOIN,", &untouched, &err) == ESP_EINVAL);
	CHECK(log_parse_subsystems("^", &untouched, &err) == ESP_EINVAL);
	CHECK(log_parse_subsystems("JOIN,^NET", &untouched, &err) == ESP_EINVAL);
	CHECK_STR(err.text, "'^NET' is no subsystem; there are all, CONF, JOIN, NET, PLAN, CALL and WATCH");
	CHECK_U64(untouched, 7);

	log->level = LOG_LEVEL_INFO;
	log->subsystems = parse("JOIN");
	lines = 0;
	log_write(log, LOG_LEVEL_INFO, LOG_NET, "not asked for");
	CHECK_U64(lines, 0);
	log_write(log, LOG_LEVEL_INFO, LOG_JOIN, "asked for");
	log_write(log, LOG_LEVEL_WARN, LOG_NET, "always");
	CHECK_U64(lines, 2);
	log->level = LOG_LEVEL_WARN;
	log->subsystems = LOG_ALL;
}

static void test_limit(struct log *log)
{
	struct log_limit limit;
	log_limit_init(&limit);
	log->limit = &limit;
	lines = 0;
	for (int i = 0; i < 1000; i++)
		log_write(log, LOG_LEVEL_WARN, LOG_NET, "packet %d is odd", i);
	CHECK_U64(lines, LOG_LIMIT_BURST);
	for (uint32_t i = 0; i < LOG_LIMIT_KINDS; i++) /* the clock stands still, as far as a flood is concerned */
		limit.kinds[i] = (struct log_limit_kind){0};
	limit.lines = LOG_LIMIT_LINES - 1;
	log_write(log, LOG_LEVEL_WARN, LOG_NET, "the last one");
	CHECK_U64(lines, LOG_LIMIT_BURST + 2);
	CHECK(strstr(last, "no more warnings and errors are written"));
	log->limit = NULL;
	log_limit_fini(&limit);
}

/* In a file; on stderr, with one warning, when it is full. */
static void test_file(void)
{
	char path[] = "/tmp/espalier-log-XXXXXX", text[512] = "";
	struct log_file file;
	struct error err;
	struct log log;
	int fd = mkstemp(path), pipes[2], before = dup(STDERR_FILENO);
	CHECK(fd >= 0 && before >= 0 && pipe(pipes) == 0);
	CHECK(log_file_open(&file, path, &err) == ESP_OK);
	log_init(&log, LOG_LEVEL_WARN);
	log.sink = log_file_write;
	log.context = &file;
	log_write(&log, LOG_LEVEL_WARN, LOG_NET, "kept");
	CHECK(read(fd, text, sizeof text - 1) > 0);
	CHECK(strstr(text, "ESPALIER WARN NET kept\n"));
	log_file_close(&file);
	unlink(path);
	close(fd);

	CHECK(log_file_open(&file, "/dev/full", &err) == ESP_OK);
	CHECK(dup2(pipes[1], STDERR_FILENO) >= 0);
	log_write(&log, LOG_LEVEL_WARN, LOG_NET, "first");
	log_write(&log, LOG_LEVEL_WARN, LOG_NET, "second");
	CHECK(dup2(before, STDERR_FILENO) >= 0);
	ssize_t got = read(pipes[0], text, sizeof text - 1);
	CHECK(got > 0);
	text[got] = '\0';
	const char *warning =
		strstr(text, "[-] ESPALIER WARN WATCH the file of the log cannot be written any more: No space");
	CHECK(warning && strstr(warning, "NET first") && strstr(warning, "NET second") &&
	      !strstr(warning + 5, "[-] ESPALIER WARN WATCH"));
	log_file_close(&file);
	close(pipes[0]);
	close(pipes[1]);
	close(before);

	CHECK(log_file_open(&file, "/nowhere/at/all", &err) == ESP_EIO && file.fd < 0);
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
	test_subsystems(&log);
	test_limit(&log);
	test_file();
	return 0;
}
