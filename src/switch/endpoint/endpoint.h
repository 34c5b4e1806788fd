/* endpoint.h - packets that senders, owners and memberships hand to a driver, with their destinations. */
#ifndef SWITCH_ENDPOINT_ENDPOINT_H
#define SWITCH_ENDPOINT_ENDPOINT_H

#include "wire/atp_packet.h"

enum endpoint_to {
	ENDPOINT_TO_SWITCH, /* results go on from there to all members */
	ENDPOINT_TO_MEMBER, /* straight, past every switch */
};

struct endpoint_out {
	struct atp_packet header;
	const void *words; /* header.words of them, borrowed until the next call of the object that gave them */
	enum endpoint_to to;
	uint16_t member; /* of ENDPOINT_TO_MEMBER */
};

#endif
