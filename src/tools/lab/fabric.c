#include "tools/lab/fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "tools/lab/commands.h"
#include "tools/lab/tool.h"

/* Four descriptors per space. */
static void raise_file_limit(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit); /* if it is too low, opening reports it */
}

static enum esp_status allocate(struct fabric *fabric, struct error *err)
{
	uint32_t count = lab_space_count(fabric->lab);
	fabric->spaces = calloc(count, sizeof(*fabric->spaces));
	fabric->nets = calloc(count, sizeof(*fabric->nets));
	return fabric->spaces && fabric->nets ? ESP_OK : error_set(err, ESP_ENOMEM, "no memory for %u namespaces", count);
}

static enum esp_status open_base(struct fabric *fabric, struct error *err)
{
	struct batch text;
	enum esp_status status = lab_tool_begin(&text, err);
	if (status != ESP_OK)
		return status;
	lab_commands_hosts_file(text.out, fabric->lab);
	if (fflush(text.out) == 0)
		status = lab_space_open_base(&fabric->base, text.text, err);
	else
		status = error_set(err, ESP_ENOMEM, "no memory for a hosts file");
	lab_tool_abandon(&text);
	return status;
}

static enum esp_status set_congestion(const struct lab *lab, struct error *err)
{
	const char *name = lab->config.congestion;
	if (!name[0] || lab_space_sysctl("net/ipv4/tcp_congestion_control", name))
		return ESP_OK;
	return error_set(err, ESP_EUNSUPPORTED, "this kernel has no congestion control %s, or allows it to root only: %s",
	                 name, strerror(errno));
}

static enum esp_status make_space(struct fabric *fabric, uint32_t number, struct error *err)
{
	char name[LAB_HOST_TEXT];
	struct space *space = &fabric->spaces[number];
	enum esp_status status = lab_space_make(space, &fabric->base, lab_space_name(fabric->lab, number, name), err);
	fabric->nets[number] = space->fds[SPACE_NET];
	if (status == ESP_OK && number < fabric->lab->host_count)
		status = set_congestion(fabric->lab, err);
	return status;
}

static enum esp_status run_ip(struct fabric *fabric, uint32_t space, struct error *err)
{
	const struct lab *lab = fabric->lab;
	struct batch batch;
	enum esp_status status = lab_tool_begin(&batch, err);
	if (status != ESP_OK)
		return status;
	if (space < lab->host_count)
		lab_commands_host(batch.out, lab, space);
	else if (space < lab_core_space(lab))
		lab_commands_rack(batch.out, lab, space - lab->host_count, fabric->nets);
	else
		lab_commands_core(batch.out, lab);
	if (space >= lab->host_count && space == lab->through)
		lab_commands_bridge_address(batch.out, lab);
	return lab_tool_run(&batch, TOOL_IP, fabric->nets[space], err);
}

static enum esp_status run_tc(struct fabric *fabric, uint32_t space, struct error *err)
{
	struct batch batch;
	enum esp_status status = lab_tool_begin(&batch, err);
	if (status != ESP_OK)
		return status;
	lab_commands_shapers(batch.out, fabric->lab, space);
	return lab_tool_run(&batch, TOOL_TC, fabric->nets[space], err);
}

/* Applies the settings that links are made with and that need a relay. */
static enum esp_status apply_made(struct fabric *fabric, uint32_t number, struct error *err)
{
	struct lab_link *link = lab_link(fabric->lab, number);
	struct lab_settings asked = link->made;
	if (!lab_needs_packets(&asked))
		return ESP_OK;
	for (int way = 0; way < LAB_WAYS; way++)
		link->set.faults[way].delay_ns = 0; /* the current state */
	return lab_fabric_apply(fabric, number, &asked, err);
}

/* Racks make the links, so they come before the core and the hosts that have the other ends. */
enum esp_status lab_fabric_build(struct fabric *fabric, struct lab *lab, fabric_stop_fn *stop, void *context,
                                 struct error *err)
{
	typedef enum esp_status step_fn(struct fabric *, uint32_t, struct error *);
	*fabric = (struct fabric){.lab = lab, .base = {-1, -1}};
	uint32_t all = lab_space_count(lab), hosts = lab->host_count, racks = lab->config.racks;
	const struct {
		step_fn *step;
		uint32_t first, end;
	} steps[] = {
		{make_space, 0, all}, {run_ip, hosts, hosts + racks}, {run_ip, hosts + racks, all},  {run_ip, 0, hosts},
		{run_tc, 0, all},     {apply_made, 0, lab->link_count},
	};
	raise_file_limit();
	enum esp_status status = allocate(fabric, err);
	if (status == ESP_OK)
		status = open_base(fabric, err);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		for (uint32_t at = steps[i].first; at < steps[i].end && status == ESP_OK; at++) {
			status = steps[i].step(fabric, at, err);
			if (status == ESP_OK && stop(context))
				status = error_set(err, ESP_EABORTED, "told to stop");
		}
	}
	return status;
}
