/*
 * grow_vote_test.c - the dead rank is named by all members, also by one that first hears that the group does not grow.
 */
#include "rank/member/grow_vote.h"

#include <string.h>

#include "base/check.h"

static struct failure told(enum esp_status status, int32_t rank, int32_t lost)
{
	struct failure failure = FAILURE_NONE;

	rank_failure_set(&failure, status, rank, "the job lets no ranks in now");
	grow_end_name_lost(&failure, lost);
	CHECK(strstr(failure.text, "the job lets no ranks in now"));
	return failure;
}

int main(void)
{
	struct failure failure = told(ESP_EABORTED, -1, 2);

	CHECK(failure.status == ESP_EPEER && failure.rank == 2 && strstr(failure.text, "rank 2 is lost"));
	/* None is lost; or more is known already. */
	failure = told(ESP_EABORTED, -1, -1);
	CHECK(failure.status == ESP_EABORTED && failure.rank == -1);
	failure = told(ESP_EPEER, 1, 2);
	CHECK(failure.status == ESP_EPEER && failure.rank == 1);
	failure = told(ESP_ETIMEOUT, -1, 2);
	CHECK(failure.status == ESP_ETIMEOUT && failure.rank == -1);
	return 0;
}
