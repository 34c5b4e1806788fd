#include "wire/rendezvous_msg.h"

#include "base/check.h"
#include "base/rng.h"

static void fill(struct rng *rng, uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		at[i] = (uint8_t)rng_next(rng);
}

static void random_info(struct rng *rng, struct node_info *info)
{
	memset(info, 0, sizeof(*info));
	info->size = 1 + (uint32_t)rng_below(rng, UINT32_MAX);
	info->rank = (uint32_t)rng_below(rng, info->size);
	info->pid = (uint32_t)rng_next(rng);
	info->version = (uint16_t)rng_next(rng);
	info->role = (uint8_t)rng_below(rng, NODE_ROLES);
	info->cores = (uint32_t)rng_below(rng, UINT16_MAX + 1u);
	info->core_set = rng_next(rng);
	info->nonce = rng_next(rng);
	info->port = (uint16_t)rng_next(rng);
	fill(rng, info->host_id, sizeof(info->host_id));
	fill(rng, info->settings, sizeof(info->settings));
	for (uint64_t i = rng_below(rng, NODE_INFO_HOST_NAME); i > 0; i--)
		info->host_name[i - 1] = (char)(0x20 + rng_below(rng, 0x5f));
	info->address_count = (uint32_t)rng_below(rng, NODE_ADDRESSES + 1);
	for (uint32_t i = 0; i < info->address_count; i++) {
		info->addresses[i].family = rng_chance(rng, 1, 2) ? NODE_IPV4 : NODE_IPV6;
		info->addresses[i].prefix = (uint8_t)rng_below(rng, info->addresses[i].family == NODE_IPV4 ? 33 : 129);
		info->addresses[i].interface = rng_chance(rng, 1, 4) ? NODE_NO_INTERFACE
		                               : (uint8_t)rng_below(rng, NODE_ADDRESSES);
		fill(rng, info->addresses[i].bytes, info->addresses[i].family == NODE_IPV4 ? 4 : 16);
	}
}

static void heads(void)
{
	struct rendezvous_head head = {77, 77};
	uint8_t bytes[RENDEZVOUS_HEAD_BYTES] = {0, 0, 0, 0, 4, 3, 2, 1}, again[RENDEZVOUS_HEAD_BYTES];

	for (unsigned type = 0; type < 256; type++) {
		bytes[0] = (uint8_t)type;
		CHECK(rendezvous_head_decode(bytes, &head) == (type >= RENDEZVOUS_ARRIVAL && type < RENDEZVOUS_TYPES));
	}
	CHECK_U64(head.bytes, 0x01020304);
	rendezvous_head_encode(&(struct rendezvous_head){RENDEZVOUS_ROSTER, 0x01020304}, again);
	CHECK(memcmp(again, "\x02\0\0\0\4\3\2\1", RENDEZVOUS_HEAD_BYTES) == 0);
	again[2] = 1;
	CHECK(!rendezvous_head_decode(again, &head));
}

static void round_trip(struct rng *rng)
{
	for (int i = 0; i < 5000; i++) {
		struct rendezvous_arrival arrival = {.patience_ms = (uint32_t)rng_next(rng)}, back;
		uint8_t bytes[RENDEZVOUS_ARRIVAL_BYTES], again[RENDEZVOUS_ARRIVAL_BYTES];

		memset(&back, 0, sizeof(back));
		random_info(rng, &arrival.info);
		for (uint64_t k = rng_below(rng, RENDEZVOUS_SETTINGS_TEXT); k > 0; k--)
			arrival.settings[k - 1] = (char)(0x20 + rng_below(rng, 0x5f));
		for (uint64_t k = rng_below(rng, RENDEZVOUS_JOB_TEXT); k > 0; k--)
			arrival.job[k - 1] = (char)(0x20 + rng_below(rng, 0x5f));
		rendezvous_arrival_encode(&arrival, bytes);
		CHECK(rendezvous_arrival_decode(bytes, &back));
		rendezvous_arrival_encode(&back, again);
		CHECK(memcmp(bytes, again, sizeof(bytes)) == 0);
		CHECK(back.patience_ms == arrival.patience_ms && back.info.rank == arrival.info.rank);
		CHECK(back.info.cores == arrival.info.cores && back.info.core_set == arrival.info.core_set &&
		      back.info.nonce == arrival.info.nonce);
		CHECK_STR(back.info.host_name, arrival.info.host_name);
		CHECK_STR(back.settings, arrival.settings);
		CHECK_STR(back.job, arrival.job);
		CHECK(memcmp(back.info.addresses, arrival.info.addresses, sizeof(back.info.addresses)) == 0);
	}
}

/* Bytes with one of them changed decode to a node info that encodes to them, or not at all. */
static void one_byte_off(struct rng *rng)
{
	for (int i = 0; i < 20000; i++) {
		struct node_info info, back;
		uint8_t bytes[NODE_INFO_BYTES], again[NODE_INFO_BYTES];

		random_info(rng, &info);
		node_info_encode(&info, bytes);
		bytes[rng_below(rng, NODE_INFO_BYTES)] = (uint8_t)rng_next(rng);
		if (!node_info_decode(bytes, &back))
			continue;
		node_info_encode(&back, again);
		CHECK(memcmp(bytes, again, NODE_INFO_BYTES) == 0);
	}
}

static bool decodes_with(const struct node_info *info, unsigned at, uint8_t value)
{
	uint8_t bytes[NODE_INFO_BYTES];
	struct node_info back;

	node_info_encode(info, bytes);
	bytes[at] = value;
	return node_info_decode(bytes, &back);
}

static void refused(void)
{
	struct node_info info = {.rank = 3, .size = 4, .host_name = "node7", .address_count = 1};

	info.addresses[0] = (struct node_address){NODE_IPV4, {10, 0, 0, 1}, 24, 0};
	CHECK(decodes_with(&info, 0, 3) && !decodes_with(&info, 0, 4)); /* the rank */
	CHECK(!decodes_with(&info, 4, 3));                              /* the size */
	CHECK(!decodes_with(&info, 66, '\n'));                          /* the host name */
	CHECK(!decodes_with(&info, 66, 0));
	CHECK(!decodes_with(&info, 70, 'x'));
	CHECK(!decodes_with(&info, 128, 9) && !decodes_with(&info, 128, 0) && !decodes_with(&info, 131, 0xff));
	CHECK(!decodes_with(&info, 152, 5) && !decodes_with(&info, 155, 1) && !decodes_with(&info, 160, 1));
	CHECK(decodes_with(&info, 153, 32) && !decodes_with(&info, 153, 33));
	CHECK(decodes_with(&info, 154, 7) && !decodes_with(&info, 154, 8) && decodes_with(&info, 154, NODE_NO_INTERFACE));
	CHECK(!decodes_with(&info, NODE_INFO_BYTES - 1, 1));
}

static void settings_are_text(void)
{
	struct rendezvous_arrival arrival = {.info = {.size = 1}, .settings = "lanes=2"}, back;
	uint8_t bytes[RENDEZVOUS_ARRIVAL_BYTES];
	uint8_t *text = bytes + 4 + NODE_INFO_BYTES;

	rendezvous_arrival_encode(&arrival, bytes);
	CHECK(rendezvous_arrival_decode(bytes, &back));
	text[1] = '\n';
	CHECK(!rendezvous_arrival_decode(bytes, &back));
	rendezvous_arrival_encode(&arrival, bytes);
	text[RENDEZVOUS_SETTINGS_TEXT - 2] = 'x'; /* behind the NUL */
	CHECK(!rendezvous_arrival_decode(bytes, &back));
	memset(text, 'x', RENDEZVOUS_SETTINGS_TEXT); /* no NUL */
	CHECK(!rendezvous_arrival_decode(bytes, &back));
	text[RENDEZVOUS_SETTINGS_TEXT - 1] = '\0';
	CHECK(rendezvous_arrival_decode(bytes, &back));
	bytes[RENDEZVOUS_ARRIVAL_BYTES - 1] = 'x'; /* behind the NUL of the job's name */
	CHECK(!rendezvous_arrival_decode(bytes, &back));
}

static void failures(void)
{
	struct rendezvous_failure failure = {.status = -31, .culprit = 3, .text = "rank 3 is\nlate"}, back = {.status = 7};
	uint8_t bytes[RENDEZVOUS_FAILURE_BYTES];

	rendezvous_failure_encode(&failure, bytes);
	CHECK(rendezvous_failure_decode(bytes, &back));
	CHECK(back.status == -31 && back.culprit == 3);
	CHECK_STR(back.text, "rank 3 is?late");
	memset(failure.text, 'x', RENDEZVOUS_FAILURE_TEXT); /* without a NUL: cut off */
	rendezvous_failure_encode(&failure, bytes);
	CHECK(rendezvous_failure_decode(bytes, &back));
	CHECK_U64(strlen(back.text), RENDEZVOUS_FAILURE_TEXT - 1);
	bytes[RENDEZVOUS_FAILURE_BYTES - 1] = 'x';
	CHECK(!rendezvous_failure_decode(bytes, &back));
	failure = (struct rendezvous_failure){.status = 0, .text = "fine"};
	rendezvous_failure_encode(&failure, bytes);
	CHECK(!rendezvous_failure_decode(bytes, &back)); /* success is no failure */
}

int main(int argc, char **argv)
{
	struct rng rng;

	rng_init(&rng, test_seed(argc, argv, 1));
	heads();
	round_trip(&rng);
	one_byte_off(&rng);
	refused();
	settings_are_text();
	failures();
	return 0;
}
