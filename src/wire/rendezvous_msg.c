#include "wire/rendezvous_msg.h"

#include <assert.h>
#include <string.h>

#include "wire/bytes.h"

void rendezvous_head_encode(const struct rendezvous_head *head, uint8_t out[RENDEZVOUS_HEAD_BYTES])
{
	memset(out, 0, RENDEZVOUS_HEAD_BYTES);
	out[0] = head->type;
	bytes_put32(out + 4, head->bytes);
}

bool rendezvous_head_decode(const uint8_t in[RENDEZVOUS_HEAD_BYTES], struct rendezvous_head *out)
{
	if (in[0] < RENDEZVOUS_ARRIVAL || in[0] >= RENDEZVOUS_TYPES || in[1] || in[2] || in[3])
		return false;
	*out = (struct rendezvous_head){in[0], bytes_get32(in + 4)};
	return true;
}

static bool printable(uint8_t c)
{
	return c >= 0x20 && c < 0x7f;
}

/* A text is padded with NULs and has at least one. */
static void put_text(uint8_t *at, const char *text, size_t size)
{
	size_t length = strnlen(text, size - 1);
	for (size_t i = 0; i < length; i++)
		at[i] = printable((uint8_t)text[i]) ? (uint8_t)text[i] : '?';
	memset(at + length, 0, size - length);
}

static bool get_text(const uint8_t *at, char *text, size_t size)
{
	size_t length = strnlen((const char *)at, size);
	if (length == size)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!printable(at[i]))
			return false;
	for (size_t i = length; i < size; i++)
		if (at[i])
			return false;
	memcpy(text, at, size);
	return true;
}

#define ADDRESS_BYTES 20u /* family 1, prefix 1, interface 1, zero 1, address 16 */

static void put_address(uint8_t *at, const struct node_address *address)
{
	memset(at, 0, ADDRESS_BYTES);
	at[0] = address->family;
	at[1] = address->prefix;
	at[2] = address->interface;
	memcpy(at + 4, address->bytes, address->family == NODE_IPV4 ? 4 : 16);
}

static bool get_address(const uint8_t *at, struct node_address *address)
{
	unsigned length = at[0] == NODE_IPV4 ? 4 : 16;
	if ((at[0] != NODE_IPV4 && at[0] != NODE_IPV6) || at[1] > 8 * length || at[3])
		return false;
	if (at[2] >= NODE_ADDRESSES && at[2] != NODE_NO_INTERFACE)
		return false;
	for (unsigned i = length; i < 16; i++)
		if (at[4 + i])
			return false;
	address->family = at[0];
	address->prefix = at[1];
	address->interface = at[2];
	memcpy(address->bytes, at + 4, 16);
	return true;
}

static bool all_zero(const uint8_t *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i])
			return false;
	return true;
}

/*
 *     0     4     8    12       14    16       32        64         128    132    136          144    152
 *     rank  size  pid  version  port  host id  settings  host name  count  cores  set of them  nonce  8 addresses of 20
 */
#define COUNT_AT 128u
#define NONCE_AT 144u
#define ADDRESSES_AT 152u
static_assert(ADDRESSES_AT + NODE_ADDRESSES * ADDRESS_BYTES == NODE_INFO_BYTES, "the layout of a node info");

void node_info_encode(const struct node_info *info, uint8_t out[NODE_INFO_BYTES])
{
	assert(info->address_count <= NODE_ADDRESSES);
	memset(out, 0, NODE_INFO_BYTES);
	bytes_put32(out, info->rank);
	bytes_put32(out + 4, info->size);
	bytes_put32(out + 8, info->pid);
	bytes_put16(out + 12, info->version);
	bytes_put16(out + 14, info->port);
	memcpy(out + 16, info->host_id, NODE_INFO_HOST_ID_BYTES);
	memcpy(out + 32, info->settings, HELLO_DIGEST_BYTES);
	put_text(out + 64, info->host_name, NODE_INFO_HOST_NAME);
	bytes_put32(out + COUNT_AT, info->address_count);
	bytes_put16(out + COUNT_AT + 4, info->cores < UINT16_MAX ? (uint16_t)info->cores : UINT16_MAX);
	out[COUNT_AT + 6] = info->role;
	out[COUNT_AT + 7] = 0;
	bytes_put64(out + COUNT_AT + 8, info->core_set);
	bytes_put64(out + NONCE_AT, info->nonce);
	for (uint32_t i = 0; i < info->address_count; i++)
		put_address(out + ADDRESSES_AT + i * ADDRESS_BYTES, &info->addresses[i]);
}

static bool get_addresses(const uint8_t *in, struct node_info *info)
{
	uint32_t count = bytes_get32(in + COUNT_AT);
	if (count > NODE_ADDRESSES)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!get_address(in + ADDRESSES_AT + i * ADDRESS_BYTES, &info->addresses[i]))
			return false;
	info->address_count = count;
	return all_zero(in + ADDRESSES_AT + count * ADDRESS_BYTES, (NODE_ADDRESSES - count) * ADDRESS_BYTES);
}

bool node_info_decode(const uint8_t in[NODE_INFO_BYTES], struct node_info *out)
{
	struct node_info info = {
		.rank = bytes_get32(in),
		.size = bytes_get32(in + 4),
		.pid = bytes_get32(in + 8),
		.version = bytes_get16(in + 12),
		.port = bytes_get16(in + 14),
		.cores = bytes_get16(in + COUNT_AT + 4),
		.role = in[COUNT_AT + 6],
		.core_set = bytes_get64(in + COUNT_AT + 8),
		.nonce = bytes_get64(in + NONCE_AT),
	};

	memcpy(info.host_id, in + 16, NODE_INFO_HOST_ID_BYTES);
	memcpy(info.settings, in + 32, HELLO_DIGEST_BYTES);
	if (!get_text(in + 64, info.host_name, NODE_INFO_HOST_NAME) || !get_addresses(in, &info) ||
	    info.role >= NODE_ROLES || in[COUNT_AT + 7] != 0 || (info.role == NODE_WORKER && info.rank >= info.size))
		return false;
	*out = info;
	return true;
}

void rendezvous_arrival_encode(const struct rendezvous_arrival *arrival, uint8_t out[RENDEZVOUS_ARRIVAL_BYTES])
{
	bytes_put32(out, arrival->patience_ms);
	node_info_encode(&arrival->info, out + RENDEZVOUS_ARRIVAL_INFO);
	put_text(out + RENDEZVOUS_ARRIVAL_INFO + NODE_INFO_BYTES, arrival->settings, RENDEZVOUS_SETTINGS_TEXT);
	put_text(out + RENDEZVOUS_ARRIVAL_BYTES - RENDEZVOUS_JOB_TEXT, arrival->job, RENDEZVOUS_JOB_TEXT);
}

bool rendezvous_arrival_decode(const uint8_t in[RENDEZVOUS_ARRIVAL_BYTES], struct rendezvous_arrival *out)
{
	struct rendezvous_arrival arrival = {.patience_ms = bytes_get32(in)};

	if (!node_info_decode(in + RENDEZVOUS_ARRIVAL_INFO, &arrival.info) ||
	    !get_text(in + RENDEZVOUS_ARRIVAL_INFO + NODE_INFO_BYTES, arrival.settings, RENDEZVOUS_SETTINGS_TEXT) ||
	    !get_text(in + RENDEZVOUS_ARRIVAL_BYTES - RENDEZVOUS_JOB_TEXT, arrival.job, RENDEZVOUS_JOB_TEXT))
		return false;
	*out = arrival;
	return true;
}

void rendezvous_failure_encode(const struct rendezvous_failure *failure, uint8_t out[RENDEZVOUS_FAILURE_BYTES])
{
	bytes_put32(out, (uint32_t)failure->status);
	bytes_put32(out + 4, failure->culprit);
	put_text(out + 8, failure->text, RENDEZVOUS_FAILURE_TEXT);
}

bool rendezvous_failure_decode(const uint8_t in[RENDEZVOUS_FAILURE_BYTES], struct rendezvous_failure *out)
{
	int32_t status = (int32_t)bytes_get32(in);
	if (status >= 0 || !get_text(in + 8, out->text, RENDEZVOUS_FAILURE_TEXT))
		return false;
	out->status = status;
	out->culprit = bytes_get32(in + 4);
	return true;
}
