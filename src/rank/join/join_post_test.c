/* Jobs that find their leader by an announcement in a folder, one thread per rank. */
#include "rank/join/join.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "node/net/listen.h"
#include "rank/join/announce.h"

#define RANKS 5u
#define DEADLINE_MOST_MS 32000u /* deadlines start short, and are doubled up to this on a busy machine */

struct rank {
	struct join_config config;
	struct roster roster;
	struct error err;
	int32_t culprit;
	enum esp_status status;
	pthread_t thread;
};

static struct rank ranks[RANKS + 1];
static char folder[] = "/tmp/join_post_test.XXXXXX";

static void rank_init(struct rank *rank, uint32_t number, uint32_t size, unsigned deadline_ms)
{
	struct conf conf;

	conf_init(&conf);
	memset(rank, 0, sizeof(*rank));
	rank->config.launch.rank = number;
	rank->config.launch.size = size;
	rank->config.launch.place.kind = ANNOUNCE_FILE;
	snprintf(rank->config.launch.place.path, ANNOUNCE_PATH, "%s", folder);
	join_prepare(&rank->config, &conf);
	host_info_describe(&rank->config.info);
	rank->config.info.pid = 1000 + number;
	rank->config.key_in_announcement = true;
	rank->config.key[0] = (uint8_t)(1 + number); /* rank 0's key is the one that counts */
	rank->config.deadline_ns = clock_now_ns() + deadline_ms * NS_PER_MS;
}

static void ranks_init(uint32_t size, unsigned deadline_ms)
{
	for (uint32_t i = 0; i < size; i++)
		rank_init(&ranks[i], i, size, deadline_ms);
}

static void *run_rank(void *argument)
{
	struct rank *rank = argument;
	rank->status = join_run(&rank->config, &rank->roster, &rank->culprit, &rank->err);
	return NULL;
}

static void start(struct rank *rank)
{
	CHECK(pthread_create(&rank->thread, NULL, run_rank, rank) == 0);
}

static void finish(struct rank *rank)
{
	CHECK(pthread_join(rank->thread, NULL) == 0);
}

static void check_joined(uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		CHECK_MSG(ranks[i].status == ESP_OK, "rank %u: %s", i, ranks[i].err.text);
		CHECK_U64(ranks[i].roster.size, size);
		CHECK(memcmp(ranks[i].config.key, ranks[0].config.key, HANDSHAKE_KEY_BYTES) == 0);
		roster_fini(&ranks[i].roster);
	}
}

static unsigned count_files(void)
{
	unsigned count = 0;
	DIR *dir = opendir(folder);
	CHECK(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(dir);
	return count;
}

static void post(const struct announcement *announcement, const char *job)
{
	char name[ANNOUNCE_NAME];
	struct error err;
	announce_name(job, 0, name);
	CHECK_MSG(announce_post(&ranks[0].config.launch.place, name, announcement, 9, UINT64_MAX, &err) == ESP_OK, "%s",
	          err.text);
}

static bool look(struct announcement *out)
{
	char name[ANNOUNCE_NAME];
	announce_name("", 0, name);
	return announce_look(&ranks[0].config.launch.place, name, UINT64_MAX, out, NULL) == ESP_OK;
}

/* The ranks know neither an address nor a key beforehand; afterwards no file is left. */
static void join_whole(void)
{
	ranks_init(RANKS, 60000);
	for (uint32_t i = RANKS; i > 0; i--)
		start(&ranks[i - 1]);
	for (uint32_t i = 0; i < RANKS; i++)
		finish(&ranks[i]);
	check_joined(RANKS);
	CHECK_U64(count_files(), 0);
}

static const struct announcement silent = {.at_s = 5, .port = 9, .address_count = 2, .has_key = true,
                                           .host_name = "old",
	.addresses = {{NODE_IPV4, {127, 0, 0, 1}}, {NODE_IPV4, {127, 0, 0, 2}}}};
static const struct announcement failed = {.at_s = 5, .host_name = "old", .reason = "rank 3 never came"};

/* An announcement of an earlier epoch costs no more than a failed attempt, and so does a truncated one. */
static void join_over(const struct announcement *left)
{
	char name[ANNOUNCE_NAME], path[ANNOUNCE_PATH + ANNOUNCE_NAME];

	ranks_init(3, 60000);
	if (left) {
		post(left, "");
	} else {
		snprintf(path, sizeof(path), "%s/%s", folder, announce_name("", 0, name));
		int fd = open(path, O_WRONLY | O_CREAT, 0600);
		CHECK(fd >= 0 && write(fd, "espalier notice 1\n", 18) == 18);
		close(fd);
	}
	start(&ranks[1]);
	start(&ranks[2]);
	poll(NULL, 0, 100); /* so that they have most likely read the folder */
	start(&ranks[0]);
	for (uint32_t i = 0; i < 3; i++)
		finish(&ranks[i]);
	check_joined(3);
	CHECK_U64(count_files(), 0);
}

/* Two jobs share a folder and do not see each other. */
static void two_jobs(void)
{
	for (uint32_t i = 0; i < 4; i++) {
		rank_init(&ranks[i], i / 2, 2, 60000);
		snprintf(ranks[i].config.launch.job, LAUNCH_JOB, "%s", i % 2 ? "rose" : "tulip");
		start(&ranks[i]);
	}
	for (uint32_t i = 0; i < 4; i++) {
		finish(&ranks[i]);
		CHECK_MSG(ranks[i].status == ESP_OK, "%s", ranks[i].err.text);
		roster_fini(&ranks[i].roster);
	}
	CHECK(memcmp(ranks[2].config.key, ranks[0].config.key, HANDSHAKE_KEY_BYTES) == 0);
	CHECK(memcmp(ranks[3].config.key, ranks[1].config.key, HANDSHAKE_KEY_BYTES) == 0);
}

/* A rank that comes after joining has failed learns so, also when no process listens any more. */
static void too_late(void)
{
	struct announcement announcement;

	for (unsigned ms = 800; ms <= DEADLINE_MOST_MS; ms *= 2) {
		ranks_init(3, ms);
		start(&ranks[0]);
		start(&ranks[1]);
		finish(&ranks[0]);
		finish(&ranks[1]);
		if (ranks[0].culprit == 2 && ranks[1].culprit == 2)
			break;
	}
	CHECK(ranks[0].culprit == 2 && ranks[1].culprit == 2);
	CHECK(look(&announcement) && announcement.port == 0 &&
	      strstr(announcement.reason, "1 of 3 ranks have not arrived: 2"));
	for (unsigned ms = 300; ms <= DEADLINE_MOST_MS; ms *= 2) {
		rank_init(&ranks[2], 2, 3, ms);
		run_rank(&ranks[2]);
		if (strstr(ranks[2].err.text, "the job failed without this rank on "))
			break;
	}
	CHECK_MSG(ranks[2].status == ESP_ETIMEOUT && strstr(ranks[2].err.text, "the job failed without this rank on ") &&
	          strstr(ranks[2].err.text, "1 of 3 ranks have not arrived: 2"), "%s", ranks[2].err.text);
}

/* Rank 1 of 2 comes alone. Returns its error at the deadline. */
static const char *come_alone(const char *found)
{
	for (unsigned ms = 300; ms <= DEADLINE_MOST_MS; ms *= 2) {
		rank_init(&ranks[1], 1, 2, ms);
		run_rank(&ranks[1]);
		if (strstr(ranks[1].err.text, found))
			break;
	}
	CHECK(ranks[1].status == ESP_ETIMEOUT);
	return ranks[1].err.text;
}

/* The reason of an earlier failure is repeated in full, or up to the end of a word. */
static void why_it_failed(void)
{
	static const char found[] = "the job failed without this rank on ";
	struct announcement left = {.at_s = 5, .host_name = "old",
		.reason = "two processes say that they are rank 1: process 15085 on vm and process 15086 on vm"};

	post(&left, "");
	const char *text = come_alone(found), *end = strstr(text, left.reason);
	CHECK_MSG(end && end[strlen(left.reason)] == '\0', "%s", text);
	for (size_t i = 0; i + 6 < sizeof(left.reason); i += 5)
		memcpy(left.reason + i, "word ", 6);
	post(&left, "");
	text = come_alone(found);
	end = strrchr(text, ' ');
	CHECK_MSG(end && strcmp(end, " word...") == 0, "%s", text);
}

/* When all have joined the announcement is removed: a further rank learns that it may be late. */
static void no_announcement(void)
{
	char name[ANNOUNCE_NAME], path[ANNOUNCE_PATH + ANNOUNCE_NAME];

	snprintf(path, sizeof(path), "%s/%s", folder, announce_name("", 0, name));
	CHECK(unlink(path) == 0);
	const char *text = come_alone("there is no announcement of rank 0");
	CHECK_MSG(strstr(text, "there is no announcement of rank 0") &&
	          strstr(text, "or the job has begun or failed without this rank") && strstr(text, folder) &&
	          strstr(text, name), "%s", text);
}

/* A second rank 0 finds the first one's announcement, and a process answers there. */
static void two_leaders(void)
{
	struct announcement announcement;

	ranks_init(3, 60000);
	start(&ranks[0]);
	while (!look(&announcement) || announcement.port == 0)
		poll(NULL, 0, 5);
	rank_init(&ranks[3], 0, 3, 60000);
	ranks[3].config.info.pid = 77;
	run_rank(&ranks[3]);
	start(&ranks[1]);
	start(&ranks[2]);
	for (uint32_t i = 0; i < 4; i++) {
		if (i < 3)
			finish(&ranks[i]);
		CHECK_MSG(ranks[i].status == ESP_EMISMATCH && ranks[i].culprit == 0 &&
		          strstr(ranks[i].err.text, "two processes say that they are rank 0: process 1000 on "), "%s",
		          ranks[i].err.text);
	}
}

/* Both post at once: the rank whose announcement is replaced reports it. */
static void replaced(void)
{
	struct announcement announcement;

	ranks_init(2, 60000);
	start(&ranks[0]);
	while (!look(&announcement) || announcement.port == 0)
		poll(NULL, 0, 5);
	post(&silent, "");
	finish(&ranks[0]);
	CHECK_MSG(ranks[0].status == ESP_EMISMATCH && ranks[0].culprit == 0 &&
	          strstr(ranks[0].err.text, "process 0 on old, which has replaced the announcement of the first one"), "%s",
	          ranks[0].err.text);
	CHECK(look(&announcement) && announcement.port == silent.port); /* and does not remove the other's */
}

/* A process deletes the announcement while ranks are still to come. */
static void tidied(void)
{
	char name[ANNOUNCE_NAME], path[ANNOUNCE_PATH + ANNOUNCE_NAME];
	struct announcement announcement;

	ranks_init(2, 60000);
	start(&ranks[0]);
	while (!look(&announcement) || announcement.port == silent.port)
		poll(NULL, 0, 5);
	snprintf(path, sizeof(path), "%s/%s", folder, announce_name("", 0, name));
	CHECK(unlink(path) == 0);
	start(&ranks[1]);
	finish(&ranks[0]);
	finish(&ranks[1]);
	check_joined(2);
}

static void keys_and_folders(void)
{
	bool has_heard = false;

	for (unsigned ms = 1000; !has_heard && ms <= DEADLINE_MOST_MS; ms *= 2) {
		ranks_init(2, ms);
		ranks[0].config.key_in_announcement = false; /* it was given a key */
		start(&ranks[0]);
		start(&ranks[1]);
		finish(&ranks[0]);
		finish(&ranks[1]);
		CHECK(ranks[0].status == ESP_ETIMEOUT);
		has_heard = strstr(ranks[1].err.text, "has a key, ESP_KEY or ESP_KEY_FILE, and this rank has none") ||
		            strstr(ranks[1].err.text, "the job failed without this rank");
	}
	CHECK_MSG(has_heard, "%s", ranks[1].err.text);
	for (unsigned ms = 300; ms <= DEADLINE_MOST_MS; ms *= 2) {
		ranks_init(2, ms);
		snprintf(ranks[0].config.launch.place.path, ANNOUNCE_PATH, "%s/none", folder);
		snprintf(ranks[1].config.launch.place.path, ANNOUNCE_PATH, "%s/none", folder);
		run_rank(&ranks[0]);
		run_rank(&ranks[1]);
		if (strstr(ranks[0].err.text, "No such file") && strstr(ranks[1].err.text, "No such file"))
			break;
	}
	CHECK_MSG(ranks[0].status == ESP_EIO && strstr(ranks[0].err.text, "rank 0 could not use the job's store, file:") &&
	          strstr(ranks[0].err.text, "No such file or directory"), "%s", ranks[0].err.text);
	CHECK(ranks[1].status == ESP_ETIMEOUT && strstr(ranks[1].err.text, "No such file or directory"));
}

/* The folder is made after rank 0 has logged that there is none: only the log mentions it. */
static void make_folder(void *context, enum log_level level, const char *line)
{
	CHECK(level == LOG_LEVEL_WARN && strstr(line, "trying again"));
	CHECK(mkdir(context, 0700) == 0);
}

static void comes_later(void)
{
	char path[ANNOUNCE_PATH];
	struct log log;

	snprintf(path, sizeof(path), "%s/later", folder);
	ranks_init(2, 60000);
	log_init(&log, LOG_LEVEL_WARN);
	log.sink = make_folder;
	log.context = path;
	ranks[0].config.log = &log;
	for (uint32_t i = 0; i < 2; i++) {
		memcpy(ranks[i].config.launch.place.path, path, sizeof(path));
		start(&ranks[i]);
	}
	for (uint32_t i = 0; i < 2; i++)
		finish(&ranks[i]);
	check_joined(2);
}

int main(void)
{
	CHECK(mkdtemp(folder));
	join_whole();
	join_over(&silent);
	join_over(&failed);
	join_over(NULL);
	two_jobs();
	too_late();
	why_it_failed();
	no_announcement();
	two_leaders();
	replaced();
	tidied();
	keys_and_folders();
	comes_later();
	char command[64];
	snprintf(command, sizeof(command), "rm -r %s", folder);
	CHECK(system(command) == 0);
	return 0;
}
