/*
 * presence_test.c - single cases; whole jobs in virtual time are in tests/members.
 */
#include "rank/member/presence.h"

#include "base/check.h"
#include "base/clock.h"
#include "rank/member/agreement.h"

/* Counts what it is told. */
struct owner {
	uint32_t accused, fates;
	uint64_t sign_ns;      /* when other data has come */
	uint32_t signs_wanted; /* how often that was asked for */
	uint32_t listener;     /* the rank whose messages are kept: the first ones */
	struct control_msg mail[8];
	uint32_t mail_count;
};

static void send(void *context, uint32_t to, const struct control_msg *msg)
{
	struct owner *owner = context;

	if (to == owner->listener && owner->mail_count < sizeof(owner->mail) / sizeof(owner->mail[0]))
		owner->mail[owner->mail_count++] = *msg;
}

static void dial(void *context, uint32_t rank)
{
	(void)context, (void)rank;
}

static void fate(void *context, uint32_t rank, enum fate what, uint32_t by, const char *how)
{
	struct owner *owner = context;

	(void)rank, (void)what, (void)by, (void)how;
	owner->fates++;
}

static void accused(void *context, uint32_t by, const char *how)
{
	struct owner *owner = context;

	(void)by, (void)how;
	owner->accused++;
}

static void accusation(void *context, uint32_t rank, uint32_t by)
{
	(void)context, (void)rank, (void)by;
}

static uint64_t last_sign(void *context, uint32_t rank)
{
	struct owner *owner = context;

	(void)rank;
	owner->signs_wanted++;
	return owner->sign_ns;
}

static const struct presence_events events = {send, dial, fate, accused, accusation, last_sign};

static struct control_msg message(enum control_type type, uint32_t from, uint32_t about)
{
	return (struct control_msg){.type = (uint8_t)type, .from = from, .about = about};
}

/* A rank that was stopped reads in any order what was said meanwhile; it must not miss that it was given up. */
static void knows_that_it_was_given_up(void)
{
	struct presence presence;
	struct owner owner = {0};
	struct control_msg left = message(CONTROL_LEFT, 1, 1), of_us = message(CONTROL_SILENT, 1, 0),
	                   of_other = message(CONTROL_SILENT, 1, 2);

	CHECK(presence_init(&presence, 0, 3, NS_PER_S, 1, &events, &owner) == ESP_OK);
	presence_begin(&presence, 1);
	CHECK(presence_message(&presence, 2, &left, 2));
	CHECK(presence_is_gone(&presence, 1));
	CHECK(presence_message(&presence, 2, &of_other, 3)); /* by one that is gone: says nothing any more */
	CHECK(!presence_is_accused(&presence, 2));
	CHECK(!presence.was_accused && owner.accused == 0);
	CHECK(presence_message(&presence, 2, &of_us, 4));
	CHECK(presence.was_accused && presence.is_outcast && owner.accused == 1);
	presence_pardon(&presence, 0, 5);
	CHECK(presence.was_accused && !presence.is_outcast && !presence_is_accused(&presence, 0));
	presence_fini(&presence);
}

/*
 * A rank that was given up has thawed, and ends in good order: that is no death. One that has died does not leave any
 * more.
 */
static void may_leave_after_silence(void)
{
	struct presence presence;
	struct owner owner = {0};
	struct control_msg silent = message(CONTROL_SILENT, 2, 1), left = message(CONTROL_LEFT, 1, 1);

	CHECK(presence_init(&presence, 0, 3, NS_PER_S, 1, &events, &owner) == ESP_OK);
	presence_begin(&presence, 1);
	CHECK(presence_message(&presence, 2, &silent, 2));
	CHECK(presence.all[1].fate == FATE_SILENT && owner.fates == 1);
	CHECK(presence_message(&presence, 2, &silent, 3)); /* nothing new */
	CHECK(owner.fates == 1);
	CHECK(presence_message(&presence, 1, &left, 4));
	CHECK(presence.all[1].fate == FATE_LEFT && owner.fates == 2);
	presence_closed(&presence, 1, "its connection was closed", 5);
	CHECK(presence.all[1].fate == FATE_LEFT && owner.fates == 2);
	presence_closed(&presence, 2, "its connection was closed", 6);
	left.about = 2;
	CHECK(presence_message(&presence, 1, &left, 7));
	CHECK(presence.all[2].fate == FATE_DEAD && owner.fates == 3);
	presence_fini(&presence);
}

/*
 * Of two that accuse each other one was left out. Its messages come later: no rank listens to it any more, not even
 * about us.
 */
static void does_not_listen_to_who_was_left_out(void)
{
	struct presence presence;
	struct owner owner = {0};
	struct control_msg of_us = message(CONTROL_SILENT, 1, 0);

	CHECK(presence_init(&presence, 0, 3, NS_PER_S, 1, &events, &owner) == ESP_OK);
	presence_begin(&presence, 1);
	presence_exclude(&presence, 1, true, 2);
	CHECK(presence_is_gone(&presence, 1));
	CHECK(presence_message(&presence, 2, &of_us, 3));
	CHECK(!presence.was_accused && !presence.is_outcast && owner.accused == 0);
	presence_fini(&presence);
}

/* ---- a rank that gives up because of another ---- */

static void check_mail(const struct owner *owner, uint32_t at, enum control_type type, uint32_t about)
{
	CHECK(at < owner->mail_count);
	CHECK(owner->mail[at].type == type && owner->mail[at].about == about);
}

/*
 * A rank that is told that we leave, neighbour or not, hears first of the ranks that we gave up, or it would take us
 * for the cause.
 */
static void says_whom_it_gave_up_before_it_leaves(bool is_accused)
{
	for (uint32_t to = 1; to <= 3; to += 2) { /* of eight, 1 is next to 0, and 3 is not */
		struct presence presence;
		struct owner owner = {.listener = to};
		struct control_msg silent = message(CONTROL_SILENT, 4, 2);

		CHECK(presence_init(&presence, 0, 8, NS_PER_S, 1, &events, &owner) == ESP_OK);
		presence_connected(&presence, to, 1);
		if (is_accused)
			CHECK(presence_message(&presence, 4, &silent, 2));
		else
			presence_closed(&presence, 2, "rank 0 gave up: it did not connect in time", 2);
		presence_leave(&presence, "", &(struct call_note){0});
		presence_say_goodbye(&presence, to);
		CHECK(owner.mail_count == 2);
		check_mail(&owner, 0, is_accused ? CONTROL_SILENT : CONTROL_DEAD, 2);
		check_mail(&owner, 1, CONTROL_LEFT, 0);
		presence_fini(&presence);
	}
}

/* Rank 0 of eight, connected to its listener. */
static void begin_eight(struct presence *presence, struct owner *owner)
{
	CHECK(presence_init(presence, 0, 8, NS_PER_S, 1, &events, owner) == ESP_OK);
	presence_connected(presence, owner->listener, 1);
	presence_begin(presence, 1);
}

static void hear_accusation(struct presence *presence, uint32_t by, uint32_t about)
{
	struct control_msg silent = message(CONTROL_SILENT, by, about);

	CHECK(presence_message(presence, by, &silent, 2));
}

/* The messages to the listener from then on are kept. */
static void leave(struct presence *presence, struct owner *owner)
{
	presence_leave(presence, "", &(struct call_note){0});
	owner->mail_count = 0;
	presence_say_goodbye(presence, owner->listener);
}

/*
 * One message about each missing rank is enough; ranks that it was agreed to go on without, many in the end perhaps,
 * are no reason any more.
 */
static void says_no_more_than_is_needed(void)
{
	struct presence presence;
	struct owner owner = {.listener = 3};

	begin_eight(&presence, &owner);
	hear_accusation(&presence, 4, 6);
	hear_accusation(&presence, 2, 6);
	hear_accusation(&presence, 2, 7);
	presence_closed(&presence, 5, "it died", 2);
	presence_exclude(&presence, 5, true, 3);
	presence_exclude(&presence, 7, true, 3);
	leave(&presence, &owner);
	CHECK(owner.mail_count == 2);
	check_mail(&owner, 0, CONTROL_SILENT, 6);
	check_mail(&owner, 1, CONTROL_LEFT, 0);
	presence_fini(&presence);
}

/*
 * The accusation that is told must count: its first accuser may be gone, or excluded, and then another says it, or the
 * rank that leaves.
 */
static void says_what_counts(bool has_another)
{
	struct presence presence;
	struct owner owner = {.listener = 3};

	begin_eight(&presence, &owner);
	hear_accusation(&presence, 4, 6);
	hear_accusation(&presence, 5, 6);
	if (has_another)
		hear_accusation(&presence, 2, 6);
	presence_closed(&presence, 4, "it died", 3);
	presence_exclude(&presence, 5, false, 3); /* rank 3, which was not asked, has to hear of that */
	CHECK(presence_count(&presence) == 6);
	leave(&presence, &owner);
	CHECK(owner.mail_count == 4);
	check_mail(&owner, 0, CONTROL_DEAD, 4);
	check_mail(&owner, 1, CONTROL_DEAD, 5);
	check_mail(&owner, 2, CONTROL_SILENT, 6);
	CHECK(owner.mail[2].from == (has_another ? 2u : 0u));
	check_mail(&owner, 3, CONTROL_LEFT, 0);
	presence_fini(&presence);
}

/* So does a rank that comes later, of others that have left. */
static void tells_bad_news_first(void)
{
	struct presence presence;
	struct owner owner = {.listener = 3};
	struct control_msg dead = message(CONTROL_DEAD, 1, 5), silent = message(CONTROL_SILENT, 4, 6),
	                   left = message(CONTROL_LEFT, 1, 1);

	CHECK(presence_init(&presence, 0, 8, NS_PER_S, 1, &events, &owner) == ESP_OK);
	CHECK(presence_message(&presence, 1, &dead, 2));
	CHECK(presence_message(&presence, 4, &silent, 3));
	CHECK(presence_message(&presence, 1, &left, 4));
	CHECK(owner.mail_count == 0); /* it is no neighbour */
	presence_connected(&presence, 3, 5);
	CHECK(owner.mail_count == 3);
	check_mail(&owner, 0, CONTROL_DEAD, 5);
	check_mail(&owner, 1, CONTROL_SILENT, 6);
	check_mail(&owner, 2, CONTROL_LEFT, 1);
	presence_fini(&presence);
}

/* ---- silence ---- */

#define MS NS_PER_MS

/* Of two ranks, with an interval of a second: a beat every 125 ms, and 875 ms are silence. */
static void begin_pair(struct presence *presence, struct owner *owner, uint64_t now)
{
	CHECK(presence_init(presence, 0, 2, NS_PER_S, now, &events, owner) == ESP_OK);
	presence_begin(presence, now);
	presence_connected(presence, 1, now);
}

/* Turns whenever it wants to, from one moment to another, both included. */
static void listen_until(struct presence *presence, uint64_t from, uint64_t until)
{
	for (uint64_t now = from; now <= until;) {
		uint64_t next = presence_turn(presence, now);

		if (next == UINT64_MAX)
			return;
		now = next > now ? next : now + 1;
	}
}

static bool is_given_up(const struct presence *presence)
{
	return presence->all[1].fate == FATE_SILENT;
}

/* A rank that is silent in every way is given up when it is time, and not before. */
static void accuses_in_time(void)
{
	struct presence presence;
	struct owner owner = {.sign_ns = NS_PER_S}; /* as old as the last heartbeat: it says nothing */

	begin_pair(&presence, &owner, NS_PER_S);
	listen_until(&presence, NS_PER_S, NS_PER_S + 874 * MS);
	CHECK(!is_given_up(&presence) && owner.signs_wanted == 0);
	listen_until(&presence, NS_PER_S + 875 * MS, NS_PER_S + 875 * MS);
	CHECK(is_given_up(&presence) && owner.signs_wanted == 1);
	presence_fini(&presence);
}

/* Words are held up for 1.7 s each time, and data comes: that is slow, and no more. */
static void believes_data(void)
{
	struct control_msg beat = message(CONTROL_BEAT, 1, 0);
	struct presence presence;
	struct owner owner = {0};
	uint64_t now = NS_PER_S, word = now;

	begin_pair(&presence, &owner, now);
	for (; now < 20 * NS_PER_S; now += 50 * MS) {
		owner.sign_ns = now - 20 * MS;
		if (now - word >= 1700 * MS) {
			CHECK(presence_message(&presence, 1, &beat, now));
			word = now;
		}
		(void)presence_turn(&presence, now);
		CHECK(!is_given_up(&presence));
	}
	presence_fini(&presence);
}

/* If data ends, silence counts from its end; if it comes for ever without a heartbeat, it was sent before a stop. */
static void believes_data_for_a_while(void)
{
	struct presence presence;
	struct owner owner = {0};

	begin_pair(&presence, &owner, NS_PER_S);
	owner.sign_ns = NS_PER_S + 300 * MS;
	listen_until(&presence, NS_PER_S, NS_PER_S + 1174 * MS);
	CHECK(!is_given_up(&presence));
	listen_until(&presence, NS_PER_S + 1175 * MS, NS_PER_S + 1176 * MS);
	CHECK(is_given_up(&presence));
	CHECK(strstr(presence.all[1].how,
	             "no word of it for 1.2 s: it is stopped, cut off, or has had no core to run on") != NULL);
	presence_fini(&presence);

	begin_pair(&presence, &owner, NS_PER_S);
	owner.sign_ns = UINT64_MAX;
	listen_until(&presence, NS_PER_S, NS_PER_S + 1749 * MS);
	CHECK(!is_given_up(&presence));
	listen_until(&presence, NS_PER_S + 1750 * MS, NS_PER_S + 1751 * MS);
	CHECK(is_given_up(&presence));
	CHECK(strstr(presence.all[1].how, "it is stopped, or has had no core to run on") != NULL &&
	      !strstr(presence.all[1].how, "cut off"));
	presence_fini(&presence);
}

/* The time by which we are late ourselves counts against no other rank; what is left of the others' does. */
static void does_not_count_own_delay(void)
{
	const uint64_t begin = NS_PER_S;
	struct presence presence;
	struct owner owner = {0};
	uint64_t due = 0, late = 0, now = begin;

	begin_pair(&presence, &owner, begin);
	/* Every turn comes 60 ms after it was due. */
	for (; !is_given_up(&presence); now = due + 60 * MS) {
		late += due ? now - due : 0;
		CHECK(now <= begin + 875 * MS + late);
		due = presence_turn(&presence, now);
	}
	CHECK(late >= 7 * 60 * MS && now >= begin + 875 * MS + 6 * 60 * MS);
	presence_fini(&presence);
}

/* ---- and then it does not go on alone ---- */

static bool prepare(void *context, const struct verdict_terms *terms, const uint8_t *members, uint32_t *out_channel)
{
	(void)context, (void)terms, (void)members, (void)out_channel;
	return true;
}

static void send_bytes(void *context, uint32_t place, const uint8_t *bytes, size_t n)
{
	(void)context, (void)place, (void)bytes, (void)n;
}

static void accuse(void *context, uint32_t place)
{
	(void)context, (void)place;
}

static bool goes_on_alone(bool was_accused)
{
	static const struct agreement_events agreement_events = {send_bytes, prepare, accuse};
	struct agreement_config config = {
		.self = 1, .size = 2, .interval_ns = NS_PER_S, .was_accused = was_accused, .events = &agreement_events};
	struct agreement agreement;

	CHECK(agreement_init(&agreement, &config) == ESP_OK);
	agreement_gone(&agreement, 0, 1);
	agreement_start(&agreement, 0, 0, 4, 2);
	agreement_turn(&agreement, 3);
	CHECK(agreement.is_decided);
	bool goes_on = agreement.goes_on;
	agreement_fini(&agreement);
	return goes_on;
}

/*
 * Stopped in the middle of an agreement, and back when the others have ended: their closed connections are all that it
 * finds.
 */
static bool goes_on_alone_after(uint64_t away_ns)
{
	static const struct agreement_events agreement_events = {send_bytes, prepare, accuse};
	struct agreement_config config = {.self = 1, .size = 3, .interval_ns = NS_PER_S, .events = &agreement_events};
	struct agreement agreement;

	CHECK(agreement_init(&agreement, &config) == ESP_OK);
	agreement_start(&agreement, 0, 0, 4, 2);
	agreement_turn(&agreement, 3);
	agreement_gone(&agreement, 0, 3 + away_ns);
	agreement_gone(&agreement, 2, 4 + away_ns);
	for (uint64_t now = 5 + away_ns; !agreement.is_decided; now += NS_PER_S / 8)
		agreement_turn(&agreement, now);
	bool goes_on = agreement.goes_on;
	agreement_fini(&agreement);
	return goes_on;
}

/*
 * The same of one that was stopped before: it knows when it looks at the clock, or at the first connection that was
 * closed.
 */
static void knows_that_it_was_away(void)
{
	for (int first = 0; first < 2; first++) {
		struct presence presence;
		struct owner owner = {0};

		CHECK(presence_init(&presence, 0, 3, NS_PER_S, 1, &events, &owner) == ESP_OK);
		presence_begin(&presence, 1);
		for (uint64_t now = 1; now < NS_PER_S; now += NS_PER_S / 2) {
			presence_turn(&presence, now);
			CHECK(!presence.was_accused);
		}
		if (first == 0)
			presence_closed(&presence, 1, "its connection was closed", 3 * NS_PER_S);
		else
			presence_turn(&presence, 3 * NS_PER_S);
		CHECK(presence.was_accused && !presence.is_outcast);
		presence_fini(&presence);
	}
}

/* And of one that was stopped while it joined, when the others had begun. */
static void knows_that_it_joined_late(void)
{
	for (int is_away = 0; is_away < 3; is_away++) {
		struct presence presence;
		struct owner owner = {0};
		uint64_t now = 1;

		CHECK(presence_init(&presence, 0, 3, NS_PER_S, now, &events, &owner) == ESP_OK);
		for (; now < 5 * NS_PER_S; now += NS_PER_S / 8)
			CHECK(presence_turn(&presence, now) <= now + NS_PER_S / 8);
		if (is_away != 2) /* or no rank can have missed it */
			presence_connected(&presence, 1, now);
		presence_begin(&presence, now + (is_away > 0 ? NS_PER_S : 0));
		CHECK(presence.was_accused == (is_away == 1));
		presence_fini(&presence);
	}
}

/* No rank is said to have died whose end was not seen. */
static void says_what_is_known(void)
{
	CHECK_STR(presence_verb(FATE_DEAD, "its connection was closed"), "has died, or ended without esp_fini()");
	CHECK_STR(presence_verb(FATE_DEAD, "cannot connect to 10.0.0.2: Connection refused"),
	          "has died, or ended without esp_fini()");
	CHECK_STR(presence_verb(FATE_DEAD, "cannot connect to 10.0.0.2: Connection timed out"), "is given up");
	CHECK_STR(presence_verb(FATE_DEAD, "rank 1 gave up: it joined, but did not connect in time"), "is given up");
	CHECK_STR(presence_verb(FATE_DEAD, PRESENCE_EXCLUDED), "is left behind");
	CHECK_STR(
		presence_verb(FATE_SILENT,
	                  "rank 1 has heard nothing of it for 8.8 s: it is stopped, cut off, or has had no core to run on"),
		"is given up");
}

int main(void)
{
	says_what_is_known();
	knows_that_it_was_given_up();
	may_leave_after_silence();
	does_not_listen_to_who_was_left_out();
	says_whom_it_gave_up_before_it_leaves(false);
	says_whom_it_gave_up_before_it_leaves(true);
	says_no_more_than_is_needed();
	says_what_counts(true);
	says_what_counts(false);
	tells_bad_news_first();
	accuses_in_time();
	believes_data();
	believes_data_for_a_while();
	does_not_count_own_delay();
	CHECK(goes_on_alone(false));
	CHECK(!goes_on_alone(true));
	knows_that_it_was_away();
	knows_that_it_joined_late();
	CHECK(goes_on_alone_after(NS_PER_S / 2) && !goes_on_alone_after(NS_PER_S));
	return 0;
}
