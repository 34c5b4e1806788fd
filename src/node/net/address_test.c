#include "node/net/address.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"

static const struct {
	const char *text, *host;
	uint16_t port;
} good[] = {
	{"node7:29501", "node7", 29501},
	{"10.0.0.1:1", "10.0.0.1", 1},
	{"[::1]:65535", "::1", 65535},
	{"[2001:db8::17]:80", "2001:db8::17", 80},
	{"[fe80::1%eth0]:80", "fe80::1%eth0", 80},
	{"job-0.workers.svc.cluster.local:4242", "job-0.workers.svc.cluster.local", 4242},
};

static const char *const bad[] = {
	"", ":", "node7", "node7:", ":80", "node7:0", "node7:65536", "node7:-1", "node7:8 0", "node 7:80", "::1:80",
	"[::1]", "[::1:80", "::1]:80", "[node7]:80", "[]:80", "[::g]:80", "http://node7:80", "user@node7:80",
	"no\nde:80", "node7:99999999999999999999", "[::1]x:80",
};

static void parse(void)
{
	struct address address;
	struct error err;
	char text[ADDRESS_TEXT];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		CHECK_MSG(address_parse(good[i].text, "X", &address, &err) == ESP_OK, "%s", good[i].text);
		CHECK_STR(address.host, good[i].host);
		CHECK_U64(address.port, good[i].port);
		CHECK_STR(address_format(&address, text), good[i].text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_MSG(address_parse(bad[i], "X", &address, &err) == ESP_EINVAL, "%s", bad[i]);
	CHECK(address_parse("node7", "ESP_LEADER", &address, &err) == ESP_EINVAL);
	CHECK_STR(err.text, "ESP_LEADER is host:port or [IPv6]:port with a port from 1 to 65535, not 'node7'");

	char longer[400];
	memset(longer, 'a', sizeof(longer));
	memcpy(longer + 396, ":80", 4);
	CHECK(address_parse(longer, "X", &address, &err) == ESP_EINVAL);
	CHECK(address_parse(longer + 396 - 255, "X", &address, &err) == ESP_OK);
	CHECK(address_parse(longer + 396 - 256, "X", &address, &err) == ESP_EINVAL);
}

static void parts(void)
{
	struct address address;
	struct error err;

	CHECK(address_from_parts("::1", "A", "80", "P", &address, &err) == ESP_OK);
	CHECK_STR(address.host, "::1");
	CHECK(address_from_parts("[::1]", "A", "80", "P", &address, &err) == ESP_OK);
	CHECK_STR(address.host, "::1");
	CHECK(address_from_parts("node7:80", "A", "80", "P", &address, &err) == ESP_EINVAL);
	CHECK_STR(err.text, "A is the name or address of a host, not 'node7:80'");
	CHECK(address_from_parts("node7", "A", "http", "P", &address, &err) == ESP_EINVAL);
	CHECK_STR(err.text, "P is a port from 1 to 65535, not 'http'");
}

static bool loopback(const char *host)
{
	struct address address = {.port = 1};
	snprintf(address.host, sizeof(address.host), "%s", host);
	return address_is_loopback(&address);
}

static bool numeric(const char *host)
{
	struct address address = {.port = 1};
	snprintf(address.host, sizeof(address.host), "%s", host);
	return address_is_numeric(&address);
}

static void kinds(void)
{
	CHECK(loopback("localhost") && loopback("LocalHost") && loopback("127.0.0.1") && loopback("127.9.9.9"));
	CHECK(loopback("::1") && loopback("::ffff:127.0.0.1"));
	CHECK(!loopback("128.0.0.1") && !loopback("::") && !loopback("0.0.0.0") && !loopback("node7") && !loopback("::2"));
	CHECK(!loopback("localhost.example.org") && !loopback("127.0.0.1.example.org"));
	CHECK(numeric("1.2.3.4") && numeric("::1") && numeric("fe80::1%eth0"));
	CHECK(!numeric("localhost") && !numeric("1.2.3"));
}

/* A socket that connects to its own port, which has no listener, is connected to itself. */
static void meets_itself(void)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0), lonely = socket(AF_INET, SOCK_STREAM, 0),
	    dialler = socket(AF_INET, SOCK_STREAM, 0);
	int pair[2];

	CHECK(!address_meets_itself(lonely));
	CHECK(bind(lonely, (struct sockaddr *)&name, bytes) == 0 &&
	      getsockname(lonely, (struct sockaddr *)&name, &bytes) == 0);
	CHECK(connect(lonely, (struct sockaddr *)&name, bytes) == 0);
	CHECK(address_meets_itself(lonely));
	name.sin_port = 0;
	CHECK(bind(listener, (struct sockaddr *)&name, bytes) == 0 && listen(listener, 1) == 0);
	CHECK(getsockname(listener, (struct sockaddr *)&name, &bytes) == 0 &&
	      connect(dialler, (struct sockaddr *)&name, bytes) == 0);
	CHECK(!address_meets_itself(dialler));
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && !address_meets_itself(pair[0]));
	close(pair[0]);
	close(pair[1]);
	close(dialler);
	close(lonely);
	close(listener);
}

int main(void)
{
	parse();
	parts();
	kinds();
	meets_itself();
	return 0;
}
