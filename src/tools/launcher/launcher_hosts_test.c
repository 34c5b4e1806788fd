#include "tools/launcher/launcher_hosts.h"

#include "base/check.h"

/* Returns "a:4 user@b:1", the hosts and their slots; or the error. */
static const char *shown(const struct run_hosts *hosts, enum esp_status status, const struct error *err)
{
	static char text[512];
	size_t used = 0;
	text[0] = '\0';
	if (status != ESP_OK)
		snprintf(text, sizeof(text), "%s", err->text);
	for (uint32_t i = 0; status == ESP_OK && i < hosts->count; i++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s:%u", i ? " " : "", hosts->list[i].name,
		                         hosts->list[i].slots);
	return text;
}

static const char *parsed(const char *list)
{
	struct run_hosts hosts = {0};
	struct error err;
	const char *text = shown(&hosts, launcher_hosts_parse(&hosts, list, &err), &err);
	launcher_hosts_fini(&hosts);
	return text;
}

static const char *decoded(const char *file)
{
	struct run_hosts hosts = {0};
	struct error err;
	const char *text = shown(&hosts, launcher_hosts_decode(&hosts, file, strlen(file), "hosts", &err), &err);
	launcher_hosts_fini(&hosts);
	return text;
}

static void test_list(void)
{
	static const char *const bad[] = {
		"",         ",",    "a,",    ",a",     "a:",     "a:0", "a:-1", "a:65537",     "a:x",     "a:1:2",
		"-a",       "u@-a", "@a",    "u@",     "u@v@a",  "a b", "a;b",  "a$b",         "fe80::1", "[fe80::1",
		"fe80::1]", "[]",   "[x y]", "[::1]x", "[::1]:", "a'b", "a/b",  "a:4,b:65533", "\x80"};
	CHECK_STR(parsed("a:4,b:4"), "a:4 b:4");
	CHECK_STR(parsed("a"), "a:1");
	CHECK_STR(parsed("a, user@b.example.org:2 ,10.0.0.1"), "a:1 user@b.example.org:2 10.0.0.1:1");
	CHECK_STR(parsed("[fe80::1%eth0]:3,u@[::1]"), "fe80::1%eth0:3 u@::1:1");
	CHECK_STR(parsed("a:65536"), "a:65536");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct run_hosts hosts;
		struct error err;
		CHECK_MSG(launcher_hosts_parse(&hosts, bad[i], &err) != ESP_OK, "'%s' was accepted", bad[i]);
	}
	CHECK_STR(parsed("a:0"), "--hosts: the ranks of a host are a whole number from 1 to 65536, not '0'");
}

static void test_file(void)
{
	CHECK_STR(decoded("a slots=4\nb:2 # the second\n\n# nobody\nuser@c\n"), "a:4 b:2 user@c:1");
	CHECK_STR(decoded("a\tslots=4\r\n  b  "), "a:4 b:1");
	CHECK_STR(decoded("\xef\xbb\xbf"
	                  "a\r\nb slots=2\r\n"),
	          "a:1 b:2");
	CHECK(strstr(decoded("\xff\xfe"
	                     "a"),
	             "hosts is UTF-16; save it as UTF-8"));
	CHECK(strstr(decoded("# nobody\n"), "hosts names no host"));
	CHECK(strstr(decoded(""), "hosts names no host"));
	CHECK(strstr(decoded("a\nb max_slots=4\n"), "hosts:2: behind a host stands"));
	CHECK(strstr(decoded("a:2 slots=4\n"), "hosts:1: behind a host stands"));
	CHECK(strstr(decoded("a slots=\n"), "hosts:1: the ranks of a host"));
	CHECK(strstr(decoded("a slots=0\n"), "hosts:1: the ranks of a host"));
	CHECK(strstr(decoded("a slots=4 b\n"), "hosts:1: the ranks of a host"));
	CHECK(strstr(decoded("a\n\n-b\n"), "hosts:3: a host is written"));
	CHECK(strstr(decoded("a slots=65536\nb\n"), "more than 65536 places"));
}

static struct run_hosts settled(const char *list, uint32_t size)
{
	struct run_hosts hosts;
	struct error err;
	CHECK(launcher_hosts_parse(&hosts, list, &err) == ESP_OK);
	CHECK(launcher_hosts_settle(&hosts, size, &err) == ESP_OK);
	return hosts;
}

static void test_ranks(void)
{
	struct run_hosts hosts = settled("a:2,b:3,a:1", 0);
	CHECK_U64(hosts.ranks, 6);
	static const uint32_t places[] = {0, 0, 1, 1, 1, 2}, locals[] = {0, 1, 0, 1, 2, 2};
	for (uint32_t rank = 0; rank < 6; rank++) {
		const struct run_host *host = launcher_hosts_of(&hosts, rank);
		CHECK_U64(host - hosts.list, places[rank]);
		CHECK_U64(host->local_first + (rank - host->first_rank), locals[rank]);
		CHECK_U64(host->local_size, 3);
	}
	launcher_hosts_fini(&hosts);

	hosts = settled("a:2,b:3,c", 3); /* the last slots stay empty */
	CHECK_U64(hosts.ranks, 3);
	CHECK_STR(launcher_hosts_of(&hosts, 1)->name, "a");
	CHECK_STR(launcher_hosts_of(&hosts, 2)->name, "b");
	CHECK_U64(launcher_hosts_of(&hosts, 2)->local_size, 1);
	launcher_hosts_fini(&hosts);

	hosts = settled("u@a:1", 0);
	struct error err;
	CHECK_STR(launcher_host_address(&hosts.list[0]), "a");
	CHECK(launcher_hosts_settle(&hosts, 2, &err) == ESP_EINVAL && strstr(err.text, "places for 1"));
	launcher_hosts_fini(&hosts);
}

/* As many hosts as there can be. */
static void test_many(void)
{
	size_t length = 0, room = (size_t)RUN_RANKS_MAX * 8;
	char *text = malloc(room);
	CHECK(text);
	for (uint32_t i = 0; i < RUN_RANKS_MAX; i++)
		length += (size_t)snprintf(text + length, room - length, "n%u\n", i % 40000);
	struct run_hosts hosts;
	struct error err;
	CHECK(launcher_hosts_decode(&hosts, text, length, "hosts", &err) == ESP_OK);
	CHECK(launcher_hosts_settle(&hosts, 0, &err) == ESP_OK);
	for (uint32_t rank = 0; rank < RUN_RANKS_MAX; rank++) {
		const struct run_host *host = launcher_hosts_of(&hosts, rank);
		CHECK_U64(host->first_rank, rank);
		CHECK_U64(host->local_first, rank >= 40000);
		CHECK_U64(host->local_size, rank % 40000 < RUN_RANKS_MAX - 40000 ? 2 : 1);
	}
	launcher_hosts_fini(&hosts);
	free(text);
}

int main(void)
{
	test_list();
	test_file();
	test_ranks();
	test_many();
	return 0;
}
