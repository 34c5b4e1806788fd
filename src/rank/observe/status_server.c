#include "rank/observe/status_server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/observe/tally.h"
#include "rank/comm/call_record.h"
#include "rank/observe/join_status.h"
#include "rank/observe/recorder.h"
#include "rank/rank_account.h"
#include "rank/rank_log.h"

#define LANES_PATIENCE (50 * NS_PER_MS) /* until lanes must have reported their waits */
#define RECENT_CALLS 16u

const char *status_server_name(uint32_t user, uint64_t instance, uint32_t rank, char name[STATUS_SERVER_NAME])
{
	snprintf(name, STATUS_SERVER_NAME, STATUS_SERVER_PREFIX "%016" PRIx64 "/%u", user, instance, rank);
	return name;
}

/* ---- answers ---- */

static enum esp_status write_metrics(struct rank *context, FILE *out)
{
	struct account_wishes wishes = {.patience_ns = 0};
	struct account account;
	struct metrics metrics;
	struct tally *tally = malloc(sizeof(*tally));
	enum esp_status status = tally ? rank_account(context, &wishes, &account) : ESP_ENOMEM;

	if (status == ESP_OK) {
		call_record_copy(context, NULL, tally);
		rank_metrics(context, &account, LANES_PATIENCE, &metrics);
		metrics.version = ESPALIER_VERSION;
		metrics.tally = tally;
		status = metrics_write(&metrics, out);
		account_fini(&account);
	}
	free(tally);
	return status;
}

static enum esp_status write_account(struct rank *context, uint32_t ended, FILE *out)
{
	struct account_wishes wishes = {.ended = ended, .patience_ns = LANES_PATIENCE};
	struct account account;
	enum esp_status status = ESP_OK;

	if (context->mod.join_status)
		join_status_account(context, &account);
	else
		status = rank_account(context, &wishes, &account);
	if (status == ESP_OK) {
		status = account_write(&account, out);
		account_fini(&account);
	}
	return status;
}

static const char *write_body(void *argument, const char *path, FILE *out, const char **out_type)
{
	struct rank *context = argument;
	enum esp_status status = ESP_OK;

	if (strcmp(path, "/metrics") == 0 && context->mod.join_status)
		return "503 Service Unavailable"; /* there are no statistics before the rank has joined */
	if (strcmp(path, "/metrics") == 0) {
		*out_type = "text/plain; version=0.0.4; charset=utf-8";
		status = write_metrics(context, out);
	} else if (strcmp(path, "/status") == 0 || strcmp(path, "/account") == 0) {
		*out_type = "application/json";
		status = write_account(context, strcmp(path, "/account") == 0 ? RING_RECORDS : RECENT_CALLS, out);
	} else if (strcmp(path, "/") == 0) {
		fputs("/metrics /status /account\n", out);
	} else {
		return "404 Not Found";
	}
	return status == ESP_OK ? "200 OK" : "500 Internal Server Error";
}

static bool listen_on_name(struct rank *context, struct http_server *server)
{
	char name[STATUS_SERVER_NAME];
	struct error err;

	status_server_name((uint32_t)geteuid(), context->instance, context->rank, name);
	if (http_server_listen_name(server, name, &err) == ESP_OK)
		return true;
	/* While joining it is no warning: two processes that claim to be one rank have one name, and are told later. */
	if (!context->mod.join_status)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_WATCH, "espalier status will not find this rank: %s", err.text);
	return false;
}

static bool listen_on_path(struct rank *context, struct http_server *server)
{
	char path[RANK_PATH];
	struct error err;
	enum esp_status status = rank_path(context, context->conf.metrics, path, &err);

	if (status == ESP_OK)
		status = http_server_listen_path(server, path, &err);
	if (status == ESP_ESTATE)
		error_set(&err, ESP_ESTATE,
		          "cannot listen at %.130s: another rank does; put %%r into ESP_METRICS, so that each has a socket of "
		          "its own",
		          path);
	if (status != ESP_OK)
		log_write(&context->log, LOG_LEVEL_WARN, LOG_WATCH, "metrics: %s", err.text);
	return status == ESP_OK;
}

struct http_server *status_server_open(struct rank *context, struct loop *loop)
{
	struct http_server *server = NULL;
	struct error err;

	if (!context->conf.status && !context->conf.metrics[0])
		return NULL;
	if (http_server_open(loop, write_body, context, &server, &err) != ESP_OK)
		return NULL;
	bool has_name = context->conf.status && listen_on_name(context, server);
	bool has_path = context->conf.metrics[0] && !context->mod.join_status && listen_on_path(context, server);
	if (has_name || has_path)
		return server;
	http_server_close(server);
	return NULL;
}
