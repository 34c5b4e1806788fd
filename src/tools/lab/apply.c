/*
 * apply.c - changes a link from its current settings to others. The keeper's.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/lab/commands.h"
#include "tools/lab/fabric.h"
#include "tools/lab/relay.h"
#include "tools/lab/tool.h"

/*
 * Without checksum offload, large TCP segments are split into packets before they are sent and every packet has
 * its checksum: then a loss is the loss of one packet, and a flipped bit is noticed.
 */
static enum esp_status set_offload(const struct fabric *fabric, uint32_t space, const char *device, bool on,
                                   struct error *err)
{
	struct ethtool_value value = {.cmd = ETHTOOL_STXCSUM, .data = on};
	struct ifreq request = {0};
	int fd = lab_space_socket(&fabric->spaces[space], AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memcpy(request.ifr_name, device, strnlen(device, sizeof(request.ifr_name) - 1));
	request.ifr_data = (char *)&value;
	int failed = fd < 0 || ioctl(fd, SIOCETHTOOL, &request) != 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	return failed ? error_set(err, ESP_EIO, "cannot %s the checksums of %s: %s", on ? "leave out" : "have", device,
	                          strerror(failed)) : ESP_OK;
}

static enum esp_status apply_rate(struct fabric *fabric, const struct lab_end *end, uint64_t rate, bool sends_trains,
                                  struct error *err)
{
	struct batch batch;
	enum esp_status status = lab_tool_begin(&batch, err);
	if (status != ESP_OK)
		return status;
	lab_commands_rate(batch.out, fabric->lab, end->device, rate);
	status = lab_tool_run(&batch, TOOL_TC, fabric->nets[end->space], err);
	if (status != ESP_OK || !sends_trains)
		return status;
	status = lab_tool_begin(&batch, err);
	if (status != ESP_OK)
		return status;
	lab_commands_train(batch.out, fabric->lab, end->device, rate);
	return lab_tool_run(&batch, TOOL_IP, fabric->nets[end->space], err);
}

static enum esp_status apply_drop(struct fabric *fabric, const struct lab_end *end, const struct lab_faults *faults,
                                  bool relayed, struct error *err)
{
	struct batch batch;
	enum esp_status status = lab_tool_begin(&batch, err);
	if (status != ESP_OK)
		return status;
	lab_commands_drop(batch.out, end->device, relayed ? 0 : faults->loss, !relayed && faults->cut);
	return lab_tool_run(&batch, TOOL_NFT, fabric->nets[end->space], err);
}

typedef void relay_commands_fn(FILE *out, const char *device, uint32_t rail);

static enum esp_status run_relay_commands(struct fabric *fabric, const struct lab_end *near, uint32_t rail,
                                          relay_commands_fn *commands, struct error *err)
{
	struct batch batch;
	enum esp_status status = lab_tool_begin(&batch, err);
	if (status != ESP_OK)
		return status;
	if (commands)
		commands(batch.out, near->device, rail);
	else
		lab_commands_relay_pair(batch.out, fabric->lab, near->device);
	return lab_tool_run(&batch, TOOL_IP, fabric->nets[near->space], err);
}

/* The relay listens before the bridge switches to it, so that no frame is lost. */
static enum esp_status insert_relay(struct fabric *fabric, uint32_t number, const struct lab_end *near,
                                    struct error *err)
{
	struct lab_link *link = lab_link(fabric->lab, number);
	char inner[LAB_DEVICE_TEXT + 4];
	struct error unused;
	pid_t pid = 0;
	snprintf(inner, sizeof(inner), "%s-q", near->device);
	enum esp_status status = run_relay_commands(fabric, near, link->rail, NULL, err);
	if (status == ESP_OK)
		status = set_offload(fabric, near->space, inner, false, err);
	if (status == ESP_OK)
		status = lab_relay_start(fabric->lab, number, near->device, fabric->nets[near->space], &pid, err);
	if (status == ESP_OK)
		status = run_relay_commands(fabric, near, link->rail, lab_commands_relay_in, err);
	if (status == ESP_OK) {
		link->relay = pid;
		return ESP_OK;
	}
	lab_relay_stop(pid);
	(void)!run_relay_commands(fabric, near, link->rail, lab_commands_relay_out, &unused); /* as far as it was made */
	return status;
}

/* The relay first: with relay and bridge both in place, frames would circulate. */
static enum esp_status remove_relay(struct fabric *fabric, uint32_t number, const struct lab_end *near,
                                    struct error *err)
{
	struct lab_link *link = lab_link(fabric->lab, number);
	lab_relay_stop(link->relay);
	link->relay = 0;
	return run_relay_commands(fabric, near, link->rail, lab_commands_relay_out, err);
}

static enum esp_status apply_carrier(struct fabric *fabric, const struct lab_end *near, bool down, struct error *err)
{
	struct batch batch;
	enum esp_status status = lab_tool_begin(&batch, err);
	if (status != ESP_OK)
		return status;
	lab_commands_carrier(batch.out, near->device, down);
	return lab_tool_run(&batch, TOOL_IP, fabric->nets[near->space], err);
}

static bool drops_differ(const struct lab_settings *a, const struct lab_settings *b, int way)
{
	const struct lab_faults *before = &a->faults[way], *after = &b->faults[way];
	bool before_dropped = before->cut || before->loss, after_dropped = after->cut || after->loss;
	return (before_dropped || after_dropped) && (before->cut != after->cut || before->loss != after->loss ||
	                                             lab_needs_relay(a) != lab_needs_relay(b));
}

/* Relays read the settings at any time (a seqlock): both increments order the write between them. */
static void write_settings(struct lab_link *link, const struct lab_settings *settings)
{
	__atomic_fetch_add(&link->version, 1, __ATOMIC_ACQ_REL);
	link->set = *settings;
	__atomic_fetch_add(&link->version, 1, __ATOMIC_RELEASE);
}

enum esp_status lab_fabric_apply(struct fabric *fabric, uint32_t number, const struct lab_settings *settings,
                                 struct error *err)
{
	struct lab_link *link = lab_link(fabric->lab, number);
	const struct lab_settings before = link->set;
	struct lab_end far = lab_far_end(fabric->lab, number), near = lab_near_end(fabric->lab, number);
	bool relayed = lab_needs_relay(settings), packets = lab_needs_packets(settings);
	enum esp_status status = ESP_OK;

	if (settings->rate != before.rate) {
		status = apply_rate(fabric, &far, settings->rate, link->host != LAB_NOBODY, err);
		if (status == ESP_OK)
			status = apply_rate(fabric, &near, settings->rate, false, err);
	}
	if (status == ESP_OK && packets != lab_needs_packets(&before)) {
		status = set_offload(fabric, far.space, far.device, !packets, err);
		if (status == ESP_OK)
			status = set_offload(fabric, near.space, near.device, !packets, err);
	}
	write_settings(link, settings);
	if (status == ESP_OK && relayed && !link->relay)
		status = insert_relay(fabric, number, &near, err);
	if (status == ESP_OK && !relayed && link->relay)
		status = remove_relay(fabric, number, &near, err);
	/* Frames are dropped at the receiving end: behind the sender's shaper, and packet by packet. */
	if (status == ESP_OK && drops_differ(&before, settings, LAB_FROM))
		status = apply_drop(fabric, &near, &settings->faults[LAB_FROM], relayed, err);
	if (status == ESP_OK && drops_differ(&before, settings, LAB_TO))
		status = apply_drop(fabric, &far, &settings->faults[LAB_TO], relayed, err);
	if (status == ESP_OK && settings->down != before.down)
		status = apply_carrier(fabric, &near, settings->down, err);
	if (status != ESP_OK)
		write_settings(link, &before); /* the next attempt then applies all of it again */
	return status;
}

bool lab_fabric_on_child_end(struct fabric *fabric, int pid)
{
	struct error unused;
	for (uint32_t i = 0; i < fabric->lab->link_count; i++) {
		struct lab_link *link = lab_link(fabric->lab, i);
		if (link->relay != pid)
			continue;
		struct lab_end near = lab_near_end(fabric->lab, i);
		pid_t again = 0;
		enum esp_status status =
			lab_relay_start(fabric->lab, i, near.device, fabric->nets[near.space], &again, &unused);
		link->relay = status == ESP_OK ? again : -1;
		return true;
	}
	return false;
}
