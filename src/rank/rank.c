#include "rank/rank.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "node/auth/key.h"
#include "node/net/listen.h"
#include "rank/comm/comm.h"
#include "rank/comm/retune.h"
#include "rank/comm/switched.h"
#include "rank/comm/work.h"
#include "rank/init_barrier.h"
#include "rank/join/announce.h"
#include "rank/join/joiner.h"
#include "rank/member/grow_parent.h"
#include "rank/member/membership.h"
#include "rank/member/past_verdict.h"
#include "rank/observe/dump.h"
#include "rank/observe/join_status.h"
#include "rank/observe/recorder.h"
#include "rank/observe/status_server.h"
#include "rank/observe/tracer.h"
#include "rank/placement.h"
#include "rank/rail/bandwidth.h"
#include "rank/rail/blackhole.h"
#include "rank/rail/failover.h"
#include "rank/rank_account.h"
#include "rank/rank_ends.h"
#include "rank/rank_events.h"
#include "rank/rank_info.h"
#include "rank/rank_lanes.h"
#include "rank/rank_log.h"

static enum esp_status pass(struct failure *failure, const struct error *err)
{
	return rank_failure_set(failure, err->status, -1, "%s", err->text);
}

/* ---- settings ---- */

static void complain(void *argument, const struct error *complaint)
{
	const struct log *log = argument;

	log_write(log, LOG_LEVEL_WARN, LOG_CONF, "%s", complaint->text);
}

static enum esp_status read_settings(struct rank *context, const struct rank_options *options,
                                     struct failure *failure)
{
	struct error err;

	log_init(&context->log, LOG_LEVEL_WARN);
	log_limit_init(&context->logs.limit);
	context->log.limit = &context->logs.limit;
	if (options->log) {
		context->log.sink = options->log;
		context->log.context = options->log_context;
	}
	if (options->heir_of) {
		context->conf = options->heir_of->conf;
		context->log = options->heir_of->log;
		context->log.rank = -1;
		if (options->log)
			context->log.context = options->log_context;
		for (size_t i = 0; i < CONF_COUNT; i++)
			conf_value_text(&context->conf, i, context->logs.settings[i]);
		return ESP_OK;
	}
	if (conf_load(&context->conf, complain, &context->log, &err) != ESP_OK)
		return pass(failure, &err);
	for (const char *const *at = options->settings; at && *at; at++) {
		const char *equals = strchr(*at, '=');

		if (!equals)
			return rank_failure_set(failure, ESP_EINVAL, -1, "settings are NAME=VALUE, not \"%.100s\"", *at);
		if (conf_is_renamed(*at, (size_t)(equals - *at), &err))
			complain(&context->log, &err);
		if (conf_set(&context->conf, *at, (size_t)(equals - *at), equals + 1, strlen(equals + 1), CONF_COMMAND_LINE,
		             &err) != ESP_OK)
			return pass(failure, &err);
	}
	rank_log_set(context);
	for (size_t i = 0; i < CONF_COUNT; i++)
		conf_value_text(&context->conf, i, context->logs.settings[i]);
	return ESP_OK;
}

/* ---- identity ---- */

static enum esp_status find_key(struct rank *context, const struct rank_options *options, bool loopback,
                                struct failure *failure);

/* NULL: this process is no joiner. */
static const char *find_join_addresses(void)
{
	const char *text = conf_environment(NULL, "ESP_DOOR");

	return text && text[0] ? text : NULL;
}

/* A joiner, which becomes a rank when it is let in. */
static enum esp_status wait_as_joiner(struct rank *context, const struct rank_options *options, struct failure *failure)
{
	struct launch *launch = &context->join.launch;
	struct join_addresses addresses;
	struct error err;
	const char *job = options->job ? options->job : conf_environment(NULL, "ESP_JOB");

	if (join_addresses_parse(find_join_addresses(), &addresses, &err) != ESP_OK)
		return pass(failure, &err);
	snprintf(launch->job, sizeof(launch->job), "%s", job ? job : "");
	context->size = launch->size = 2; /* at least: it is not alone */
	enum esp_status status = find_key(context, options, join_addresses_are_loopback(&addresses), failure);
	if (status != ESP_OK)
		return status;
	join_prepare(&context->join, &context->conf);
	host_info_describe(&context->join.info);
	context->join.log = &context->log;
	context->join.deadline_ns = clock_now_ns() + context->conf.join_seconds * NS_PER_S;
	if (join_addresses_wait(&addresses, &context->join, &context->joining.joiner, &err) != ESP_OK)
		return pass(failure, &err);
	context->joining.is_joiner = true;
	launch->rank_source = launch->size_source = launch->leader_source = "ESP_DOOR";
	context->rank = launch->rank;
	context->size = launch->size;
	context->log.rank = (int32_t)launch->rank;
	return ESP_OK;
}

static enum esp_status find_launch(struct rank *context, const struct rank_options *options,
                                   struct failure *failure)
{
	struct launch *launch = &context->join.launch;
	struct launch_arguments arguments = {options->rank, options->size, options->leader, options->job};
	struct launch_surroundings around = {conf_environment, NULL, launch_system_fact, complain, &context->log};
	struct error err;
	char text[LAUNCH_TEXT];

	if (options->heir_of) {
		*launch = options->heir_of->join.launch;
		launch->rank = (uint32_t)options->rank;
		launch->size = (uint32_t)options->size;
		launch->epoch++;
		launch->launcher[0] = '\0'; /* its numbers are others */
		launch->rank_source = launch->size_source = launch->leader_source = "esp_grow()";
		launch->place = (struct announce_place){0};
		if (address_parse(options->leader, "esp_grow()", &launch->leader, &err) != ESP_OK)
			return pass(failure, &err);
		context->rank = launch->rank;
		context->size = launch->size;
		context->log.rank = (int32_t)launch->rank;
		return ESP_OK;
	}
	if (options->gather && (arguments.size < 1 || arguments.size > LAUNCH_SIZE_MAX || arguments.rank < 0))
		return rank_failure_set(failure, ESP_EINVAL, -1, "an allgather to join by needs rank and size");
	if (options->gather && arguments.rank >= arguments.size)
		return rank_failure_set(failure, ESP_EINVAL, -1, "there is no rank %lld of %lld: they are counted from 0",
		                        (long long)arguments.rank, (long long)arguments.size);
	if (arguments.size < 0 && find_join_addresses() && !launch_is_told(conf_environment, NULL))
		return wait_as_joiner(context, options, failure);
	if (arguments.size < 0 && !launch_is_told(conf_environment, NULL)) {
		arguments.rank = 0;
		arguments.size = 1;
	}
	if (options->gather) { /* a caller that supplies a channel needs no leader */
		*launch = (struct launch){
			.rank = (uint32_t)arguments.rank,
			.size = (uint32_t)arguments.size,
			.rank_source = "the arguments",
			.size_source = "the arguments",
			.leader_source = "none",
		};
		snprintf(launch->job, sizeof(launch->job), "%s", options->job ? options->job : "");
	} else if (launch_find(&arguments, &around, launch, &err) != ESP_OK) {
		return pass(failure, &err);
	}
	context->rank = launch->rank;
	context->size = launch->size;
	context->log.rank = (int32_t)launch->rank;
	rank_log_open(context, options->log != NULL);
	log_write(&context->log, LOG_LEVEL_INFO, LOG_JOIN, "%s", launch_describe(launch, text));
	if (find_join_addresses())
		log_write(&context->log, LOG_LEVEL_WARN, LOG_JOIN,
		          "ESP_DOOR is not used, as %s says already that this is rank %u of %u: joiners need no launcher",
		          launch->rank_source, launch->rank, launch->size);
	if (launch->rank == 0) /* one rank is enough to say it */
		conf_check_environment(complain, &context->log);
	return ESP_OK;
}

/* With a channel of the caller's, rank 0 can make a key and hand it out. */
static enum esp_status share_key(struct rank *context, const struct rank_options *options, struct key *key,
                                 struct failure *failure)
{
	struct key *all = calloc(context->size, sizeof(*all));

	if (!all)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for %u ranks", context->size);
	key_generate(key);
	enum esp_status status = options->gather(options->gather_context, key, all, sizeof(*key));
	if (status == ESP_OK)
		*key = all[0];
	else
		rank_failure_set(failure, status, -1, "the caller's all-gather failed");
	for (uint32_t i = 0; i < context->size; i++)
		key_wipe(&all[i]);
	free(all);
	return status;
}

static enum esp_status find_key(struct rank *context, const struct rank_options *options, bool loopback,
                                struct failure *failure)
{
	struct key key;
	struct error err;
	enum key_policy policy;

	key_hide(context->join.key, sizeof(context->join.key));
	if (options->heir_of) {
		memcpy(context->join.key, options->heir_of->join.key, sizeof(context->join.key));
		return ESP_OK;
	}
	enum esp_status status = key_find(conf_environment, NULL, &key, &err);

	if (status != ESP_OK)
		return pass(failure, &err);
	struct key_situation situation = {key.origin, loopback, context->size == 1, context->conf.insecure,
	                                  announce_keeps_secrets(&context->join.launch.place)};
	if (key.origin == KEY_NONE && options->gather && context->size > 1) {
		status = share_key(context, options, &key, failure);
		situation.origin = KEY_GENERATED;
	} else {
		status = key_settle(&key, &situation, &policy, &err);
		if (status != ESP_OK)
			pass(failure, &err);
		else if (policy == KEY_OPEN_INSECURE)
			log_write(&context->log, LOG_LEVEL_WARN, LOG_JOIN, "no key: any process on the network can join this job");
		context->join.key_in_announcement = status == ESP_OK && policy == KEY_POSTED;
	}
	if (status == ESP_OK)
		log_write(&context->log, LOG_LEVEL_INFO, LOG_JOIN, "the job's key: %s", key_describe(&situation));
	memcpy(context->join.key, key.bytes, sizeof(context->join.key));
	key_wipe(&key);
	return status;
}

/* ---- ranks that share this host ---- */

static bool is_reached_by_memory(const struct rank *context, uint32_t rank)
{
	const struct node_info *own = &context->roster.nodes[context->rank], *other = &context->roster.nodes[rank];

	return rank == context->rank || (context->conf.transport != CONF_TRANSPORT_TCP &&
	                                 memcmp(own->host_id, other->host_id, sizeof(own->host_id)) == 0);
}

static enum esp_status find_neighbours(struct rank *context, struct failure *failure)
{
	uint32_t size = context->size;
	context->near.is_local = calloc(size, sizeof(*context->near.is_local));
	context->near.local_of = calloc(size, sizeof(*context->near.local_of));
	context->near.rank_of = calloc(size, sizeof(*context->near.rank_of));
	context->near.views = calloc(size, sizeof(struct segment_view *));
	context->fates.of = calloc(size, sizeof(*context->fates.of));
	context->fates.of_ns = calloc(size, sizeof(*context->fates.of_ns));
	context->opening.has_met = calloc(size, sizeof(*context->opening.has_met));
	context->opening.has_reached = calloc(size, sizeof(*context->opening.has_reached));
	context->opening.has_exchanged = calloc(size, sizeof(*context->opening.has_exchanged));
	context->fates.is_clueless = calloc(size, sizeof(*context->fates.is_clueless));
	context->member.connect_heard = calloc(size, sizeof(*context->member.connect_heard));
	if (!context->near.is_local || !context->near.local_of || !context->near.rank_of || !context->near.views ||
	    !context->fates.of || !context->fates.of_ns || !context->opening.has_met || !context->opening.has_reached ||
	    !context->opening.has_exchanged || !context->fates.is_clueless || !context->member.connect_heard)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for %u ranks", size);
	for (uint32_t i = 0; i < size; i++) {
		context->near.local_of[i] = NO_RANK;
		if (!is_reached_by_memory(context, i))
			continue;
		if (i == context->rank)
			context->near.local_self = context->near.local_count;
		context->near.is_local[i] = true;
		context->near.local_of[i] = context->near.local_count;
		context->near.rank_of[context->near.local_count++] = i;
	}
	context->host.crowded = context->roster.core_ranks[context->rank] > context->roster.nodes[context->rank].cores;
	if (context->conf.transport == CONF_TRANSPORT_SHM && context->near.local_count < size)
		return rank_failure_set(failure, ESP_EINVAL, -1,
		                        "transport is shm, and %u of %u ranks are on other hosts than rank %u",
		                        size - context->near.local_count, size, context->rank);
	return ESP_OK;
}

/* At least one lane for each rail. A setting may give fewer: then so many rails are used. */
static enum esp_status open_rails(struct rank *context, struct failure *failure)
{
	if (rails_find(&context->roster, context->conf.rails, &context->rails) != ESP_OK)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for %u ranks", context->size);
	context->lanes = context->conf.lanes ? context->conf.lanes : rank_lanes_choose(&context->roster);
	if (context->conf.lanes == 0 && context->lanes < context->rails.count)
		context->lanes = context->rails.count;
	if (context->rails.count > context->lanes)
		context->rails.count = context->lanes;
	bandwidth_init(context->mod.bandwidth, context->lanes);
	return ESP_OK;
}

static void tell_how(struct rank *context)
{
	char text[JOIN_TEXT];
	bool is_by_rail = context->lanes == context->rails.count && context->lanes > 1;
	const char *why = is_by_rail ? "as there are interfaces" : "as there are cores for each rank";

	log_write(&context->log, LOG_LEVEL_INFO, LOG_JOIN, "%s", join_describe(&context->join, &context->roster, text));
	log_write(&context->log, LOG_LEVEL_INFO, LOG_NET,
	          "%u lane%s (%s), %u rank%s reached through shared memory, %u through TCP; transport is %s",
	          context->lanes, context->lanes == 1 ? "" : "s", context->conf.lanes ? "as set" : why,
	          context->near.local_count - 1, context->near.local_count == 2 ? "" : "s",
	          context->size - context->near.local_count, rank_setting(context, "transport"));
}

/* ---- parts ---- */

static enum esp_status open_segment(struct rank *context, struct failure *failure)
{
	struct error err;
	long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
	uint64_t memory = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : UINT64_C(1) << 36;
	uint64_t most = (UINT64_C(1) << 45) / context->near.local_count; /* all ranks of the host map all of these */
	uint32_t slot_bytes = rank_slot_bytes(context);
	uint64_t slots = context->conf.buffer_bytes / shm_segment_slot_cost(slot_bytes) / context->lanes;
	struct segment_config config = {
		.lanes = context->lanes,
		.peers = context->near.local_count,
		.self = context->near.local_self,
		.slot_bytes = slot_bytes,
		.slots = slots < 8 ? 8 : (uint32_t)slots,
		.small_shm_bytes = (SHM_SMALL_HEAD_BYTES + (uint32_t)context->conf.small_shm_bytes + 63) / 64 * 64,
		.heap_bytes = memory < most ? memory : most,
		.is_open = context->conf.peer_stores,
	};

	if (shm_segment_open(&config, &context->near.segment, &err) != ESP_OK)
		return pass(failure, &err);
	return ESP_OK;
}

static enum esp_status open_world(struct rank *context, struct failure *failure)
{
	uint32_t *ranks = calloc(context->size, sizeof(*ranks));

	if (!ranks)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for %u ranks", context->size);
	for (uint32_t i = 0; i < context->size; i++)
		ranks[i] = i;
	context->comms.next_channel = COMM_CHANNELS;
	enum esp_status status = comm_open(context, 0, ranks, context->size, &context->world, failure);
	if (status == ESP_OK && (context->opening.grow_parent || context->joining.is_joiner)) {
		status = comm_open(context, COMM_CHANNELS, ranks, context->size, &context->entry, failure);
		context->comms.next_channel += COMM_CHANNELS;
	}
	free(ranks);
	return status;
}

static enum esp_status open_fork_mark(struct rank *context, struct failure *failure)
{
	long page = sysconf(_SC_PAGESIZE);
	void *mark = mmap(NULL, (size_t)page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mark == MAP_FAILED)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a context");
	(void)madvise(mark, (size_t)page, MADV_WIPEONFORK); /* a child finds a zero there */
	atomic_store((_Atomic uint32_t *)mark, 1);
	context->host.alive = mark;
	context->host.page_shift = (uint8_t)__builtin_ctzl((unsigned long)page);
	return ESP_OK;
}

static enum esp_status open_listener(struct rank *context, bool loopback, struct failure *failure)
{
	const struct conf *conf = &context->conf;
	struct listen_config config = {
		.loopback_only = loopback || context->size == 1,
		.family = (enum conf_family)conf->family,
		.port = conf->port,
		.segment_bytes = conf->segment_bytes,
	};
	struct error err;

	if (context->size == 1)
		config.port = (struct conf_range){0};
	if (interface_filter_parse(conf->interfaces, &config.filter, &err) != ESP_OK ||
	    listen_open(&config, &context->listener, &context->join.info, &err) != ESP_OK)
		return pass(failure, &err);
	return ESP_OK;
}

/* ---- joining ---- */

static enum esp_status join(struct rank *context, const struct rank_options *options, int *out_local_fd,
                            struct failure *failure)
{
	struct join_config *join = &context->join;
	struct error err;
	int32_t culprit = -1;
	bool loopback = !options->gather && join->launch.leader.port != 0 && address_is_loopback(&join->launch.leader);

	enum esp_status status = find_key(context, options, loopback, failure);
	if (status != ESP_OK)
		return status;
	join_prepare(join, &context->conf);
	status = open_listener(context, loopback, failure);
	if (status != ESP_OK)
		return status;
	host_info_describe(&join->info);
	if (control_local_socket(&join->info, out_local_fd, &err) != ESP_OK)
		return pass(failure, &err);
	join->deadline_ns =
		clock_now_ns() + (options->patience_ns ? options->patience_ns : context->conf.join_seconds * NS_PER_S);
	join->log = &context->log;
	join->segment_bytes = context->conf.segment_bytes;
	join->listening = options->listening;
	if (!options->gather) /* the caller's channel may be anything, and does not say which ranks it waits for */
		join_status_open(context);
	if (options->grow_parent) {
		join->is_called_off = grow_parent_has_failed;
		join->called_off_context = (void *)(uintptr_t)options->grow_parent;
		join->kin = options->grow_parent->group->size;
	} else if (context->joining.is_joiner) {
		join->is_called_off = joiner_is_shut;
		join->called_off_context = &context->joining.joiner;
	}
	status = options->gather ? join_by_callback(join, options->gather, options->gather_context, &context->roster, &err)
	                         : join_run(join, &context->roster, &culprit, &err);
	join->listening = NULL; /* it was lent, and so was the parent */
	join->is_called_off = NULL;
	join->called_off_context = NULL;
	if (status == ESP_OK && !loopback)
		status = roster_check_reach(&context->roster, &culprit, &err);
	return status == ESP_OK ? ESP_OK : rank_failure_set(failure, err.status, culprit, "%s", err.text);
}

static void open_status_server(void *argument)
{
	struct rank *context = argument;

	context->mod.status_server = status_server_open(context, control_loop(context->control));
}

static void close_status_server(void *argument)
{
	struct rank *context = argument;

	http_server_close(context->mod.status_server);
	context->mod.status_server = NULL;
}

static enum esp_status open_control(struct rank *context, const struct rank *heir_of, int *local_fd,
                                    struct failure *failure)
{
	struct error err;

	context->near.own_fds[0] = shm_segment_descriptor(context->near.segment);
	for (uint32_t i = 0; i < context->lanes; i++)
		context->near.own_fds[1 + i] = rank_lanes_shm_fd(context, i);
	int join_free_fd = -1;
	struct control_config config = {
		.log = &context->log,
		.join_until_ns = context->join.deadline_ns,
		.roster = &context->roster,
		.is_local = context->near.is_local,
		.local_of = context->near.local_of,
		.rank_of = context->near.rank_of,
		.local_self = context->near.local_self,
		.local_count = context->near.local_count,
		.lanes = context->lanes,
		.replaces = rank_resumes(context),
		.rails = &context->rails,
		.listener = &context->listener,
		.local_fd = *local_fd,
		.join_fd = heir_of ? control_share_join_port(heir_of->control, &join_free_fd) : -1,
		.netlink_fd = context->mod.failover->netlink_fd,
		.descriptors = context->near.own_fds,
		.descriptor_count = 1 + context->lanes,
		.patience_ns = context->conf.join_seconds * NS_PER_S,
		.late_ns = 2 * rank_word_ns(context),
		.interval_ns = rank_interval_ns(context),
		.segment_bytes = context->conf.segment_bytes,
		.events = &rank_events,
		.subscribers = &context->subscribers,
		.context = context,
	};
	join_self(&context->join, &config.self);
	rank_subscribe(&context->subscribers);
	config.join_free_fd = join_free_fd;
	context->joining.port = config.join_fd >= 0 ? heir_of->joining.port : context->join.info.port;
	enum esp_status status = control_open(&config, &context->control, &err);
	*local_fd = -1;
	context->listener.count = 0;
	if (status != ESP_OK)
		return pass(failure, &err);
	loop_call(control_loop(context->control), open_status_server, context);
	return ESP_OK;
}

static enum esp_status open_all(struct rank *context, const struct rank_options *options, int *local_fd,
                                struct failure *failure)
{
	enum esp_status status = open_fork_mark(context, failure);

	if (status == ESP_OK)
		status = read_settings(context, options, failure);
	if (status == ESP_OK)
		status = find_launch(context, options, failure);
	if (status == ESP_OK)
		status = join(context, options, local_fd, failure);
	if (context->joining.is_joiner)
		joiner_leave(&context->joining.joiner, status == ESP_OK, context->rank, context->join.deadline_ns);
	if (status == ESP_OK)
		status = find_neighbours(context, failure);
	if (status == ESP_OK)
		status = open_rails(context, failure);
	if (status == ESP_OK)
		status = failover_open(context, failure);
	if (status == ESP_OK)
		tell_how(context);
	if (status == ESP_OK)
		status = open_segment(context, failure);
	if (status == ESP_OK)
		status = rank_lanes_open(context, failure);
	if (status == ESP_OK && recorder_open(context->mod.recorder, context->conf.trace[0]) != ESP_OK)
		status = rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for the flight recorder");
	if (status == ESP_OK) /* before a caller can send on it */
		status = open_world(context, failure);
	if (status == ESP_OK)
		status = membership_open(context, failure);
	if (status == ESP_OK) {
		join_status_close(context);
		context->instance = rank_instance(context);
		context->mod.dump->take = rank_account;
		dump_open(context);
		context->mod.tracer = tracer_open(context);
		status = open_control(context, options->heir_of, local_fd, failure);
	}
	if (status == ESP_OK)
		status = rank_meet(context, failure);
	if (status == ESP_OK && comm_open_small(context->world) != ESP_OK)
		status = rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for the small path");
	if (status == ESP_OK) /* from here on silence is noticed */
		status = membership_begin(context, failure);
	if (status == ESP_OK) /* no rank leaves before all are here */
		status = rank_init_barrier_run(context, failure);
	if (status == ESP_OK)
		status = comm_switched_begin(context, failure);
	if (status == ESP_OK && context->joining.is_joiner)
		status = rank_enter(context, context->conf.join_seconds * NS_PER_S, failure);
	return status;
}

static void rank_free(struct rank *context)
{
	/* First driving stops, then writing: drivers send requests to the control, which leaves messages for them. */
	comm_switched_stop(context);
	progress_stop(&context->progress);
	join_status_close(context);
	if (context->mod.status_server)
		loop_call(control_loop(context->control), close_status_server, context);
	control_close(context->control);
	if (context->control)
		bandwidth_fini(context);
	blackhole_fini(context->mod.blackhole);
	tracer_close(context->mod.tracer, context);
	context->mod.tracer = NULL;
	dump_close(context);
	progress_close(&context->progress);
	for (struct comm *group = context->comms.list; group; group = group->next)
		comm_drop_left(group);
	while (context->comms.works)
		work_free(context->comms.works);
	while (context->comms.list)
		comm_destroy(context->comms.list);
	comm_switched_close_link(context);
	for (uint32_t i = 0; context->near.views && i < context->near.local_count; i++)
		shm_segment_view_close(context->near.views[i]);
	shm_segment_close(context->near.segment);
	presence_fini(&context->member.presence);
	past_verdict_forget_all(context);
	recorder_close(context->mod.recorder);
	roster_fini(&context->roster);
	failover_close(context);
	rails_fini(&context->rails);
	rank_placement_fini(context->mod.placement);
	free(context->near.is_local);
	free(context->near.local_of);
	free(context->near.rank_of);
	free(context->near.views);
	free(context->fates.of);
	free(context->fates.of_ns);
	free(context->opening.has_met);
	free(context->opening.has_reached);
	free(context->opening.has_exchanged);
	free(context->fates.is_clueless);
	free(context->member.connect_heard);
	control_flood_filter_free(&context->member.flood_filter);
	rank_log_close(context);
	if (context->host.alive)
		munmap((void *)(uintptr_t)context->host.alive, (size_t)sysconf(_SC_PAGESIZE));
	pthread_mutex_destroy(&context->lock);
	pthread_cond_destroy(&context->changed);
	free(context);
}

/* A rank with the modules that it has by pointer; its first member, so that free() of the rank is that of all. */
struct whole {
	struct rank rank;
	struct bandwidth bandwidth;
	struct failover failover;
	struct blackhole blackhole;
	struct placement placement;
	struct recorder recorder;
	struct dump dump;
};

static struct rank *whole_init(struct whole *whole)
{
	whole->rank.mod = (struct rank_modules){
		.bandwidth = &whole->bandwidth,
		.failover = &whole->failover,
		.blackhole = &whole->blackhole,
		.placement = &whole->placement,
		.recorder = &whole->recorder,
		.dump = &whole->dump,
	};
	return &whole->rank;
}

enum esp_status rank_open(const struct rank_options *options, struct rank **out, struct failure *failure)
{
	struct whole *whole = calloc(1, sizeof(*whole));
	struct rank *context = whole ? whole_init(whole) : NULL;
	int local_fd = -1;

	if (!context)
		return rank_failure_set(failure, ESP_ENOMEM, -1, "no memory for a context");
	pthread_mutex_init(&context->lock, NULL);
	rank_cond_init(&context->changed);
	context->comms.most = COMMS_MOST;
	context->opening.word_most_ns = options->word_most_ns;
	context->opening.grow_parent = options->grow_parent;
	context->host.idle = options->heir_of ? options->heir_of->host.idle : options->idle;
	context->host.idle_context = options->heir_of ? options->heir_of->host.idle_context : options->idle_context;
	context->opening.began_ns = clock_now_ns();
	enum esp_status status = open_all(context, options, &local_fd, failure);
	listener_close(&context->listener);
	if (local_fd >= 0)
		close(local_fd);
	if (status != ESP_OK) {
		/* Ranks that wait for us shall hear which rank is at fault, and not only that we are gone. */
		if (context->control) {
			membership_blame(context, failure->rank, failure->text);
			rank_leave(context, rank_farewell_ns(context, clock_now_ns()));
		}
		rank_free(context);
		return status;
	}
	pthread_mutex_lock(&context->lock);
	context->opening.began_ns = 0;
	pthread_mutex_unlock(&context->lock);
	*out = context;
	return ESP_OK;
}

enum esp_status rank_close(struct rank *context, struct failure *failure)
{
	bool has_failed = !rank_is_needed(context);
	uint64_t linger = context->conf.linger_seconds * NS_PER_S, patience = rank_patience_ns(context);

	comm_retune_settle_all(context);
	rank_end_work(context);
	comm_switched_linger(context, clock_now_ns() + linger);
	if (context->size > 1)
		rank_leave(context, has_failed && linger > patience ? patience : linger);
	enum esp_status status = rank_tell_last_calls(context, failure);
	rank_free(context);
	return status;
}
