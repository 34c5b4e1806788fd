#include "node/net/address.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/number.h"
#include "base/quote.h"

static bool is_ipv6(const char *host)
{
	struct in6_addr unused;
	char plain[INET6_ADDRSTRLEN];
	size_t length = strcspn(host, "%"); /* fe80::1%eth0 */
	if (length >= sizeof(plain))
		return false;
	memcpy(plain, host, length);
	plain[length] = '\0';
	return inet_pton(AF_INET6, plain, &unused) == 1;
}

static bool is_name(const char *host, size_t length)
{
	if (length == 0 || length >= ADDRESS_HOST)
		return false;
	for (size_t i = 0; i < length; i++)
		if (host[i] <= ' ' || host[i] > '~' || strchr(":[]/@", host[i]))
			return false;
	return true;
}

static bool parse_port(const char *text, uint16_t *out)
{
	uint64_t port;
	if (!number_parse_u64(text, strlen(text), &port) || port == 0 || port > UINT16_MAX)
		return false;
	*out = (uint16_t)port;
	return true;
}

/* Copies a host of `length` bytes; only an IPv6 address may stand in brackets. False: it is no name and no address. */
static bool copy_host(const char *text, size_t length, char out[ADDRESS_HOST])
{
	char host[ADDRESS_HOST];
	bool brackets = length >= 2 && text[0] == '[' && text[length - 1] == ']';
	if (brackets) {
		text++;
		length -= 2;
	}
	if (length == 0 || length >= ADDRESS_HOST)
		return false;
	memcpy(host, text, length);
	host[length] = '\0';
	bool ok = strlen(host) == length && (is_ipv6(host) || (!brackets && is_name(host, length)));
	if (ok)
		memcpy(out, host, length + 1);
	return ok;
}

enum esp_status address_parse(const char *text, const char *what, struct address *out, struct error *err)
{
	char shown[QUOTE_TEXT];
	struct address address;
	const char *colon = strrchr(text, ':');
	size_t length = colon ? (size_t)(colon - text) : 0;
	bool bare_ipv6 = colon && memchr(text, ':', length) && text[0] != '[';
	if (!colon || bare_ipv6 || !copy_host(text, length, address.host) || !parse_port(colon + 1, &address.port))
		return error_set(err, ESP_EINVAL, "%s is host:port or [IPv6]:port with a port from 1 to 65535, not %s", what,
		                 quote(text, strlen(text), shown));
	*out = address;
	return ESP_OK;
}

enum esp_status address_from_parts(const char *host, const char *host_what, const char *port, const char *port_what,
                                   struct address *out, struct error *err)
{
	char shown[QUOTE_TEXT];
	struct address address;
	if (!copy_host(host, strlen(host), address.host))
		return error_set(err, ESP_EINVAL, "%s is the name or address of a host, not %s", host_what,
		                 quote(host, strlen(host), shown));
	if (!parse_port(port, &address.port))
		return error_set(err, ESP_EINVAL, "%s is a port from 1 to 65535, not %s", port_what,
		                 quote(port, strlen(port), shown));
	*out = address;
	return ESP_OK;
}

const char *address_format(const struct address *address, char text[ADDRESS_TEXT])
{
	bool brackets = strchr(address->host, ':') != NULL;
	snprintf(text, ADDRESS_TEXT, "%s%s%s:%u", brackets ? "[" : "", address->host, brackets ? "]" : "", address->port);
	return text;
}

bool address_is_loopback(const struct address *address)
{
	struct in_addr v4;
	struct in6_addr v6;
	if (strcasecmp(address->host, "localhost") == 0)
		return true;
	if (inet_pton(AF_INET, address->host, &v4) == 1)
		return ntohl(v4.s_addr) >> 24 == 127;
	if (inet_pton(AF_INET6, address->host, &v6) != 1)
		return false;
	return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
}

bool address_is_numeric(const struct address *address)
{
	struct in_addr v4;
	return inet_pton(AF_INET, address->host, &v4) == 1 || is_ipv6(address->host);
}

bool address_meets_itself(int fd)
{
	struct sockaddr_storage near = {0}, far = {0};
	socklen_t near_bytes = sizeof(near), far_bytes = sizeof(far);

	return getsockname(fd, (struct sockaddr *)&near, &near_bytes) == 0 &&
	       getpeername(fd, (struct sockaddr *)&far, &far_bytes) == 0 &&
	       (near.ss_family == AF_INET || near.ss_family == AF_INET6) && near_bytes == far_bytes &&
	       memcmp(&near, &far, near_bytes) == 0;
}
