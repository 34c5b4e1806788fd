#include "rank/join/join.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/quote.h"
#include "rank/join/join_parts.h"
#include "rank/join/rendezvous.h"

#define RECEIVE_BYTES 16384u
#define RECEIVE_TURNS 64 /* at most 1 MiB from one connection before the next connection's turn */

static const char job_label[32] = "espalier job 1";
static const char settings_label[32] = "espalier settings 1";
static const char check_label[32] = "espalier key check 1";

static_assert(CONF_AGREED_TEXT == RENDEZVOUS_SETTINGS_TEXT, "settings as text");
static_assert(LAUNCH_JOB == RENDEZVOUS_JOB_TEXT, "the job's name as text");

static void digest_settings(const char *text, uint8_t out[HELLO_DIGEST_BYTES])
{
	crypto_generichash(out, HELLO_DIGEST_BYTES, (const uint8_t *)text, strlen(text), (const uint8_t *)settings_label,
	                   sizeof(settings_label));
}

static void digest_job(const char *name, uint8_t out[HELLO_JOB_BYTES])
{
	crypto_generichash(out, HELLO_JOB_BYTES, (const uint8_t *)name, strlen(name), (const uint8_t *)job_label,
	                   sizeof(job_label));
}

void join_prepare(struct join_config *config, const struct conf *conf)
{
	const struct launch *launch = &config->launch;
	config->info = (struct node_info){.rank = launch->rank, .size = launch->size, .version = HELLO_VERSION};
	conf_agreed_text(conf, config->settings);
	digest_settings(config->settings, config->info.settings);
}

void join_self(const struct join_config *config, struct handshake_config *out)
{
	const struct node_info *info = &config->info;
	*out = (struct handshake_config){
		.hello = {.version = info->version, .from = info->rank, .size = info->size, .epoch = config->launch.epoch},
	};
	memcpy(out->key, config->key, sizeof(out->key));
	memcpy(out->hello.settings, info->settings, sizeof(out->hello.settings));
	digest_job(config->launch.job, out->hello.job);
}

void join_dialer(const struct join_config *config, uint32_t to, enum hello_purpose purpose, uint32_t lane,
                 struct handshake_config *out)
{
	join_self(config, out);
	out->hello.to = to;
	out->hello.purpose = (uint8_t)purpose;
	out->hello.lane = lane;
}

void join_listener(const struct join_config *config, uint32_t purposes, uint32_t lanes, struct handshake_config *out)
{
	join_self(config, out);
	out->hello.to = HANDSHAKE_ANY_RANK;
	out->purposes = purposes;
	out->lanes = lanes;
}

#define LOOK_NS (20 * NS_PER_MS)

bool join_is_called_off(const struct join_config *config, int32_t *out_culprit, struct error *why)
{
	return config->is_called_off && config->is_called_off(config->called_off_context, out_culprit, why);
}

uint64_t join_look_until(const struct join_config *config, uint64_t now_ns, uint64_t until_ns)
{
	return config->is_called_off && now_ns + LOOK_NS < until_ns ? now_ns + LOOK_NS : until_ns;
}

static enum esp_status join_alone(const struct join_config *config, struct roster *out, struct error *err)
{
	uint8_t info[NODE_INFO_BYTES];
	node_info_encode(&config->info, info);
	return roster_decode(info, 1, out, err);
}

enum esp_status join_run(struct join_config *config, struct roster *out, int32_t *out_culprit, struct error *err)
{
	int32_t unused = -1;
	int32_t *culprit = out_culprit ? out_culprit : &unused;
	*culprit = -1;
	assert(config->info.rank == config->launch.rank && config->info.size == config->launch.size);
	if (sodium_init() < 0)
		return error_set(err, ESP_EUNSUPPORTED, "this machine has no source of random numbers");
	if (config->launch.size == 1)
		return join_alone(config, out, err);
	return config->launch.rank == 0 ? join_lead(config, out, culprit, err) : join_follow(config, out, culprit, err);
}

static const char *job_text(const char *job, char text[QUOTE_TEXT])
{
	return job[0] ? quote(job, strlen(job), text) : "without a name";
}

void join_tell(const struct join_config *config, const char *format, ...)
{
	char words[RENDEZVOUS_WAIT_TEXT];
	va_list arguments;
	if (!config->progress)
		return;
	va_start(arguments, format);
	vsnprintf(words, sizeof(words), format, arguments);
	va_end(arguments);
	config->progress(config->progress_context, words);
}

enum esp_status join_other_job(uint32_t rank, const char *job, const char *leaders, struct error *err)
{
	char one[QUOTE_TEXT], other[QUOTE_TEXT];
	return error_set(err, ESP_EMISMATCH, "rank %u belongs to the job %s, but the leader, rank 0, to the job %s: all "
	                                     "ranks need the same ESP_JOB", rank, job_text(job, one),
	                 job_text(leaders, other));
}

/*
 * The record of a rank in the all-gather: an arrival, and a hash that shows whether keys agree without showing
 * the key.
 */
#define CHECK_BYTES 32u
#define RECORD_BYTES (RENDEZVOUS_ARRIVAL_BYTES + CHECK_BYTES)

static void make_record(const struct join_config *config, uint8_t out[RECORD_BYTES])
{
	uint8_t job[HELLO_JOB_BYTES + 8];
	crypto_generichash_state state;
	digest_job(config->launch.job, job);
	for (unsigned i = 0; i < 8; i++)
		job[HELLO_JOB_BYTES + i] = (uint8_t)(config->launch.epoch >> 8 * i);
	struct rendezvous_arrival arrival = {.info = config->info};
	memcpy(arrival.settings, config->settings, sizeof(arrival.settings));
	memcpy(arrival.job, config->launch.job, sizeof(arrival.job));
	rendezvous_arrival_encode(&arrival, out);
	crypto_generichash_init(&state, config->key, sizeof(config->key), CHECK_BYTES);
	crypto_generichash_update(&state, (const uint8_t *)check_label, sizeof(check_label));
	crypto_generichash_update(&state, job, sizeof(job));
	crypto_generichash_final(&state, out + RENDEZVOUS_ARRIVAL_BYTES, CHECK_BYTES);
	sodium_memzero(&state, sizeof(state));
}

/* All ranks see the same records, so all get the same result. */
static enum esp_status read_records(uint8_t *all, uint32_t size, struct roster *out, struct error *err)
{
	struct rendezvous_arrival first, arrival;
	for (uint32_t i = 0; i < size; i++) {
		const uint8_t *record = all + (size_t)i * RECORD_BYTES;
		if (!rendezvous_arrival_decode(record, i == 0 ? &first : &arrival))
			return error_set(err, ESP_ECORRUPT, "the node info of rank %u is damaged", i);
		if (i > 0 && strcmp(arrival.job, first.job) != 0)
			return join_other_job(i, arrival.job, first.job, err);
		if (memcmp(record + RENDEZVOUS_ARRIVAL_BYTES, all + RENDEZVOUS_ARRIVAL_BYTES, CHECK_BYTES) != 0)
			return error_set(err, ESP_EMISMATCH, "rank %u has another key, job or epoch than rank 0", i);
		if (i > 0 && rendezvous_check_node(&arrival.info, arrival.settings, &first.info, first.settings, err) != ESP_OK)
			return err->status;
	}
	for (uint32_t i = 0; i < size; i++) /* to the front, one node info behind the other */
		memmove(all + (size_t)i * NODE_INFO_BYTES, all + (size_t)i * RECORD_BYTES + RENDEZVOUS_ARRIVAL_INFO,
		        NODE_INFO_BYTES);
	return roster_decode(all, size, out, err);
}

enum esp_status join_by_callback(const struct join_config *config, join_gather_fn *gather, void *context,
                                 struct roster *out, struct error *err)
{
	uint32_t size = config->launch.size;
	uint8_t mine[RECORD_BYTES];
	uint8_t *all = calloc(size, RECORD_BYTES);
	if (!all)
		return error_set(err, ESP_ENOMEM, "no memory for the node infos of %u ranks", size);
	make_record(config, mine);
	enum esp_status status = gather(context, mine, all, RECORD_BYTES);
	if (status == ESP_OK)
		status = read_records(all, size, out, err);
	else
		error_set(err, status, "the caller's all-gather failed");
	free(all);
	return status;
}

enum esp_status join_send(int fd, struct session *session, struct error *err)
{
	for (;;) {
		const uint8_t *bytes;
		size_t n;
		session_output(session, &bytes, &n);
		if (n == 0)
			return ESP_OK;
		ssize_t sent = send(fd, bytes, n, MSG_NOSIGNAL);
		if (sent >= 0)
			session_sent(session, (size_t)sent);
		else if (errno == EAGAIN || errno == EWOULDBLOCK)
			return ESP_PENDING;
		else if (errno != EINTR)
			return error_set(err, ESP_ELINK, "cannot send: %s", strerror(errno));
	}
}

enum esp_status join_receive(int fd, struct session *session, struct error *err)
{
	uint8_t bytes[RECEIVE_BYTES];
	for (int turn = 0; turn < RECEIVE_TURNS; turn++) {
		ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return session->arrived ? ESP_OK : ESP_PENDING;
		if (got <= 0) /* a reset ends the stream, too */
			return session_closed(session, err);
		enum esp_status status = session_input(session, bytes, (size_t)got, err);
		if (status != ESP_PENDING)
			return status;
	}
	return ESP_PENDING;
}

int join_wait_ms(uint64_t now_ns, uint64_t until_ns)
{
	if (until_ns <= now_ns)
		return 0;
	uint64_t ms = (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
	return ms > 60000 ? 60000 : (int)ms;
}
