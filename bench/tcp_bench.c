/*
 * tcp_bench.c - what the TCP transport adds to bare sockets: GB/s, and microseconds per message.
 *
 *     tcp_bench [--rounds N] [--json]
 *
 * Two threads over the loopback. The same messages go over the transport, without and with
 * checksums, and over a plain loop of send() and recv() that knows the sizes beforehand;
 * rounds alternate between the three, and medians are shown. "stream": one end sends, the
 * time per message is that of all divided by their number. "echo": each message is answered
 * before the next, the time is half of a round trip, waking the other thread included.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "duet.h"
#include "report/json.h"
#include "transport/tcp/tcp.h"

#define LARGEST (1u << 20)

enum way { PLAIN, UNCHECKED, CHECKED, WAYS };
static const char *const way_names[] = {"plain", "unchecked", "checked"};

struct job {
	enum way way;
	uint32_t bytes;
	uint32_t messages;
	bool echoes;
};

/* One of the two ends. */
struct end {
	struct duet_end duet;
	struct job job;
	int fd;
	uint8_t *memory;
	struct tcp *tcp;
	uint32_t have;
	uint64_t calls;
};

/* ---- over the transport ---- */

static bool user_next(void *user, uint32_t peer, struct transport_message *out)
{
	struct end *end = user;
	(void)peer;

	if (end->duet.pulled == end->duet.to_send)
		return false;
	*out = (struct transport_message){.index = end->duet.pulled++, .bytes = end->job.bytes, .data = end->memory};
	return true;
}

static enum esp_status user_begin(void *user, uint32_t peer, const struct transport_message *message)
{
	struct end *end = user;
	(void)peer;

	end->have = 0;
	return message->bytes == end->job.bytes ? ESP_OK : ESP_ECORRUPT;
}

static struct transport_room user_room(void *user, uint32_t peer, uint16_t channel)
{
	struct end *end = user;
	(void)peer, (void)channel;

	return (struct transport_room){end->memory + end->have, end->job.bytes - end->have};
}

static void user_arrived(void *user, uint32_t peer, uint16_t channel, uint32_t bytes)
{
	struct end *end = user;
	(void)peer, (void)channel;

	end->have += bytes;
}

static void user_ended(void *user, uint32_t peer, uint16_t channel)
{
	struct end *end = user;
	(void)peer, (void)channel;

	duet_receive(&end->duet);
}

static enum esp_status user_credit(void *user, uint32_t peer, const struct transport_message *message)
{
	(void)user, (void)peer, (void)message;
	return ESP_OK;
}

static const struct transport_user table = {
	.next = user_next,
	.ready = duet_ready,
	.sent = duet_sent,
	.begin = user_begin,
	.room = user_room,
	.arrived = user_arrived,
	.ended = user_ended,
	.credit = user_credit,
	.lost = duet_lost,
	.failed = duet_failed,
};

static void run_transport(struct end *end)
{
	duet_begin(&end->duet);
	while (!duet_is_done(&end->duet))
		tcp_poll(end->tcp, -1);
	struct path_stats stats;
	if (!tcp_stats(end->tcp, 0, &stats))
		duet_die("no connection");
	end->calls = stats.send_calls + stats.receive_calls;
}

/* ---- over bare sockets ---- */

static void send_all(struct end *end, uint32_t bytes)
{
	for (uint32_t done = 0; done < bytes;) {
		ssize_t sent = send(end->fd, end->memory + done, bytes - done, MSG_NOSIGNAL);

		if (sent <= 0)
			duet_die("send");
		done += (uint32_t)sent;
		end->calls++;
	}
}

static void receive_all(struct end *end, uint32_t bytes)
{
	for (uint32_t done = 0; done < bytes;) {
		ssize_t got = recv(end->fd, end->memory + done, bytes - done, 0);

		if (got <= 0)
			duet_die("recv");
		done += (uint32_t)got;
		end->calls++;
	}
}

static void run_plain(struct end *end)
{
	const struct job *job = &end->job;

	for (uint32_t i = 0; i < job->messages; i++) {
		if (end->duet.is_sender)
			send_all(end, job->bytes);
		if (job->echoes || !end->duet.is_sender)
			receive_all(end, job->bytes);
		if (job->echoes && !end->duet.is_sender)
			send_all(end, job->bytes);
	}
}

/* ---- a round ---- */

static void *end_main(void *context)
{
	struct end *end = context;

	if (end->job.way == PLAIN)
		run_plain(end);
	else
		run_transport(end);
	return NULL;
}

static void connect_pair(int fds[2])
{
	struct sockaddr_in name = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(name);
	int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;

	fds[0] = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&name, bytes) < 0 || listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&name, &bytes) < 0 ||
	    connect(fds[0], (struct sockaddr *)&name, bytes) < 0)
		duet_die("cannot connect over the loopback");
	fds[1] = accept(listener, NULL, NULL);
	for (int i = 0; i < 2; i++)
		setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	close(listener);
}

static void end_open(struct end *end, const struct job *job, bool is_sender, int fd)
{
	struct tcp_config config = {.peers = 1};

	*end = (struct end){.job = *job, .fd = fd};
	end->duet = (struct duet_end){.is_sender = is_sender, .echoes = job->echoes, .messages = job->messages};
	end->memory = aligned_alloc(4096, LARGEST);
	if (!end->memory)
		duet_die("no memory");
	memset(end->memory, 1, LARGEST);
	if (job->way != PLAIN && (tcp_open(&config, &table, end, &end->tcp, NULL) != ESP_OK ||
	                          tcp_adopt(end->tcp, 0, fd, job->way == CHECKED, NULL) != ESP_OK))
		duet_die("cannot open the transport");
}

static void end_close(struct end *end)
{
	if (end->tcp)
		tcp_close(end->tcp);
	else
		close(end->fd);
	free(end->memory);
}

/* Per message, or per way of an echo. */
struct cost {
	double ns, cpu_ns, calls;
};

static struct cost run_job(const struct job *job)
{
	struct end ends[2];
	int fds[2];

	connect_pair(fds);
	end_open(&ends[0], job, true, fds[0]);
	end_open(&ends[1], job, false, fds[1]);
	struct duet_time took = duet_run(end_main, &ends[0], &ends[1]);
	double moves = (double)job->messages * (job->echoes ? 2 : 1);
	struct cost cost = {(double)took.ns / moves, (double)took.cpu_ns / moves, (double)(ends[0].calls + ends[1].calls) / moves};
	end_close(&ends[0]);
	end_close(&ends[1]);
	return cost;
}

/* ---- the report ---- */

static struct cost middle_of(const struct cost *costs, unsigned count)
{
	return (struct cost){
		.ns = duet_pick(costs, sizeof(*costs), count, offsetof(struct cost, ns), count / 2),
		.cpu_ns = duet_pick(costs, sizeof(*costs), count, offsetof(struct cost, cpu_ns), count / 2),
		.calls = duet_pick(costs, sizeof(*costs), count, offsetof(struct cost, calls), count / 2),
	};
}

static void put_json(struct json *json, const struct job *job, const struct cost *cost)
{
	json_object_begin(json);
	json_put_string(json, "pattern", job->echoes ? "echo" : "stream");
	json_put_u64(json, "bytes", job->bytes);
	json_put_string(json, "way", way_names[job->way]);
	json_put_double(json, "us_per_message", cost->ns / 1e3);
	json_put_double(json, "cpu_us_per_message", cost->cpu_ns / 1e3);
	json_put_double(json, "gb_per_s", (double)job->bytes / cost->ns);
	json_put_double(json, "calls_per_message", cost->calls);
	json_object_end(json);
}

static void put_line(const struct job *job, const struct cost *cost)
{
	printf("%-7s  %8u  %-9s  %10.2f  %8.2f  %6.3f  %13.2f\n", job->echoes ? "echo" : "stream", job->bytes,
	       way_names[job->way], cost->ns / 1e3, cost->cpu_ns / 1e3, (double)job->bytes / cost->ns, cost->calls);
	fflush(stdout);
}

static void measure(struct json *json, struct job job, unsigned rounds)
{
	static struct cost costs[WAYS][DUET_ROUNDS];

	for (unsigned round = 0; round < rounds; round++) {
		for (job.way = PLAIN; job.way < WAYS; job.way++)
			costs[job.way][round] = run_job(&job);
	}
	for (job.way = PLAIN; job.way < WAYS; job.way++) {
		struct cost middle = middle_of(costs[job.way], rounds);

		if (json)
			put_json(json, &job, &middle);
		else
			put_line(&job, &middle);
	}
}

static const char usage[] =
	"usage: tcp_bench [--rounds N] [--json]\n"
	"The TCP transport between two threads over the loopback, beside bare sockets: medians of N\n"
	"rounds, which alternate. Processor time and calls (that moved bytes) are those of both ends together.\n";

int main(int argc, char **argv)
{
	static const struct job jobs[] = {
		{.bytes = 64, .messages = 5000, .echoes = true},
		{.bytes = 16384, .messages = 3000, .echoes = true},
		{.bytes = 64, .messages = 300000},
		{.bytes = 1024, .messages = 200000},
		{.bytes = 16384, .messages = 20000},
		{.bytes = 131072, .messages = 4000},
		{.bytes = LARGEST, .messages = 600},
	};
	struct duet_options options = duet_parse(argc, argv, usage);
	struct json json;

	if (options.json) {
		json_init(&json, stdout);
		json_array_begin(&json);
	} else {
		printf("%-7s  %8s  %-9s  %10s  %8s  %6s  %13s\n", "pattern", "bytes", "way", "us/message", "cpu us", "GB/s",
		       "calls/message");
	}
	for (size_t i = 0; i < sizeof(jobs) / sizeof(jobs[0]); i++)
		measure(options.json ? &json : NULL, jobs[i], options.rounds);
	if (!options.json)
		return 0;
	json_array_end(&json);
	return json_fini(&json) == ESP_OK ? 0 : 1;
}
