/*
 * path.h - the state of the path below a connection: its traffic, and the kernel's account of a TCP socket.
 *
 * path_read() asks the kernel and may be called by any thread that owns the socket; all else is pure.
 */
#ifndef TRANSPORT_PATH_H
#define TRANSPORT_PATH_H

#include <stdbool.h>
#include <stdint.h>

/* State of the connection that messages to a peer leave on. */
struct path_stats {
	uint64_t sent_bytes, received_bytes; /* headers included; received: over all connections of the peer */
	uint64_t sent_messages;
	uint64_t send_calls, receive_calls;  /* system calls that moved something */
	bool has_path;                       /* the rest is known: it is TCP      */
	uint32_t rtt_us, rtt_var_us;
	uint64_t delivery_bytes_per_s;       /* the kernel's latest estimate      */
	bool is_app_limited;                 /* ... of a time when there was no more to send: it says nothing of capacity */
	/*
	 * Since the connection stands: the time in which bytes were sent and not yet acknowledged, and the part of it in
	 * which the other end had no room. The rest is the time that the network took.
	 */
	uint64_t busy_us, blocked_us;
	uint32_t retransmits;
	uint32_t timeouts;                   /* of the oldest segment under way: since when nothing was acknowledged */
	uint32_t unacked;                    /* segments under way                */
	bool awaits_ack;                     /* something was sent, or tried to be */
	uint32_t last_ack_ms;                /* since the other end's kernel was heard of */
	uint32_t last_data_ms;               /* since bytes came, over all connections of the peer */
	bool is_severed;                     /* the network says that there is no way */
	bool is_reset;                       /* the same, as it was reset             */
	uint32_t segment_bytes, path_mtu;    /* most in one packet                */
	uint64_t acked_bytes;                /* that the other end has            */
};

/* Fills in the kernel's part, of any socket; changes nothing if it is not one of TCP. */
void path_read(int fd, struct path_stats *out);

/* The progress of acknowledgements between two readings; zeroed at first. */
struct path_patience {
	uint64_t acked_bytes;
	uint64_t since_ns; /* since when there was no more of them, though there should be */
};
/* True: for so long nothing that was sent has been acknowledged, and the other end was not heard of. Pure. */
bool path_waits_in_vain(struct path_patience *patience, const struct path_stats *stats, uint64_t now_ns,
                        uint64_t for_ns);

#endif
