#include "transport/tcp/path.h"

#include <linux/tcp.h> /* the C library's header knows fewer fields, and excludes this one */
#include <netinet/in.h>
#include <sys/socket.h>

void path_read(int fd, struct tcp_stats *out)
{
	struct tcp_info info = {0};
	socklen_t bytes = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) < 0)
		return;
	/* An older kernel fills in less, and what it leaves out is zero. */
	out->has_path = true;
	out->rtt_us = info.tcpi_rtt;
	out->rtt_var_us = info.tcpi_rttvar;
	out->delivery_bytes_per_s = info.tcpi_delivery_rate;
	out->retransmits = info.tcpi_total_retrans;
	out->timeouts = info.tcpi_retransmits;
	out->unacked = info.tcpi_unacked;
	out->segment_bytes = info.tcpi_snd_mss;
	out->path_mtu = info.tcpi_pmtu;
}
