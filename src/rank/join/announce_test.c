/* Announcements as text, and in a folder. tests/launchers has those on a Redis server. */
#include "rank/join/announce.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"

static struct error err;

static struct announcement random_announcement(struct rng *rng)
{
	struct announcement announcement = {.at_s = rng_next(rng), .pid = (uint32_t)rng_next(rng)};
	bool listens = rng_below(rng, 4) > 0;

	for (unsigned i = 0; i < ANNOUNCE_NONCE_BYTES; i++)
		announcement.nonce[i] = (uint8_t)rng_next(rng);
	snprintf(announcement.host_name, NODE_INFO_HOST_NAME, "node%u", (unsigned)rng_below(rng, 100));
	if (!listens) {
		snprintf(announcement.reason, sizeof(announcement.reason), "1 of 8 ranks have not arrived: %u",
		         (unsigned)rng_below(rng, 8));
		return announcement;
	}
	announcement.port = (uint16_t)(1 + rng_below(rng, 65535));
	announcement.address_count = 1 + (uint32_t)rng_below(rng, NODE_ADDRESSES);
	for (uint32_t i = 0; i < announcement.address_count; i++) {
		announcement.addresses[i].family = rng_below(rng, 2) ? NODE_IPV4 : NODE_IPV6;
		for (unsigned k = 0; k < (announcement.addresses[i].family == NODE_IPV4 ? 4 : 16); k++)
			announcement.addresses[i].bytes[k] = (uint8_t)rng_next(rng);
	}
	announcement.has_key = rng_below(rng, 2);
	for (unsigned i = 0; announcement.has_key && i < HANDSHAKE_KEY_BYTES; i++)
		announcement.key[i] = (uint8_t)rng_next(rng);
	return announcement;
}

/* An announcement decodes to itself; cut off, or with one byte changed, it decodes to another one or not at all. */
static void round_trips(struct rng *rng)
{
	for (int turn = 0; turn < 500; turn++) {
		struct announcement announcement = random_announcement(rng), back;
		char text[ANNOUNCE_BYTES], again[ANNOUNCE_BYTES];
		size_t length = announce_encode(&announcement, text);

		CHECK(announce_decode(text, length, &back));
		CHECK(announce_encode(&back, again) == length && memcmp(text, again, length) == 0);
		CHECK(memcmp(back.key, announcement.key, sizeof(back.key)) == 0 && back.port == announcement.port);
		CHECK(!announce_decode(text, rng_below(rng, length), &back));
		text[rng_below(rng, length)] = (char)rng_next(rng);
		if (announce_decode(text, length, &back))
			CHECK(announce_encode(&back, again) == length && memcmp(text, again, length) == 0);
	}
}

/* The longest announcement fits. */
static void longest(void)
{
	struct announcement announcement = {.at_s = UINT64_MAX, .pid = UINT32_MAX, .port = 65535,
	                                    .address_count = NODE_ADDRESSES, .has_key = true};
	char text[ANNOUNCE_BYTES];

	memset(announcement.host_name, 'h', NODE_INFO_HOST_NAME - 1);
	for (uint32_t i = 0; i < NODE_ADDRESSES; i++) {
		announcement.addresses[i].family = NODE_IPV6;
		memset(announcement.addresses[i].bytes, 0xff, 16);
	}
	memset(announcement.reason, 'r', sizeof(announcement.reason) - 1);
	CHECK(announce_encode(&announcement, text) < ANNOUNCE_BYTES);
	CHECK(!announce_decode(text, strlen(text), &announcement)); /* with a port and a reason at once */
}

static void names(void)
{
	char one[ANNOUNCE_NAME], other[ANNOUNCE_NAME], job[128];

	CHECK(strncmp(announce_name("train/7 x", 3, one), "espalier-train_7_x-", 19) == 0 &&
	      strcmp(one + strlen(one) - 2, "-3") == 0);
	CHECK(strcmp(one, announce_name("train_7_x", 3, other)) != 0);
	CHECK(strcmp(one, announce_name("train/7 x", 4, other)) != 0);
	CHECK(strncmp(announce_name("", 0, one), "espalier-", 9) == 0);
	memset(job, '.', sizeof(job) - 1);
	job[sizeof(job) - 1] = '\0';
	CHECK(strlen(announce_name(job, UINT64_MAX, one)) < ANNOUNCE_NAME - 1 && !strchr(one, '.'));
}

static void in_a_folder(struct rng *rng)
{
	char path[] = "/tmp/announce_test.XXXXXX", file[128], name[ANNOUNCE_NAME];
	struct announce_place place = {.kind = ANNOUNCE_FILE};
	struct announcement announcement = random_announcement(rng), second, back;
	struct stat info;
	const uint64_t never = UINT64_MAX;

	CHECK(mkdtemp(path));
	snprintf(place.path, sizeof(place.path), "%s", path);
	announce_name("j", 0, name);
	snprintf(file, sizeof(file), "%s/%s", path, name);
	CHECK(announce_look(&place, name, never, &back, &err) == ESP_PENDING);
	CHECK(strncmp(err.text, "there is no announcement of rank 0 in /tmp/announce_test.", 55) == 0);
	CHECK(announce_post(&place, name, &announcement, 5, never, &err) == ESP_OK);
	CHECK(announce_look(&place, name, never, &back, &err) == ESP_OK &&
	      memcmp(back.nonce, announcement.nonce, sizeof(back.nonce)) == 0);
	CHECK(stat(file, &info) == 0 && (info.st_mode & 0777) == 0600);

	/* a later one replaces it, and the first one's writer does not remove that */
	do
		second = random_announcement(rng);
	while (memcmp(second.nonce, announcement.nonce, sizeof(second.nonce)) == 0);
	CHECK(announce_post(&place, name, &second, 5, never, &err) == ESP_OK);
	announce_remove(&place, name, announcement.nonce, never);
	CHECK(announce_look(&place, name, never, &back, &err) == ESP_OK &&
	      memcmp(back.nonce, second.nonce, sizeof(back.nonce)) == 0);

	/* a file that other users may write or read is refused */
	CHECK(chmod(file, 0640) == 0);
	CHECK(announce_look(&place, name, never, &back, &err) == ESP_EIO && strstr(err.text, "not believed"));
	CHECK(chmod(file, 0600) == 0);
	if (geteuid() == 0) {
		CHECK(chown(file, 12345, 12345) == 0);
		CHECK(announce_look(&place, name, never, &back, &err) == ESP_EIO && strstr(err.text, "belongs to user 12345"));
		CHECK(chown(file, 0, 0) == 0);
	}
	CHECK(truncate(file, 40) == 0);
	CHECK(announce_look(&place, name, never, &back, &err) == ESP_ECORRUPT);
	CHECK(announce_post(&place, name, &second, 5, never, &err) == ESP_OK);
	announce_remove(&place, name, second.nonce, never);
	CHECK(access(file, F_OK) != 0);
	CHECK(symlink("/etc/hostname", file) == 0); /* links are not followed */
	CHECK(announce_look(&place, name, never, &back, &err) == ESP_EIO);
	CHECK(unlink(file) == 0);
	CHECK(rmdir(path) == 0); /* no other file is left */
	CHECK(announce_look(&place, name, never, &back, &err) == ESP_EIO && strstr(err.text, "as the job's store"));
	CHECK(announce_post(&place, name, &announcement, 5, never, &err) == ESP_EIO);
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	round_trips(&rng);
	longest();
	names();
	in_a_folder(&rng);
	return 0;
}
