#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "node/net/interface.h"

bool node_address_from(const struct sockaddr *name, struct node_address *out)
{
	struct node_address address = {.interface = NODE_NO_INTERFACE};
	if (name->sa_family == AF_INET) {
		address.family = NODE_IPV4;
		memcpy(address.bytes, &((const struct sockaddr_in *)(const void *)name)->sin_addr, 4);
	} else if (name->sa_family == AF_INET6) {
		const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)name)->sin6_addr;
		address.family = IN6_IS_ADDR_V4MAPPED(v6) ? NODE_IPV4 : NODE_IPV6;
		if (address.family == NODE_IPV4)
			memcpy(address.bytes, v6->s6_addr + 12, 4);
		else
			memcpy(address.bytes, v6, 16);
	} else {
		return false;
	}
	*out = address;
	return true;
}

uint32_t node_address_to(const struct node_address *address, uint16_t port, uint32_t scope,
                         struct sockaddr_storage *out)
{
	memset(out, 0, sizeof(*out));
	if (address->family == NODE_IPV4) {
		struct sockaddr_in *v4 = (struct sockaddr_in *)out;
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, address->bytes, 4);
		return sizeof(*v4);
	}
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;
	v6->sin6_family = AF_INET6;
	v6->sin6_port = htons(port);
	memcpy(&v6->sin6_addr, address->bytes, 16);
	if (node_address_is_link_local(address))
		v6->sin6_scope_id = scope;
	return sizeof(*v6);
}

bool node_address_same(const struct node_address *a, const struct node_address *b)
{
	return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

bool node_address_same_network(const struct node_address *a, const struct node_address *b)
{
	unsigned bits = a->prefix, whole = bits / 8, rest = bits % 8;
	if (a->family != b->family || bits == 0 || bits > (a->family == NODE_IPV4 ? 32 : 128))
		return false;
	if (memcmp(a->bytes, b->bytes, whole) != 0)
		return false;
	return rest == 0 || (a->bytes[whole] ^ b->bytes[whole]) >> (8 - rest) == 0;
}

bool node_address_is_link_local(const struct node_address *address)
{
	if (address->family == NODE_IPV4)
		return address->bytes[0] == 169 && address->bytes[1] == 254;
	return address->bytes[0] == 0xfe && (address->bytes[1] & 0xc0) == 0x80;
}

bool node_address_is_loopback(const struct node_address *address)
{
	static const uint8_t one[16] = {[15] = 1};
	return address->family == NODE_IPV4 ? address->bytes[0] == 127 : memcmp(address->bytes, one, sizeof(one)) == 0;
}

const char *node_address_text(const struct node_address *address, char text[NODE_ADDRESS_TEXT])
{
	int family = address->family == NODE_IPV4 ? AF_INET : AF_INET6;
	return inet_ntop(family, address->bytes, text, NODE_ADDRESS_TEXT);
}
