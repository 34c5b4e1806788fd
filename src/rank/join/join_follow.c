#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clip.h"
#include "base/clock.h"
#include "node/net/backoff.h"
#include "rank/join/join_parts.h"
#include "rank/join/launcher.h"

struct follower {
	struct join_dial *dial;
	struct error *err;     /* the latest reason; reported at the deadline */
	uint64_t begin_ns;
	char name[ANNOUNCE_NAME];
	uint8_t seen[ANNOUNCE_NONCE_BYTES]; /* the latest announcement of a listening leader */
	bool has_seen;
};

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/*
 * The announcement says that joining has failed: this epoch, if this rank has seen the announcement before;
 * otherwise it may be an earlier one's.
 */
static enum join_outcome on_failed(struct follower *follower, const struct announcement *announcement)
{
	char when[32] = "";
	time_t at = (time_t)announcement->at_s;
	struct tm local;
	if (localtime_r(&at, &local))
		strftime(when, sizeof(when), "%F %T", &local);
	error_set(follower->err, ESP_EPEER, "the job failed without this rank on %s: %s", when, announcement->reason);
	bool is_ours = follower->has_seen && memcmp(follower->seen, announcement->nonce, sizeof(follower->seen)) == 0;
	return is_ours ? JOIN_OVER : JOIN_AGAIN;
}

/* Takes the key from the announcement, if this rank was given none. */
static bool take_key(struct follower *follower, const struct announcement *announcement)
{
	struct join_config *config = &follower->dial->config;
	if (!config->key_in_announcement)
		return true;
	if (announcement->has_key)
		memcpy(config->key, announcement->key, sizeof(config->key));
	else
		error_set(follower->err, ESP_EMISMATCH,
		          "rank 0 on %s has a key, ESP_KEY or ESP_KEY_FILE, and this rank has none", announcement->host_name);
	return announcement->has_key;
}

static enum join_outcome try_announcement(struct follower *follower)
{
	const struct join_config *config = &follower->dial->config;
	struct announcement announcement;
	struct resolved found;
	enum esp_status status = announce_look(&config->launch.place, follower->name, config->deadline_ns, &announcement,
	                                       follower->err);
	if (status == ESP_EUNSUPPORTED || status == ESP_EINVAL) /* the place is not supported, or refuses this client */
		return JOIN_OVER;
	if (status != ESP_OK)
		return JOIN_AGAIN;
	if (announcement.port == 0)
		return on_failed(follower, &announcement);
	follower->has_seen = true;
	memcpy(follower->seen, announcement.nonce, sizeof(follower->seen));
	join_announced_addresses(&announcement, &found, &follower->dial->leader);
	bool has_key = take_key(follower, &announcement);
	sodium_memzero(&announcement, sizeof(announcement));
	return has_key ? join_dial_all(follower->dial, &found) : JOIN_AGAIN;
}

static enum join_outcome try_all(struct follower *follower)
{
	const struct join_config *config = &follower->dial->config;
	struct resolved found;
	if (clock_now_ns() >= config->deadline_ns)
		return JOIN_AGAIN;
	follower->dial->is_unreached = false;
	if (config->launch.place.kind != ANNOUNCE_NOWHERE)
		return try_announcement(follower);
	if (resolve(&config->launch.leader, config->deadline_ns, &found, follower->err) != ESP_OK)
		return JOIN_AGAIN;
	return join_dial_all(follower->dial, &found);
}

/* Adds where and how long this rank has tried to the reason that was found. */
static enum esp_status fail_follow(struct follower *follower)
{
	char leader[ANNOUNCE_PLACE_TEXT], why[64];
	const struct join_config *config = &follower->dial->config;
	/* A reason that a leader has given says more than a connection that fails afterwards. */
	const struct error last = follower->dial->away.status != ESP_OK ? follower->dial->away : *follower->err;
	if (config->launch.place.kind != ANNOUNCE_NOWHERE)
		announce_place_describe(&config->launch.place, leader);
	else
		address_format(&follower->dial->leader, leader);
	/* the leader was not reached */
	follower->dial->culprit = follower->dial->away.status != ESP_OK ? (int32_t)config->launch.rank : 0;
	double seconds = (double)(clock_now_ns() - follower->begin_ns) / (double)NS_PER_S;
	/* announce_look() has no further reason */
	if (config->launch.place.kind != ANNOUNCE_NOWHERE && last.status == ESP_PENDING)
		return error_set(follower->err, ESP_ETIMEOUT,
		                 "rank %u could not join by %.60s within %.1f s: there is no announcement of rank 0; rank 0 "
		                 "never came, or the job has begun or failed without this rank (%s)", config->launch.rank,
		                 leader, seconds, follower->name);
	if (config->launch.place.kind != ANNOUNCE_NOWHERE)
		return error_set(follower->err, ESP_ETIMEOUT, "rank %u could not join by %.60s within %.1f s: %s",
		                 config->launch.rank, leader, seconds, last.text);
	if (follower->dial->is_unreached && follower->dial->away.status == ESP_OK)
		return error_set(follower->err, ESP_ETIMEOUT,
		                 "rank %u could not join at the leader %.60s within %.1f s: %s; rank 0 never came, or the job "
		                 "has begun or failed without this rank", config->launch.rank, leader, seconds,
		                 clip(why, sizeof(why), "%s", last.text));
	return error_set(follower->err, ESP_ETIMEOUT, "rank %u could not join at the leader %.60s within %.1f s: %s",
	                 config->launch.rank, leader, seconds, last.text);
}

/* Asks the launcher whether rank 0 has ended. The leader looks after the other ranks. */
static bool leader_has_ended(struct follower *follower, struct launcher *launcher)
{
	uint8_t answer[ENDED_BYTES];
	if (launcher_turn(launcher, clock_now_ns(), answer, 1) == 0 || ended_get(answer, 0) == ENDED_NOT)
		return false;
	follower->dial->culprit = 0;
	error_set(follower->err, ESP_EPEER, "the leader, rank 0, has ended with status %d before the group had joined",
	          ended_get(answer, 0));
	return true;
}

/* False: joining was called off meanwhile. */
static bool pause_until(struct follower *follower, uint64_t until_ns)
{
	const struct join_config *config = &follower->dial->config;
	for (uint64_t now = clock_now_ns(); now < until_ns; now = clock_now_ns()) {
		if (join_is_called_off(config, &follower->dial->culprit, follower->err))
			return false;
		poll(NULL, 0, join_wait_ms(now, join_look_until(config, now, until_ns)));
	}
	return true;
}

static enum esp_status follow_with(struct follower *follower, struct launcher *launcher)
{
	struct backoff backoff;
	uint64_t seed, deadline = follower->dial->config.deadline_ns;
	randombytes_buf(&seed, sizeof(seed));
	backoff_init(&backoff, seed);
	error_set(follower->err, ESP_ETIMEOUT, "the deadline had passed before the first attempt");
	for (;;) {
		enum join_outcome outcome = try_all(follower);
		if (outcome == JOIN_ARRIVED)
			return ESP_OK;
		if (outcome == JOIN_OVER || leader_has_ended(follower, launcher))
			return follower->err->status;
		uint64_t now = clock_now_ns();
		if (now >= deadline)
			return fail_follow(follower);
		log_write(follower->dial->config.log, LOG_LEVEL_TRACE, LOG_JOIN, "%s; trying again", follower->err->text);
		join_tell(&follower->dial->config, "rank 0: %s", follower->err->text);
		if (!pause_until(follower, earlier(now + backoff_next_ns(&backoff), deadline)))
			return follower->err->status;
	}
}

static enum esp_status follow(struct follower *follower)
{
	struct launcher launcher;
	launcher_init(&launcher, follower->dial->config.launch.launcher, clock_now_ns());
	enum esp_status status = follow_with(follower, &launcher);
	launcher_fini(&launcher);
	return status;
}

enum esp_status join_follow(struct join_config *config, struct roster *out, int32_t *out_culprit, struct error *err)
{
	struct error reason;
	struct follower follower = {.dial = join_dial_new(config, out, &reason), .err = &reason,
	                            .begin_ns = clock_now_ns()};
	if (!follower.dial)
		return error_set(err, ESP_ENOMEM, "no memory for the node infos of %u ranks", config->launch.size);
	announce_name(config->launch.job, config->launch.epoch, follower.name);
	enum esp_status status = follow(&follower);
	if (status == ESP_OK)
		memcpy(config->key, follower.dial->config.key, sizeof(config->key));
	else
		error_set(err, status, "%s", reason.text);
	*out_culprit = follower.dial->culprit;
	config->is_told = follower.dial->is_told;
	join_dial_free(follower.dial);
	return status;
}
