/*
 * Notices as text, and in a folder. tests/launchers has those on a Redis server.
 */
#include "rank/join/rendezvous_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/rng.h"

static struct error err;

static struct notice random_notice(struct rng *rng)
{
	struct notice notice = {.at_s = rng_next(rng), .pid = (uint32_t)rng_next(rng)};
	bool listens = rng_below(rng, 4) > 0;

	for (unsigned i = 0; i < NOTICE_NONCE_BYTES; i++)
		notice.nonce[i] = (uint8_t)rng_next(rng);
	snprintf(notice.host_name, CARD_HOST_NAME, "node%u", (unsigned)rng_below(rng, 100));
	if (!listens) {
		snprintf(notice.reason, sizeof(notice.reason), "1 of 8 ranks have not arrived: %u", (unsigned)rng_below(rng, 8));
		return notice;
	}
	notice.port = (uint16_t)(1 + rng_below(rng, 65535));
	notice.address_count = 1 + (uint32_t)rng_below(rng, CARD_ADDRESSES);
	for (uint32_t i = 0; i < notice.address_count; i++) {
		notice.addresses[i].family = rng_below(rng, 2) ? CARD_IPV4 : CARD_IPV6;
		for (unsigned k = 0; k < (notice.addresses[i].family == CARD_IPV4 ? 4 : 16); k++)
			notice.addresses[i].bytes[k] = (uint8_t)rng_next(rng);
	}
	notice.has_key = rng_below(rng, 2);
	for (unsigned i = 0; notice.has_key && i < HANDSHAKE_KEY_BYTES; i++)
		notice.key[i] = (uint8_t)rng_next(rng);
	return notice;
}

/* Whole it reads back as it was; cut off, or with one byte changed, it is another one or none. */
static void round_trips(struct rng *rng)
{
	for (int turn = 0; turn < 500; turn++) {
		struct notice notice = random_notice(rng), back;
		char text[NOTICE_BYTES], again[NOTICE_BYTES];
		size_t length = notice_encode(&notice, text);

		CHECK(notice_decode(text, length, &back));
		CHECK(notice_encode(&back, again) == length && memcmp(text, again, length) == 0);
		CHECK(memcmp(back.key, notice.key, sizeof(back.key)) == 0 && back.port == notice.port);
		CHECK(!notice_decode(text, rng_below(rng, length), &back));
		text[rng_below(rng, length)] = (char)rng_next(rng);
		if (notice_decode(text, length, &back))
			CHECK(notice_encode(&back, again) == length && memcmp(text, again, length) == 0);
	}
}

/* The longest of all fits. */
static void longest(void)
{
	struct notice notice = {.at_s = UINT64_MAX, .pid = UINT32_MAX, .port = 65535, .address_count = CARD_ADDRESSES, .has_key = true};
	char text[NOTICE_BYTES];

	memset(notice.host_name, 'h', CARD_HOST_NAME - 1);
	for (uint32_t i = 0; i < CARD_ADDRESSES; i++) {
		notice.addresses[i].family = CARD_IPV6;
		memset(notice.addresses[i].bytes, 0xff, 16);
	}
	memset(notice.reason, 'r', sizeof(notice.reason) - 1);
	CHECK(notice_encode(&notice, text) < NOTICE_BYTES);
	CHECK(!notice_decode(text, strlen(text), &notice)); /* listens, and gives a reason why it does not */
}

static void names(void)
{
	char one[NOTICE_NAME], other[NOTICE_NAME], job[128];

	CHECK(strncmp(notice_name("train/7 x", 3, one), "espalier-train_7_x-", 19) == 0 && strcmp(one + strlen(one) - 2, "-3") == 0);
	CHECK(strcmp(one, notice_name("train_7_x", 3, other)) != 0);
	CHECK(strcmp(one, notice_name("train/7 x", 4, other)) != 0);
	CHECK(strncmp(notice_name("", 0, one), "espalier-", 9) == 0);
	memset(job, '.', sizeof(job) - 1);
	job[sizeof(job) - 1] = '\0';
	CHECK(strlen(notice_name(job, UINT64_MAX, one)) < NOTICE_NAME - 1 && !strchr(one, '.'));
}

static void in_a_folder(struct rng *rng)
{
	char path[] = "/tmp/notice_test.XXXXXX", file[128], name[NOTICE_NAME];
	struct notice_place place = {.kind = NOTICE_FILE};
	struct notice notice = random_notice(rng), second, back;
	struct stat info;
	const uint64_t never = UINT64_MAX;

	CHECK(mkdtemp(path));
	snprintf(place.path, sizeof(place.path), "%s", path);
	notice_name("j", 0, name);
	snprintf(file, sizeof(file), "%s/%s", path, name);
	CHECK(notice_look(&place, name, never, &back, &err) == ESP_PENDING);
	CHECK(strncmp(err.text, "there is no notice of rank 0 in /tmp/notice_test.", 49) == 0);
	CHECK(notice_post(&place, name, &notice, 5, never, &err) == ESP_OK);
	CHECK(notice_look(&place, name, never, &back, &err) == ESP_OK && memcmp(back.nonce, notice.nonce, sizeof(back.nonce)) == 0);
	CHECK(stat(file, &info) == 0 && (info.st_mode & 0777) == 0600);

	/* a later one takes its place, and is not taken down by the first one's writer */
	do
		second = random_notice(rng);
	while (memcmp(second.nonce, notice.nonce, sizeof(second.nonce)) == 0);
	CHECK(notice_post(&place, name, &second, 5, never, &err) == ESP_OK);
	notice_remove(&place, name, notice.nonce, never);
	CHECK(notice_look(&place, name, never, &back, &err) == ESP_OK && memcmp(back.nonce, second.nonce, sizeof(back.nonce)) == 0);

	/* what others may have written or read is not believed */
	CHECK(chmod(file, 0640) == 0);
	CHECK(notice_look(&place, name, never, &back, &err) == ESP_EIO && strstr(err.text, "not believed"));
	CHECK(chmod(file, 0600) == 0);
	if (geteuid() == 0) {
		CHECK(chown(file, 12345, 12345) == 0);
		CHECK(notice_look(&place, name, never, &back, &err) == ESP_EIO && strstr(err.text, "belongs to user 12345"));
		CHECK(chown(file, 0, 0) == 0);
	}
	CHECK(truncate(file, 40) == 0);
	CHECK(notice_look(&place, name, never, &back, &err) == ESP_ECORRUPT);
	CHECK(notice_post(&place, name, &second, 5, never, &err) == ESP_OK);
	notice_remove(&place, name, second.nonce, never);
	CHECK(access(file, F_OK) != 0);
	CHECK(symlink("/etc/hostname", file) == 0); /* is not followed */
	CHECK(notice_look(&place, name, never, &back, &err) == ESP_EIO);
	CHECK(unlink(file) == 0);
	CHECK(rmdir(path) == 0); /* nothing is left beside it */
	CHECK(notice_look(&place, name, never, &back, &err) == ESP_EIO && strstr(err.text, "as the job's store"));
	CHECK(notice_post(&place, name, &notice, 5, never, &err) == ESP_EIO);
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
