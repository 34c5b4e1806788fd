#include "base/conf.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/log.h"
#include "base/quote.h"

static int complaints;
static char last[256];

static void keep(void *context, const struct error *complaint)
{
	CHECK(context == &complaints);
	CHECK(complaint->status != ESP_OK);
	snprintf(last, sizeof last, "%s", complaint->text);
	complaints++;
}

static void decode(struct conf *conf, const char *text, size_t size)
{
	struct error refusal;
	complaints = 0;
	last[0] = '\0';
	if (conf_decode(conf, text, size, "a.conf", keep, &complaints, &refusal) != ESP_OK)
		keep(&complaints, &refusal);
}

static void load(struct conf *conf)
{
	struct error refusal;
	complaints = 0;
	last[0] = '\0';
	if (conf_load(conf, keep, &complaints, &refusal) != ESP_OK)
		keep(&complaints, &refusal);
}

#define DECODE(conf, literal) decode(conf, literal, sizeof literal - 1)

static enum esp_status set(struct conf *conf, const char *name, const char *value, enum conf_origin origin)
{
	struct error err;
	error_clear(&err);
	enum esp_status status = conf_set(conf, name, strlen(name), value, strlen(value), origin, &err);
	snprintf(last, sizeof last, "%s", err.text);
	return status;
}

/* Member by member, as the table knows them. */
static void check_same(const struct conf *actual, const struct conf *expected)
{
	char text[CONF_VALUE_TEXT], expected_text[CONF_VALUE_TEXT];
	for (size_t i = 0; i < CONF_COUNT; i++) {
		CHECK_STR(conf_value_text(actual, i, text), conf_value_text(expected, i, expected_text));
		CHECK_U64(actual->origins[i], expected->origins[i]);
	}
}

static void test_defaults(void)
{
	struct conf conf;
	char text[CONF_VALUE_TEXT];
	conf_init(&conf);
	CHECK_U64(conf.chunk_bytes, 0); /* below the least: ours to choose */
	CHECK_U64(conf.credits, 16);
	CHECK_U64(conf.active_chunks, 64);
	CHECK_U64(conf.lanes, 0);
	CHECK_U64(conf.log, LOG_LEVEL_WARN);
	for (size_t i = 0; i < CONF_COUNT; i++) {
		CHECK_STR(conf_value_text(&conf, i, text), conf_setting_at(i)->fallback);
		CHECK(conf.origins[i] == CONF_DEFAULT);
	}
	CHECK(!conf_setting_at(CONF_COUNT));
}

static void test_file(void)
{
	struct conf conf;
	conf_init(&conf);
	DECODE(&conf, "# a comment\n\n  lanes = 4 \r\nESP_CHUNK_BYTES=1M\nLog=Trace");
	CHECK_U64(complaints, 0);
	CHECK_U64(conf.lanes, 4);
	CHECK_U64(conf.chunk_bytes, 1 << 20);
	CHECK_U64(conf.log, LOG_LEVEL_TRACE);
	CHECK_U64(conf.origins[0], CONF_FILE);
	CHECK_U64(conf.origins[1], CONF_DEFAULT);
	DECODE(&conf, "lanes=5\nlanes=6\n"); /* of equals, the last one counts */
	CHECK_U64(conf.lanes, 6);
}

static void test_file_complaints(void)
{
	struct conf conf, untouched;
	conf_init(&conf);
	conf_init(&untouched);
	DECODE(&conf, "\nlanes=65\n");
	CHECK_STR(last, "a.conf:2: lanes is 0 or a number from 1 to 64, not '65'; ignored");
	DECODE(&conf, "chunk_bytes=12");
	CHECK_STR(last, "a.conf:1: chunk_bytes is 0 or a number of bytes from 256 to 64M, not '12'; ignored");
	DECODE(&conf, "log=loud");
	CHECK_STR(last, "a.conf:1: log is one of off, error, warn, info, trace, not 'loud'; ignored");
	DECODE(&conf, "lane=2");
	CHECK_STR(last, "a.conf:1: there is no setting 'lane' (did you mean lanes?); ignored");
	DECODE(&conf, "ESP_LANE=2");
	CHECK_STR(last, "a.conf:1: there is no setting 'ESP_LANE' (did you mean lanes?); ignored");
	DECODE(&conf, "transport=tcp # why");
	CHECK_STR(last,
	          "a.conf:1: transport is one of auto, shm, tcp, not 'tcp # why' (a comment stands on a line of its own)");
	DECODE(&conf, "lanes=4# why");
	CHECK_STR(last, "a.conf:1: lanes is 0 or a number from 1 to 64, not '4# why'; ignored");
	DECODE(&conf, "foo=2");
	CHECK_STR(last, "a.conf:1: there is no setting 'foo'; espalier conf lists them; ignored");
	DECODE(&conf,
	       "lanes\n=2\nlanes=\nlanes=-1\nlanes=2 3\nlanes=\0002\nla\0nes=2\n\xff=\xff\nlanes=99999999999999999999");
	CHECK_U64(complaints, 9);
	check_same(&conf, &untouched);
}

static void test_file_limits(void)
{
	struct conf conf;
	char line[CONF_LINE_MAX + 16];
	conf_init(&conf);
	memset(line, ' ', sizeof line);
	memcpy(line, "lanes=7", 7);
	decode(&conf, line, CONF_LINE_MAX);
	CHECK_U64(conf.lanes, 7);
	memcpy(line, "lanes=8", 7);
	decode(&conf, line, CONF_LINE_MAX + 1);
	CHECK_U64(conf.lanes, 7);
	CHECK_STR(last, "a.conf:1: the line is too long; ignored");

	char junk[2000];
	for (size_t i = 0; i < sizeof junk; i++)
		junk[i] = i % 2 ? '\n' : 'x';
	decode(&conf, junk, sizeof junk);
	CHECK_U64(complaints, 20);
	CHECK(strstr(last, "and more"));
}

static void test_ranges_and_texts(void)
{
	struct conf conf;
	char text[CONF_VALUE_TEXT], longer[CONF_INTERFACES_MOST + 2];
	conf_init(&conf);
	DECODE(&conf, "port=7000\ninterfaces=^=docker0,lo\nrail_weights=5:1\nfamily=IPv6");
	CHECK_U64(complaints, 0);
	CHECK(conf.port.first == 7000 && conf.port.last == 7000 && conf.family == CONF_FAMILY_IPV6);
	CHECK_STR(conf.interfaces, "^=docker0,lo");
	CHECK_STR(conf.rail_weights, "5:1");
	DECODE(&conf, "port=7000-7015");
	CHECK(conf.port.first == 7000 && conf.port.last == 7015);
	for (size_t i = 0; i < CONF_COUNT; i++)
		if (strcmp(conf_setting_at(i)->name, "port") == 0)
			CHECK_STR(conf_value_text(&conf, i, text), "7000-7015");
	DECODE(&conf, "port=7015-7000\nport=0-7\nport=-7\nport=7-\nport=1-65536\nport=1-2-3");
	CHECK_U64(complaints, 6);
	DECODE(&conf, "port=7 8");
	CHECK_STR(last, "a.conf:1: port is 0 or a number or a range (such as 7000-7015) from 1 to 65535, not '7 8'");
	CHECK(conf.port.first == 7000 && conf.port.last == 7015);
	DECODE(&conf, "port=0");
	CHECK(conf.port.first == 0 && conf.port.last == 0);
	memset(longer, 'x', sizeof longer);
	struct error err;
	CHECK(conf_set(&conf, "interfaces", 10, longer, CONF_INTERFACES_MOST + 1, CONF_FILE, &err) == ESP_EINVAL);
	CHECK(conf_set(&conf, "interfaces", 10, longer, CONF_INTERFACES_MOST, CONF_FILE, &err) == ESP_OK);
	CHECK(conf_set(&conf, "interfaces", 10, "", 0, CONF_FILE, &err) == ESP_OK);
	CHECK_STR(conf.interfaces, "");
}

static void test_text(void)
{
	struct conf conf;
	char text[CONF_VALUE_TEXT], longest[CONF_TEXT_MAX + 1];
	conf_init(&conf);
	DECODE(&conf, "log_file = /var/log/a b-%r.log \ndump_dir=\n");
	CHECK_U64(complaints, 0);
	CHECK_STR(conf.log_file, "/var/log/a b-%r.log");
	CHECK_STR(conf.dump_dir, "");
	CHECK(set(&conf, "log_file", "a\nb", CONF_FILE) == ESP_EINVAL);
	CHECK_STR(last, "log_file is a text of at most 239 printable bytes, not 'a?b'");
	memset(longest, 'x', CONF_TEXT_MAX);
	longest[CONF_TEXT_MAX] = '\0';
	CHECK(set(&conf, "log_file", longest, CONF_FILE) == ESP_EINVAL);
	CHECK_STR(conf.log_file, "/var/log/a b-%r.log");
	longest[CONF_TEXT_MAX - 1] = '\0';
	CHECK(set(&conf, "log_file", longest, CONF_FILE) == ESP_OK);
	size_t index = 0;
	while (strcmp(conf_setting_at(index)->name, "log_file") != 0)
		index++;
	CHECK_STR(conf_value_text(&conf, index, text), longest);
}

static void test_precedence(void)
{
	struct conf conf;
	conf_init(&conf);
	CHECK(set(&conf, "lanes", "3", CONF_ENVIRONMENT) == ESP_OK);
	CHECK(set(&conf, "lanes", "2", CONF_FILE) == ESP_OK);
	CHECK_U64(conf.lanes, 3);
	CHECK(set(&conf, "lanes", "4", CONF_COMMAND_LINE) == ESP_OK);
	CHECK(set(&conf, "lanes", "5", CONF_ENVIRONMENT) == ESP_OK);
	CHECK_U64(conf.lanes, 4);
	CHECK_U64(conf.origins[3], CONF_COMMAND_LINE);
	CHECK(set(&conf, "lanes", "junk", CONF_FILE) == ESP_EINVAL);
	CHECK(set(&conf, "ESP_", "1", CONF_FILE) == ESP_EINVAL);
	CHECK(set(&conf, "", "1", CONF_FILE) == ESP_EINVAL);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	CHECK(file);
	fputs(text, file);
	CHECK(fclose(file) == 0);
}

/* Removes the settings of the shell that runs the test. */
static void clear_environment(void)
{
	unsetenv("ESP_CONF_FILE");
	for (size_t i = 0; i < CONF_COUNT; i++) {
		char name[64];
		snprintf(name, sizeof name, "ESP_%s", conf_setting_at(i)->name);
		for (char *c = name; *c; c++)
			*c = (char)toupper((unsigned char)*c);
		unsetenv(name);
	}
}

static void test_lookup(void)
{
	setenv("ESP_CONF_TEST", "here", 1);
	CHECK_STR(conf_environment(NULL, "ESP_CONF_TEST"), "here");
	unsetenv("ESP_CONF_TEST");
	CHECK(!conf_environment(NULL, "ESP_CONF_TEST"));
}

static void test_environment(const char *folder)
{
	struct conf conf;
	char path[256];
	clear_environment();
	snprintf(path, sizeof path, "%s/espalier.conf", folder);
	write_file(path, "lanes=2\ncredits=8\nlog=oops\n");
	setenv("ESP_CONF_FILE", path, 1);
	setenv("ESP_LANES", "3", 1);
	setenv("ESP_ACTIVE_CHUNKS", "x", 1);
	setenv("ESP_PORT", "", 1); /* as if it were not set */
	load(&conf);
	CHECK_U64(conf.lanes, 3);
	CHECK_U64(conf.credits, 8);
	CHECK_U64(conf.active_chunks, 64);
	CHECK_U64(complaints, 2);
	CHECK_STR(last,
	          "environment variable ESP_ACTIVE_CHUNKS: active_chunks is a number from 1 to 65536, not 'x'; ignored");
	unlink(path);
	load(&conf);
	CHECK_U64(complaints, 2);
	CHECK(strncmp(last, "ESP_CONF_FILE: cannot open ", 27) == 0);
	CHECK_U64(conf.credits, 16);
	clear_environment();
	setenv("ESP_CONF_FILE", "", 1);
	load(&conf);
	CHECK_U64(complaints, 1);
	CHECK_STR(last, "ESP_CONF_FILE is empty: name a file in it, or unset it");
	clear_environment();
}

/* A name of the version before sets what has a new name now, with a warning; the new name counts before it. */
static void test_old_names(void)
{
	static const char *const names[][2] = {
		{"stores", "peer_stores"}, {"seats", "core_affinity"}, {"board_bytes", "small_shm_bytes"}};
	struct conf conf;
	struct error why;

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		CHECK(conf_is_renamed(names[i][0], strlen(names[i][0]), &why));
		CHECK(strstr(why.text, names[i][0]) && strstr(why.text, names[i][1]));
		CHECK(!conf_is_renamed(names[i][1], strlen(names[i][1]), &why));
	}
	CHECK(conf_is_renamed("ESP_SEATS", 9, &why) && !conf_is_renamed("lanes", 5, &why) && !conf_is_renamed("", 0, &why));

	conf_init(&conf);
	DECODE(&conf, "stores=no\nboard_bytes=1K\n");
	CHECK(!conf.peer_stores && conf.small_shm_bytes == 1024 && complaints == 2);
	CHECK_STR(last, "a.conf:2: 'board_bytes' is now called small_shm_bytes; the old name works in this version only");
	DECODE(&conf, "seats=perhaps\n");
	CHECK(conf.core_affinity && complaints == 2);
	CHECK_STR(last, "a.conf:1: core_affinity is yes or no, not 'perhaps'; ignored");

	clear_environment();
	setenv("ESP_SEATS", "no", 1);
	load(&conf);
	CHECK(!conf.core_affinity && complaints == 1);
	CHECK_STR(
		last,
		"environment variable ESP_SEATS is now called ESP_CORE_AFFINITY; the old name works in this version only");
	setenv("ESP_CORE_AFFINITY", "yes", 1);
	load(&conf);
	CHECK(conf.core_affinity && complaints == 0);
	complaints = 0;
	conf_check_environment(keep, &complaints);
	CHECK_U64(complaints, 0); /* it has been told of while loading */
	unsetenv("ESP_SEATS");
	unsetenv("ESP_CORE_AFFINITY");
}

/*
 * Settings that must not be passed over: the first wrong one is the reason to go no further, whatever stronger place
 * has it right.
 */
static void test_strict(const char *folder)
{
	static const char *const strict[][2] = {
		{"ESP_PORT", "abc"},     {"ESP_FAMILY", "ipx"},     {"ESP_QUORUM", "most"},    {"ESP_LIVENESS_MS", "10s"},
		{"ESP_TRANSPORT", "ib"}, {"ESP_INSECURE", "maybe"}, {"ESP_INTERFACES", "a\nb"}};
	struct conf conf;
	struct error refusal;
	char path[256];
	clear_environment();
	for (size_t i = 0; i < sizeof strict / sizeof strict[0]; i++) {
		setenv(strict[i][0], strict[i][1], 1);
		complaints = 0;
		CHECK(conf_load(&conf, keep, &complaints, &refusal) == ESP_EINVAL);
		CHECK_MSG(complaints == 0 && strstr(refusal.text, strict[i][0]) && !strstr(refusal.text, "ignored"), "%s",
		          refusal.text);
		clear_environment();
	}
	snprintf(path, sizeof path, "%s/strict.conf", folder);
	write_file(path, "\nquorum=perhaps\nlanes=x\nport=y\n");
	setenv("ESP_CONF_FILE", path, 1);
	setenv("ESP_QUORUM", "yes", 1);
	complaints = 0;
	CHECK(conf_load(&conf, keep, &complaints, &refusal) == ESP_EPARSE);
	CHECK(complaints == 2 && strstr(refusal.text, "strict.conf:2: quorum is yes or no, not 'perhaps'") && conf.quorum);
	unlink(path);
	clear_environment();
}

/* As long as values can be, there is room for them, and for some settings more. */
static void test_agreed(void)
{
	struct conf conf;
	char text[CONF_AGREED_TEXT], value[CONF_VALUE_TEXT];
	size_t longest = 0;
	conf_init(&conf);
	CHECK(strncmp(conf_agreed_text(&conf, text), "chunk_bytes=0 credits=16 ", 25) == 0 && !strstr(text, "log="));
	conf.lanes = 7;
	CHECK(strstr(conf_agreed_text(&conf, text), " lanes=7 "));
	for (size_t i = 0; i < CONF_COUNT; i++) {
		const struct conf_setting *setting = conf_setting_at(i);
		if (!setting->agreed)
			continue;
		snprintf(value, sizeof value, "%llu", (unsigned long long)setting->max); /* no number is shown longer */
		size_t most = setting->type == CONF_TEXT ? setting->max : strlen(value);
		longest += strlen(setting->name) + 1 + (most > 8 ? most : 8) + 1;
	}
	CHECK_MSG(longest + 100 < CONF_AGREED_TEXT, "%zu bytes", longest);
}

static void check_names(char *const *words, int wanted)
{
	complaints = 0;
	last[0] = '\0';
	conf_check_names(words, keep, &complaints);
	CHECK_U64(complaints, wanted);
}

static void test_names(void)
{
	char *known[] = {"ESP_LANES=x",
	                 "ESP_RANK=1",
	                 "ESP_SIZE=2",
	                 "ESP_LEADER=a:1",
	                 "ESP_JOB=",
	                 "ESP_EPOCH=0",
	                 "ESP_LOCAL_RANK=0",
	                 "ESP_KEY=k",
	                 "ESP_KEY_FILE=f",
	                 "ESP_CONF_FILE=",
	                 "ESP_JOIN_SECONDS=1",
	                 "ESP_LOCAL_SIZE=1",
	                 "ESPRESSO=1",
	                 "LANES=4",
	                 "ESP_LAUNCHER=x",
	                 "PATH=/bin",
	                 NULL};
	char *misspelt[] = {"ESP_LANS=4", NULL}, *small[] = {"ESP_lanes=4", NULL}, *rank[] = {"ESP_RNAK", NULL};
	char *far[] = {"ESP_IDF_VERSION=5", NULL}, *odd[] = {"ESP_=", "ESP_\n=1", NULL};
	char *many[] = {"ESP_A1=", "ESP_B1=", "ESP_C1=", "ESP_D1=", "ESP_E1=", "ESP_F1=", NULL};
	check_names(NULL, 0);
	check_names(known, 0);
	check_names(misspelt, 1);
	CHECK_STR(last, "environment variable 'ESP_LANS' means nothing; did you mean ESP_LANES?");
	check_names(small, 1);
	CHECK_STR(last, "environment variable 'ESP_lanes' means nothing; did you mean ESP_LANES?");
	check_names(rank, 1);
	CHECK_STR(last, "environment variable 'ESP_RNAK' means nothing; did you mean ESP_RANK?");
	check_names(far, 1);
	CHECK_STR(last, "environment variable 'ESP_IDF_VERSION' means nothing; espalier conf lists the settings");
	check_names(odd, 2);
	CHECK_STR(last, "environment variable 'ESP_?' means nothing; espalier conf lists the settings");
	check_names(many, 5);
	CHECK_STR(last, "and 2 more variables that begin with ESP_ and mean nothing");

	clear_environment();
	setenv("ESP_CHUNK_BYTE", "1M", 1);
	complaints = 0;
	conf_check_environment(keep, &complaints);
	CHECK_U64(complaints, 1);
	CHECK_STR(last, "environment variable 'ESP_CHUNK_BYTE' means nothing; did you mean ESP_CHUNK_BYTES?");
	unsetenv("ESP_CHUNK_BYTE");
}

static void test_odd_files(const char *folder)
{
	struct conf conf;
	struct error err;
	char path[256], link[256], fifo[256];
	conf_init(&conf);
	snprintf(path, sizeof path, "%s/real", folder);
	snprintf(link, sizeof link, "%s/link", folder);
	snprintf(fifo, sizeof fifo, "%s/fifo", folder);
	write_file(path, "lanes=9\n");
	CHECK(symlink(path, link) == 0 && mkfifo(fifo, 0600) == 0);
	CHECK(conf_read_file(&conf, link, NULL, NULL, &err) == ESP_OK);
	CHECK_U64(conf.lanes, 9);
	CHECK(conf_read_file(&conf, fifo, NULL, NULL, &err) == ESP_EIO);
	CHECK(strstr(err.text, "not a regular file"));
	CHECK(conf_read_file(&conf, folder, NULL, NULL, &err) == ESP_EIO);
	CHECK(conf_read_file(&conf, "/dev/zero", NULL, NULL, &err) == ESP_EIO);
	CHECK(truncate(path, CONF_FILE_MAX) == 0);
	CHECK(conf_read_file(&conf, path, NULL, NULL, &err) == ESP_OK);
	CHECK(truncate(path, CONF_FILE_MAX + 1) == 0);
	CHECK(conf_read_file(&conf, path, NULL, NULL, &err) == ESP_ELIMIT);
	unlink(path);
	unlink(link);
	unlink(fifo);
}

static void test_quote(void)
{
	char out[QUOTE_TEXT], longer[200];
	CHECK_STR(quote("", 0, out), "''");
	CHECK_STR(quote("a\nb\0c\xff d\x7f", 9, out), "'a?b?c? d?'");
	memset(longer, 'z', sizeof longer);
	quote(longer, sizeof longer, out);
	CHECK_U64(strlen(out), QUOTE_TEXT - 1);
	CHECK_STR(out + QUOTE_TEXT - 6, "z'...");
}

int main(void)
{
	char folder[] = "/tmp/espalier-conf-XXXXXX";
	CHECK(mkdtemp(folder));
	test_defaults();
	test_file();
	test_file_complaints();
	test_file_limits();
	test_ranges_and_texts();
	test_text();
	test_precedence();
	test_lookup();
	test_environment(folder);
	test_old_names();
	test_strict(folder);
	test_names();
	test_agreed();
	test_odd_files(folder);
	test_quote();
	rmdir(folder);
	return 0;
}
