/*
 * shrink.h - the survivors of a failed group go on in a new one: agreement.h, driven by the control.
 *
 * The agreement of a group begins when its caller asks for it, or when a message about it comes from another member;
 * from then on the control thread alone touches it. Its messages travel in pieces over control connections. To prepare
 * means that the new group is opened, with a stream on every lane; so messages of a quicker member always find the
 * group. The decision is remembered after the group has been freed, for members that come late; a member that has freed
 * a group before the decision answers that.
 */
#ifndef RANK_MEMBER_SHRINK_H
#define RANK_MEMBER_SHRINK_H

#include "rank/comm/comm.h"

struct shrink_report {
	uint64_t completed_everywhere, completed_somewhere;
	uint32_t lost_count;   /* members that do not go on */
	uint32_t *lost;        /* their places, as many as there is room for     */
	uint32_t lost_room;
};

/*
 * Fails the group, if it has not failed yet, and waits until all members that are left have called it too. *out is the
 * new group. ESP_EEXCLUDED: the others go on without us. ESP_EQUORUM: there are too few. ESP_ETIMEOUT: a member has not
 * come. ESP_ELIMIT: there are too many groups here; the others wait for us to come again.
 */
ESP_CHECKED enum esp_status comm_shrink(struct comm *group, int64_t deadline_ns, struct comm **out,
                                         struct shrink_report *report, struct failure *failure);
/*
 * The same, but the new group stays with the old one, until comm_shrink() takes it; and it ends alike for all: a member
 * with too many groups is late, as the others are that wait for it.
 */
ESP_CHECKED enum esp_status comm_agree(struct comm *group, int64_t deadline_ns, struct shrink_report *report,
                                       struct failure *failure);
/* The group is freed; no thread finds it any more. is_closing: all groups are, that which was prepared too. */
void shrink_fini(struct comm *group, bool is_closing);

/* For the control thread. */
/*
 * Presence knows more of a rank: agreements hear of it in the next turn, not from within calls that they have caused
 * themselves.
 */
void shrink_hear(struct rank *context);
void shrink_piece(struct rank *context, uint32_t peer, const struct control_msg *msg);
uint64_t shrink_turn(struct rank *context, uint64_t now_ns);

#endif
