/*
 * join_parts.h - the two sides of join_run(), and what they share; for join*.c only.
 */
#ifndef GROUP_JOIN_PARTS_H
#define GROUP_JOIN_PARTS_H

#include "group/join.h"
#include "group/session.h"

/* Rank 0: listens, gathers, answers. */
enum esp_status join_lead(const struct join_config *config, struct roster *out, struct error *err);

/* Any other rank: connects until it is answered. */
enum esp_status join_follow(const struct join_config *config, struct roster *out, struct error *err);

/* Decodes size cards into a new roster (roster.c). */
enum esp_status roster_decode(const uint8_t *bytes, uint32_t size, struct roster *out, struct error *err);

/* Sends what a session has to send, as far as the socket takes it: ESP_OK all, ESP_PENDING not all, ESP_ELINK. */
enum esp_status join_send(int fd, struct session *session, struct error *err);

/* Gives a session what has arrived: as session_input(), and session_closed() at the end of the stream. */
enum esp_status join_receive(int fd, struct session *session, struct error *err);

/* The time until a moment as poll(2) wants it, rounded up; 0 if it has passed. */
int join_wait_ms(uint64_t now_ns, uint64_t until_ns);

#endif
