/*
 * shape.h - the members of a flow: their switches, and their bits in bitmaps.
 *
 * Members 0 .. members-1 contribute, each in one group: the members behind one switch of the first level. The owner of
 * a number does not contribute through the network: its own part never leaves it. So the bits of a number depend on its
 * owner: the contributors of a group are its members without the owner, in order; groups without contributors are left
 * out. An owner may also be no member at all (its number is `members` or above): a server.
 *
 * All members build the same shape. Constant once it is open; any thread may read it.
 */
#ifndef SWITCH_ENDPOINT_SHAPE_H
#define SWITCH_ENDPOINT_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/atp_packet.h"

struct shape;

/*
 * group_of: one group per member, below ATP_CHILDREN_MAX, at most ATP_CHILDREN_MAX members in each. levels: 1 or 2.
 * ESP_EINVAL, ESP_ENOMEM.
 */
ESP_CHECKED enum esp_status shape_open(const uint16_t *group_of, uint32_t members, uint32_t levels, struct shape **out,
                                       struct error *err);
void shape_close(struct shape *shape); /* NULL: nothing */

uint32_t shape_members(const struct shape *shape);
uint32_t shape_groups(const struct shape *shape); /* at most, for any owner */

/* Where a contributor stands in numbers of an owner. */
struct shape_place {
	uint16_t group;
	uint8_t child;
	uint8_t fan_in[ATP_HOPS];
	uint32_t order; /* among all contributors, by group and child */
};
/* member is a member, and not the owner. */
struct shape_place shape_place(const struct shape *shape, uint16_t owner, uint16_t member);

/*
 * A group of contributors: its children, and the order of the first one. fan_in 0: there is no such group for this
 * owner.
 */
struct shape_group {
	uint8_t fan_in;
	uint32_t order;
};
struct shape_group shape_group(const struct shape *shape, uint16_t owner, uint16_t group);

/* The contributor with this bit; false: there is none. */
bool shape_member(const struct shape *shape, uint16_t owner, uint16_t group, uint8_t child, uint16_t *out);

/* Does a gradient's header fit the shape: groups, fan-ins, bits? */
bool shape_fits(const struct shape *shape, const struct atp_packet *packet);

#endif
