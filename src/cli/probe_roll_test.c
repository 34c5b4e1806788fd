/*
 * probe_roll_test.c - how the end of a remote shell is read: hosts are asked for real in tests/probe_cli_test.py.
 */
#include "cli/probe_roll.h"

#include <string.h>

#include "base/check.h"
#include "espalier/espalier.h"

#define RETURNED(status) ((status) << 8) /* as wait(2) has it */

static struct roll_answer judge(int wait_status, const char *format)
{
	struct roll_answer answer;
	char heard[256];

	snprintf(heard, sizeof(heard), "%s%s", format, format[0] == '\n' ? "" : "\n");
	roll_judge(wait_status, heard, "ssh", &answer);
	return answer;
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
	CHECK_STR(judge(9, "a\x1b[2Jb").why, "a [2Jb (ssh was killed by signal 9)");
	return 0;
}
