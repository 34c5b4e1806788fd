/*
 * launch_fuzz.c - variables of launchers, NAME=VALUE a line: a rank in its range and a leader that can be dialed, or a
 * complaint that can be read. Two more names are what the system is asked for: FULL_NAME and MPIRUN.
 */
#include "fuzz.h"

#include <string.h>

#include "rank/join/launch.h"

#define TEXT 1024

static char text[TEXT];
static size_t text_size; /* lines end with NUL here */

static const char *look_up(void *context, const char *name)
{
	size_t length = strlen(name);
	for (const char *at = text; at < text + text_size; at += strlen(at) + 1)
		if (strncmp(at, name, length) == 0 && at[length] == '=')
			return at + length + 1;
	(void)context;
	return NULL;
}

static bool fact(enum launch_fact which, const char *about, char out[LAUNCH_FACT])
{
	const char *known = look_up(NULL, which == LAUNCH_FACT_MPIRUN ? "MPIRUN" : "FULL_NAME");
	(void)about;
	if (!known || strlen(known) >= LAUNCH_FACT)
		return false;
	memcpy(out, known, strlen(known) + 1);
	return true;
}

static void check_readable(const char *said)
{
	FUZZ_CHECK(said[0] != '\0');
	for (; *said; said++)
		FUZZ_CHECK(*said >= 0x20 && *said < 0x7f);
}

static void warn(void *context, const struct error *warning)
{
	(void)context;
	check_readable(warning->text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct launch_surroundings around = {look_up, NULL, fact, warn, NULL};
	struct launch launch;
	struct error err;
	char described[LAUNCH_TEXT];

	if (size >= TEXT)
		return 0;
	for (size_t i = 0; i < size; i++)
		text[i] = data[i] == '\n' ? '\0' : (char)data[i];
	text[size] = '\0';
	text_size = size;
	(void)launch_is_told(look_up, NULL);
	if (launch_find(&LAUNCH_NO_ARGUMENTS, &around, &launch, &err) != ESP_OK) {
		FUZZ_CHECK(err.status == ESP_EINVAL);
		check_readable(err.text);
		return 0;
	}
	FUZZ_CHECK(launch.size >= 1 && launch.size <= LAUNCH_SIZE_MAX && launch.rank < launch.size);
	FUZZ_CHECK(launch.size == 1 || launch.leader.port != 0 || launch.place.kind != ANNOUNCE_NOWHERE);
	FUZZ_CHECK(launch.leader.port == 0 || launch.leader.host[0] != '\0');
	FUZZ_CHECK(strlen(launch.job) < LAUNCH_JOB);
	launch_describe(&launch, described);
	return 0;
}
