#include "base/log.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log_limit.h"
#include "base/quote.h"

static const char *const names[] = {"OFF", "ERROR", "WARN", "INFO", "TRACE"};
static const char *const subsystem_names[LOG_SUBSYSTEMS] = {
	[LOG_CONF] = "CONF", [LOG_JOIN] = "JOIN", [LOG_NET] = "NET",
	[LOG_PLAN] = "PLAN", [LOG_CALL] = "CALL", [LOG_WATCH] = "WATCH",
};

const char *log_level_name(enum log_level level)
{
	return (size_t)level < sizeof names / sizeof names[0] ? names[level] : "?";
}

bool log_write_line(int fd, const char *line)
{
	char whole[1280];
	int length = snprintf(whole, sizeof whole - 1, "%s", line);
	if (length < 0)
		return false;
	size_t used = (size_t)length < sizeof whole - 2 ? (size_t)length : sizeof whole - 2;
	whole[used++] = '\n';
	return write(fd, whole, used) == (ssize_t)used;
}

/* If it fails there is no other place to write to. */
static void write_to_stderr(void *context, enum log_level level, const char *line)
{
	(void)context;
	(void)level;
	(void)log_write_line(STDERR_FILENO, line);
}

void log_init(struct log *log, enum log_level level)
{
	*log = (struct log){level, LOG_ALL, -1, write_to_stderr, NULL, NULL};
}

static void make_harmless(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			*text = '?';
}

static size_t write_head(const struct log *log, enum log_level level, enum log_subsystem subsystem, char *line,
                         size_t size)
{
	char host[65] = "?";
	char rank[16] = "-";
	gethostname(host, sizeof host - 1);
	if (log->rank >= 0)
		snprintf(rank, sizeof rank, "%d", (int)log->rank);
	int length = snprintf(line, size, "%s:%d:%ld [%s] ESPALIER %s %s ", host, (int)getpid(), (long)syscall(SYS_gettid),
	                      rank, log_level_name(level), subsystem_names[subsystem]);
	return length > 0 ? (size_t)length : 0;
}

static bool is_wanted(const struct log *log, enum log_level level, enum log_subsystem subsystem)
{
	return log && level <= log->level && level != LOG_LEVEL_OFF &&
	       (level <= LOG_LEVEL_WARN || (log->subsystems & 1u << subsystem));
}

void log_write(const struct log *log, enum log_level level, enum log_subsystem subsystem, const char *format, ...)
{
	char line[1300]; /* at most 160 bytes of head, then the text, then what was left out */
	struct log_verdict verdict = {.admitted = true};
	if (!is_wanted(log, level, subsystem))
		return;
	if (log->limit && level < LOG_LEVEL_TRACE)
		verdict = log_limit_ask(log->limit, format, level, clock_now_ns());
	if (!verdict.admitted)
		return;
	size_t head = write_head(log, level, subsystem, line, sizeof line);
	va_list args;
	va_start(args, format);
	vsnprintf(line + head, 1001, format, args);
	va_end(args);
	make_harmless(line);
	size_t used = strlen(line);
	if (verdict.left_out > 0)
		snprintf(line + used, sizeof line - used, " (%u lines like this one were left out)", verdict.left_out);
	log->sink(log->context, level, line);
	if (!verdict.is_last)
		return;
	head = write_head(log, level, subsystem, line, sizeof line);
	snprintf(line + head, sizeof line - head, "no more warnings and errors are written, as there were %u",
	         LOG_LIMIT_LINES);
	log->sink(log->context, level, line);
}

static int find_subsystem(const char *word, size_t length)
{
	for (int i = 0; i < LOG_SUBSYSTEMS; i++)
		if (strlen(subsystem_names[i]) == length && strncasecmp(word, subsystem_names[i], length) == 0)
			return i;
	return -1;
}

enum esp_status log_parse_subsystems(const char *text, uint32_t *out, struct error *err)
{
	bool excludes = text[0] == '^';
	uint32_t named = 0;
	char shown[QUOTE_TEXT];
	if (text[0] == '\0' || strcasecmp(text, "all") == 0) {
		*out = LOG_ALL;
		return ESP_OK;
	}
	for (const char *word = text + excludes;; word++) {
		size_t length = strcspn(word, ",");
		int found = find_subsystem(word, length);
		if (found < 0)
			return error_set(err, ESP_EINVAL,
			                 "%s is no subsystem; there are all, CONF, JOIN, NET, PLAN, CALL and WATCH",
			                 quote(word, length, shown));
		named |= 1u << found;
		word += length;
		if (*word == '\0')
			break;
	}
	*out = excludes ? LOG_ALL & ~named : named;
	return ESP_OK;
}
