#include "node/net/interface.h"

#include <assert.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/quote.h"

static_assert(INTERFACE_NAME == IF_NAMESIZE, "a name of the kernel's");

/* ---- the filter ---- */

static enum esp_status bad_filter(const char *text, struct error *err)
{
	char shown[QUOTE_TEXT];
	return error_set(err, ESP_EINVAL, "interfaces is a list of at most %u names or prefixes of network interfaces, as "
	                                  "in eth,ib or =eth0,eth1, with ^ before it to exclude them, not %s",
	                 INTERFACE_NAMES, quote(text, strlen(text), shown));
}

enum esp_status interface_filter_parse(const char *text, struct interface_filter *out, struct error *err)
{
	struct interface_filter filter = {0};
	const char *at = text;
	if (*text == '\0') {
		*out = filter;
		return ESP_OK;
	}
	filter.excludes = *at == '^';
	at += filter.excludes;
	filter.exact = *at == '=';
	at += filter.exact;
	for (;;) {
		size_t length = strcspn(at, ",");
		/* A second ^ or = cannot be part of a name, so it is a mistake. */
		if (length == 0 || length >= INTERFACE_NAME || filter.count == INTERFACE_NAMES || memchr(at, '^', length) ||
		    memchr(at, '=', length))
			return bad_filter(text, err);
		memcpy(filter.names[filter.count++], at, length);
		at += length;
		if (*at == '\0')
			break;
		at++;
	}
	*out = filter;
	return ESP_OK;
}

bool interface_filter_takes(const struct interface_filter *filter, const char *name)
{
	for (uint32_t i = 0; i < filter->count; i++) {
		const char *wanted = filter->names[i];
		if (filter->exact ? strcmp(name, wanted) == 0 : strncmp(name, wanted, strlen(wanted)) == 0)
			return !filter->excludes;
	}
	return filter->count == 0 || filter->excludes;
}

/* ---- worth ---- */

/* Bridges to containers and virtual machines of this host: every host has the same addresses there. */
static bool is_virtual(const char *name)
{
	static const char *const prefixes[] = {"docker", "br-", "veth", "virbr", "cni", "lxc", "podman"};
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
			return true;
	return false;
}

enum interface_worth interface_worth(const struct interface *interface)
{
	const struct node_address *address = &interface->address;
	if (!(interface->flags & IFF_UP) || (address->family != NODE_IPV4 && address->family != NODE_IPV6))
		return INTERFACE_USELESS;
	if ((interface->flags & IFF_LOOPBACK) || node_address_is_loopback(address))
		return INTERFACE_LOOPBACK;
	if (node_address_is_link_local(address))
		return INTERFACE_LINK_LOCAL;
	return is_virtual(interface->name) ? INTERFACE_VIRTUAL : INTERFACE_NETWORK;
}

/* ---- the choice ---- */

static bool is_of_family(const struct node_address *address, enum conf_family family)
{
	return family == CONF_FAMILY_ANY || address->family == (family == CONF_FAMILY_IPV4 ? NODE_IPV4 : NODE_IPV6);
}

static bool is_candidate(const struct interface *at, const struct interface_filter *filter, enum conf_family family)
{
	return interface_worth(at) != INTERFACE_USELESS && is_of_family(&at->address, family) &&
	       interface_filter_takes(filter, at->name);
}

/* With a filter that names interfaces, all of them are candidates; otherwise only the best kind. */
static enum interface_worth least_worth(const struct interfaces *all, const struct interface_filter *filter,
                                        enum conf_family family)
{
	enum interface_worth best = INTERFACE_USELESS;
	bool named = filter->count > 0 && !filter->excludes;
	for (uint32_t i = 0; i < all->count; i++) {
		enum interface_worth worth = interface_worth(&all->list[i]);
		if (is_candidate(&all->list[i], filter, family) && worth > best)
			best = worth;
	}
	/* A filter that names eth0 does not mean its link-local address, unless eth0 has no other. */
	if (named)
		return best > INTERFACE_LINK_LOCAL ? INTERFACE_VIRTUAL : INTERFACE_LOOPBACK;
	/* A filter that excludes interfaces takes bridges that are left; no filter takes no bridges. */
	return filter->count > 0 && best == INTERFACE_NETWORK ? INTERFACE_VIRTUAL : best;
}

static bool has_address_of(const struct interfaces *chosen, const struct interface *like)
{
	for (uint32_t i = 0; i < chosen->count; i++)
		if (strcmp(chosen->list[i].name, like->name) == 0 && chosen->list[i].address.family == like->address.family)
			return true;
	return false;
}

/* Appends an address; interfaces are numbered in the order of their first address. */
static void add_address(struct interfaces *chosen, const struct interface *one)
{
	uint8_t number = 0;
	bool known = false;
	for (uint32_t i = 0; i < chosen->count && !known; i++) {
		known = strcmp(chosen->list[i].name, one->name) == 0;
		if (known)
			number = chosen->list[i].address.interface;
		else if (chosen->list[i].address.interface >= number)
			number = (uint8_t)(chosen->list[i].address.interface + 1);
	}
	chosen->list[chosen->count] = *one;
	chosen->list[chosen->count++].address.interface = number;
}

/* The filter in the form in which it was given. */
#define FILTER_TEXT (2u + INTERFACE_NAMES * INTERFACE_NAME + 1u)
static void filter_text(const struct interface_filter *filter, char text[FILTER_TEXT])
{
	size_t used = (size_t)snprintf(text, FILTER_TEXT, "%s%s", filter->excludes ? "^" : "", filter->exact ? "=" : "");
	for (uint32_t i = 0; i < filter->count; i++)
		used += (size_t)snprintf(text + used, FILTER_TEXT - used, "%s%s", i ? "," : "", filter->names[i]);
}

static enum esp_status nothing_fits(const struct interface_filter *filter, enum conf_family family, const char *list,
                                    struct error *err)
{
	char names[FILTER_TEXT], shown[QUOTE_TEXT];
	const char *of_family = family == CONF_FAMILY_IPV4 ? "ipv4" : "ipv6";
	if (filter->count == 0)
		return error_set(err, ESP_EINVAL, "no network interface fits the setting family '%s'; there are: %s", of_family,
		                 list);
	filter_text(filter, names);
	quote(names, strlen(names), shown);
	if (family == CONF_FAMILY_ANY)
		return error_set(err, ESP_EINVAL, "no network interface fits the setting interfaces %s; there are: %s", shown,
		                 list);
	return error_set(err, ESP_EINVAL,
	                 "no network interface fits the settings interfaces %s and family '%s'; there are: %s", shown,
	                 of_family, list);
}

static enum esp_status complain(const struct interfaces *all, const struct interface_filter *filter,
                                enum conf_family family, struct error *err)
{
	char list[160] = "";
	size_t used = 0;
	for (uint32_t i = 0; i < all->count; i++) {
		char text[NODE_ADDRESS_TEXT];
		const struct interface *at = &all->list[i];
		int wrote = snprintf(list + used, sizeof(list) - used, "%s%s%s %s", used ? ", " : "", at->name,
		                     at->flags & IFF_UP ? "" : " (down)", node_address_text(&at->address, text));
		if (wrote < 0 || used + (size_t)wrote >= sizeof(list)) { /* cut before the entry that does not fit */
			snprintf(list + used, sizeof(list) - used, "%s", ", ...");
			break;
		}
		used += (size_t)wrote;
	}
	if (all->count == 0)
		return error_set(err, ESP_EINVAL, "no network interface of this host has an address, not even loopback");
	return nothing_fits(filter, family, list, err);
}

enum esp_status interfaces_choose(const struct interfaces *all, const struct interface_filter *filter,
                                  enum conf_family family, struct interfaces *out, struct error *err)
{
	struct interfaces chosen = {0};
	enum interface_worth least = least_worth(all, filter, family);
	if (least == INTERFACE_USELESS)
		return complain(all, filter, family, err);
	/* First one address of each family and interface, then further ones. */
	for (int again = 0; again < 2; again++) {
		struct interfaces before = chosen;
		for (uint32_t i = 0; i < all->count && chosen.count < NODE_ADDRESSES; i++) {
			const struct interface *at = &all->list[i];
			bool fits = is_candidate(at, filter, family) && interface_worth(at) >= least;
			if (!fits || (again ? interfaces_find(&before, &at->address) != NULL : has_address_of(&chosen, at)))
				continue;
			if (again && !has_address_of(&before, at))
				continue; /* no further address of an interface that had no room for its first one */
			add_address(&chosen, at);
		}
	}
	if (chosen.count == 0)
		return complain(all, filter, family, err);
	*out = chosen;
	return ESP_OK;
}

const struct interface *interfaces_find(const struct interfaces *all, const struct node_address *address)
{
	for (uint32_t i = 0; i < all->count; i++)
		if (node_address_same(&all->list[i].address, address))
			return &all->list[i];
	return NULL;
}

/* ---- the kernel's interfaces ---- */

static uint8_t count_bits(const struct sockaddr *mask)
{
	const uint8_t *bytes;
	unsigned length, bits = 0;
	if (!mask)
		return 0;
	if (mask->sa_family == AF_INET) {
		bytes = (const uint8_t *)&((const struct sockaddr_in *)(const void *)mask)->sin_addr;
		length = 4;
	} else {
		bytes = ((const struct sockaddr_in6 *)(const void *)mask)->sin6_addr.s6_addr;
		length = 16;
	}
	while (bits < 8 * length && bytes[bits / 8] & 0x80 >> bits % 8)
		bits++;
	return (uint8_t)bits;
}

enum esp_status interfaces_list(struct interfaces *out, struct error *err)
{
	struct ifaddrs *list = NULL;
	if (getifaddrs(&list) != 0)
		return error_set(err, ESP_EIO, "cannot list the network interfaces: %s", strerror(errno));
	out->count = 0;
	for (const struct ifaddrs *at = list; at && out->count < INTERFACES_MOST; at = at->ifa_next) {
		struct interface *one = &out->list[out->count];
		*one = (struct interface){.flags = at->ifa_flags};
		if (!at->ifa_addr || !node_address_from(at->ifa_addr, &one->address))
			continue;
		one->address.prefix = count_bits(at->ifa_netmask);
		snprintf(one->name, sizeof(one->name), "%s", at->ifa_name);
		one->index = if_nametoindex(at->ifa_name);
		out->count++;
	}
	freeifaddrs(list);
	return ESP_OK;
}
