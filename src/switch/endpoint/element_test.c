/*
 * The merge rule over every order of every packet that can be, for five contributors in groups of three and two.
 */
#include "switch/endpoint/element.h"

#include "base/check.h"

#define MEMBERS 5u
#define PACKETS (7u + 3u + 3u) /* parts of group 0, of group 1, and whole groups at hop 1 */

static const uint16_t group_of[MEMBERS] = {0, 0, 0, 1, 1};

struct state {
	uint64_t held[2];
	uint32_t words[MEMBERS];
};

static struct atp_packet packet_of(uint32_t which)
{
	struct atp_packet packet = {.type = ATP_GRADIENT, .kind = 1, .words = MEMBERS, .owner = MEMBERS, .fan_in = {3, 2}};

	if (which < 7)
		packet.bitmap = which + 1;
	else if (which < 10)
		packet.bitmap = which - 6, packet.group = 1, packet.fan_in[0] = 2;
	else
		packet.bitmap = which - 9, packet.hop = 1, packet.fan_in[0] = 0;
	return packet;
}

/* Members in a packet, and so its words: a one at the place of each. */
static uint32_t members_of(const struct atp_packet *packet)
{
	if (packet->hop == 0)
		return (uint32_t)packet->bitmap << (packet->group ? 3 : 0);
	return (packet->bitmap & 1 ? 7u : 0) | (packet->bitmap & 2 ? 24u : 0);
}

static uint32_t members_held(const struct state *state)
{
	return (uint32_t)(state->held[0] | state->held[1] << 3);
}

static void check_state(const struct state *state)
{
	for (uint32_t member = 0; member < MEMBERS; member++)
		if (members_held(state))
			CHECK_U64(state->words[member], members_held(state) >> member & 1);
}

static struct state after(const struct shape *shape, const struct state *before, uint32_t which)
{
	struct atp_packet packet = packet_of(which);
	uint32_t words[MEMBERS], held = members_held(before), here = members_of(&packet);
	struct state state = *before;
	struct element element = {state.held, state.words};

	CHECK(shape_fits(shape, &packet) && atp_packet_valid(&packet));
	for (uint32_t member = 0; member < MEMBERS; member++)
		words[member] = here >> member & 1;
	enum element_event event = element_take(&element, shape, &packet, words);
	bool drops = (held & here) && ((held & ~here) || held == here);
	enum element_event expected = !(held & here) ? ELEMENT_ADDED : drops ? ELEMENT_OVERLAPS : ELEMENT_REPLACED;
	CHECK_U64(event, expected);
	check_state(&state);
	CHECK(element_is_complete(&element, shape, MEMBERS) == (members_held(&state) == 31));
	return state;
}

int main(void)
{
	static struct state states[1024];
	uint32_t count = 1, done = 0;
	struct shape *shape;
	struct error err;

	CHECK(shape_open(group_of, MEMBERS, 2, &shape, &err) == ESP_OK);
	for (; done < count; done++)
		for (uint32_t which = 0; which < PACKETS; which++) {
			struct state next = after(shape, &states[done], which);
			uint32_t at = 0;
			while (at < count && members_held(&states[at]) != members_held(&next))
				at++;
			if (at == count)
				states[count++] = next;
		}
	CHECK_U64(count, 32); /* every set of members */
	shape_close(shape);
	return 0;
}
