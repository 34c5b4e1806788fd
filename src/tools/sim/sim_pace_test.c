#include "tools/sim/sim_pace.h"

#include "base/check.h"

static void check(double seconds, const char *wanted)
{
	char text[SIM_PACE_TEXT];

	CHECK_MSG(strcmp(sim_tool_pace_text(seconds, text), wanted) == 0, "%g: %s, not %s", seconds, text, wanted);
}

int main(void)
{
	check(0, "1 s");
	check(40.4, "40 s");
	check(120, "2 min");
	check(3000, "50 min");
	check(9000, "2.5 h");
	check(1e300, "99999.0 h");
	return 0;
}
