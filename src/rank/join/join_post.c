#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clip.h"
#include "base/clock.h"
#include "node/net/backoff.h"
#include "rank/join/join_parts.h"

#define CHECK_NS (2 * NS_PER_S)      /* between checks that the announcement is still there */
#define CHECK_WAIT_NS (1 * NS_PER_S) /* for a check or the last post, while ranks wait for answers */
#define KEEP_SECONDS 600u           /* how long a place that expires entries keeps the failure of a job */
#define KEEP_MORE_SECONDS 60u       /* ... or an announcement beyond the deadline of joining */

static uint64_t check_until(void)
{
	return clock_now_ns() + CHECK_WAIT_NS;
}

static uint32_t seconds_to_keep(const struct join_config *config)
{
	uint64_t now = clock_now_ns();
	uint64_t left = config->deadline_ns > now ? (config->deadline_ns - now) / NS_PER_S : 0;
	return (uint32_t)(left < UINT32_MAX / 2 ? left : UINT32_MAX / 2) + KEEP_MORE_SECONDS;
}

static void make_announcement(struct join_post *post, uint16_t port)
{
	const struct node_info *info = &post->config->info;
	struct announcement *announcement = &post->announcement;
	*announcement = (struct announcement){.at_s = (uint64_t)time(NULL), .pid = info->pid, .port = port,
	                          .has_key = post->config->key_in_announcement, .address_count = info->address_count};
	randombytes_buf(announcement->nonce, sizeof(announcement->nonce));
	memcpy(announcement->host_name, info->host_name, sizeof(announcement->host_name));
	memcpy(announcement->addresses, info->addresses, sizeof(announcement->addresses));
	if (announcement->address_count == 0) /* a host without a network has loopback only */
		announcement->addresses[announcement->address_count++] = (struct node_address){NODE_IPV4, {127, 0, 0, 1}};
	if (announcement->has_key)
		memcpy(announcement->key, post->config->key, sizeof(announcement->key));
}

/* An announcement that is there already is an earlier epoch's, or that of a second rank 0, which answers. */
static enum esp_status check_rival(struct join_post *post, struct error *err)
{
	struct join_config config = *post->config;
	struct announcement there;
	struct resolved found;
	struct address first;
	enum esp_status status = ESP_OK;
	if (announce_look(&config.launch.place, post->name, config.deadline_ns, &there, NULL) == ESP_OK && there.port) {
		join_announced_addresses(&there, &found, &first);
		if (there.has_key)
			memcpy(config.key, there.key, sizeof(config.key));
		if (join_ask_rival(&config, &found, err))
			status = ESP_EMISMATCH;
	}
	sodium_memzero(&there, sizeof(there));
	sodium_memzero(&config, sizeof(config));
	return status;
}

static enum esp_status post_announcement(struct join_post *post, uint64_t deadline_ns, struct error *err)
{
	return announce_post(&post->config->launch.place, post->name, &post->announcement, seconds_to_keep(post->config),
	                     deadline_ns, err);
}

/* A server may be started with the job, and a folder mounted a little later: ranks wait for it until the deadline. */
static enum esp_status post_until_deadline(struct join_post *post, struct error *err)
{
	const struct join_config *config = post->config;
	struct backoff backoff;
	char where[ANNOUNCE_PLACE_TEXT];
	uint64_t begin = clock_now_ns();
	enum esp_status status = post_announcement(post, config->deadline_ns, err);
	if (status == ESP_EIO)
		log_write(config->log, LOG_LEVEL_WARN, LOG_JOIN, "%s; trying again for %.0f s (join_seconds)", err->text,
		          config->deadline_ns > begin ? (double)(config->deadline_ns - begin) / (double)NS_PER_S : 0.0);
	backoff_init(&backoff, begin ^ config->info.pid);
	while (status == ESP_EIO) {
		uint64_t now = clock_now_ns(), next = now + backoff_next_ns(&backoff);
		if (next >= config->deadline_ns) {
			struct error last = *err;
			announce_place_describe(&config->launch.place, where);
			return error_set(err, ESP_EIO, "rank 0 could not use the job's store, %.80s, for %.1f s: %s", where,
			                 (double)(now - begin) / (double)NS_PER_S, last.text);
		}
		poll(NULL, 0, join_wait_ms(now, next));
		status = post_announcement(post, config->deadline_ns, err);
	}
	return status;
}

enum esp_status join_post_open(struct join_post *post, const struct join_config *config, uint16_t port,
                               struct error *err)
{
	*post = (struct join_post){.config = config, .next_ns = UINT64_MAX};
	if (config->launch.place.kind == ANNOUNCE_NOWHERE)
		return ESP_OK;
	announce_name(config->launch.job, config->launch.epoch, post->name);
	make_announcement(post, port);
	enum esp_status status = check_rival(post, err);
	if (status == ESP_OK)
		status = post_until_deadline(post, err);
	post->posted = status == ESP_OK;
	if (post->posted)
		post->next_ns = clock_now_ns() + CHECK_NS;
	return status;
}

bool join_post_turn(struct join_post *post, uint64_t now_ns, struct error *err)
{
	struct announcement there;
	struct error why;
	if (now_ns < post->next_ns)
		return true;
	post->next_ns = now_ns + CHECK_NS;
	enum esp_status status = announce_look(&post->config->launch.place, post->name, check_until(), &there, &why);
	bool is_ours = status != ESP_OK || memcmp(there.nonce, post->announcement.nonce, sizeof(there.nonce)) == 0;
	if (!is_ours) {
		error_set(err, ESP_EMISMATCH, "two processes say that they are rank 0: process %u on %s and process %u on %s, "
		                              "which has replaced the announcement of the first one", post->announcement.pid,
		          post->announcement.host_name, there.pid, there.host_name);
		post->posted = false;
		post->next_ns = UINT64_MAX;
	/* removed or damaged by another process: post it again */
	} else if (status == ESP_PENDING || status == ESP_ECORRUPT) {
		status = post_announcement(post, check_until(), &why);
	}
	if (status != ESP_OK && is_ours) {
		log_write(post->config->log, LOG_LEVEL_WARN, LOG_JOIN, "%s; not looking there again", why.text);
		post->next_ns = UINT64_MAX;
	}
	sodium_memzero(&there, sizeof(there));
	return is_ours;
}

void join_post_close(struct join_post *post, const struct error *failure)
{
	const struct announce_place *place = &post->config->launch.place;
	if (post->posted && !failure)
		announce_remove(place, post->name, post->announcement.nonce, check_until());
	if (post->posted && failure) {
		post->announcement.port = 0;
		post->announcement.address_count = 0;
		post->announcement.has_key = false;
		post->announcement.at_s = (uint64_t)time(NULL);
		clip(post->announcement.reason, sizeof(post->announcement.reason), "%s", failure->text);
		for (char *c = post->announcement.reason; *c; c++)
			*c = *c >= 0x20 && *c < 0x7f ? *c : '?';
		struct error why;
		if (announce_post(place, post->name, &post->announcement, KEEP_SECONDS, check_until(), &why) != ESP_OK)
			log_write(post->config->log, LOG_LEVEL_WARN, LOG_JOIN, "%s", why.text);
	}
	sodium_memzero(&post->announcement, sizeof(post->announcement));
	post->posted = false;
}
