/*
 * ticket.h - the file by which a worker reaches its job on a parameter hub: small, readable by its owner alone.
 *
 *     espalier hub ticket 1
 *     hub 10.0.0.5:7700                  a line for each hub of the job, in the order of their numbers
 *     name resnet
 *     job 6c0e0a4f1b2d3c4e
 *     workers 4
 *     key 64 hexadecimal digits
 *     scheduler 10.0.0.5:7900            of a job whose updates a scheduler orders; else the line is not there
 *
 * Reads and writes files; any thread.
 */
#ifndef HUB_CONTROL_TICKET_H
#define HUB_CONTROL_TICKET_H

#include "base/error.h"
#include "node/net/address.h"
#include "wire/hub_msg.h"

#define TICKET_HUBS_MOST 64u
#define TICKET_TEXT_MOST (1024u + TICKET_HUBS_MOST * (ADDRESS_TEXT + 8u))

struct ticket {
	struct address hubs[TICKET_HUBS_MOST];
	uint32_t hub_count; /* at least 1 */
	char name[HUB_JOB_NAME];
	uint64_t job;
	uint32_t workers;
	uint8_t key[HUB_KEY_BYTES];
	bool has_scheduler;
	struct address scheduler;
};

/* "HOST:PORT,HOST:PORT" of a job's hubs; `what` names the text's origin. ESP_EINVAL, ESP_ELIMIT. */
ESP_CHECKED enum esp_status ticket_parse_hubs(const char *text, const char *what, struct ticket *out,
                                              struct error *err);
/* Returns the length; the text ends with a NUL. */
size_t ticket_print(const struct ticket *ticket, char text[TICKET_TEXT_MOST]);
/* ESP_EPARSE with the line and the expected form. The sentence never shows the key. Pure. */
ESP_CHECKED enum esp_status ticket_parse(const char *text, size_t size, struct ticket *out, struct error *err);

/*
 * Writes it with mode 0600, in place of a file that is there. Reads one: refused if others than its owner may read it,
 * as they could take part in the job. ESP_EIO, ESP_EPARSE, ESP_EINVAL.
 */
ESP_CHECKED enum esp_status ticket_write(const struct ticket *ticket, const char *path, struct error *err);
ESP_CHECKED enum esp_status ticket_read(const char *path, struct ticket *out, struct error *err);

#endif
