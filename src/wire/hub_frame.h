/*
 * hub_frame.h - how a worker and a parameter hub use the frames of a data connection (wire/frame.h).
 *
 *     channel   enum hub_frame_kind
 *     index     number of the message on this connection and in this direction, from 0
 *     call      number of the chunk in the job's layout (hub/layout.h); of HUB_HYPER the parameter group
 *     ack       a version of that chunk, modulo 2^32
 *     bytes     of the chunk's elements in the tensor's type, or 0; of HUB_READ and HUB_WRITE as float32
 *
 * A worker has at most one request per chunk that has not been answered. Every request but HUB_HYPER gets one answer.
 */
#ifndef WIRE_HUB_FRAME_H
#define WIRE_HUB_FRAME_H

#include <stdbool.h>
#include <stdint.h>

enum hub_frame_kind {
	/* requests: worker to hub */
	HUB_PUSH = 1,     /* a gradient for the round from version `ack` to the next; answered by HUB_DONE */
	HUB_PULL = 2,     /* no data; answered by HUB_WEIGHTS once the chunk has weights */
	HUB_PUSHPULL = 3, /* as HUB_PUSH; answered by HUB_WEIGHTS of the next version */
	HUB_SET = 4,      /* worker 0: the chunk's first weights; version 0. Answered by HUB_DONE */
	HUB_HYPER = 5,    /* OPTIMIZER_BYTES: what holds for a parameter group from version `ack` on. No answer */
	/* answers: hub to worker; ack is the version that the chunk has now */
	HUB_WEIGHTS = 6,
	HUB_DONE = 7,     /* no data */
	HUB_ARRAY = 8,    /* of HUB_READ */
	/* requests for array a of the optimizer, in float32: 0 is the master weights, the others are its states */
	HUB_READ = 9,     /* HUB_READ + a: no data; answered by HUB_ARRAY of the version that the chunk has */
	/* HUB_WRITE + a: worker 0, before its first push; `ack` rounds lie before version 0. Answered by HUB_DONE */
	HUB_WRITE = 12,
	/*
	 * As HUB_PUSHPULL, of a set of workers on the hub's machine: no data, the gradients lie in memory that the hub has
	 * mapped. Answered by HUB_DONE once the weights of the next version lie there
	 */
	HUB_SHARED = 15,
};
#define HUB_ARRAYS 3
#define HUB_FRAME_KINDS 16

static inline bool hub_kind_is_read(uint32_t kind)
{
	return kind >= HUB_READ && kind < HUB_READ + HUB_ARRAYS;
}

static inline bool hub_kind_is_write(uint32_t kind)
{
	return kind >= HUB_WRITE && kind < HUB_WRITE + HUB_ARRAYS;
}

#endif
