#include "runtime/unreached.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

int main(void)
{
	struct unreached_list list = {0};
	char text[CONTROL_TEXT], way[ROUTE_TEXT];

	CHECK(!unreached_find(&list, 3));
	unreached_forget(&list, 3);
	unreached_note(&list, 3, "10.0.0.2 port 4711", false);
	unreached_note(&list, 4, "10.0.0.3 port 4712", true);
	unreached_note(&list, 3, "10.1.0.2 port 4711 through eth1", false);
	CHECK_U64(list.count, 2);
	CHECK_STR(unreached_text(unreached_find(&list, 3), "rank 0 on a", "rank 3 on b", text),
	          "rank 0 on a gets no answer from rank 3 on b at 10.1.0.2 port 4711 through eth1: does a firewall drop it? Let the port through, or set "
	          "ESP_PORT to one that passes; espalier doctor, run as the job is, tries all ways");
	/* The host of one that is stopped answers: no firewall is to blame. */
	CHECK(strstr(unreached_text(unreached_find(&list, 4), "rank 0 on a", "rank 4 on c", text), "stopped"));
	CHECK(!strstr(text, "firewall"));
	unreached_forget(&list, 3);
	CHECK(!unreached_find(&list, 3) && unreached_find(&list, 4));
	/* As many as there is room for; the others are not kept, and can come when there is room. */
	for (uint32_t i = 10; i < 10 + 2 * UNREACHED_MOST; i++) {
		snprintf(way, sizeof(way), "10.0.1.%u port 1", i);
		unreached_note(&list, i, way, false);
	}
	CHECK_U64(list.count, UNREACHED_MOST);
	CHECK(unreached_find(&list, 10) && !unreached_find(&list, 10 + UNREACHED_MOST));
	unreached_forget(&list, 10);
	unreached_note(&list, 10 + UNREACHED_MOST, "10.0.2.1 port 1", false);
	CHECK(unreached_find(&list, 10 + UNREACHED_MOST) && unreached_find(&list, 4));
	return 0;
}
