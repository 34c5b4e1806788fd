#include "tools/lab/commands.h"

#include <inttypes.h>

#include "tools/lab/shaper.h"

static void put_bridges(FILE *out, const struct lab *lab)
{
	for (uint32_t rail = 0; rail < lab->config.rails; rail++) {
		fprintf(out, "link add br%u type bridge stp_state 0 forward_delay 0\n", rail);
		fprintf(out, "link set br%u mtu %u addrgenmode none\n", rail, lab->config.mtu);
		fprintf(out, "link set br%u up\n", rail);
	}
}

static void put_port(FILE *out, const char *device, uint32_t rail)
{
	fprintf(out, "link set %s master br%u addrgenmode none\n", device, rail);
	fprintf(out, "link set %s up\n", device);
}

/* Makes both ends at once; the other one appears in its own space under its own name. */
static void put_pair(FILE *out, const struct lab *lab, const char *here, const char *there, int net)
{
	uint32_t mtu = lab->config.mtu;
	fprintf(out, "link add %s mtu %u type veth peer name %s mtu %u netns /proc/self/fd/%d\n", here, mtu, there, mtu,
	        net);
}

void lab_commands_rack(FILE *out, const struct lab *lab, uint32_t rack, const int *nets)
{
	put_bridges(out, lab);
	for (uint32_t rail = 0; rail < lab->config.rails; rail++) {
		for (uint32_t slot = 0; slot < lab->config.hosts; slot++) {
			uint32_t link = lab_host_link(lab, rack * lab->config.hosts + slot, rail);
			struct lab_end near = lab_near_end(lab, link), far = lab_far_end(lab, link);
			put_pair(out, lab, near.device, far.device, nets[far.space]);
			put_port(out, near.device, rail);
		}
		if (lab_has_core(lab)) {
			uint32_t link = lab_uplink(lab, rack, rail);
			struct lab_end near = lab_near_end(lab, link), far = lab_far_end(lab, link);
			put_pair(out, lab, far.device, near.device, nets[near.space]);
			put_port(out, far.device, rail);
		}
	}
}

void lab_commands_bridge_address(FILE *out, const struct lab *lab)
{
	char address[LAB_ADDRESS_TEXT];

	fprintf(out, "addr add %s/%u dev br0%s\n", lab_bridge_address(lab, address), lab_prefix_length(lab),
	        lab->config.ipv6 ? " nodad" : "");
}

void lab_commands_core(FILE *out, const struct lab *lab)
{
	put_bridges(out, lab);
	for (uint32_t rail = 0; rail < lab->config.rails; rail++)
		for (uint32_t rack = 0; rack < lab->config.racks; rack++)
			put_port(out, lab_near_end(lab, lab_uplink(lab, rack, rail)).device, rail);
}

void lab_commands_train(FILE *out, const struct lab *lab, const char *device, uint64_t rate)
{
	fprintf(out, "link set %s gso_max_size %u\n", device, lab_shaper_for(rate, lab->config.mtu).train_bytes);
}

void lab_commands_host(FILE *out, const struct lab *lab, uint32_t host)
{
	char address[LAB_ADDRESS_TEXT];
	fputs("link set lo up\n", out);
	for (uint32_t rail = 0; rail < lab->config.rails; rail++) {
		const struct lab_link *link = lab_link(lab, lab_host_link(lab, host, rail));
		char device[LAB_DEVICE_TEXT];
		snprintf(device, sizeof(device), "e%u", rail);
		lab_commands_train(out, lab, device, link->set.rate);
		if (!lab->config.ipv6) /* unused IPv6 addresses only cause traffic */
			fprintf(out, "link set %s addrgenmode none\n", device);
		fprintf(out, "addr add %s/%u dev %s%s\n", lab_address(lab, host, rail, address), lab_prefix_length(lab), device,
		        lab->config.ipv6 ? " nodad" : "");
		fprintf(out, "link set %s up\n", device);
	}
}

static void put_class(FILE *out, const struct lab *lab, const char *verb, const char *device, uint64_t rate)
{
	struct shaper shaper = lab_shaper_for(rate, lab->config.mtu);
	fprintf(out, "class %s dev %s parent 1: classid 1:1 htb rate %" PRIu64 "bit ceil %" PRIu64 "bit burst %u cburst %u "
	        "quantum 60000\n", verb, device, shaper.rate, shaper.rate, shaper.burst_bytes, shaper.burst_bytes);
	fprintf(out, "qdisc %s dev %s parent 1:1 handle 10: bfifo limit %u\n", verb, device, shaper.queue_bytes);
}

void lab_commands_rate(FILE *out, const struct lab *lab, const char *device, uint64_t rate)
{
	put_class(out, lab, "change", device, rate);
}

static void put_shaper(FILE *out, const struct lab *lab, const char *device, uint64_t rate)
{
	fprintf(out, "qdisc add dev %s root handle 1: htb default 1\n", device);
	put_class(out, lab, "add", device, rate);
}

/* A space has the far ends of its own links and the near ends of those below it. */
void lab_commands_shapers(FILE *out, const struct lab *lab, uint32_t space)
{
	const struct lab_config *config = &lab->config;
	bool host = space < lab->host_count, core = lab_has_core(lab) && space == lab_core_space(lab);
	uint32_t rack = space - lab->host_count, below = host ? 0 : core ? config->racks : config->hosts;
	for (uint32_t rail = 0; rail < config->rails; rail++) {
		for (uint32_t i = 0; i < below; i++) {
			uint32_t link = core ? lab_uplink(lab, i, rail) : lab_host_link(lab, rack * config->hosts + i, rail);
			put_shaper(out, lab, lab_near_end(lab, link).device, lab_link(lab, link)->set.rate);
		}
		if (!host && (core || !lab_has_core(lab)))
			continue;
		uint32_t link = host ? lab_host_link(lab, space, rail) : lab_uplink(lab, rack, rail);
		put_shaper(out, lab, lab_far_end(lab, link).device, lab_link(lab, link)->set.rate);
	}
}

/* Naming a table creates it if it is missing, so the deletion always succeeds. */
void lab_commands_drop(FILE *out, const char *device, uint32_t loss, bool cut)
{
	fprintf(out, "table netdev drop-%s\ndelete table netdev drop-%s\n", device, device);
	if (!loss && !cut)
		return;
	fprintf(out, "table netdev drop-%s {\n\tchain in {\n", device);
	fprintf(out, "\t\ttype filter hook ingress device \"%s\" priority 0; policy accept;\n", device);
	if (cut)
		fputs("\t\tdrop\n", out);
	else
		fprintf(out, "\t\tnumgen random mod 1000000 < %u drop\n", loss);
	fputs("\t}\n}\n", out);
}

void lab_commands_relay_pair(FILE *out, const struct lab *lab, const char *device)
{
	uint32_t mtu = lab->config.mtu;
	fprintf(out, "link add %s-r mtu %u type veth peer name %s-q mtu %u\n", device, mtu, device, mtu);
	fprintf(out, "link set %s-r addrgenmode none\nlink set %s-r up\n", device, device);
	fprintf(out, "link set %s-q addrgenmode none\nlink set %s-q up\n", device, device);
}

void lab_commands_relay_in(FILE *out, const char *device, uint32_t rail)
{
	fprintf(out, "link set %s nomaster\nlink set %s-q master br%u\n", device, device, rail);
}

void lab_commands_relay_out(FILE *out, const char *device, uint32_t rail)
{
	fprintf(out, "link del %s-r\nlink set %s master br%u\n", device, device, rail);
}

void lab_commands_carrier(FILE *out, const char *device, bool down)
{
	fprintf(out, "link set %s %s\n", device, down ? "down" : "up");
}

/* Sorted by address: the order of places would show which hosts share a rack. */
void lab_commands_hosts_file(FILE *out, const struct lab *lab)
{
	char address[LAB_ADDRESS_TEXT], suffix[LAB_DEVICE_TEXT] = "";
	uint32_t order[LAB_HOSTS_MAX];
	fputs("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n", out);
	for (uint32_t rail = 0; rail < lab->config.rails; rail++) {
		for (uint32_t host = 0; host < lab->host_count; host++)
			order[lab_host(lab, host)->number[rail] - 1] = host;
		if (rail > 0)
			snprintf(suffix, sizeof(suffix), "-e%u", rail);
		for (uint32_t i = 0; i < lab->host_count; i++)
			fprintf(out, "%s\t%s%s\n", lab_address(lab, order[i], rail, address), lab_host(lab, order[i])->name,
			        suffix);
	}
}
