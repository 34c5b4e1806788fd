/* The table of a switch by an injected clock: silent members, quotas of flows, one number per address, and draining. */
#include "base/check.h"
#include "switch/server/switch_state.h"

#define SECOND UINT64_C(1000000000)
#define SLOTS 8u

static struct switch_server server;

static union trains_address address_of(uint16_t port)
{
	union trains_address address;

	memset(&address, 0, sizeof(address));
	address.v4.sin_family = AF_INET;
	address.v4.sin_port = htons(port);
	address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static enum atp_refusal join(uint64_t flow, uint16_t number, uint16_t port, uint64_t now_ns)
{
	union trains_address address = address_of(port);

	return switch_member_register(&server, flow, number, &address, now_ns);
}

static void open_server(void)
{
	struct error err;

	server = (struct switch_server){.config = {.slots = SLOTS, .words_max = 4, .flow_quota = 2, .quota = SLOTS,
	                                           .age_ns = 2 * SECOND}};
	CHECK(switch_table_open(&server, &err) == ESP_OK);
}

static void claim(uint64_t flow_id, uint32_t place, uint64_t now_ns)
{
	struct switch_flow *flow = switch_flow_find(&server, flow_id);

	server.slots[place] = (struct step_slot){.flow = flow_id, .is_used = 1, .bitmap = 1, .touched_ns = now_ns};
	switch_slot_held_by(&server, place, flow->members[0]->host, flow);
}

static void test_members(void)
{
	open_server();
	CHECK_U64(join(1, 0, 100, 0), ATP_REFUSED_NOT);
	CHECK_U64(join(1, 1, 100, 0), ATP_REFUSED_NUMBER);
	CHECK_U64(join(1, 0, 100, SECOND), ATP_REFUSED_NOT);
	CHECK_U64(join(1, 1, 101, 0), ATP_REFUSED_NOT);
	CHECK_U64(join(1, SWITCH_MEMBERS, 102, 0), ATP_REFUSED_FULL);
	CHECK_U64(server.member_count, 2);
	/* One address opens no more flows than it may; it joins others' as before. */
	CHECK_U64(join(2, 0, 100, 0), ATP_REFUSED_NOT);
	CHECK_U64(join(3, 0, 100, 0), ATP_REFUSED_QUOTA);
	CHECK_U64(join(2, 1, 101, 0), ATP_REFUSED_NOT);
	claim(2, 3, 0);
	claim(1, 4, 0);
	CHECK(server.slots_used == 2 && switch_flow_find(&server, 1)->slots == 1 && server.hosts->slots == 2);
	/* Flow 2 and member 1 of flow 1 fall silent. */
	switch_table_age(&server, SWITCH_SILENT_NS + SECOND);
	CHECK(!switch_flow_find(&server, 2) && server.flow_count == 1 && server.member_count == 1);
	CHECK(server.slots_used == 1 && !server.slots[3].is_used && server.slots[4].is_used);
	CHECK_U64(join(3, 0, 100, 0), ATP_REFUSED_NOT);
	switch_table_age(&server, 100 * SECOND);
	CHECK(server.flow_count == 0 && server.slots_used == 0 && !server.hosts);
	switch_table_close(&server);
}

/* Members do without a drained switch, so nothing comes for a slot that was left: it goes by time. */
static void test_drain(void)
{
	open_server();
	CHECK_U64(join(1, 0, 100, 0), ATP_REFUSED_NOT);
	claim(1, 0, 0);
	claim(1, 1, 2 * SECOND);
	switch_table_age(&server, 3 * SECOND);
	CHECK_U64(server.slots_used, 2); /* not drained: a member may be late */
	server.is_draining = true;
	switch_table_age(&server, 3 * SECOND);
	CHECK(server.slots_used == 1 && !server.slots[0].is_used && server.slots[1].is_used);
	switch_table_age(&server, 4 * SECOND + 1);
	CHECK(server.slots_used == 0 && server.flow_count == 1);
	switch_table_close(&server);
}

int main(void)
{
	test_members();
	test_drain();
	return 0;
}
