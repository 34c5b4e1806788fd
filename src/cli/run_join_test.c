/*
 * A job that joins: espalier run starts this program once more for every rank, and the ranks find
 * each other with nothing but what they were told.
 */
#include <unistd.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/conf.h"
#include "node/auth/key.h"
#include "node/net/listen.h"
#include "rank/join/join.h"
#include "cli/cli.h"

#define RANKS 5

static int be_rank(void)
{
	struct join_config config = {.deadline_ns = clock_now_ns() + 60 * NS_PER_S};
	struct roster roster;
	struct launch_surroundings around = {.lookup = conf_environment};
	struct error err;
	struct conf conf;
	struct key key;
	struct listener listener;
	conf_init(&conf);
	CHECK(launch_find(&LAUNCH_NO_ARGUMENTS, &around, &config.launch, &err) == ESP_OK);
	CHECK(key_find(conf_environment, NULL, &key, &err) == ESP_OK && key.origin == KEY_ENVIRONMENT);
	CHECK(config.launch.size == RANKS && address_is_loopback(&config.launch.leader));
	memcpy(config.key, key.bytes, sizeof(config.key));
	join_prepare(&config, &conf);
	CHECK(listen_open(&(struct listen_config){.loopback_only = true}, &listener, &config.info, &err) == ESP_OK);
	host_info_describe(&config.info);
	enum esp_status status = join_run(&config, &roster, NULL, &err);
	CHECK_MSG(status == ESP_OK, "rank %u: %s", config.launch.rank, err.text);
	CHECK_U64(roster.size, RANKS);
	roster_fini(&roster);
	listener_close(&listener);
	return 0;
}

int main(void)
{
	char *words[] = {"run", "--ranks", "5", "--", "/proc/self/exe", NULL};
	return getenv("ESP_RANK") ? be_rank() : cli_run.run(5, words);
}
