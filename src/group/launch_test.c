#include "group/launch.h"

#include "base/check.h"

/* An environment: name=value pairs, ending with NULL. */
static const char *look_up(void *context, const char *name)
{
	const char *const *pairs = context;
	size_t length = strlen(name);
	for (; *pairs; pairs++)
		if (strncmp(*pairs, name, length) == 0 && (*pairs)[length] == '=')
			return *pairs + length + 1;
	return NULL;
}

static struct launch found;
static struct error err, warning;

static enum esp_status find(struct launch_arguments arguments, const char *const *pairs)
{
	error_clear(&err);
	return launch_find(&arguments, look_up, (void *)(uintptr_t)pairs, &found, &warning, &err);
}

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})
#define TORCH "RANK=1", "WORLD_SIZE=4", "MASTER_ADDR=node0", "MASTER_PORT=29500"
#define OWN "ESP_RANK=2", "ESP_SIZE=8", "ESP_LEADER=[::1]:700"

static void sources(void)
{
	char text[LAUNCH_TEXT];

	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(TORCH)) == ESP_OK);
	CHECK_STR(launch_describe(&found, text), "rank 1 of 4 (RANK, WORLD_SIZE), leader node0:29501 (MASTER_ADDR, MASTER_PORT + 1)");
	CHECK(warning.status == ESP_OK && found.epoch == 0);
	CHECK_STR(found.job, "");

	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(OWN)) == ESP_OK);
	CHECK_STR(launch_describe(&found, text), "rank 2 of 8 (ESP_RANK, ESP_SIZE), leader [::1]:700 (ESP_LEADER)");

	CHECK(find((struct launch_arguments){0, 2, "h:1", "mine"}, ENV("X=1")) == ESP_OK);
	CHECK_STR(launch_describe(&found, text), "rank 0 of 2 (the argument rank, the argument size), leader h:1 (the argument leader)");
	CHECK_STR(found.job, "mine");

	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV("ESP_RANK=0", "ESP_LEADER=a:1", TORCH, "TORCHELASTIC_RUN_ID=run7",
	                                    "TORCHELASTIC_RESTART_COUNT=3")) == ESP_OK);
	CHECK_STR(launch_describe(&found, text), "rank 0 of 4 (ESP_RANK, WORLD_SIZE), leader a:1 (ESP_LEADER)");
	CHECK_STR(found.job, "run7");
	CHECK_U64(found.epoch, 3);
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(OWN, "TORCHELASTIC_RUN_ID=run7", "ESP_JOB=j", "ESP_EPOCH=5",
	                                    "TORCHELASTIC_RESTART_COUNT=3")) == ESP_OK);
	CHECK_STR(found.job, "j");
	CHECK_U64(found.epoch, 5);
}

/* What a launcher says is about the ranks that it has numbered. */
static void launchers(void)
{
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(OWN, "ESP_LAUNCHER=run-7")) == ESP_OK);
	CHECK_STR(found.launcher, "run-7");
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(OWN)) == ESP_OK);
	CHECK_STR(found.launcher, "");
	CHECK(find((struct launch_arguments){1, 2, "h:1", NULL}, ENV(OWN, "ESP_LAUNCHER=run-7")) == ESP_OK);
	CHECK_STR(found.launcher, "");
	CHECK(find((struct launch_arguments){-1, -1, "h:1", NULL}, ENV(OWN, "ESP_LAUNCHER=run-7")) == ESP_OK);
	CHECK_STR(found.launcher, "");
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV(TORCH, "ESP_LAUNCHER=run-7")) == ESP_OK);
	CHECK_STR(found.launcher, "");
}

/* A group of one needs no leader, and an empty variable counts as none. */
static void alone(void)
{
	char text[LAUNCH_TEXT];

	CHECK(find((struct launch_arguments){0, 1, NULL, NULL}, ENV("ESP_LEADER=")) == ESP_OK);
	CHECK_U64(found.leader.port, 0);
	CHECK_STR(launch_describe(&found, text), "rank 0 of 1 (the argument rank, the argument size), leader none (none)");
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV("ESP_RANK=", TORCH)) == ESP_OK);
	CHECK_U64(found.rank, 1);
}

static void contradictions(void)
{
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV("ESP_RANK=3", TORCH)) == ESP_OK);
	CHECK_U64(found.rank, 3);
	CHECK_STR(warning.text, "ESP_RANK is '3' but RANK is '1'; using ESP_RANK");
	CHECK(find((struct launch_arguments){1, 3, NULL, NULL}, ENV(TORCH)) == ESP_OK);
	CHECK_STR(warning.text, "the argument size is '3' but WORLD_SIZE is '4'; using the argument size");
	CHECK(find(LAUNCH_NO_ARGUMENTS, ENV("ESP_RANK=1", TORCH)) == ESP_OK);
	CHECK(warning.status == ESP_OK);
	struct launch_arguments none = LAUNCH_NO_ARGUMENTS;
	CHECK(launch_find(&none, look_up, (void *)(uintptr_t)ENV("ESP_RANK=3", TORCH), &found, NULL, NULL) == ESP_OK);
}

static const struct {
	const char *const *pairs;
	const char *text;
} bad[] = {
	{(const char *const[]){NULL},
	 "neither ESP_SIZE nor WORLD_SIZE is set: start with espalier run or torchrun, or set ESP_SIZE to the number of ranks"},
	{(const char *const[]){"ESP_SIZE=2", NULL},
	 "neither ESP_RANK nor RANK is set: start with espalier run or torchrun, or set ESP_RANK to the number of this rank"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=2", NULL}, "ESP_RANK is the number of this rank, from 0 to 1, not '2'"},
	{(const char *const[]){"ESP_SIZE=2", "RANK=-1", NULL}, "RANK is the number of this rank, from 0 to 1, not '-1'"},
	{(const char *const[]){"WORLD_SIZE=0", NULL}, "WORLD_SIZE is the number of ranks, from 1 to 65536, not '0'"},
	{(const char *const[]){"ESP_SIZE=99999999999", NULL}, "ESP_SIZE is the number of ranks, from 1 to 65536, not '99999999999'"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=0", NULL},
	 "neither ESP_LEADER nor MASTER_ADDR is set: set ESP_LEADER to host:port, where rank 0 can be reached"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=0", "MASTER_ADDR=a", NULL}, "MASTER_ADDR is set but MASTER_PORT is not"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=0", "MASTER_PORT=1", NULL}, "MASTER_PORT is set but MASTER_ADDR is not"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=0", "MASTER_ADDR=a", "MASTER_PORT=65535", NULL},
	 "MASTER_PORT is 65535, and there is no port above it for the leader"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=0", "MASTER_ADDR=a b", "MASTER_PORT=5", NULL},
	 "MASTER_ADDR is the name or address of a host, not 'a b'"},
	{(const char *const[]){"ESP_SIZE=2", "ESP_RANK=0", "ESP_LEADER=node0", NULL},
	 "ESP_LEADER is host:port or [IPv6]:port with a port from 1 to 65535, not 'node0'"},
	{(const char *const[]){OWN, "ESP_EPOCH=x", NULL}, "ESP_EPOCH says how often the job was started anew, not 'x'"},
};

static void complaints(void)
{
	char name[200];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		found.size = 77;
		CHECK_MSG(find(LAUNCH_NO_ARGUMENTS, bad[i].pairs) == ESP_EINVAL, "%s", bad[i].text);
		CHECK_STR(err.text, bad[i].text);
		CHECK_U64(found.size, 77);
	}
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK(find((struct launch_arguments){0, 2, "h:1", name}, ENV("X=")) == ESP_EINVAL);
	CHECK_STR(err.text, "the name of the job has 199 bytes, at most 127 fit");
}

int main(void)
{
	sources();
	launchers();
	alone();
	contradictions();
	complaints();
	return 0;
}
