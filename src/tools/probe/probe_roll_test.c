/*
 * probe_roll_test.c - answers from the end of a remote shell, and shells that do not start or fail. Real hosts are
 * asked in tests/probe_cli_test.py.
 */
#include "tools/probe/probe_roll.h"

#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "espalier/espalier.h"

#define HOSTS 150u
#define RETURNED(status) ((status) << 8) /* as wait(2) reports it */

static struct roll_answer judge(int wait_status, const char *format)
{
	struct roll_answer answer;
	char heard[256];

	snprintf(heard, sizeof(heard), "%s%s", format, format[0] == '\n' ? "" : "\n");
	probe_tool_roll_judge(wait_status, heard, "ssh", &answer);
	return answer;
}

/* Asks more hosts than are asked at a time; each gets an answer with a reason that contains `why`. */
static void call(const char *rsh, uint64_t patience_ns, const char *why)
{
	char list[HOSTS * 8] = "";
	struct run_hosts hosts;
	struct roll_answer answers[HOSTS];
	struct error err = {0};
	const struct roll_question question = {&hosts, rsh, "/bin/espalier", patience_ns};

	for (uint32_t i = 0; i < HOSTS; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%sh%u", i ? "," : "", i);
	CHECK(launcher_hosts_parse(&hosts, list, &err) == ESP_OK &&
	      launcher_hosts_settle(&hosts, HOSTS - 1, &err) == ESP_OK);
	CHECK_MSG(probe_tool_roll_call(&question, answers, &err) == ESP_OK, "%s", err.text);
	for (uint32_t i = 0; i < HOSTS - 1; i++)
		CHECK_MSG(!answers[i].is_present && strstr(answers[i].why, why), "host %u: '%s'", i, answers[i].why);
	CHECK(!answers[HOSTS - 1].is_present && !answers[HOSTS - 1].why[0]); /* it has no slot, and is not asked */
	launcher_hosts_fini(&hosts);
}

int main(void)
{
	char version[96];

	snprintf(version, sizeof(version), "a banner\nespalier %s\nand a farewell", esp_version());
	CHECK(judge(0, version).is_present);
	CHECK(!judge(RETURNED(1), version).is_present);
	snprintf(version, sizeof(version), "espalier %s9", esp_version());
	struct roll_answer other = judge(0, version);
	CHECK(!other.is_present && strstr(other.why, version));
	CHECK_STR(judge(RETURNED(255), "Welcome\nssh: connect to host c port 22: No route to host\r\n \n").why,
	          "ssh: connect to host c port 22: No route to host (ssh returned 255)");
	CHECK_STR(judge(RETURNED(127), "\n").why, "it said nothing (ssh returned 127)");
	call("/nonexistent/shell", NS_PER_S, "there is no command");
	call("false", 60 * NS_PER_S, "it said nothing (false returned 1)");
	CHECK_STR(judge(9, "a\x1b[2Jb").why, "a [2Jb (ssh was killed by signal 9)");
	return 0;
}
