#include "transport/path.h"

#include <linux/tcp.h> /* the C library's header knows fewer fields, and excludes this one */
#include <netinet/in.h>
#include <sys/socket.h>

void path_read(int fd, struct path_stats *out)
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
	out->is_app_limited = info.tcpi_delivery_rate_app_limited;
	out->busy_us = info.tcpi_busy_time;
	out->blocked_us = info.tcpi_rwnd_limited;
	out->retransmits = info.tcpi_total_retrans;
	out->timeouts = info.tcpi_retransmits;
	out->unacked = info.tcpi_unacked;
	out->segment_bytes = info.tcpi_snd_mss;
	out->path_mtu = info.tcpi_pmtu;
	out->acked_bytes = info.tcpi_bytes_acked;
	out->last_ack_ms = info.tcpi_last_ack_recv;
	out->last_data_ms = info.tcpi_last_data_recv;
	/*
	 * Where nothing is under way probes are sent: the other end takes nothing now, but answers; or the own host lets
	 * nothing out.
	 */
	out->awaits_ack = info.tcpi_unacked > 0 || (info.tcpi_notsent_bytes > 0 && info.tcpi_probes > 0);
}

bool path_waits_in_vain(struct path_patience *patience, const struct path_stats *stats, uint64_t now_ns,
                        uint64_t for_ns)
{
	if (!stats->has_path || !stats->awaits_ack || stats->acked_bytes != patience->acked_bytes ||
	    patience->since_ns == 0) {
		*patience = (struct path_patience){stats->acked_bytes, now_ns};
		return false;
	}
	/* One that cannot take more answers all the same. */
	return now_ns - patience->since_ns >= for_ns && stats->last_ack_ms * UINT64_C(1000000) >= for_ns;
}
