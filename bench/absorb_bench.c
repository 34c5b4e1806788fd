/*
 * absorb_bench.c - what one core of a switch absorbs: packets for each second of its CPU time, beside a receiver with
 * the same batches that throws them away.
 *
 *     absorb_bench [PACKETS]
 *
 * Seven members of a flow send contributions to the numbers of an eighth, which owns them: the switch adds seven packets
 * and passes one on. No results are sent: complete aggregators are taken again as they are 1 ms old. The sender holds back where the receiver falls behind; packets that are lost all the same are
 * counted, and the CPU time is divided by those that arrived. Both receivers run as processes of their own.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "switch/server/switch_server.h"
#include "switch/trains/trains.h"
#include "wire/atp_packet.h"

#define SENDERS 7u
#define OWNER SENDERS
#define WORDS 356u  /* at an MTU of 1500 */
#define TRAIN 40u
#define FLOW UINT64_C(0x1122334455667788)
#define SLOTS 4096u

static void check(bool condition, const char *what)
{
	if (condition)
		return;
	perror(what);
	exit(1);
}

static union trains_address loopback(uint16_t port)
{
	union trains_address address = {.v4 = {.sin_family = AF_INET, .sin_port = htons(port)}};

	address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static uint16_t free_port(void)
{
	union trains_address address = loopback(0);
	struct trains *udp;
	struct error err;

	check(trains_open(&address, &udp, &err) == ESP_OK, "port");
	trains_bound(udp, &address);
	trains_close(udp);
	return ntohs(address.v4.sin_port);
}

/* ---- receivers ---- */

static volatile sig_atomic_t ends;
static uint64_t words_seen;

static void on_signal(int number)
{
	(void)number;
	ends = 1;
}

static void throw_away(void *context, const struct trains_datagram *datagram)
{
	(void)context;
	words_seen += datagram->length;
}

static void receive_only(uint16_t port)
{
	union trains_address address = loopback(port);
	struct trains *udp;
	struct error err;

	signal(SIGTERM, on_signal);
	check(trains_open(&address, &udp, &err) == ESP_OK, "receiver");
	while (!ends)
		if (!trains_receive(udp, throw_away, NULL))
			usleep(100);
	printf("arrived %llu\n", (unsigned long long)trains_counters(udp)->received);
	trains_close(udp);
}

static void absorb(uint16_t port)
{
	struct switch_config config = {.slots = SLOTS, .words_max = ATP_WORDS_MAX, .quota = SLOTS, .age_ns = NS_PER_MS,
	                               .version = "bench"};
	struct switch_server *server;
	struct error err;
	char text[32];

	snprintf(text, sizeof(text), "127.0.0.1:%u", port);
	check(address_parse(text, "bench", &config.listen, &err) == ESP_OK &&
	      switch_server_open(&config, &server, &err) == ESP_OK, "switch");
	switch_server_run(server);
	switch_server_close(server);
}

static pid_t start(void (*work)(uint16_t port), uint16_t port, FILE **out)
{
	int pipes[2];

	check(pipe(pipes) == 0, "pipe");
	fflush(stdout);
	pid_t child = fork();
	check(child >= 0, "fork");
	if (child == 0) {
		dup2(pipes[1], STDOUT_FILENO);
		work(port);
		fflush(stdout);
		_exit(0);
	}
	close(pipes[1]);
	*out = fdopen(pipes[0], "r");
	return child;
}

static double end(pid_t child)
{
	struct rusage used;
	int status;

	kill(child, SIGTERM);
	check(wait4(child, &status, 0, &used) == child && status == 0, "receiver");
	return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
	       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

/* ---- senders ---- */

struct member {
	struct trains *udp;
	uint64_t cookie;
	bool is_registered;
	uint64_t sums; /* that came, of the owner */
};

static void on_packet(void *context, const struct trains_datagram *datagram)
{
	struct member *member = context;
	struct atp_greeting welcome;
	struct atp_packet packet;

	if (atp_packet_decode(datagram->bytes, datagram->length, &packet) != ATP_DECODED)
		return;
	member->sums += packet.type == ATP_GRADIENT;
	if (packet.type != ATP_WELCOME || !atp_greeting_decode(datagram->bytes + ATP_HEADER_BYTES, &welcome))
		return;
	member->cookie = welcome.cookie;
	member->is_registered = welcome.is_registered;
}

static void put(struct member *member, const struct atp_packet *packet, const void *words)
{
	uint8_t head[ATP_HEADER_BYTES];

	atp_header_put(packet, head);
	trains_put(member->udp, head, sizeof(head), words, 4u * packet->words);
}

static void make_known(struct member *member, uint16_t number, struct trains_peer *peer)
{
	struct atp_packet hello = {.type = ATP_HELLO, .owner = number, .words = ATP_GREETING_WORDS, .next = ATP_NO_NEXT,
	                           .flow = FLOW};

	while (!member->is_registered) {
		struct atp_greeting greeting = {.cookie = member->cookie, .words_max = WORDS};
		uint8_t body[ATP_GREETING_BYTES];
		atp_greeting_encode(&greeting, body);
		put(member, &hello, body);
		trains_to(member->udp, peer);
		trains_flush(member->udp);
		usleep(1000);
		while (trains_receive(member->udp, on_packet, member))
			;
	}
}

/* So much is in the receiver's socket, by the kernel: a sender that is ahead waits. */
static uint64_t queued_at(uint16_t port)
{
	FILE *file = fopen("/proc/net/udp", "r");
	unsigned long queue = 0, found = 0, local;
	char line[256];

	check(file, "/proc/net/udp");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, " %*d: %*x:%lx %*x:%*x %*x %*x:%lx", &local, &queue) == 2 && local == port)
			found = queue;
	fclose(file);
	return found;
}

static void send_all(struct member members[SENDERS + 1], struct trains_peer *peer, uint64_t numbers, uint16_t port)
{
	uint32_t words[WORDS] = {1, 2, 3};

	for (uint64_t first = 0; first < numbers; first += TRAIN) {
		for (uint32_t i = 0; i < SENDERS; i++) {
			for (uint64_t number = first; number < first + TRAIN; number++) {
				struct atp_packet packet = {
					.type = ATP_GRADIENT, .kind = ATP_SIGNED, .fan_in = {SENDERS, 0}, .owner = OWNER, .words = WORDS,
					.next = ATP_NO_NEXT, .sequence = (uint32_t)number, .flow = FLOW, .bitmap = UINT64_C(1) << i};
				put(&members[i], &packet, words);
				trains_to(members[i].udp, peer);
			}
			trains_flush(members[i].udp);
		}
		while (queued_at(port) > (256u << 10))
			usleep(50);
		while (trains_receive(members[OWNER].udp, on_packet, &members[OWNER]))
			;
	}
}

static void measure(bool adds, uint64_t numbers)
{
	uint16_t port = free_port();
	struct trains_peer peer = {.address = loopback(port)};
	struct member members[SENDERS + 1] = {{0}};
	struct error err;
	char line[64] = "";
	FILE *out;

	pid_t child = start(adds ? absorb : receive_only, port, &out);
	usleep(300000);
	for (uint32_t i = 0; i <= SENDERS; i++) {
		union trains_address address = loopback(0);
		check(trains_open(&address, &members[i].udp, &err) == ESP_OK, "sender");
		if (adds)
			make_known(&members[i], (uint16_t)i, &peer);
	}
	send_all(members, &peer, numbers, port);
	while (queued_at(port) > 0)
		usleep(1000);
	usleep(20000);
	while (trains_receive(members[OWNER].udp, on_packet, &members[OWNER]))
		;
	double seconds = end(child);
	uint64_t arrived = SENDERS * members[OWNER].sums;
	if (!adds && fgets(line, sizeof(line), out))
		arrived = strtoull(line + strlen("arrived "), NULL, 10);
	printf("%-16s %9llu of %llu packets, %.2f s of CPU, %.3f million packets for each\n",
	       adds ? "adds" : "throws away", (unsigned long long)arrived, (unsigned long long)(SENDERS * numbers), seconds,
	       (double)arrived / seconds / 1e6);
	fclose(out);
	for (uint32_t i = 0; i <= SENDERS; i++)
		trains_close(members[i].udp);
}

int main(int argc, char **argv)
{
	uint64_t packets = argc > 1 ? strtoull(argv[1], NULL, 10) : 7000000;

	for (int round = 0; round < 3; round++) {
		measure(false, packets / SENDERS / TRAIN * TRAIN);
		measure(true, packets / SENDERS / TRAIN * TRAIN);
	}
	return 0;
}
