#include "wire/hello.h"

#include <string.h>

#include "wire/bytes.h"

const uint8_t hello_challenge_magic[HELLO_MAGIC_BYTES] = {0xe5, 'E', 'S', 'P', 0x0d, 0x0a, 'C', 1};
const uint8_t hello_proof_magic[HELLO_MAGIC_BYTES] = {0xe5, 'E', 'S', 'P', 0x0d, 0x0a, 'P', 1};
const uint8_t hello_verdict_magic[HELLO_MAGIC_BYTES] = {0xe5, 'E', 'S', 'P', 0x0d, 0x0a, 'V', 1};

/*
 *     0        2        3        4     8   12    16    20    21       22    24     32   48        80
 *     version  purpose  verdict  from  to  size  lane  role  to_role  zero  epoch  job  settings
 */
void hello_encode(const struct hello *hello, uint8_t out[HELLO_BYTES])
{
	bytes_put16(out, hello->version);
	out[2] = hello->purpose;
	out[3] = hello->verdict;
	bytes_put32(out + 4, hello->from);
	bytes_put32(out + 8, hello->to);
	bytes_put32(out + 12, hello->size);
	bytes_put32(out + 16, hello->lane);
	out[20] = hello->role;
	out[21] = hello->to_role;
	bytes_put16(out + 22, 0);
	bytes_put64(out + 24, hello->epoch);
	memcpy(out + 32, hello->job, HELLO_JOB_BYTES);
	memcpy(out + 48, hello->settings, HELLO_DIGEST_BYTES);
}

const char *node_role_name(uint8_t role)
{
	static const char *const names[NODE_ROLES] = {"worker", "hub", "switch", "scheduler", "joiner"};

	return role < NODE_ROLES ? names[role] : "unknown role";
}

static bool makes_sense(const uint8_t in[HELLO_BYTES], const struct hello *hello)
{
	if (hello->purpose < HELLO_RENDEZVOUS || hello->purpose > HELLO_PURPOSE_LAST ||
	    hello->verdict >= HELLO_VERDICT_COUNT)
		return false;
	if (hello->lane != 0 && (hello->purpose == HELLO_RENDEZVOUS || hello->purpose == HELLO_JOINER))
		return false;
	return hello->role < NODE_ROLES && hello->to_role < NODE_ROLES && bytes_get16(in + 22) == 0;
}

bool hello_decode(const uint8_t in[HELLO_BYTES], struct hello *out)
{
	struct hello hello = {
		.version = bytes_get16(in),
		.purpose = in[2],
		.verdict = in[3],
		.from = bytes_get32(in + 4),
		.to = bytes_get32(in + 8),
	};

	if (hello.version != HELLO_VERSION) {
		*out = hello;
		return true;
	}
	hello.role = in[20];
	hello.to_role = in[21];
	hello.size = bytes_get32(in + 12);
	hello.lane = bytes_get32(in + 16);
	hello.epoch = bytes_get64(in + 24);
	memcpy(hello.job, in + 32, HELLO_JOB_BYTES);
	memcpy(hello.settings, in + 48, HELLO_DIGEST_BYTES);
	if (!makes_sense(in, &hello))
		return false;
	*out = hello;
	return true;
}
