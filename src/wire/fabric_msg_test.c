#include "wire/fabric_msg.h"

#include <string.h>

#include "base/check.h"
#include "base/rng.h"
#include "wire/bytes.h"
#include "wire/crc32c.h"

static void draw_text(struct rng *rng, char *text, size_t room)
{
	size_t length = (size_t)rng_below(rng, room);

	memset(text, 0, room);
	for (size_t i = 0; i < length; i++)
		text[i] = (char)(' ' + rng_below(rng, 0x5f));
}

/* Every field of the type has a random value that it may have. */
static void draw(struct rng *rng, uint8_t type, struct fabric_msg *out)
{
	memset(out, 0, sizeof(*out));
	out->type = type;
	switch ((enum fabric_msg_type)type) {
	case FABRIC_REGISTER:
		draw_text(rng, out->reg.name, FABRIC_JOB_NAME);
		out->reg.worker = (uint32_t)rng_next(rng);
		out->reg.workers = (uint32_t)rng_next(rng);
		out->reg.delay_bound = (uint32_t)rng_next(rng);
		out->reg.pid = (uint32_t)rng_next(rng);
		out->reg.rate = rng_next(rng);
		out->reg.session = rng_next(rng);
		out->reg.port = (uint16_t)rng_next(rng);
		out->reg.takes_sums = rng_below(rng, 2);
		break;
	case FABRIC_WELCOME:
		out->welcome.epoch = rng_next(rng);
		out->welcome.batch_ns = rng_next(rng);
		break;
	case FABRIC_REFUSE:
		out->refuse.status = -1 - (int32_t)rng_below(rng, 41);
		draw_text(rng, out->refuse.text, FABRIC_TEXT);
		break;
	case FABRIC_READY:
		out->ready.number = rng_next(rng);
		out->ready.computed_from = rng_next(rng);
		out->ready.bytes = rng_next(rng);
		out->ready.norm = rng_unit(rng);
		out->ready.attempts = (uint32_t)rng_next(rng);
		out->ready.leaves_ns = rng_next(rng);
		break;
	case FABRIC_DECIDE:
		out->decide.number = rng_next(rng);
		out->decide.position = rng_next(rng);
		out->decide.start_ns = rng_next(rng);
		out->decide.rate = rng_next(rng);
		out->decide.patience_ns = rng_next(rng);
		out->decide.delay = rng_next(rng);
		out->decide.end = (uint8_t)rng_next(rng);
		out->decide.bundle = rng_next(rng);
		out->decide.members = rng_next(rng);
		out->decide.wait_ns = rng_next(rng);
		out->decide.aggregator = (uint32_t)rng_next(rng);
		out->decide.port = (uint16_t)rng_next(rng);
		out->decide.is_chain = rng_below(rng, 2);
		out->decide.inputs = (uint8_t)rng_next(rng);
		out->decide.next_hop = (uint32_t)rng_next(rng);
		for (uint32_t i = 0; i < FABRIC_HOST; i++)
			out->decide.host[i] = (uint8_t)rng_next(rng);
		break;
	case FABRIC_GIVE:
		out->give = (struct fabric_msg_give){rng_next(rng), rng_next(rng), rng_next(rng), (uint32_t)rng_next(rng),
		                                     rng_next(rng)};
		break;
	case FABRIC_TAKEN:
		out->taken = (struct fabric_msg_taken){rng_next(rng), rng_next(rng)};
		break;
	case FABRIC_GIVEN:
		out->given = (struct fabric_msg_given){rng_next(rng), rng_next(rng), (uint32_t)rng_next(rng)};
		break;
	case FABRIC_GOT:
		out->got = (struct fabric_msg_got){rng_next(rng), rng_next(rng)};
		break;
	case FABRIC_WANT:
		out->want.bytes = rng_next(rng);
		break;
	case FABRIC_MODEL:
		out->model = (struct fabric_msg_model){.tree = rng_next(rng), .start_ns = rng_next(rng), .rate = rng_next(rng),
		                                       .source = (uint32_t)rng_next(rng), .outputs = (uint32_t)rng_next(rng),
		                                       .port = (uint16_t)rng_next(rng)};
		for (uint32_t i = 0; i < FABRIC_HOST; i++)
			out->model.host[i] = (uint8_t)rng_next(rng);
		break;
	case FABRIC_WAIT:
		break;
	case FABRIC_FETCH:
		out->fetch = (struct fabric_msg_fetch){rng_next(rng), rng_next(rng), rng_next(rng), rng_next(rng)};
		break;
	case FABRIC_FETCHED:
		out->fetched =
			(struct fabric_msg_fetched){rng_next(rng), rng_next(rng), rng_next(rng), (uint32_t)rng_next(rng)};
		break;
	case FABRIC_DONE:
		out->done.number = rng_next(rng);
		out->done.version = rng_next(rng);
		out->done.delay = rng_next(rng);
		out->done.took_ns = rng_next(rng);
		out->done.end = (uint8_t)rng_next(rng);
		break;
	}
}

static void round_trips(struct rng *rng)
{
	for (unsigned i = 0; i < 6000; i++) {
		uint8_t bytes[FABRIC_MSG_BYTES], again[FABRIC_MSG_BYTES];
		struct fabric_msg msg, back;

		draw(rng, (uint8_t)(1 + i % (FABRIC_MSG_TYPES - 1)), &msg);
		fabric_msg_encode(&msg, bytes);
		CHECK(fabric_msg_decode(bytes, &back) && memcmp(&msg, &back, sizeof(msg)) == 0);
		fabric_msg_encode(&back, again);
		CHECK(memcmp(bytes, again, sizeof(bytes)) == 0);
	}
}

/* A message of which one bit was turned over is never taken. */
static void flipped_bits(struct rng *rng)
{
	for (uint8_t type = 1; type < FABRIC_MSG_TYPES; type++) {
		uint8_t bytes[FABRIC_MSG_BYTES];
		struct fabric_msg msg, back;

		draw(rng, type, &msg);
		fabric_msg_encode(&msg, bytes);
		for (size_t bit = 0; bit < 8 * sizeof(bytes); bit++) {
			bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
			CHECK(!fabric_msg_decode(bytes, &back));
			bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
		}
	}
}

/* With a good checksum, contents that no encoder makes are refused. */
static void refuse(uint8_t type, size_t at, uint8_t value)
{
	struct fabric_msg msg = {.type = type}, back;
	uint8_t bytes[FABRIC_MSG_BYTES];

	if (type == FABRIC_REFUSE)
		msg.refuse.status = -1;
	fabric_msg_encode(&msg, bytes);
	CHECK(fabric_msg_decode(bytes, &back));
	bytes[at] = value;
	bytes_put32(bytes + FABRIC_MSG_BYTES - 4, crc32c(0, bytes, FABRIC_MSG_BYTES - 4));
	CHECK(!fabric_msg_decode(bytes, &back));
}

static void bad_contents(void)
{
	refuse(FABRIC_READY, 0, 1);
	refuse(FABRIC_READY, 4, 0);
	refuse(FABRIC_READY, 4, FABRIC_MSG_TYPES);
	refuse(FABRIC_READY, 5, 1);
	refuse(FABRIC_READY, 8 + 36, 1);
	refuse(FABRIC_READY, 8 + 48, 1);  /* behind the body */
	refuse(FABRIC_WELCOME, 123, 1);
	refuse(FABRIC_DECIDE, 8 + 49, 2);
	refuse(FABRIC_DECIDE, 8 + 51, 1);
	refuse(FABRIC_DECIDE, 8 + 108, 1);
	refuse(FABRIC_GIVEN, 8 + 20, 1);
	refuse(FABRIC_DECIDE, 8 + 86, 1);
	refuse(FABRIC_GIVE, 8 + 28, 1);
	refuse(FABRIC_TAKEN, 8 + 16, 1);
	refuse(FABRIC_REGISTER, 8 + FABRIC_JOB_NAME + 34, 2);
	refuse(FABRIC_REGISTER, 8 + FABRIC_JOB_NAME + 35, 1);
	refuse(FABRIC_WANT, 8 + 8, 1);
	refuse(FABRIC_GOT, 8 + 16, 1);
	refuse(FABRIC_MODEL, 8 + 34, 1);
	refuse(FABRIC_WAIT, 8, 1);
	refuse(FABRIC_FETCHED, 8 + 28, 1);
	refuse(FABRIC_DONE, 8 + 33, 1);
	refuse(FABRIC_REFUSE, 8 + 3, 0);  /* not negative */
	refuse(FABRIC_REFUSE, 8 + 4, '\n');
	refuse(FABRIC_REFUSE, 8 + 6, 'x'); /* behind the end of the text */
	refuse(FABRIC_REGISTER, 8 + FABRIC_JOB_NAME - 1, 'x');
}

int main(void)
{
	struct rng rng;

	rng_init(&rng, 1);
	round_trips(&rng);
	flipped_bits(&rng);
	bad_contents();
	return 0;
}
