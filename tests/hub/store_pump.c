#include "store_pump.h"

#include <malloc.h>

#include "base/check.h"

static const struct transport_user *const user = &store_lane_user;

static struct pump_conn *conn_of(struct pump *pump, uint32_t worker, uint32_t lane)
{
	return &pump->conns[worker * pump->job->layout.lanes + lane];
}

static struct pump_state *state_of(struct pump *pump, uint32_t worker, uint32_t chunk)
{
	return &pump->states[worker * pump->job->layout.chunks + chunk];
}

static uint32_t group_of(const struct job *job, uint32_t chunk)
{
	return job->layout.tensor[job->layout.chunk[chunk].tensor].group;
}

/* Rounds that the worker contributes to. */
static uint64_t rounds_of(const struct pump *pump, uint32_t worker)
{
	return pump->fate == PUMP_LEAVE && worker == pump->culprit ? pump->job->rounds - 1 : pump->job->rounds;
}

/* ---- a worker's requests ---- */

static void ask(struct pump *pump, struct pump_conn *conn, uint32_t worker, uint8_t kind, uint32_t chunk)
{
	struct pump_state *state = state_of(pump, worker, chunk);

	CHECK(conn->count < PUMP_QUEUE);
	conn->queue[(conn->first + conn->count++) % PUMP_QUEUE] =
		(struct pump_request){.kind = kind, .number = chunk, .version = state->version};
	state->request = kind;
}

/* The changes that hold at this version must go before its term; later ones may. */
static void ask_changes(struct pump *pump, struct pump_conn *conn, uint32_t group, uint64_t version)
{
	const struct job *job = pump->job;
	uint32_t *sent = &conn->changes_sent[group];

	while (*sent < job->change_count[group] &&
	       (job->changes[group][*sent].from <= version || rng_chance(&pump->rng, 1, 8))) {
		CHECK(conn->count < PUMP_QUEUE);
		conn->queue[(conn->first + conn->count++) % PUMP_QUEUE] =
			(struct pump_request){.kind = HUB_HYPER, .number = group, .version = (*sent)++};
	}
}

static bool is_written(const struct pump *pump, uint32_t chunk)
{
	return pump->job->before == 0 || pump->written[chunk] == pump->job->states;
}

static void worker_step(struct pump *pump, struct pump_conn *conn, uint32_t worker, uint32_t lane)
{
	const struct hub_layout *layout = &pump->job->layout;
	uint32_t first = layout->lane_first[lane], count = layout->lane_first[lane + 1] - first;

	if (conn->is_dead || conn->has_left || count == 0)
		return;
	uint32_t chunk = layout->lane_chunks[first + rng_below(&pump->rng, count)];
	struct pump_state *state = state_of(pump, worker, chunk);
	if (state->request != 0)
		return;
	if (pump->job->sets[worker] == 0) {
		if (rng_chance(&pump->rng, 1, 6))
			ask(pump, conn, worker, HUB_PULL, chunk);
	} else if (worker == 0 && state->version == 0 && !pump->is_set[chunk]) {
		ask(pump, conn, worker, HUB_SET, chunk);
	} else if (worker == 0 && !is_written(pump, chunk)) {
		ask(pump, conn, worker, (uint8_t)(HUB_WRITE + 1 + pump->written[chunk]), chunk);
	} else if (rng_chance(&pump->rng, 1, 6)) {
		ask(pump, conn, worker, HUB_PULL, chunk);
	} else if (rng_chance(&pump->rng, 1, 12) && pump->is_set[chunk] && is_written(pump, chunk)) {
		ask(pump, conn, worker, (uint8_t)(HUB_READ + rng_below(&pump->rng, 1 + pump->job->states)), chunk);
	} else if (state->version < rounds_of(pump, worker)) {
		ask_changes(pump, conn, group_of(pump->job, chunk), state->version);
		ask(pump, conn, worker, rng_chance(&pump->rng, 1, 2) ? HUB_PUSH : HUB_PUSHPULL, chunk);
	}
}

/* ---- they come in ---- */

static void fill_hyper(struct pump *pump, uint32_t worker, const struct pump_request *request, uint8_t *out)
{
	struct optimizer optimizer = pump->job->changes[request->number][request->version].optimizer;

	if (pump->fate == PUMP_MISMATCH && worker == pump->culprit)
		optimizer.lr += 1;
	optimizer_encode(&optimizer, out);
}

static void fill(struct pump *pump, struct pump_conn *conn, uint32_t worker, struct transport_message *message)
{
	const struct pump_request *request = &conn->queue[conn->first];

	message->ack = (uint32_t)request->version;
	if (request->kind == HUB_HYPER) {
		fill_hyper(pump, worker, request, conn->data.bytes);
		message->ack = (uint32_t)pump->job->changes[request->number][request->version].from;
		message->bytes = OPTIMIZER_BYTES;
	} else if (hub_kind_is_write(request->kind)) {
		message->ack = pump->job->before;
		message->bytes = pump->job->layout.chunk[request->number].elements * 4;
		memcpy(conn->data.floats, job_array(pump->job, request->number, request->kind - HUB_WRITE, 0), message->bytes);
	} else if (request->kind != HUB_PULL && !hub_kind_is_read(request->kind)) {
		message->bytes = hub_layout_chunk_bytes(&pump->job->layout, request->number);
		if (request->kind == HUB_SET)
			job_first(pump->job, request->number, conn->data.floats);
		else
			job_gradient(pump->job, worker, request->version, request->number, conn->data.floats);
	}
}

static void begin(struct pump *pump, struct pump_conn *conn, uint32_t worker, uint32_t lane)
{
	const struct pump_request *request = &conn->queue[conn->first];
	struct transport_message message = {.channel = request->kind, .index = conn->messages_in, .call = request->number,
	                                    .shift = (uint8_t)rng_below(&pump->rng, TRANSPORT_SHIFTS)};

	fill(pump, conn, worker, &message);
	enum esp_status status = user->begin(pump->lanes[lane], worker, &message);
	CHECK(status == ESP_OK || (status == ESP_PENDING && (pump->trouble != ESP_OK || user->failed(pump->lanes[lane]))));
	conn->messages_in++;
	conn->is_busy = status == ESP_OK;
	conn->done = 0;
	conn->bytes = message.bytes;
	if (status == ESP_PENDING) {
		conn->first = (conn->first + 1) % PUMP_QUEUE;
		conn->count--;
	}
}

static void end(struct pump *pump, struct pump_conn *conn, uint32_t worker, uint32_t lane)
{
	struct pump_request request = conn->queue[conn->first];

	conn->is_busy = false;
	conn->first = (conn->first + 1) % PUMP_QUEUE;
	conn->count--;
	user->ended(pump->lanes[lane], worker, request.kind);
	if (request.kind == HUB_SET)
		pump->is_set[request.number] = true;
}

static void in_step(struct pump *pump, struct pump_conn *conn, uint32_t worker, uint32_t lane)
{
	if (conn->is_dead || conn->count == 0)
		return;
	if (!conn->is_busy) {
		begin(pump, conn, worker, lane);
	} else if (conn->done == conn->bytes) { /* now its checksum is known, too */
		end(pump, conn, worker, lane);
	} else {
		uint8_t kind = conn->queue[conn->first].kind;
		struct transport_room room = user->room(pump->lanes[lane], worker, kind);
		uint32_t left = conn->bytes - conn->done;
		uint32_t piece = rng_chance(&pump->rng, 1, 2) ? left : (uint32_t)rng_below(&pump->rng, left) + 1;

		CHECK(room.at && room.bytes == left);
		memcpy(room.at, conn->data.bytes + conn->done, piece);
		user->arrived(pump->lanes[lane], worker, kind, piece);
		conn->done += piece;
	}
}

/* ---- answers ---- */

/* An array of the optimizer, of the version that the worker knows: no round goes on without it. */
static void check_array(const struct pump *pump, struct pump_state *state, const struct pump_answer *answer)
{
	const struct transport_message *message = &answer->message;
	const float *expected = job_array(pump->job, message->call, state->request - HUB_READ, state->version);

	CHECK(message->channel == HUB_ARRAY && message->ack == (uint32_t)state->version);
	CHECK_U64(message->bytes, pump->job->layout.chunk[message->call].elements * 4);
	CHECK_MSG(memcmp(answer->data, expected, message->bytes) == 0, "array %u of chunk %u is not that of version %" PRIu64,
	          state->request - HUB_READ, message->call, state->version);
	state->request = 0;
}

/* The worker has it whole. */
static void answered(struct pump *pump, struct pump_conn *conn, uint32_t worker, uint32_t lane,
                     const struct pump_answer *answer)
{
	const struct transport_message *message = &answer->message;
	uint32_t chunk = message->call;

	CHECK(!message->is_credit && chunk < pump->job->layout.chunks && pump->job->layout.chunk[chunk].lane == lane);
	CHECK_U64(message->index, conn->messages_out);
	conn->messages_out++;
	struct pump_state *state = state_of(pump, worker, chunk);
	bool is_push = state->request == HUB_PUSH || state->request == HUB_PUSHPULL;
	bool has_data = state->request == HUB_PULL || state->request == HUB_PUSHPULL;
	if (hub_kind_is_read(state->request)) {
		check_array(pump, state, answer);
		return;
	}
	CHECK(state->request != 0 && message->channel == (has_data ? HUB_WEIGHTS : HUB_DONE));
	CHECK_U64(message->bytes, has_data ? hub_layout_chunk_bytes(&pump->job->layout, chunk) : 0);
	pump->written[chunk] += hub_kind_is_write(state->request);
	state->version += is_push;
	if (pump->job->sets[worker] == 0 && message->ack >= state->version)
		state->version = message->ack; /* another worker pushes for it */
	state->request = 0;
	CHECK_U64(message->ack, state->version);
	CHECK_MSG(!has_data || job_is_version(pump->job, chunk, state->version, answer->data),
	          "worker %u: the weights of chunk %u are not those of version %" PRIu64, worker, chunk, state->version);
	pump->seen[chunk] = state->version > pump->seen[chunk] ? state->version : pump->seen[chunk];
}

static void out_next(struct pump *pump, struct pump_conn *conn, uint32_t worker, uint32_t lane)
{
	struct pump_answer *answer = &conn->unsent[(conn->unsent_first + conn->unsent_count) % PUMP_UNSENT];

	if (!conn->wants || conn->unsent_count == PUMP_UNSENT)
		return;
	conn->wants = conn->is_sending = user->next(pump->lanes[lane], worker, &answer->message);
	if (!conn->is_sending)
		return;
	CHECK(answer->message.bytes <= sizeof(answer->data));
	answer->done = 0;
	conn->unsent_count++;
}

static void out_step(struct pump *pump, struct pump_conn *conn, uint32_t worker, uint32_t lane)
{
	if (conn->is_dead)
		return;
	if (!conn->is_sending) {
		out_next(pump, conn, worker, lane);
		return;
	}
	struct pump_answer *answer = &conn->unsent[(conn->unsent_first + conn->unsent_count - 1) % PUMP_UNSENT];
	uint32_t left = answer->message.bytes - answer->done;
	uint32_t piece = left == 0 || rng_chance(&pump->rng, 1, 2) ? left : (uint32_t)rng_below(&pump->rng, left) + 1;
	if (piece > 0)
		memcpy((uint8_t *)answer->data + answer->done, (const uint8_t *)answer->message.data + answer->done, piece);
	answer->done += piece;
	if (answer->done < answer->message.bytes)
		return;
	conn->is_sending = false;
	answered(pump, conn, worker, lane, answer);
}

/* Says that the oldest answer has left. Until now its memory is lent, and must not have changed. */
static void sent_step(struct pump *pump, struct pump_conn *conn, uint32_t worker, uint32_t lane)
{
	if (conn->is_dead || conn->unsent_count <= (conn->is_sending ? 1u : 0u))
		return;
	struct pump_answer *answer = &conn->unsent[conn->unsent_first];
	if (answer->message.bytes > 0)
		CHECK(memcmp(answer->message.data, answer->data, answer->message.bytes) == 0);
	conn->unsent_first = (conn->unsent_first + 1) % PUMP_UNSENT;
	conn->unsent_count--;
	user->sent(pump->lanes[lane], worker, answer->message.channel, answer->message.cookie);
}

static void ready_step(struct pump *pump, uint32_t lane)
{
	uint32_t worker;

	while ((worker = user->ready(pump->lanes[lane])) != UINT32_MAX) {
		CHECK(worker < pump->job->workers);
		conn_of(pump, worker, lane)->wants = true;
	}
}

/* ---- ends ---- */

static bool is_done(struct pump *pump, uint32_t worker, uint32_t lane)
{
	const struct hub_layout *layout = &pump->job->layout;
	const struct pump_conn *conn = conn_of(pump, worker, lane);

	uint32_t pusher = job_pusher(pump->job, worker); /* a worker for which another one pushes leaves after its last push */
	for (uint32_t i = layout->lane_first[lane]; i < layout->lane_first[lane + 1]; i++) {
		const struct pump_state *state = state_of(pump, pusher, layout->lane_chunks[i]);

		if (state_of(pump, worker, layout->lane_chunks[i])->request != 0 ||
		    state->version < rounds_of(pump, pusher) || !pump->is_set[layout->lane_chunks[i]])
			return false;
	}
	return conn->count == 0 && conn->unsent_count == 0;
}

/* A worker that is done leaves, and later its connection ends. */
static void leave_step(struct pump *pump, struct pump_conn *conn, uint32_t worker, uint32_t lane)
{
	if (conn->is_dead || (!conn->has_left && !is_done(pump, worker, lane)))
		return;
	if (!conn->has_left)
		store_lane_leave(pump->lanes[lane], worker);
	else
		conn->is_dead = true;
	conn->has_left = true;
}

static void fate_step(struct pump *pump)
{
	for (uint32_t lane = 0; lane < pump->job->layout.lanes; lane++) {
		bool is_hit = pump->fate == PUMP_KILL || (pump->fate == PUMP_CUT && lane == pump->cut_lane);

		conn_of(pump, pump->culprit, lane)->is_dead |= is_hit;
	}
}

static void lost_step(struct pump *pump, struct pump_conn *conn, uint32_t worker, uint32_t lane)
{
	if (!conn->is_dead || conn->is_lost)
		return;
	conn->is_lost = true;
	user->lost(pump->lanes[lane], worker, ESP_EPEER);
}

/* ---- trouble ---- */

/* The pusher behind this one; the number of workers: none. */
static uint32_t next_pusher(const struct job *job, uint32_t worker)
{
	do
		worker++;
	while (worker < job->workers && job->sets[worker] == 0);
	return worker;
}

static void check_trouble(struct pump *pump, const struct store_trouble *trouble)
{
	uint32_t worker = pump->fate == PUMP_MISMATCH && pump->culprit == 0 ? next_pusher(pump->job, 0) : pump->culprit;
	enum esp_status status = pump->fate == PUMP_MISMATCH ? ESP_EMISMATCH : ESP_EPEER;

	CHECK_MSG(pump->fate != PUMP_CALM, "trouble: %s", trouble->why.text);
	/* Of a set that leaves early, any may be the first. */
	bool is_named = trouble->worker == worker ||
	                (pump->fate == PUMP_LEAVE && trouble->worker < pump->job->workers &&
	                 job_pusher(pump->job, trouble->worker) == worker);
	CHECK_MSG(is_named, "trouble names worker %u, not %u: %s", trouble->worker, worker,
	          trouble->why.text);
	CHECK_U64(-trouble->status, -status);
	CHECK((pump->fate == PUMP_KILL || pump->fate == PUMP_CUT) == (trouble->why.text[0] == '\0'));
}

static void trouble_step(struct pump *pump, uint32_t lane)
{
	struct store_trouble trouble;

	if (!store_lane_take_trouble(pump->lanes[lane], &trouble))
		return;
	check_trouble(pump, &trouble);
	pump->troubles[lane]++;
	if (pump->trouble == ESP_OK) {
		pump->trouble = trouble.status;
		pump->fail_step = pump->steps + rng_below(&pump->rng, 64);
	}
}

/* ---- all of it ---- */

static void draw_fate(struct pump *pump)
{
	const struct job *job = pump->job;
	uint32_t group = group_of(job, 0);
	bool differs = job->change_count[group] > 0 && job->changes[group][0].from < job->rounds;

	pump->fate = rng_chance(&pump->rng, 1, 2) ? PUMP_CALM : (enum pump_fate)(1 + rng_below(&pump->rng, 4));
	pump->culprit = (uint32_t)rng_below(&pump->rng, job->workers);
	pump->cut_lane = (uint32_t)rng_below(&pump->rng, job->layout.lanes);
	pump->fate_step = rng_below(&pump->rng, UINT64_C(10) * job->workers * job->layout.chunks * job->rounds);
	bool is_alone = next_pusher(job, 0) == job->workers;
	if (pump->fate == PUMP_MISMATCH || pump->fate == PUMP_LEAVE)
		pump->culprit = job_pusher(job, pump->culprit);
	if ((pump->fate == PUMP_MISMATCH && (!differs || is_alone)) || (pump->fate == PUMP_LEAVE && is_alone))
		pump->fate = PUMP_CALM;
}

void pump_init(struct pump *pump, struct job *job, uint64_t seed)
{
	*pump = (struct pump){.job = job, .fail_step = UINT64_MAX};
	rng_init(&pump->rng, ~seed);
	draw_fate(pump);
	CHECK(job->layout.chunks <= PUMP_CHUNKS);
	pump->conns = calloc(job->workers * job->layout.lanes, sizeof(*pump->conns));
	pump->states = calloc(job->workers * job->layout.chunks, sizeof(*pump->states));
	for (uint32_t lane = 0; lane < job->layout.lanes; lane++) {
		uint32_t number = job_hub_of(job, lane);
		struct job_hub *hub = &job->hubs[number];
		struct store_lane_config config = {.layout = &hub->layout, .model = &hub->model,
		                                   .lane = lane - job->layout.hub_first[number],
		                                   .workers = job->workers, .optimizers = job->optimizers,
		                                   .sets = job->sets};

		CHECK(store_lane_open(&config, &pump->lanes[lane], NULL) == ESP_OK);
	}
}

void pump_fini(struct pump *pump)
{
	for (uint32_t lane = 0; lane < pump->job->layout.lanes; lane++)
		store_lane_close(pump->lanes[lane]);
	free(pump->states);
	free(pump->conns);
}

static void step(struct pump *pump)
{
	uint32_t worker = (uint32_t)rng_below(&pump->rng, pump->job->workers);
	uint32_t lane = (uint32_t)rng_below(&pump->rng, pump->job->layout.lanes);
	struct pump_conn *conn = conn_of(pump, worker, lane);

	switch (rng_below(&pump->rng, 8)) {
	case 0: worker_step(pump, conn, worker, lane); break;
	case 1:
	case 2:
	case 3: in_step(pump, conn, worker, lane); break;
	case 4:
	case 5: out_step(pump, conn, worker, lane); break;
	case 6: sent_step(pump, conn, worker, lane); break;
	default: leave_step(pump, conn, worker, lane); lost_step(pump, conn, worker, lane); break;
	}
	ready_step(pump, lane);
	trouble_step(pump, lane);
}

/* All have left, and nothing came of it. */
static bool is_over(struct pump *pump)
{
	for (uint32_t i = 0; i < pump->job->workers * pump->job->layout.lanes; i++) {
		if (!pump->conns[i].is_lost)
			return false;
	}
	return true;
}

void pump_run(struct pump *pump)
{
	uint64_t most = UINT64_C(4000) * pump->job->workers * pump->job->layout.lanes * pump->job->layout.chunks;
	size_t allocated = mallinfo2().uordblks;

	for (; pump->steps < pump->fail_step && (pump->steps % 64 != 0 || !is_over(pump)); pump->steps++) {
		CHECK_MSG(pump->steps < most, "no end after %" PRIu64 " steps", most);
		if (pump->steps == pump->fate_step)
			fate_step(pump);
		step(pump);
	}
	CHECK_U64(mallinfo2().uordblks, allocated);
}

/* ---- checks after the end ---- */

/* Also after a failure, each chunk is at a version that is whole, and at none before those that workers have seen. */
static void check_chunk(const struct pump *pump, uint32_t chunk)
{
	const struct layout_chunk *cut = &pump->job->layout.chunk[chunk];
	const float *weights = job_held(pump->job, chunk, 0);
	uint64_t version = pump->seen[chunk];

	if (!pump->is_set[chunk])
		return;
	while (version <= pump->job->rounds &&
	       memcmp(weights, job_array(pump->job, chunk, 0, version), cut->elements * sizeof(float)) != 0)
		version++;
	CHECK_MSG(version <= pump->job->rounds, "chunk %u is at no version from %" PRIu64 " on", chunk, pump->seen[chunk]);
}

static void check_failed(struct pump *pump, uint32_t lane)
{
	struct transport_message message = {.channel = HUB_PULL};
	struct store_trouble trouble;

	CHECK(pump->troubles[lane] <= 1);
	store_lane_fail(pump->lanes[lane], pump->trouble);
	CHECK(user->failed(pump->lanes[lane]) == pump->trouble);
	CHECK(user->ready(pump->lanes[lane]) == UINT32_MAX && !user->next(pump->lanes[lane], 0, &message));
	for (uint32_t worker = 0; worker < pump->job->workers; worker++) {
		struct pump_conn *conn = conn_of(pump, worker, lane);
		uint8_t kind = conn->queue[conn->first].kind;

		if (conn->is_busy)
			CHECK(!user->room(pump->lanes[lane], worker, kind).at);
	}
	CHECK(pump->troubles[lane] == 0 || !store_lane_take_trouble(pump->lanes[lane], &trouble));
}

static void check_lane(struct pump *pump, uint32_t lane)
{
	const struct hub_layout *layout = &pump->job->layout;
	struct store_lane_stats stats = store_lane_stats(pump->lanes[lane]);
	uint64_t least, most, bytes = 0, chunks = layout->lane_first[lane + 1] - layout->lane_first[lane];

	for (uint32_t i = layout->lane_first[lane]; i < layout->lane_first[lane + 1]; i++)
		bytes += hub_layout_chunk_bytes(layout, layout->lane_chunks[i]);
	CHECK_U64(stats.rounds, chunks * pump->job->rounds);
	uint64_t pushers = 0;
	for (uint32_t worker = 0; worker < pump->job->workers; worker++)
		pushers += pump->job->sets[worker] != 0;
	CHECK_U64(stats.pushed_bytes, bytes * pump->job->rounds * pushers);
	CHECK(store_lane_versions(pump->lanes[lane], &least, &most) == (chunks > 0));
	CHECK(chunks == 0 || (least == pump->job->rounds && most == least));
	CHECK(user->failed(pump->lanes[lane]) == ESP_OK);
	for (uint32_t t = 0; t < layout->tensors; t++)
		CHECK_U64(store_lane_missing(pump->lanes[lane], t), 0);
}

void pump_check_end(struct pump *pump)
{
	const struct hub_layout *layout = &pump->job->layout;

	for (uint32_t chunk = 0; chunk < layout->chunks; chunk++)
		check_chunk(pump, chunk);
	for (uint32_t lane = 0; lane < layout->lanes; lane++) {
		if (pump->trouble != ESP_OK)
			check_failed(pump, lane);
		else
			check_lane(pump, lane);
	}
	if (pump->trouble == ESP_OK)
		job_check_end(pump->job);
	CHECK(pump->trouble != ESP_OK || (pump->fate != PUMP_MISMATCH && pump->fate != PUMP_LEAVE));
	for (uint32_t i = 0; pump->trouble == ESP_OK && i < pump->job->workers * layout->lanes; i++)
		CHECK(pump->conns[i].has_left);
}
