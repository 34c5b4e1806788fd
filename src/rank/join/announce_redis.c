/*
 * announce_redis.c - announcements on a Redis server: one key per job and epoch, which expires by itself.
 *
 * Each read or post connects anew: they are seconds apart, and a connection that stays open would have to be
 * watched.
 */
#include "rank/join/announce.h"

#ifdef HAVE_HIREDIS

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "node/net/resolve.h"

#define PATIENCE_NS (2 * NS_PER_S) /* for each step of a conversation */

struct conversation {
	const struct announce_place *place;
	uint64_t deadline_ns;
	redisContext *redis;
	struct error *err;
	bool is_barred; /* the server refuses this client: no use in trying again */
};

static struct timeval time_left(uint64_t deadline_ns)
{
	uint64_t now = clock_now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
	left = left < PATIENCE_NS ? left : PATIENCE_NS;
	left = left > NS_PER_MS ? left : NS_PER_MS; /* 0 would mean no timeout */
	return (struct timeval){(time_t)(left / NS_PER_S), (suseconds_t)(left % NS_PER_S / 1000)};
}

static enum esp_status fail_redis(const struct conversation *with, const char *what, const char *why)
{
	char where[ANNOUNCE_PLACE_TEXT];
	return error_set(with->err, ESP_EIO, "cannot %s %.100s: %.100s", what, announce_place_describe(with->place, where),
	                 why);
}

/* Frees a reply; false if it is missing or an error. */
static bool is_fine(const struct conversation *with, redisReply *reply, const char *what)
{
	bool fine = reply && reply->type != REDIS_REPLY_ERROR;
	if (!fine)
		fail_redis(with, what, reply ? reply->str : with->redis->errstr);
	freeReplyObject(reply);
	return fine;
}

/* hiredis looks up names without a deadline, so it gets a numeric address. */
static bool connect_to(struct conversation *with, const struct sockaddr *address)
{
	char host[INET6_ADDRSTRLEN];
	bool v6 = address->sa_family == AF_INET6;
	const void *bytes = v6 ? (const void *)&((const struct sockaddr_in6 *)address)->sin6_addr
	                       : (const void *)&((const struct sockaddr_in *)address)->sin_addr;
	inet_ntop(address->sa_family, bytes, host, sizeof(host));
	with->redis = redisConnectWithTimeout(host, with->place->server.port, time_left(with->deadline_ns));
	if (with->redis && !with->redis->err && redisSetTimeout(with->redis, time_left(with->deadline_ns)) == REDIS_OK)
		return true;
	fail_redis(with, "reach", with->redis ? with->redis->errstr : "no memory");
	if (with->redis)
		redisFree(with->redis);
	with->redis = NULL;
	return false;
}

static bool log_in(struct conversation *with)
{
	const struct announce_place *place = with->place;
	redisReply *reply = NULL;
	if (place->user[0])
		reply = redisCommand(with->redis, "AUTH %s %s", place->user, place->password);
	else if (place->password[0])
		reply = redisCommand(with->redis, "AUTH %s", place->password);
	with->is_barred = reply && reply->type == REDIS_REPLY_ERROR;
	if ((place->user[0] || place->password[0]) && !is_fine(with, reply, "log in at"))
		return false;
	return place->database == 0 || is_fine(with, redisCommand(with->redis, "SELECT %u", place->database), "select");
}

static bool begin(struct conversation *with)
{
	struct resolved found;
	struct error why;
	if (resolve(&with->place->server, with->deadline_ns, &found, &why) != ESP_OK) {
		fail_redis(with, "reach", why.text);
		return false;
	}
	for (uint32_t i = 0; i < found.count; i++)
		if (connect_to(with, &found.addresses[i].any))
			return log_in(with);
	return false;
}

static void end(struct conversation *with)
{
	if (with->redis)
		redisFree(with->redis);
}

static enum esp_status redis_status(const struct conversation *with)
{
	if (with->err)
		with->err->status = with->is_barred ? ESP_EINVAL : ESP_EIO;
	return with->is_barred ? ESP_EINVAL : ESP_EIO;
}

enum esp_status announce_redis_post(const struct announce_place *place, const char *name, const char *text,
                                    size_t length, uint32_t keep_seconds, uint64_t deadline_ns, struct error *err)
{
	struct conversation with = {place, deadline_ns, NULL, err, false};
	bool done = begin(&with) &&
	            is_fine(&with, redisCommand(with.redis, "SET %s %b EX %u", name, text, length, keep_seconds),
	                    "write to");
	end(&with);
	return done ? ESP_OK : redis_status(&with);
}

static enum esp_status read_reply(const struct conversation *with, const char *name, redisReply *reply,
                                  char text[ANNOUNCE_BYTES], size_t *out_length)
{
	char where[ANNOUNCE_PLACE_TEXT];
	if (reply && reply->type == REDIS_REPLY_NIL)
		return error_set(with->err, ESP_PENDING, "there is no announcement of rank 0 in %.100s (%s)",
		                 announce_place_describe(with->place, where), name);
	if (!reply || reply->type == REDIS_REPLY_ERROR)
		return fail_redis(with, "read from", reply ? reply->str : with->redis->errstr);
	if (reply->type != REDIS_REPLY_STRING || (size_t)reply->len >= ANNOUNCE_BYTES)
		return error_set(with->err, ESP_ECORRUPT, "%s in %.100s is no announcement of rank 0", name,
		                 announce_place_describe(with->place, where));
	memcpy(text, reply->str, (size_t)reply->len);
	*out_length = (size_t)reply->len;
	return ESP_OK;
}

enum esp_status announce_redis_look(const struct announce_place *place, const char *name, uint64_t deadline_ns,
                                  char text[ANNOUNCE_BYTES], size_t *out_length, struct error *err)
{
	struct conversation with = {place, deadline_ns, NULL, err, false};
	enum esp_status status;
	if (begin(&with)) {
		redisReply *reply = redisCommand(with.redis, "GET %s", name);
		status = read_reply(&with, name, reply, text, out_length);
		freeReplyObject(reply);
	} else {
		status = redis_status(&with);
	}
	end(&with);
	return status;
}

void announce_redis_remove(const struct announce_place *place, const char *name, uint64_t deadline_ns)
{
	struct conversation with = {place, deadline_ns, NULL, NULL, false};
	if (begin(&with))
		(void)is_fine(&with, redisCommand(with.redis, "DEL %s", name), "remove from");
	end(&with);
}

#else

static enum esp_status no_redis(struct error *err)
{
	return error_set(err, ESP_EUNSUPPORTED, "this build of Espalier has no Redis store (it was built without hiredis): "
	                 "set ESP_STORE to file:/FOLDER, or ESP_LEADER");
}

enum esp_status announce_redis_post(const struct announce_place *place, const char *name, const char *text,
                                    size_t length, uint32_t keep_seconds, uint64_t deadline_ns, struct error *err)
{
	(void)place, (void)name, (void)text, (void)length, (void)keep_seconds, (void)deadline_ns;
	return no_redis(err);
}

enum esp_status announce_redis_look(const struct announce_place *place, const char *name, uint64_t deadline_ns,
                                  char text[ANNOUNCE_BYTES], size_t *out_length, struct error *err)
{
	(void)place, (void)name, (void)deadline_ns, (void)text, (void)out_length;
	return no_redis(err);
}

void announce_redis_remove(const struct announce_place *place, const char *name, uint64_t deadline_ns)
{
	(void)place, (void)name, (void)deadline_ns;
}

#endif
