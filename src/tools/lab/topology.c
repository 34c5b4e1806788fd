/*
 * topology.c - makes a lab from its configuration, and finds places in it. Pure.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "base/rng.h"
#include "tools/lab/lab.h"

#define MAGIC UINT64_C(0x323042414c505345) /* "ESPLAB02", the layout of struct lab and the arrays behind it */
#define MTU_MIN 576u
#define MTU_MIN_IPV6 1280u
#define MTU_MAX 65535u
#define HOLD_NS UINT64_C(2000000)

/* ---- the configuration ---- */

static bool is_plain_name(const char *name, size_t room)
{
	size_t length = strnlen(name, room);
	if (length == 0 || length == room)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", name[i]))
			return false;
	return true;
}

static enum esp_status check_numbers(const struct lab_config *config, struct error *err)
{
	uint64_t total = (uint64_t)config->racks * config->hosts;
	if (config->racks < 1 || config->racks > LAB_PORTS_MAX || config->hosts < 1 || config->hosts > LAB_PORTS_MAX)
		return error_set(err, ESP_ELIMIT, "there can be 1 to %u racks, each with 1 to %u hosts, not %u with %u",
		                 LAB_PORTS_MAX, LAB_PORTS_MAX, config->racks, config->hosts);
	if (total > LAB_HOSTS_MAX)
		return error_set(err, ESP_ELIMIT, "%u racks with %u hosts are %" PRIu64 " hosts; a lab has at most %u",
		                 config->racks, config->hosts, total, LAB_HOSTS_MAX);
	if (config->rails < 1 || config->rails > LAB_RAILS_MAX)
		return error_set(err, ESP_ELIMIT, "a host can have 1 to %u interfaces, not %u", LAB_RAILS_MAX, config->rails);
	if (!(config->oversubscribe >= 0.001 && config->oversubscribe <= 1e6))
		return error_set(err, ESP_EINVAL, "an oversubscription is a number above 0, such as 4: the uplink has "
		                 "hosts * rate / 4");
	return ESP_OK;
}

enum esp_status lab_config_check(const struct lab_config *config, struct error *err)
{
	enum esp_status status = check_numbers(config, err);
	if (status != ESP_OK)
		return status;
	if (!is_plain_name(config->name, LAB_NAME_TEXT))
		return error_set(err, ESP_EINVAL, "the name of a lab has 1 to %u letters, digits, - and _", LAB_NAME_TEXT - 1);
	if (config->congestion[0] && !is_plain_name(config->congestion, LAB_CONGESTION_TEXT))
		return error_set(err, ESP_EINVAL, "a congestion control is a name such as cubic");
	for (uint32_t rail = 0; rail < config->rails; rail++)
		if (config->rate[rail] < 8)
			return error_set(err, ESP_EINVAL, "interface e%u has no rate", rail);
	uint32_t least = config->ipv6 ? MTU_MIN_IPV6 : MTU_MIN;
	if (config->mtu < least || config->mtu > MTU_MAX)
		return error_set(err, ESP_EINVAL, "an MTU%s is %u to %u bytes, not %u", config->ipv6 ? " for IPv6" : "", least,
		                 MTU_MAX, config->mtu);
	return ESP_OK;
}

/* ---- memory ---- */

static uint32_t links_per_rail(const struct lab_config *config)
{
	return config->racks * config->hosts + (config->racks > 1 ? config->racks : 0);
}

size_t lab_bytes(const struct lab_config *config)
{
	size_t hosts = (size_t)config->racks * config->hosts, links = (size_t)config->rails * links_per_rail(config);
	return sizeof(struct lab) + hosts * sizeof(struct lab_host) + links * sizeof(struct lab_link);
}

bool lab_is_valid(const struct lab *lab, size_t bytes)
{
	struct error unused;
	if (bytes < sizeof(*lab) || lab->magic != MAGIC || lab->bytes != bytes)
		return false;
	return lab_config_check(&lab->config, &unused) == ESP_OK && lab_bytes(&lab->config) == bytes &&
	       lab->host_count == lab->config.racks * lab->config.hosts &&
	       lab->link_count == lab->config.rails * links_per_rail(&lab->config);
}

struct lab_host *lab_host(const struct lab *lab, uint32_t host)
{
	assert(host < lab->host_count);
	return (struct lab_host *)(uintptr_t)(lab + 1) + host;
}

struct lab_link *lab_link(const struct lab *lab, uint32_t link)
{
	assert(link < lab->link_count);
	uintptr_t hosts = (uintptr_t)(lab + 1);
	return (struct lab_link *)(hosts + lab->host_count * sizeof(struct lab_host)) + link;
}

/* ---- making ---- */

static void shuffle(uint32_t *list, uint32_t count, struct rng *rng)
{
	for (uint32_t i = count; i > 1; i--) {
		uint32_t other = (uint32_t)rng_below(rng, i), kept = list[i - 1];
		list[i - 1] = list[other];
		list[other] = kept;
	}
}

/* Equal numbers of digits, so that sorting by name sorts by number. */
static int name_digits(uint32_t count)
{
	int digits = 1;
	for (; count > 10; count = (count + 9) / 10)
		digits++;
	return digits;
}

/* Names and addresses are shuffled separately, so that neither tells anything about the other, or about places. */
static void init_hosts(struct lab *lab, struct rng *rng)
{
	uint32_t order[LAB_HOSTS_MAX], count = lab->host_count;
	int digits = name_digits(count);
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	shuffle(order, count, rng);
	for (uint32_t i = 0; i < count; i++) {
		struct lab_host *host = lab_host(lab, i);
		*host = (struct lab_host){.rack = i / lab->config.hosts, .slot = i % lab->config.hosts};
		snprintf(host->name, sizeof(host->name), "node%0*u", digits, order[i]);
	}
	for (uint32_t rail = 0; rail < lab->config.rails; rail++) {
		shuffle(order, count, rng);
		for (uint32_t i = 0; i < count; i++)
			lab_host(lab, i)->number[rail] = order[i] + 1;
	}
}

static void init_link(struct lab *lab, uint32_t index, uint32_t rail, uint32_t rack, uint32_t host)
{
	const struct lab_config *config = &lab->config;
	struct lab_link *link = lab_link(lab, index);
	double uplink = (double)config->rate[rail] * config->hosts / config->oversubscribe;
	*link = (struct lab_link){.rail = rail, .rack = rack, .host = host};
	link->made.rate = host != LAB_NOBODY ? config->rate[rail] : uplink < 8 ? 8 : (uint64_t)uplink;
	for (int way = 0; way < LAB_WAYS; way++) {
		link->made.faults[way].delay_ns = host != LAB_NOBODY ? config->delay_ns : config->uplink_delay_ns;
		link->made.faults[way].hold_ns = HOLD_NS;
	}
	link->set = link->made;
}

void lab_init(struct lab *lab, const struct lab_config *config)
{
	struct rng rng;
	memset(lab, 0, lab_bytes(config));
	lab->magic = MAGIC;
	lab->bytes = lab_bytes(config);
	lab->config = *config;
	lab->host_count = config->racks * config->hosts;
	lab->link_count = config->rails * links_per_rail(config);
	lab->through = LAB_NOBODY;
	rng_init(&rng, config->seed);
	init_hosts(lab, &rng);
	for (uint32_t rail = 0; rail < config->rails; rail++) {
		for (uint32_t host = 0; host < lab->host_count; host++)
			init_link(lab, lab_host_link(lab, host, rail), rail, host / config->hosts, host);
		for (uint32_t rack = 0; lab_has_core(lab) && rack < config->racks; rack++)
			init_link(lab, lab_uplink(lab, rack, rail), rail, rack, LAB_NOBODY);
	}
}

/* ---- places ---- */

bool lab_has_core(const struct lab *lab)
{
	return lab->config.racks > 1;
}

uint32_t lab_host_link(const struct lab *lab, uint32_t host, uint32_t rail)
{
	return rail * links_per_rail(&lab->config) + host;
}

uint32_t lab_uplink(const struct lab *lab, uint32_t rack, uint32_t rail)
{
	assert(lab_has_core(lab));
	return rail * links_per_rail(&lab->config) + lab->host_count + rack;
}

uint32_t lab_space_count(const struct lab *lab)
{
	return lab->host_count + lab->config.racks + (lab_has_core(lab) ? 1 : 0);
}

uint32_t lab_rack_space(const struct lab *lab, uint32_t rack)
{
	return lab->host_count + rack;
}

uint32_t lab_core_space(const struct lab *lab)
{
	return lab->host_count + lab->config.racks;
}

const char *lab_space_name(const struct lab *lab, uint32_t space, char text[LAB_HOST_TEXT])
{
	if (space < lab->host_count)
		snprintf(text, LAB_HOST_TEXT, "%s", lab_host(lab, space)->name);
	else if (space < lab_core_space(lab))
		snprintf(text, LAB_HOST_TEXT, "rack%u", space - lab->host_count);
	else
		snprintf(text, LAB_HOST_TEXT, "core");
	return text;
}

/* Parses "rack1/2". */
static uint32_t find_place(const struct lab *lab, const char *name)
{
	const char *slash = strchr(name, '/');
	uint64_t rack, slot;
	if (!slash || strncmp(name, "rack", 4) != 0)
		return LAB_NOBODY;
	if (!number_parse_u64(name + 4, (size_t)(slash - name) - 4, &rack) ||
	    !number_parse_u64(slash + 1, strlen(slash + 1), &slot))
		return LAB_NOBODY;
	if (rack >= lab->config.racks || slot >= lab->config.hosts)
		return LAB_NOBODY;
	return (uint32_t)(rack * lab->config.hosts + slot);
}

uint32_t lab_find_space(const struct lab *lab, const char *name)
{
	char text[LAB_HOST_TEXT];
	for (uint32_t space = 0; space < lab_space_count(lab); space++)
		if (strcmp(lab_space_name(lab, space, text), name) == 0)
			return space;
	return find_place(lab, name);
}

enum esp_status lab_place_switch(struct lab *lab, struct error *err)
{
	const struct lab_config *config = &lab->config;

	if (!config->through[0])
		return ESP_OK;
	uint32_t space = lab_find_space(lab, config->through);
	if (space == LAB_NOBODY || (lab_has_core(lab) && space == lab_core_space(lab)))
		return error_set(err, ESP_EINVAL, "a switch runs at a rack, as rack0, or on a host, as rack0/1; there is no %s",
		                 config->through);
	lab->through = space;
	if (space >= lab->host_count)
		return ESP_OK;
	struct lab_link *link = lab_link(lab, lab_host_link(lab, space, 0));
	link->made.rate = (uint64_t)((double)link->made.rate * config->through_links);
	link->set.rate = link->made.rate;
	return ESP_OK;
}

struct lab_end lab_far_end(const struct lab *lab, uint32_t index)
{
	const struct lab_link *link = lab_link(lab, index);
	struct lab_end end;
	bool uplink = link->host == LAB_NOBODY;
	end.space = uplink ? lab_rack_space(lab, link->rack) : link->host;
	snprintf(end.device, sizeof(end.device), "%s%u", uplink ? "up" : "e", link->rail);
	return end;
}

struct lab_end lab_near_end(const struct lab *lab, uint32_t index)
{
	const struct lab_link *link = lab_link(lab, index);
	struct lab_end end;
	bool uplink = link->host == LAB_NOBODY;
	end.space = uplink ? lab_core_space(lab) : lab_rack_space(lab, link->rack);
	if (uplink)
		snprintf(end.device, sizeof(end.device), "rack%ue%u", link->rack, link->rail);
	else
		snprintf(end.device, sizeof(end.device), "h%ue%u", lab_host(lab, link->host)->slot, link->rail);
	return end;
}

const char *lab_link_name(const struct lab *lab, uint32_t index, char text[LAB_LINK_TEXT])
{
	const struct lab_link *link = lab_link(lab, index);
	char space[LAB_HOST_TEXT];
	uint32_t owner = link->host == LAB_NOBODY ? lab_rack_space(lab, link->rack) : link->host;
	snprintf(text, LAB_LINK_TEXT, "%s:e%u", lab_space_name(lab, owner, space), link->rail);
	return text;
}

static const char *address_of(const struct lab *lab, uint32_t number, uint32_t rail, char text[LAB_ADDRESS_TEXT])
{
	if (lab->config.ipv6)
		snprintf(text, LAB_ADDRESS_TEXT, "fd65:7370:6c61:%x::%x", rail, number);
	else
		snprintf(text, LAB_ADDRESS_TEXT, "10.%u.%u.%u", 80 + rail, number >> 8, number & 255);
	return text;
}

const char *lab_address(const struct lab *lab, uint32_t host, uint32_t rail, char text[LAB_ADDRESS_TEXT])
{
	return address_of(lab, lab_host(lab, host)->number[rail], rail, text);
}

const char *lab_bridge_address(const struct lab *lab, char text[LAB_ADDRESS_TEXT])
{
	return address_of(lab, lab->host_count + 1, 0, text); /* the first number that no host has */
}

unsigned lab_prefix_length(const struct lab *lab)
{
	return lab->config.ipv6 ? 64 : 16;
}

/* ---- choosing ---- */

/* Cuts ":e1" off. *out_rail: the rail, or LAB_NOBODY for all. */
static enum esp_status cut_rail(const struct lab *lab, char *target, uint32_t *out_rail, struct error *err)
{
	char *colon = strchr(target, ':');
	uint64_t rail;
	*out_rail = LAB_NOBODY;
	if (!colon)
		return ESP_OK;
	if (colon[1] != 'e' || !number_parse_u64(colon + 2, strlen(colon + 2), &rail) || rail >= lab->config.rails)
		return error_set(err, ESP_EINVAL, "'%.20s' is no interface of this lab; the last one is e%u", colon + 1,
		                 lab->config.rails - 1);
	*colon = '\0';
	*out_rail = (uint32_t)rail;
	return ESP_OK;
}

static bool is_targeted(const struct lab *lab, const struct lab_link *link, const char *target, uint32_t space)
{
	bool uplink = link->host == LAB_NOBODY;
	if (strcmp(target, "all") == 0)
		return !uplink;
	if (strcmp(target, "racks") == 0)
		return uplink;
	return space == (uplink ? lab_rack_space(lab, link->rack) : link->host);
}

enum esp_status lab_targets(const struct lab *lab, const char *target, uint32_t *out_links, uint32_t *out_count,
                            struct error *err)
{
	char name[64];
	uint32_t rail, count = 0;
	snprintf(name, sizeof(name), "%s", target);
	enum esp_status status = cut_rail(lab, name, &rail, err);
	if (status != ESP_OK)
		return status;
	uint32_t space = lab_find_space(lab, name);
	if (strcmp(name, "core") == 0 && lab_has_core(lab))
		return error_set(err, ESP_EINVAL, "core is a switch, and has no link of its own: what leads there are the "
		                                  "uplinks of the racks; racks is all of them, rack0 one");
	if (space == LAB_NOBODY && strcmp(name, "all") != 0 && strcmp(name, "racks") != 0)
		return error_set(err, ESP_EINVAL, "there is no '%.40s' in this lab; espalier lab status shows the hosts; all "
		                                  "is every host, rack0 an uplink, racks every uplink", name);
	for (uint32_t i = 0; i < lab->link_count; i++) {
		const struct lab_link *link = lab_link(lab, i);
		if ((rail == LAB_NOBODY || rail == link->rail) && is_targeted(lab, link, name, space))
			out_links[count++] = i;
	}
	if (count == 0)
		return error_set(err, ESP_EINVAL, "%.40s has no link of its own: a lab with one rack has no uplinks", name);
	*out_count = count;
	return ESP_OK;
}

void lab_place(const struct lab *lab, enum lab_place place, uint64_t seed, uint32_t *out_hosts)
{
	struct rng rng;
	const struct lab_config *config = &lab->config;
	for (uint32_t rank = 0; rank < lab->host_count; rank++)
		out_hosts[rank] = place == LAB_INTERLEAVED ? rank % config->racks * config->hosts + rank / config->racks : rank;
	if (place != LAB_RANDOM)
		return;
	rng_init(&rng, seed);
	shuffle(out_hosts, lab->host_count, &rng);
}
