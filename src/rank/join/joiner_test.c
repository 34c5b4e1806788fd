/*
 * joiner_test.c - ESP_DOOR is parsed; addresses of other jobs or other programs do not keep a joiner from the
 * rest.
 */
#include "rank/join/joiner.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "node/net/listen.h"

static enum esp_status parse(const char *text, struct join_addresses *out, struct error *err)
{
	error_clear(err);
	return join_addresses_parse(text, out, err);
}

static void test_good(void)
{
	static const char *const same[] = {"10.0.0.1:7000,[::1]:7001", "10.0.0.1:7000,[::1]:7001,",
	                                   ",10.0.0.1:7000,,[::1]:7001,,"};
	struct join_addresses addresses;
	struct error err;

	for (unsigned i = 0; i < 3; i++) {
		CHECK(parse(same[i], &addresses, &err) == ESP_OK);
		CHECK_U64(addresses.count, 2);
		CHECK_STR(addresses.all[0].host, "10.0.0.1");
		CHECK_U64(addresses.all[1].port, 7001);
		CHECK(!join_addresses_are_loopback(&addresses));
	}
	CHECK(parse("127.0.0.1:1,[::1]:2", &addresses, &err) == ESP_OK && join_addresses_are_loopback(&addresses));
}

static void test_bad(void)
{
	char many[JOIN_ADDRESSES_MOST * 16 + 32] = "", longer[ADDRESS_TEXT + 8];
	struct join_addresses addresses;
	struct error err;

	CHECK(parse(",", &addresses, &err) == ESP_EINVAL && strstr(err.text, "ESP_DOOR names no door"));
	CHECK(parse("10.0.0.1", &addresses, &err) == ESP_EINVAL && strstr(err.text, "ESP_DOOR"));
	CHECK(parse("10.0.0.1:1, 10.0.0.2:1", &addresses, &err) == ESP_EINVAL);
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CHECK(parse(longer, &addresses, &err) == ESP_EINVAL && strstr(err.text, "too long"));
	for (unsigned i = 0; i < JOIN_ADDRESSES_MOST; i++)
		snprintf(many + strlen(many), sizeof(many) - strlen(many), "10.0.0.%u:1,", i);
	CHECK(parse(many, &addresses, &err) == ESP_OK && addresses.count == JOIN_ADDRESSES_MOST);
	strcat(many, "10.0.0.99:1");
	CHECK(parse(many, &addresses, &err) == ESP_EINVAL && strstr(err.text, "more than"));
}

/* ---- addresses, some of which are of other jobs ---- */

enum kind {
	OURS,           /* admits */
	OTHER_JOB,      /* refuses with a reason */
	OTHER_SETTINGS, /* the same                                      */
	OTHER_KEY,      /* closes when it sees the proof */
	JOINING,        /* the leader of a job whose ranks are joining */
	LEAVES,         /* admits at first, then closes for good */
	GARBAGE,        /* speaks another protocol */
	SILENT,         /* accepts and sends nothing */
};

struct server {
	enum kind kind;
	int fd;
	uint16_t port;
	bool is_kept_alive; /* a vanished joiner would have been detected within a minute */
	unsigned guests;
	pthread_t thread;
};

static void config_init(struct join_config *config, const char *job, uint64_t deadline_ns)
{
	struct conf conf;

	conf_init(&conf);
	*config = (struct join_config){.deadline_ns = deadline_ns, .launch = {.size = 2}};
	snprintf(config->launch.job, sizeof(config->launch.job), "%s", job);
	join_prepare(config, &conf);
	host_info_describe(&config->info);
	memcpy(config->key, "a key of thirty-two bytes ......", sizeof(config->key));
}

/* The kernel's table has for each connection its timer, 2: keepalive; and when it expires, in USER_HZ ticks. */
static bool is_kept_alive(int fd)
{
	struct sockaddr_in name = {0};
	socklen_t length = sizeof(name);
	unsigned here, there, timer;
	unsigned long when;
	bool found = false;
	char line[256];

	CHECK(getpeername(fd, (struct sockaddr *)&name, &length) == 0);
	FILE *table = fopen("/proc/net/tcp", "re");
	while (table && fgets(line, sizeof(line), table)) {
		if (sscanf(line, " %*u: %*x:%x %*x:%x %*x %*x:%*x %x:%lx", &here, &there, &timer, &when) == 4 &&
		    here == ntohs(name.sin_port))
			found = found || (timer == 2 && when <= 60UL * (unsigned long)sysconf(_SC_CLK_TCK));
	}
	if (table)
		fclose(table);
	return found;
}

/* The connection blocks: nothing else happens on it. */
static bool prove(int fd, const struct server *server)
{
	struct handshake_config listener;
	struct handshake handshake;
	struct join_config config;
	uint8_t bytes[PROOF_BYTES];
	const uint8_t *out;
	size_t n, used;
	ssize_t got = 1;

	config_init(&config, server->kind == OTHER_JOB ? "another" : "ours", 0);
	config.info.settings[0] ^= server->kind == OTHER_SETTINGS;
	config.key[0] ^= server->kind == OTHER_KEY;
	join_listener(&config, 1u << (server->kind == JOINING ? HELLO_RENDEZVOUS : HELLO_JOINER), 0, &listener);
	handshake_init(&handshake, HANDSHAKE_LISTENER, &listener);
	do {
		struct error unused;

		handshake_output(&handshake, &out, &n);
		CHECK(n == 0 || send(fd, out, n, MSG_NOSIGNAL) == (ssize_t)n);
		handshake_sent(&handshake, n);
		if (handshake.status != ESP_PENDING)
			break;
		got = recv(fd, bytes, handshake_wants(&handshake), 0);
		if (got > 0)
			(void)handshake_input(&handshake, bytes, (size_t)got, &used, &unused);
	} while (got > 0);
	bool is_proved = handshake.status == ESP_OK;
	handshake_fini(&handshake);
	return is_proved;
}

static void say(int fd, enum control_type type, const char *text)
{
	struct control_msg msg = {.type = (uint8_t)type, .about = 4};
	uint8_t bytes[CONTROL_BYTES];

	if (type == CONTROL_INVITE) {
		msg.invite.size = 5;
		msg.invite.epoch = 1;
		snprintf(msg.invite.leader, sizeof(msg.invite.leader), "%s", text);
	} else if (type == CONTROL_REFUSE) {
		snprintf(msg.refuse.text, sizeof(msg.refuse.text), "%s", text);
	} else if (type == CONTROL_BEAT) {
		msg.beat.silence_ns = 1;
	}
	control_encode(&msg, bytes);
	CHECK(send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) == sizeof(bytes));
}

static void serve(struct server *server, int fd)
{
	uint8_t arrival[RENDEZVOUS_ARRIVAL_BYTES];

	server->guests++;
	if (server->kind == GARBAGE) {
		CHECK(send(fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL) == 28);
	} else if (!prove(fd, server)) {
		CHECK(server->kind == OTHER_KEY || server->kind == JOINING);
	} else if (server->kind == OURS) {
		server->is_kept_alive = is_kept_alive(fd);
		say(fd, CONTROL_INVITE, "127.0.0.1:1");
	} else if (server->kind != LEAVES) {
		CHECK(recv(fd, arrival, sizeof(arrival), MSG_WAITALL) == sizeof(arrival));
		say(fd, CONTROL_REFUSE, server->kind == OTHER_JOB ? "another job" : "other settings");
	}
}

static void *server_main(void *argument)
{
	struct server *server = argument;
	int fd;

	while ((fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		serve(server, fd);
		close(fd);
		if (server->kind == LEAVES)
			break;
	}
	close(server->fd);
	return NULL;
}

/* host: of loopback; port 0: any. */
static void server_open(struct server *server, enum kind kind, const char *host, uint16_t port)
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_port = htons(port)};
	int on = 1;

	*server = (struct server){.kind = kind, .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	CHECK(server->fd >= 0 && inet_pton(AF_INET, host, &name.sin_addr) == 1);
	setsockopt(server->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	CHECK(bind(server->fd, (struct sockaddr *)&name, sizeof(name)) == 0 && listen(server->fd, 16) == 0);
	server->port = listen_port(server->fd);
	if (kind != SILENT)
		CHECK(pthread_create(&server->thread, NULL, server_main, server) == 0);
}

static void server_close(struct server *server)
{
	if (server->kind != LEAVES)
		shutdown(server->fd, SHUT_RDWR);
	if (server->kind != SILENT)
		CHECK(pthread_join(server->thread, NULL) == 0);
	else
		close(server->fd);
}

static enum esp_status wait_at(const struct join_addresses *addresses, unsigned seconds, struct error *err)
{
	struct join_config config;
	struct joiner joiner;

	config_init(&config, "ours", clock_now_ns() + seconds * NS_PER_S);
	enum esp_status status = join_addresses_wait(addresses, &config, &joiner, err);
	if (status == ESP_OK) {
		CHECK(config.launch.rank == 4 && config.launch.size == 5);
		close(joiner.fd);
	} else {
		CHECK(joiner.fd == -1);
	}
	return status;
}

enum { ADDRESSES = 4 };

static enum esp_status visit(const enum kind *kinds, uint32_t count, unsigned seconds, struct server servers[ADDRESSES],
                             struct error *err)
{
	struct join_addresses addresses = {.count = count};

	for (uint32_t i = 0; i < count; i++) {
		server_open(&servers[i], kinds[i], "127.0.0.1", 0);
		snprintf(addresses.all[i].host, sizeof(addresses.all[i].host), "127.0.0.1");
		addresses.all[i].port = servers[i].port;
	}
	enum esp_status status = wait_at(&addresses, seconds, err);
	for (uint32_t i = 0; i < count; i++)
		server_close(&servers[i]);
	return status;
}

enum { LONG = 1000 }; /* seconds: more than a test has */

static void test_others_first(void)
{
	static const enum kind kinds[][ADDRESSES] = {
		{OTHER_JOB, OTHER_SETTINGS, OTHER_KEY, OURS},
		{LEAVES, OTHER_JOB, GARBAGE, OURS},
		{SILENT, GARBAGE, OTHER_JOB, OURS},
		{JOINING, OTHER_JOB, JOINING, OURS},
	};
	struct server servers[ADDRESSES];
	struct error err;

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		error_clear(&err);
		CHECK_MSG(visit(kinds[i], ADDRESSES, LONG, servers, &err) == ESP_OK, "%s", err.text);
		CHECK(servers[ADDRESSES - 1].is_kept_alive);
	}
}

/* If no address is left it is reported at once, with the reason of a rank of this job, if there is one. */
static void test_others_alone(void)
{
	static const enum kind all[] = {OTHER_JOB, OTHER_SETTINGS, OTHER_JOB};
	struct server servers[ADDRESSES];
	struct error err;

	CHECK(visit(all, 1, LONG, servers, &err) == ESP_EMISMATCH);
	CHECK_MSG(strstr(err.text, "does not let this process in: another job"), "%s", err.text);
	CHECK(visit(all, 3, LONG, servers, &err) == ESP_EMISMATCH);
	CHECK_MSG(strstr(err.text, "nor does any other of ESP_DOOR: other settings"), "%s", err.text);
}

/*
 * An address without an answer is tried again; one that has refused is not, and its reason is reported at the
 * deadline unless a rank of this job has kept the joiner waiting.
 */
static void test_in_the_end(void)
{
	static const enum kind gone[] = {OTHER_KEY, OTHER_JOB}, left[] = {LEAVES, OTHER_JOB};
	struct server servers[ADDRESSES];
	struct error err = {0};

	enum esp_status status = ESP_OK;
	bool is_told = false;

	/* On a busy machine a second may pass before all addresses have been tried. */
	for (unsigned seconds = 1; !is_told && seconds <= 32; seconds *= 2) {
		status = visit(gone, 2, seconds, servers, &err);
		is_told = strstr(err.text, "nor does any other of ESP_DOOR: another job") && servers[0].guests > 1;
	}
	CHECK_MSG(is_told && status == ESP_EMISMATCH && servers[1].guests == 1, "%s", err.text);
	is_told = false;
	for (unsigned seconds = 1; !is_told && seconds <= 32; seconds *= 2) {
		status = visit(left, 2, seconds, servers, &err);
		is_told = strstr(err.text, "no rank has let this process in") != NULL;
	}
	CHECK_MSG(is_told && status == ESP_ETIMEOUT, "%s", err.text);
}

/* It may be over soon, and a rank may listen there then: it is asked again. */
static void test_joining(void)
{
	static const enum kind alone[] = {JOINING};
	struct server servers[ADDRESSES];
	struct error err;

	CHECK(visit(alone, 1, 1, servers, &err) == ESP_ETIMEOUT);
	CHECK_MSG(strstr(err.text, "no door is there, but rank 0 of this job") && servers[0].guests > 1, "%s", err.text);
}

/* ---- names ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while the name server does not answer */

/*
 * Replaces the system's: a name with two addresses, and one whose lookup blocks. Arguments are named as in
 * <netdb.h>.
 */
int getaddrinfo(const char *restrict name, const char *restrict service, const struct addrinfo *restrict req,
                struct addrinfo **restrict pai)
{
	typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);
	lookup *system = (lookup *)(uintptr_t)dlsym(RTLD_NEXT, "getaddrinfo");

	if (strcmp(name, "slow") == 0) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		return EAI_AGAIN;
	}
	if (strcmp(name, "double") != 0)
		return system(name, service, req, pai);
	int result = system("127.0.0.1", service, req, pai);
	if (result == 0)
		result = system("127.0.0.2", service, req, &(*pai)->ai_next);
	return result;
}

/* Another job is at the first address of a name, and a rank of this one at the second. */
static void test_two_addresses(void)
{
	struct server other, ours;
	struct join_addresses addresses;
	struct error err;
	char text[32];

	server_open(&other, OTHER_JOB, "127.0.0.1", 0);
	server_open(&ours, OURS, "127.0.0.2", other.port);
	snprintf(text, sizeof(text), "double:%u", other.port);
	CHECK(parse(text, &addresses, &err) == ESP_OK);
	CHECK_MSG(wait_at(&addresses, LONG, &err) == ESP_OK, "%s", err.text);
	server_close(&other);
	server_close(&ours);
}

static void test_slow_name(void)
{
	struct server ours;
	struct join_addresses addresses;
	struct error err;
	char text[64];

	server_open(&ours, OURS, "127.0.0.1", 0);
	snprintf(text, sizeof(text), "slow:1,127.0.0.1:%u", ours.port);
	CHECK(parse(text, &addresses, &err) == ESP_OK);
	pthread_mutex_lock(&lock);
	CHECK_MSG(wait_at(&addresses, LONG, &err) == ESP_OK, "%s", err.text);
	pthread_mutex_unlock(&lock);
	server_close(&ours);
}

int main(void)
{
	test_good();
	test_bad();
	test_others_first();
	test_others_alone();
	test_in_the_end();
	test_joining();
	test_two_addresses();
	test_slow_name();
	return 0;
}
