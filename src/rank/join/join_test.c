/*
 * Whole jobs join inside this process, one thread per rank, over loopback. Deadlines are short where the test waits for
 * one, and doubled if the machine was too busy for all ranks to arrive in time. No time is asserted.
 */
#include "rank/join/join.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "node/net/backoff.h"
#include "node/net/listen.h"
#include "rank/join/session.h"
#include "wire/ended_msg.h"

#define RANKS_MAX 1024u
#define TRIES 5u                /* where one success proves the point */
#define DEADLINE_MOST_MS 32000u /* deadlines start short and are doubled up to this */

struct rank {
	struct join_config config;
	struct roster roster;
	struct error err;
	int32_t culprit;
	enum esp_status status;
	pthread_t thread;
};

static struct rank ranks[RANKS_MAX];
static uint16_t leader_port;
static const char *leader_host = "127.0.0.1";

/* A port that is free now. The next test takes another one. */
static uint16_t free_port(const char *host)
{
	bool v6 = strchr(host, ':') != NULL;
	struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
	struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = v6 ? sizeof(a6) : sizeof(a4);
	struct sockaddr *address = v6 ? (void *)&a6 : (void *)&a4;
	int fd = socket(address->sa_family, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, address, length) != 0)
		return 0;
	CHECK(getsockname(fd, address, &length) == 0);
	close(fd);
	return ntohs(v6 ? a6.sin6_port : a4.sin_port);
}

static void rank_init(struct rank *rank, uint32_t number, uint32_t size, unsigned deadline_ms)
{
	struct conf conf;

	conf_init(&conf);
	memset(rank, 0, sizeof(*rank));
	rank->config.launch.rank = number;
	rank->config.launch.size = size;
	rank->config.launch.leader.port = leader_port;
	snprintf(rank->config.launch.leader.host, ADDRESS_HOST, "%s", leader_host);
	join_prepare(&rank->config, &conf);
	host_info_describe(&rank->config.info);
	rank->config.info.pid = 1000 + number;
	rank->config.info.port = (uint16_t)(5000 + number);
	memcpy(rank->config.key, "a key of thirty-two bytes ......", 32);
	rank->config.deadline_ns = clock_now_ns() + deadline_ms * NS_PER_MS;
}

static void ranks_init(uint32_t size, unsigned deadline_ms)
{
	leader_port = free_port(leader_host);
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

static void start_all(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		start(&ranks[i]);
}

static void finish_all(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		CHECK(pthread_join(ranks[i].thread, NULL) == 0);
}

static void check_joined(uint32_t size)
{
	for (uint32_t i = 0; i < size; i++) {
		CHECK_MSG(ranks[i].status == ESP_OK, "rank %u: %s", i, ranks[i].err.text);
		CHECK_U64(ranks[i].roster.size, size);
		for (uint32_t k = 0; k < size; k++) {
			CHECK_U64(ranks[i].roster.nodes[k].rank, k);
			CHECK_U64(ranks[i].roster.nodes[k].pid, 1000 + k);
			CHECK_U64(ranks[i].roster.nodes[k].port, 5000 + k);
		}
		roster_fini(&ranks[i].roster);
	}
}

static void check_all_failed(uint32_t count, enum esp_status status, const char *text)
{
	for (uint32_t i = 0; i < count; i++) {
		CHECK_MSG(ranks[i].status == status && strstr(ranks[i].err.text, text), "rank %u: %d, %s; expected %s", i,
		          ranks[i].status, ranks[i].err.text, text);
		CHECK(!ranks[i].roster.nodes);
	}
}

static bool have_all_said(uint32_t count, const char *text)
{
	uint32_t said = 0;

	for (uint32_t i = 0; i < count; i++)
		said += strstr(ranks[i].err.text, text) != NULL;
	return said == count;
}

static void check_culprits(uint32_t count, int32_t culprit)
{
	for (uint32_t i = 0; i < count; i++)
		CHECK_MSG(ranks[i].culprit == culprit, "rank %u blames %d", i, ranks[i].culprit);
}

/* All at once, and a leader with a short backlog: ranks whose connections are dropped come again. */
static void join_crowd(uint32_t size)
{
	ranks_init(size, 120000);
	ranks[0].config.backlog = 1;
	uint64_t begin = clock_now_ns();
	start_all(size);
	finish_all(size);
	double seconds = (double)(clock_now_ns() - begin) / (double)NS_PER_S;
	printf("%u ranks joined with a backlog of 1 in %.3f s\n", size, seconds);
	check_joined(size);
}

static void join_whole(uint32_t size)
{
	ranks_init(size, 60000);
	uint64_t begin = clock_now_ns();
	start_all(size);
	finish_all(size);
	printf("%u ranks joined in %.3f s\n", size, (double)(clock_now_ns() - begin) / (double)NS_PER_S);
	check_joined(size);
}

static void over_ipv6(void)
{
	leader_host = "::1";
	if (free_port(leader_host)) {
		join_whole(4);
		leader_host = "localhost";
		join_whole(4);
	}
	leader_host = "127.0.0.1";
}

/* The leader comes last. */
static void late_leader(void)
{
	ranks_init(4, 60000);
	for (uint32_t i = 1; i < 4; i++)
		start(&ranks[i]);
	poll(NULL, 0, 100);
	start(&ranks[0]);
	finish_all(4);
	check_joined(4);
}

static void one_missing(void)
{
	static const char said[] = "1 of 5 ranks have not arrived: 4";

	for (unsigned ms = 1000; ms <= DEADLINE_MOST_MS; ms *= 2) {
		ranks_init(5, ms);
		start_all(4);
		finish_all(4);
		if (have_all_said(4, said))
			break;
	}
	check_all_failed(4, ESP_ETIMEOUT, said);
	check_culprits(4, 4);
}

static void no_leader(void)
{
	for (unsigned ms = 300; ms <= DEADLINE_MOST_MS; ms *= 2) {
		ranks_init(2, ms);
		run_rank(&ranks[1]);
		if (strstr(ranks[1].err.text, "Connection refused"))
			break;
	}
	CHECK(ranks[1].status == ESP_ETIMEOUT);
	CHECK_MSG(strstr(ranks[1].err.text, "rank 1 could not join at the leader 127.0.0.1:") &&
	          strstr(ranks[1].err.text, "cannot connect: Connection refused; rank 0 never came, or the job has begun "
	                                    "or failed without this rank"), "%s", ranks[1].err.text);
}

static void one_twice(void)
{
	ranks_init(4, 60000);
	rank_init(&ranks[3], 2, 4, 60000);
	ranks[3].config.info.pid = 77;
	start_all(4);
	finish_all(4);
	check_all_failed(4, ESP_EMISMATCH, "two processes say that they are rank 2: process ");
	check_culprits(4, 2);
}

static void other_size(void)
{
	ranks_init(4, 60000);
	rank_init(&ranks[3], 3, 5, 60000);
	start_all(4);
	finish_all(4);
	check_all_failed(4, ESP_EMISMATCH, "rank 3 was started for 5 ranks, rank 0 for 4");
}

/* A rank that comes after the first mismatch is told too, and is then not waited for. */
static void two_misfits(void)
{
	ranks_init(4, 60000);
	rank_init(&ranks[2], 2, 5, 60000);
	rank_init(&ranks[3], 3, 5, 60000);
	start_all(4);
	finish_all(4);
	check_all_failed(4, ESP_EMISMATCH, " was started for 5 ranks, rank 0 for 4");
	CHECK(clock_now_ns() < ranks[0].config.deadline_ns);
}

/* Same key, other job name: that rank is told both names, the others that it is missing and why. */
static void other_job(void)
{
	for (unsigned ms = 1000; ms <= DEADLINE_MOST_MS; ms *= 2) {
		ranks_init(3, ms);
		rank_init(&ranks[2], 2, 3, 3 * ms); /* it times out, but reports what it was told */
		for (uint32_t i = 0; i < 3; i++)
			snprintf(ranks[i].config.launch.job, LAUNCH_JOB, "%s", i == 2 ? "tulip" : "rose");
		start_all(3);
		finish_all(3);
		if (have_all_said(2, "1 of 3 ranks have not arrived: 2; refused: ") && strstr(ranks[2].err.text, "'rose'"))
			break;
	}
	check_all_failed(2, ESP_ETIMEOUT, "1 of 3 ranks have not arrived: 2; refused: ");
	check_all_failed(2, ESP_ETIMEOUT, " from 127.0.0.1 of another job");
	check_culprits(2, 2);
	CHECK(!strstr(ranks[0].err.text, "key"));
	static const char other[] = "rank 2 belongs to the job 'tulip', but the leader, rank 0, to the job 'rose'";
	CHECK_MSG(ranks[2].status == ESP_ETIMEOUT && strstr(ranks[2].err.text, other), "%s", ranks[2].err.text);
}

/* Ranks of another job do not disturb this one, whatever else is wrong with them. */
static void other_job_harmless(void)
{
	ranks_init(3, 60000);
	rank_init(&ranks[3], 9, 20, 1000); /* another size, a rank beyond this job's */
	rank_init(&ranks[4], 1, 3, 1000);
	snprintf(ranks[3].config.launch.job, LAUNCH_JOB, "tulip");
	snprintf(ranks[4].config.launch.job, LAUNCH_JOB, "tulip");
	start(&ranks[3]);
	start(&ranks[4]);
	start(&ranks[0]);
	poll(NULL, 0, 100);
	start(&ranks[1]);
	start(&ranks[2]);
	finish_all(5);
	check_joined(3);
	CHECK_MSG(ranks[3].status == ESP_ETIMEOUT, "%s", ranks[3].err.text);
	CHECK_MSG(ranks[4].status == ESP_ETIMEOUT, "%s", ranks[4].err.text);
}

static void other_version(void)
{
	ranks_init(4, 60000);
	ranks[1].config.info.version = 1;
	start_all(4);
	finish_all(4);
	check_all_failed(4, ESP_EMISMATCH, "speaks version 1 of the protocol, rank 0 version " CHECK_TEXT(HELLO_VERSION));
}

static void other_settings(void)
{
	struct conf conf;

	ranks_init(4, 60000);
	conf_init(&conf);
	conf.log = LOG_LEVEL_TRACE; /* settings that need not agree */
	join_prepare(&ranks[2].config, &conf);
	CHECK(memcmp(ranks[1].config.info.settings, ranks[2].config.info.settings, HELLO_DIGEST_BYTES) == 0);
	conf.chunk_bytes = 128 << 10;
	join_prepare(&ranks[2].config, &conf);
	snprintf(ranks[2].config.info.host_name, NODE_INFO_HOST_NAME, "b");
	snprintf(ranks[0].config.info.host_name, NODE_INFO_HOST_NAME, "a");
	start_all(4);
	finish_all(4);
	check_all_failed(4, ESP_EMISMATCH, "b has chunk_bytes=128K, but the leader, rank 0 on a, has chunk_bytes=0");
}

/* A rank with another key is refused: the others see which rank is missing, and the refused connection's origin. */
static void other_key(void)
{
	for (unsigned ms = 6000; ms <= DEADLINE_MOST_MS; ms *= 2) {
		ranks_init(3, ms);
		rank_init(&ranks[2], 2, 3, 2 * ms);
		ranks[2].config.key[0] ^= 1;
		start_all(3);
		finish_all(3);
		if (have_all_said(2, "1 of 3 ranks have not arrived: 2; refused: ") && ranks[2].status == ESP_EMISMATCH)
			break;
	}
	check_all_failed(2, ESP_ETIMEOUT, "1 of 3 ranks have not arrived: 2; refused: ");
	check_all_failed(2, ESP_ETIMEOUT, " connections from 127.0.0.1 without the job's key");
	check_culprits(2, 2);
	check_culprits(3, 2);
	CHECK(ranks[2].status == ESP_EMISMATCH);
	CHECK(strncmp(ranks[2].err.text, "the leader at ", 14) == 0);
	CHECK(strstr(ranks[2].err.text, " refused the proof of rank 2 8 times: it has another key, or none; "));
}

/* Ranks of an earlier epoch do not disturb the new one. */
static void other_epoch(void)
{
	ranks_init(3, 60000);
	rank_init(&ranks[3], 2, 3, 1500);
	for (uint32_t i = 0; i < 3; i++)
		ranks[i].config.launch.epoch = 1;
	start(&ranks[3]);
	start(&ranks[0]);
	poll(NULL, 0, 100);
	start(&ranks[1]);
	start(&ranks[2]);
	finish_all(4);
	check_joined(3);
	CHECK(ranks[3].status == ESP_ETIMEOUT);
}

static int dial(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(leader_port)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	CHECK(fd >= 0);
	while (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0) /* the leader may not listen yet */
		poll(NULL, 0, 5);
	return fd;
}

/* The second rank 0 finds its port taken and asks the process there. Ranks that come later hear of it, too. */
static void two_leaders(void)
{
	ranks_init(4, 60000);
	rank_init(&ranks[4], 0, 4, 60000);
	ranks[4].config.info.pid = 77;
	start(&ranks[0]);
	close(dial()); /* the leader listens */
	run_rank(&ranks[4]);
	for (uint32_t i = 1; i < 4; i++)
		start(&ranks[i]);
	finish_all(4);
	check_all_failed(5, ESP_EMISMATCH, "two processes say that they are rank 0: process ");
	check_culprits(5, 0);
	CHECK(clock_now_ns() < ranks[4].config.deadline_ns); /* at once, not at the deadline */
}

/* More unproved connections than there are slots, silent or sending garbage, before and while the ranks arrive. */
static void strangers(void)
{
	static const char *const babble[] = {"GET / HTTP/1.1\r\n\r\n", "SSH-2.0-x\r\n", "\x16\x03\x01", "",
	                                     "\345ESP\r\nP\x01"};
	int fds[300];

	ranks_init(8, 60000);
	start(&ranks[0]);
	for (unsigned i = 0; i < 300; i++) {
		const char *text = babble[i % 5];
		fds[i] = dial();
		CHECK(send(fds[i], text, strlen(text), MSG_NOSIGNAL) >= 0 || errno == ECONNRESET || errno == EPIPE);
		if (i == 150)
			for (uint32_t k = 1; k < 7; k++)
				start(&ranks[k]);
	}
	start(&ranks[7]);
	finish_all(8);
	check_joined(8);
	for (unsigned i = 0; i < 300; i++)
		close(fds[i]);
}

/* Sends the node info of a rank and returns the connection, on which the answer would come. */
static int send_node_info(struct rank *rank)
{
	struct handshake_config config;
	struct session session;
	struct session_inbox inbox = {0};
	struct session_message message;
	struct rendezvous_arrival arrival = {.patience_ms = 60000, .info = rank->config.info};
	struct error err;
	uint8_t info[RENDEZVOUS_ARRIVAL_BYTES], in[512];
	const uint8_t *out;
	size_t n;
	int fd = dial();

	rendezvous_arrival_encode(&arrival, info);
	join_dialer(&rank->config, 0, HELLO_RENDEZVOUS, 0, &config);
	session_init(&session, HANDSHAKE_DIALER, &config, &inbox);
	while (!session.proved) {
		ssize_t got = recv(fd, in, sizeof(in), 0);
		CHECK(got > 0 && session_input(&session, in, (size_t)got, &err) == ESP_PENDING);
		for (session_output(&session, &out, &n); n; session_output(&session, &out, &n)) {
			CHECK(send(fd, out, n, MSG_NOSIGNAL) == (ssize_t)n);
			session_sent(&session, n);
		}
	}
	session_message_init(&message, RENDEZVOUS_ARRIVAL, info, sizeof(info));
	session_post(&session, &message);
	for (session_output(&session, &out, &n); n; session_output(&session, &out, &n)) {
		CHECK(send(fd, out, n, MSG_NOSIGNAL) == (ssize_t)n);
		session_sent(&session, n);
	}
	session_fini(&session);
	return fd;
}

/* A rank that sends its node info and dies before all have arrived. */
static void one_leaves(void)
{
	ranks_init(4, 10000);
	start(&ranks[0]);
	start(&ranks[1]);
	close(send_node_info(&ranks[2]));
	poll(NULL, 0, 100);
	start(&ranks[3]); /* it comes after the failure and is told */
	CHECK(pthread_join(ranks[0].thread, NULL) == 0 && pthread_join(ranks[1].thread, NULL) == 0 &&
	      pthread_join(ranks[3].thread, NULL) == 0);
	ranks[2] = ranks[3];
	check_all_failed(3, ESP_EPEER, "rank 2 (process 1002 on ");
}

/* Joining is called off after `looks` polls; before that, progress may have been reported. */
struct caller_off {
	atomic_bool is_held; /* polls do not count yet */
	unsigned looks;
	bool has_told, had_told;
};

static bool call_off(void *context, int32_t *out_culprit, struct error *why)
{
	struct caller_off *caller = context;

	if (atomic_load(&caller->is_held) || caller->looks-- > 0)
		return false;
	caller->looks = 0;
	caller->had_told = caller->has_told;
	*out_culprit = 3;
	error_set(why, ESP_ELINK, "rank 3 has no port");
	return true;
}

static void hear_progress(void *context, const char *words)
{
	struct caller_off *caller = context;

	(void)words;
	caller->has_told = true;
}

/* Rank 2 learns that joining is called off, and leaves, before rank 0 learns it: it is not at fault. */
static void kin_leaves(void)
{
	for (unsigned tries = 0; tries < TRIES; tries++) { /* rank 0 may be scheduled out meanwhile, and blame it */
		struct caller_off caller = {.is_held = true, .looks = 5};

		ranks_init(4, 10000);
		ranks[0].config.is_called_off = call_off;
		ranks[0].config.called_off_context = &caller;
		ranks[0].config.kin = 4;
		start(&ranks[0]);
		close(send_node_info(&ranks[2]));
		atomic_store(&caller.is_held, false);
		CHECK(pthread_join(ranks[0].thread, NULL) == 0);
		if (ranks[0].status == ESP_ELINK)
			break;
	}
	check_all_failed(1, ESP_ELINK, "rank 3 has no port");
	check_culprits(1, 3);
}

/* But if no reason is heard, it is. */
static void kin_dies(void)
{
	struct caller_off caller = {.looks = UINT32_MAX};

	ranks_init(4, 10000);
	ranks[0].config.is_called_off = call_off;
	ranks[0].config.called_off_context = &caller;
	ranks[0].config.kin = 4;
	start(&ranks[0]);
	start(&ranks[1]);
	close(send_node_info(&ranks[2]));
	start(&ranks[3]);
	CHECK(pthread_join(ranks[0].thread, NULL) == 0 && pthread_join(ranks[1].thread, NULL) == 0 &&
	      pthread_join(ranks[3].thread, NULL) == 0);
	ranks[2] = ranks[3];
	check_all_failed(3, ESP_EPEER, "rank 2 (process 1002 on ");
}

/* A rank that connects to a full backlog polls all the same whether joining is called off. */
static void called_off_while_connecting(void)
{
	enum { CROWD = 8 };
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct caller_off caller;
	int crowd[CROWD], fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&name, sizeof(name)) == 0 && listen(fd, 0) == 0);
	name.sin_port = htons(listen_port(fd));
	for (unsigned i = 0; i < CROWD; i++) {
		crowd[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		CHECK(connect(crowd[i], (struct sockaddr *)&name, sizeof(name)) == 0 || errno == EINPROGRESS);
	}
	for (unsigned tries = 0; tries < TRIES; tries++) { /* it may be scheduled out between two polls */
		caller = (struct caller_off){.looks = 2};
		ranks_init(2, 10000);
		ranks[1].config.launch.leader.port = ntohs(name.sin_port);
		ranks[1].config.is_called_off = call_off;
		ranks[1].config.progress = hear_progress;
		ranks[1].config.called_off_context = ranks[1].config.progress_context = &caller;
		run_rank(&ranks[1]);
		if (!caller.had_told)
			break;
	}
	CHECK_MSG(ranks[1].status == ESP_ELINK && ranks[1].culprit == 3 && !caller.had_told, "%s", ranks[1].err.text);
	for (unsigned i = 0; i < CROWD; i++)
		close(crowd[i]);
	close(fd);
}

/* The leader gets a socket that listens already: ranks that come before it only have to wait. */
static void handed_on(void)
{
	struct sockaddr_storage name = {0};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	memcpy(&name, &v4, sizeof(v4));
	int fd = listen_at(&name, 0, false, 0);
	CHECK(fd >= 0);
	leader_port = listen_port(fd);
	for (uint32_t i = 0; i < 4; i++)
		rank_init(&ranks[i], i, 4, 10000);
	ranks[0].config.listening = &fd;
	for (uint32_t i = 4; i-- > 0;)
		start(&ranks[i]);
	finish_all(4);
	check_joined(4);
	CHECK(fd == -1);
}

static int open_launcher(char name[LAUNCH_LAUNCHER])
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	int length = snprintf(name, LAUNCH_LAUNCHER, "espalier-join-test-%ld", (long)getpid());
	memcpy(address.sun_path + 1, name, (size_t)length);
	CHECK(fd >= 0);
	socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	CHECK(bind(fd, (struct sockaddr *)&address, bytes) == 0);
	CHECK(listen(fd, SOMAXCONN) == 0);
	return fd;
}

static void answer_question(int launcher, const uint8_t *answer, size_t bytes)
{
	int fd = accept(launcher, NULL, NULL);
	CHECK(fd >= 0 && send(fd, answer, bytes, MSG_NOSIGNAL) == (ssize_t)bytes);
	close(fd);
}

/* Reads until the leader closes. */
static void read_to_end(int fd)
{
	uint8_t bytes[4096];
	while (recv(fd, bytes, sizeof(bytes), 0) > 0)
		;
	close(fd);
}

/*
 * The launcher reports that rank 2 has ended, and its node info arrives all the same: it was under way. That is
 * one rank less to wait for, not two, and the leader has to stay for the last one.
 */
static void one_ends(void)
{
	char name[LAUNCH_LAUNCHER];
	uint8_t answer[4 * ENDED_BYTES] = {0};
	int launcher = open_launcher(name);

	ranks_init(4, 10000);
	memcpy(ranks[0].config.launch.launcher, name, sizeof(name));
	ended_put(answer, 2, 7);
	start(&ranks[0]);
	answer_question(launcher, answer, sizeof(answer));
	answer_question(launcher, answer, sizeof(answer)); /* the next question: the first answer was read */
	read_to_end(send_node_info(&ranks[2]));
	read_to_end(send_node_info(&ranks[3]));
	start(&ranks[1]);
	finish_all(2);
	check_all_failed(2, ESP_EPEER, "rank 2 has ended with status 7 before it joined");
	close(launcher);
}

static void alone(void)
{
	ranks_init(1, 0);
	ranks[0].config.launch.leader.port = 0;
	run_rank(&ranks[0]);
	check_joined(1);
}

static void taken_port(void)
{
	struct node_info info = {0};
	struct error err;
	struct listener listener;

	CHECK(listen_open(&(struct listen_config){.loopback_only = true}, &listener, &info, &err) == ESP_OK);
	ranks_init(2, 300);
	ranks[0].config.launch.leader.port = info.port;
	run_rank(&ranks[0]);
	CHECK(ranks[0].status == ESP_ELINK && strstr(ranks[0].err.text, "something else does"));
	listener_close(&listener);
}

static void backoffs(void)
{
	struct backoff backoff;
	uint64_t pause = BACKOFF_FIRST_NS;

	backoff_init(&backoff, 1);
	for (int i = 0; i < 20; i++) {
		uint64_t next = backoff_next_ns(&backoff);
		CHECK(next >= pause / 2 && next <= pause);
		pause = pause * 2 < BACKOFF_MOST_NS ? pause * 2 : BACKOFF_MOST_NS;
	}
}

int main(int argc, char **argv)
{
	uint32_t size = (uint32_t)test_option(argc, argv, "--count", 64);

	backoffs();
	alone();
	join_whole(size < RANKS_MAX ? size : RANKS_MAX);
	join_crowd(size < RANKS_MAX ? size : RANKS_MAX);
	over_ipv6();
	late_leader();
	one_missing();
	no_leader();
	one_twice();
	two_leaders();
	other_size();
	two_misfits();
	other_job();
	other_job_harmless();
	other_version();
	other_settings();
	other_key();
	other_epoch();
	strangers();
	one_leaves();
	kin_leaves();
	kin_dies();
	called_off_while_connecting();
	handed_on();
	one_ends();
	taken_port();
	return 0;
}
