/*
 * udp_test.c - a turn reads a bounded number of packets, and the next one continues with the rest.
 */
#include "network/probe/udp.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"

enum { PACKETS = UDP_TAKES_MOST + UDP_TAKES_MOST / 2 };

/* Requests that are all answered, as they are of different rounds. */
static void send_requests(int fd, const struct packet_session *session, uint16_t port)
{
	const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port),
	                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	for (uint32_t i = 0; i < PACKETS; i++) {
		const struct packet request = {.kind = PACKET_REQUEST, .from = 1, .to = 0, .round = i, .sequence = 1};
		uint8_t bytes[PACKET_BYTES];

		probe_packet_encode(session, &request, bytes);
		CHECK(sendto(fd, bytes, sizeof(bytes), 0, (const struct sockaddr *)(const void *)&to,
		             sizeof(to)) == (ssize_t)sizeof(bytes));
	}
}

static uint32_t count_answers(int fd)
{
	uint8_t bytes[PACKET_BYTES];
	uint32_t count = 0;

	while (recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT) == (ssize_t)sizeof(bytes))
		count++;
	return count;
}

int main(void)
{
	static const uint8_t key[PACKET_KEY_BYTES] = {7}, nonce[PACKET_NONCE_BYTES] = {9};
	struct packet_session session;
	struct place places[2] = {0};
	struct echo echo;
	struct udp udp;
	struct error err;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	probe_packet_session_init(&session, key, nonce);
	probe_echo_init(&echo, &session, 2, 0);
	probe_echo_begin(&echo, 0, UINT32_MAX, NULL, NULL);
	CHECK(fd >= 0 && probe_udp_open(&udp, AF_INET, 0, 0, &err) == ESP_OK);
	send_requests(fd, &session, udp.port);
	(void)probe_udp_turn(&udp, &echo, places, clock_now_ns());
	CHECK_U64(count_answers(fd), UDP_TAKES_MOST);
	(void)probe_udp_turn(&udp, &echo, places, clock_now_ns());
	CHECK_U64(count_answers(fd), PACKETS - UDP_TAKES_MOST);
	close(fd);
	probe_udp_close(&udp);
	return 0;
}
