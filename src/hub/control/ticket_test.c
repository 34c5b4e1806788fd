#include "hub/control/ticket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"

static const struct ticket good = {.hubs = {{.host = "10.0.0.5", .port = 7700}},
                                   .hub_count = 1,
                                   .name = "resnet",
                                   .job = 0x6c0e0a4f1b2d3c4e,
                                   .workers = 4,
                                   .key = {1, 2, 0xff}};

static void check_same(const struct ticket *a, const struct ticket *b)
{
	CHECK(a->hub_count == b->hub_count);
	for (uint32_t i = 0; i < a->hub_count; i++)
		CHECK(strcmp(a->hubs[i].host, b->hubs[i].host) == 0 && a->hubs[i].port == b->hubs[i].port);
	CHECK_STR(a->name, b->name);
	CHECK(a->job == b->job && a->workers == b->workers);
	CHECK(memcmp(a->key, b->key, sizeof(a->key)) == 0);
}

static enum esp_status parse(const char *text, struct ticket *out, struct error *err)
{
	return ticket_parse(text, strlen(text), out, err);
}

/* Each line is needed, at its place, and nothing else; a complaint names the line and never shows the key. */
static void texts(void)
{
	char text[TICKET_TEXT_MOST], bad[TICKET_TEXT_MOST + 8];
	struct ticket back;
	struct error err;
	size_t length = ticket_print(&good, text);

	CHECK(parse(text, &back, &err) == ESP_OK);
	check_same(&back, &good);
	text[length - 1] = '\0'; /* the last line's end may be missing */
	CHECK(parse(text, &back, &err) == ESP_OK);
	for (size_t cut = 0; cut < length - 1; cut++) {
		snprintf(bad, sizeof(bad), "%.*s", (int)cut, text);
		CHECK_MSG(parse(bad, &back, &err) == ESP_EPARSE, "cut at %zu", cut);
		CHECK(!strstr(err.text, "0102ff"));
	}
	for (char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		snprintf(bad, sizeof(bad), "%.*sx%s", (int)(line - text), text, line);
		CHECK(parse(bad, &back, &err) == ESP_EPARSE);
	}
	snprintf(bad, sizeof(bad), "%s\nmore", text);
	CHECK(parse(bad, &back, &err) == ESP_EPARSE);
	CHECK_STR(err.text, "line 7: expected scheduler HOST:PORT, or the end");
	CHECK(parse("", &back, &err) == ESP_EPARSE && strstr(err.text, "espalier hub create"));
}

static void scheduler(void)
{
	char text[TICKET_TEXT_MOST], bad[TICKET_TEXT_MOST + 8];
	struct ticket ticket = good, back;
	struct error err;

	ticket.has_scheduler = true;
	ticket.scheduler = (struct address){.host = "10.0.0.6", .port = 7900};
	ticket_print(&ticket, text);
	CHECK(parse(text, &back, &err) == ESP_OK && back.has_scheduler && back.scheduler.port == 7900);
	check_same(&back, &good);
	snprintf(bad, sizeof(bad), "%smore", text);
	CHECK(parse(bad, &back, &err) == ESP_EPARSE);
	CHECK_STR(err.text, "line 8: a ticket has 7 lines");
}

/* A line for each; as many as a job may have, and no more. */
static void hubs(void)
{
	char text[TICKET_TEXT_MOST], bad[TICKET_TEXT_MOST + 32], list[2048] = "h0:1";
	struct ticket ticket = good, back;
	struct error err;

	CHECK(ticket_parse_hubs("10.0.0.5:7700,hub-b:7701", "--hub", &ticket, &err) == ESP_OK && ticket.hub_count == 2);
	ticket_print(&ticket, text);
	CHECK(strstr(text, "hub 10.0.0.5:7700\nhub hub-b:7701\nname"));
	CHECK(parse(text, &back, &err) == ESP_OK);
	check_same(&back, &ticket);
	CHECK(ticket_parse_hubs("a:1,b:2,a:1", "--hub", &ticket, &err) == ESP_EINVAL && strstr(err.text, "twice"));
	CHECK(ticket_parse_hubs("a:1,", "--hub", &ticket, &err) == ESP_EINVAL);
	CHECK(ticket_parse_hubs(",a:1", "--hub", &ticket, &err) == ESP_EINVAL);
	for (unsigned i = 1; i < TICKET_HUBS_MOST; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), ",h%u:1", i);
	CHECK(ticket_parse_hubs(list, "--hub", &ticket, &err) == ESP_OK && ticket.hub_count == TICKET_HUBS_MOST);
	ticket_print(&ticket, text);
	CHECK(parse(text, &back, &err) == ESP_OK);
	check_same(&back, &ticket);
	snprintf(bad, sizeof(bad), "%.*shub more:1\n%s", (int)(strstr(text, "hub h0") - text), text,
	         strstr(text, "hub h0"));
	CHECK(parse(bad, &back, &err) == ESP_EPARSE);
	snprintf(list + strlen(list), sizeof(list) - strlen(list), ",more:1");
	CHECK(ticket_parse_hubs(list, "--hub", &ticket, &err) == ESP_ELIMIT && strstr(err.text, "64"));
}

static void files(const char *folder)
{
	char path[256];
	struct ticket back;
	struct error err;
	struct stat info;

	snprintf(path, sizeof(path), "%s/job.ticket", folder);
	CHECK(ticket_write(&good, path, &err) == ESP_OK && ticket_write(&good, path, &err) == ESP_OK);
	CHECK(stat(path, &info) == 0 && (info.st_mode & 0777) == 0600);
	CHECK(ticket_read(path, &back, &err) == ESP_OK);
	check_same(&back, &good);
	CHECK(chmod(path, 0644) == 0);
	CHECK(ticket_read(path, &back, &err) == ESP_EIO && strstr(err.text, "chmod 600"));
	CHECK(unlink(path) == 0);
	CHECK(ticket_read(path, &back, &err) == ESP_EIO && strstr(err.text, "No such file"));
	snprintf(path, sizeof(path), "%s/none/job.ticket", folder);
	CHECK(ticket_write(&good, path, &err) == ESP_EIO);
}

int main(void)
{
	char folder[] = "/tmp/ticket_test.XXXXXX";

	CHECK(mkdtemp(folder));
	texts();
	scheduler();
	hubs();
	files(folder);
	CHECK(rmdir(folder) == 0); /* nothing is left behind */
	return 0;
}
