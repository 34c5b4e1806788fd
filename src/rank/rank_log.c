#include "rank/rank_log.h"

#include <unistd.h>

#include "base/pattern.h"

void rank_log_set(struct rank *context)
{
	struct error err;

	context->log.level = (enum log_level)context->conf.log;
	if (log_parse_subsystems(context->conf.log_subsystems, &context->log.subsystems, &err) != ESP_OK)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_CONF, "log_subsystems: %s; all are written", err.text);
}

void rank_log_open(struct rank *context, bool has_own_sink)
{
	char path[RANK_PATH];
	struct error err;

	if (has_own_sink || !context->conf.log_file[0])
		return;
	enum esp_status status = rank_path(context, context->conf.log_file, path, &err);
	if (status == ESP_OK)
		status = log_file_open(&context->logs.file, path, &err);
	if (status == ESP_OK) {
		context->log.sink = log_file_write;
		context->log.context = &context->logs.file;
	} else {
		log_write(&context->log, LOG_LEVEL_WARN, LOG_CONF, "log_file: %s; the log stays here", err.text);
	}
}

void rank_log_close(struct rank *context)
{
	if (context->log.sink == log_file_write)
		log_file_close(&context->logs.file);
	if (context->log.limit)
		log_limit_fini(&context->logs.limit);
}

enum esp_status rank_path(const struct rank *context, const char *pattern, char path[RANK_PATH], struct error *err)
{
	char host[65] = "";

	(void)gethostname(host, sizeof(host) - 1);
	const char *job = context->join.launch.job;
	struct pattern_values values = {host, job[0] ? job : "job", context->rank, (long)getpid()};
	return pattern_expand(pattern, &values, path, RANK_PATH, err);
}
