#include "switch/endpoint/shape.h"

#include <assert.h>
#include <stdlib.h>

struct shape_seat {
	uint16_t group; /* as given, counted without empty ones */
	uint16_t index; /* among the members of the group */
};

struct shape {
	uint32_t members, groups, levels;
	uint32_t size[ATP_CHILDREN_MAX];  /* members of a group */
	uint32_t first[ATP_CHILDREN_MAX]; /* members of the groups before it */
	uint16_t *listed;                 /* members by group and index */
	struct shape_seat *seats;         /* by member */
};

static enum esp_status check_groups(const uint16_t *group_of, uint32_t members, uint32_t levels, struct error *err)
{
	uint32_t size[ATP_CHILDREN_MAX] = {0};

	if (members < 1 || members > ATP_MEMBERS_MAX || levels < 1 || levels > ATP_HOPS)
		return error_set(err, ESP_EINVAL, "a flow has 1 to %u members on 1 or 2 levels, not %u on %u", ATP_MEMBERS_MAX,
		                 members, levels);
	for (uint32_t member = 0; member < members; member++) {
		if (group_of[member] >= ATP_CHILDREN_MAX)
			return error_set(err, ESP_EINVAL, "member %u is in group %u; there are at most %u", member,
			                 group_of[member], ATP_CHILDREN_MAX);
		if (++size[group_of[member]] > ATP_CHILDREN_MAX)
			return error_set(err, ESP_EINVAL, "group %u has more than %u members", group_of[member], ATP_CHILDREN_MAX);
	}
	return ESP_OK;
}

/* Groups in the order of their numbers, without empty ones. */
static void fill(struct shape *shape, const uint16_t *group_of)
{
	uint32_t listed = 0;

	for (uint16_t given = 0; given < ATP_CHILDREN_MAX; given++) {
		uint32_t start = listed;
		for (uint32_t member = 0; member < shape->members; member++)
			if (group_of[member] == given) {
				shape->seats[member] = (struct shape_seat){(uint16_t)shape->groups, (uint16_t)(listed - start)};
				shape->listed[listed++] = (uint16_t)member;
			}
		if (listed > start) {
			shape->first[shape->groups] = start;
			shape->size[shape->groups++] = listed - start;
		}
	}
	assert(listed == shape->members);
}

enum esp_status shape_open(const uint16_t *group_of, uint32_t members, uint32_t levels, struct shape **out,
                           struct error *err)
{
	enum esp_status status = check_groups(group_of, members, levels, err);
	struct shape *shape;

	if (status != ESP_OK)
		return status;
	shape = calloc(1, sizeof(*shape) + members * (sizeof(*shape->seats) + sizeof(*shape->listed)));
	if (!shape)
		return error_set(err, ESP_ENOMEM, "no memory for the shape of a flow of %u members", members);
	shape->members = members;
	shape->levels = levels;
	shape->seats = (struct shape_seat *)(shape + 1);
	shape->listed = (uint16_t *)(shape->seats + members);
	fill(shape, group_of);
	*out = shape;
	return ESP_OK;
}

void shape_close(struct shape *shape)
{
	free(shape);
}

uint32_t shape_members(const struct shape *shape)
{
	return shape->members;
}

uint32_t shape_groups(const struct shape *shape)
{
	return shape->groups;
}

/* The owner's group loses a child; if that was the only one, groups behind it move up. */
struct absence {
	uint32_t group, index; /* of the owner; group UINT32_MAX: it is no member */
	bool is_last;          /* its group is left out */
};

static struct absence absence_of(const struct shape *shape, uint16_t owner)
{
	if (owner >= shape->members)
		return (struct absence){UINT32_MAX, 0, false};
	struct shape_seat seat = shape->seats[owner];
	return (struct absence){seat.group, seat.index, shape->size[seat.group] == 1};
}

static uint8_t group_count(const struct shape *shape, const struct absence *absence)
{
	return shape->levels == 1 ? 0 : (uint8_t)(shape->groups - absence->is_last);
}

struct shape_place shape_place(const struct shape *shape, uint16_t owner, uint16_t member)
{
	assert(member < shape->members && member != owner);
	struct absence absence = absence_of(shape, owner);
	struct shape_seat seat = shape->seats[member];
	bool same = seat.group == absence.group, behind = same ? seat.index > absence.index : absence.group < seat.group;

	return (struct shape_place){
		.group = (uint16_t)(seat.group - (absence.is_last && absence.group < seat.group)),
		.child = (uint8_t)(seat.index - (same && behind)),
		.fan_in = {(uint8_t)(shape->size[seat.group] - same), group_count(shape, &absence)},
		.order = shape->first[seat.group] + seat.index - behind,
	};
}

/* The group as all members have it, or shape->groups. */
static uint32_t whole_group(const struct shape *shape, const struct absence *absence, uint16_t group)
{
	uint32_t whole = group + (uint32_t)(absence->is_last && group >= absence->group);
	return whole < shape->groups ? whole : shape->groups;
}

struct shape_group shape_group(const struct shape *shape, uint16_t owner, uint16_t group)
{
	struct absence absence = absence_of(shape, owner);
	uint32_t whole = whole_group(shape, &absence, group);

	if (whole == shape->groups)
		return (struct shape_group){0, 0};
	return (struct shape_group){(uint8_t)(shape->size[whole] - (whole == absence.group)),
	                            shape->first[whole] - (absence.group < whole)};
}

bool shape_member(const struct shape *shape, uint16_t owner, uint16_t group, uint8_t child, uint16_t *out)
{
	struct absence absence = absence_of(shape, owner);
	uint32_t whole = whole_group(shape, &absence, group);

	if (whole == shape->groups || child >= shape->size[whole] - (whole == absence.group))
		return false;
	*out = shape->listed[shape->first[whole] + child + (whole == absence.group && child >= absence.index)];
	return true;
}

bool shape_fits(const struct shape *shape, const struct atp_packet *packet)
{
	struct absence absence = absence_of(shape, packet->owner);

	if (packet->fan_in[1] != group_count(shape, &absence))
		return false;
	return packet->hop == 1 || packet->fan_in[0] == shape_group(shape, packet->owner, packet->group).fan_in;
}
