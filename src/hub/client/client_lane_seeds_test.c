/*
 * A seeded run: a model of a hub answers in any order, in pieces, sometimes before the transport has said that the
 * request is sent. Memory of callers is freed as soon as a part is handed out.
 */
#include "base/check.h"
#include "base/rng.h"
#include "hub/client/client_lane.h"

#define CHUNK_BYTES 256u
#define CHUNK_ELEMENTS (CHUNK_BYTES / 4)
#define USER (&client_lane_user)

enum { SIM_TENSORS = 5, SIM_PARTS = 60, SIM_UNSENT = 32, SIM_HYPERS = 256 };

/* A part, with the memory of its caller and what the hub has to do with it. */
struct sim_part {
	struct client_part part;
	uint32_t serial, chunks_seen;
	float *gradient, *weights;
	bool is_started, is_done;
};

struct sim_request {
	struct transport_message message;
	struct sim_part *part;
	bool is_answered, is_sent;
};

struct sim {
	struct rng rng;
	struct hub_layout layout;
	struct client_lane *lane;
	uint32_t lane_number;
	struct sim_part parts[SIM_PARTS];
	uint32_t started, done;
	uint64_t *version;          /* by chunk: of the hub */
	uint64_t *known;            /* by chunk: of the worker, from the answers that it was given */
	struct sim_request *request; /* by chunk: that is not over; message.cookie is NULL where there is none */
	uint32_t *order;            /* chunks whose requests the transport has, oldest first */
	uint32_t taken;
	uint32_t index_in, index_out;
	uint64_t hyper_after[SIM_HYPERS]; /* parts started before it */
	uint32_t hypers, hypers_seen;
	uint32_t requesting;        /* serial of the part whose chunks come now */
	bool wants;                 /* next() has not been asked to the end since ready() */
	bool has_failed, was_asked;
};

static float gradient_at(uint32_t serial, uint64_t element)
{
	return (float)(serial * 1000 + element % 997);
}

static float weight_at(uint32_t chunk, uint64_t version, uint32_t element)
{
	return (float)(chunk * 31 + version * 7 + element);
}

static void sim_open(struct sim *sim, uint64_t seed)
{
	struct layout_tensor tensors[SIM_TENSORS];

	memset(sim, 0, sizeof(*sim));
	rng_init(&sim->rng, seed);
	for (uint32_t t = 0; t < SIM_TENSORS; t++)
		tensors[t] = (struct layout_tensor){.name = t + 1, .elements = rng_below(&sim->rng, 6 * CHUNK_ELEMENTS)};
	const uint32_t lanes = 1 + (uint32_t)rng_below(&sim->rng, 2);
	CHECK(hub_layout_make(tensors, SIM_TENSORS, CHUNK_BYTES, lanes, &sim->layout, NULL) == ESP_OK);
	sim->lane_number = (uint32_t)rng_below(&sim->rng, lanes);
	const struct client_lane_config config = {.layout = &sim->layout, .lane = sim->lane_number};
	CHECK(client_lane_open(&config, &sim->lane, NULL) == ESP_OK);
	sim->version = calloc(sim->layout.chunks + 1, sizeof(*sim->version));
	sim->known = calloc(sim->layout.chunks + 1, sizeof(*sim->known));
	sim->request = calloc(sim->layout.chunks + 1, sizeof(*sim->request));
	sim->order = calloc(sim->layout.chunks + 1, sizeof(*sim->order));
}

static void sim_close(struct sim *sim)
{
	client_lane_close(sim->lane);
	for (uint32_t i = 0; i < sim->started; i++)
		CHECK(sim->parts[i].is_done);
	hub_layout_fini(&sim->layout);
	free(sim->version);
	free(sim->known);
	free(sim->request);
	free(sim->order);
}

/* Memory of its own for each part, to be freed when it is done: a later access shows under a sanitizer. */
static void sim_start(struct sim *sim)
{
	static const uint8_t kinds[] = {HUB_PUSH, HUB_PULL, HUB_PUSHPULL, HUB_PUSHPULL};
	struct sim_part *part = &sim->parts[sim->started];
	const uint32_t tensor = (uint32_t)rng_below(&sim->rng, SIM_TENSORS);
	const uint64_t elements = sim->layout.tensor[tensor].elements;

	part->serial = sim->started++;
	part->part = (struct client_part){.kind = kinds[rng_below(&sim->rng, 4)], .tensor = tensor, .cookie = part};
	part->gradient = calloc(elements + 1, sizeof(float));
	for (uint64_t i = 0; i < elements; i++)
		part->gradient[i] = gradient_at(part->serial, i);
	part->weights = rng_chance(&sim->rng, 1, 2) ? part->gradient : calloc(elements + 1, sizeof(float));
	part->part.gradient = part->part.kind == HUB_PULL ? NULL : part->gradient;
	part->part.weights = part->part.kind == HUB_PUSH ? NULL : part->weights;
	client_lane_start(sim->lane, &part->part);
}

static uint32_t chunks_here(const struct sim *sim, uint32_t tensor)
{
	const struct layout_place *place = &sim->layout.place[tensor];
	uint32_t count = 0;

	for (uint32_t i = 0; i < place->chunks; i++)
		count += sim->layout.chunk[place->first_chunk + i].lane == sim->lane_number;
	return count;
}

/* Requests come part by part, without gaps, and chunks ascend. */
static struct sim_part *sim_sender(struct sim *sim, const struct transport_message *message)
{
	struct sim_part *part = &sim->parts[sim->requesting];
	const struct layout_place *place = &sim->layout.place[part->part.tensor];
	uint32_t skip = part->chunks_seen, chunk = place->first_chunk;

	while (sim->layout.chunk[chunk].lane != sim->lane_number || skip-- > 0)
		chunk++;
	CHECK_U64(message->call, chunk);
	CHECK_U64(message->channel, part->part.kind);
	CHECK_U64(message->ack, (uint32_t)sim->known[chunk]);
	CHECK_U64(message->bytes, part->part.kind == HUB_PULL ? 0 : sim->layout.chunk[chunk].elements * 4);
	part->chunks_seen++;
	return part;
}

/* Parts without chunks here, and parts all of whose chunks are requested, are passed over. */
static void sim_skip(struct sim *sim)
{
	while (sim->requesting < sim->started &&
	       sim->parts[sim->requesting].chunks_seen == chunks_here(sim, sim->parts[sim->requesting].part.tensor))
		sim->requesting++;
}

static void sim_hyper_seen(struct sim *sim, const struct transport_message *message)
{
	CHECK(sim->hypers_seen < sim->hypers);
	CHECK_U64(message->ack, sim->hypers_seen);
	CHECK(sim->requesting >= sim->hyper_after[sim->hypers_seen] || sim->parts[sim->requesting].chunks_seen == 0);
	sim->hypers_seen++;
	USER->sent(sim->lane, 0, message->channel, message->cookie);
}

/* The transport pulls a message; its bytes leave later. */
static void sim_pull(struct sim *sim)
{
	struct transport_message message;

	sim->wants |= USER->ready(sim->lane) == 0;
	if (!sim->wants || sim->taken == SIM_UNSENT)
		return;
	sim->wants = USER->next(sim->lane, 0, &message);
	if (!sim->wants)
		return;
	CHECK(!sim->has_failed);
	CHECK_U64(message.index, sim->index_in++);
	sim_skip(sim);
	if (message.channel == HUB_HYPER) {
		sim_hyper_seen(sim, &message);
		return;
	}
	CHECK(sim->requesting < sim->started);
	for (uint32_t i = sim->hypers_seen; i < sim->hypers; i++)
		CHECK(sim->hyper_after[i] > sim->requesting);
	struct sim_request *request = &sim->request[message.call];
	CHECK(!request->message.cookie);
	*request = (struct sim_request){.message = message, .part = sim_sender(sim, &message)};
	sim->order[sim->taken++] = message.call;
}

/* The oldest request's bytes have left: the gradient is as the caller gave it, unless the answer has come already. */
static void sim_settle(struct sim *sim)
{
	if (sim->taken == 0)
		return;
	const uint32_t chunk = sim->order[0];
	struct sim_request *request = &sim->request[chunk];
	const struct layout_chunk *cut = &sim->layout.chunk[chunk];
	const uint64_t first = cut->at - sim->layout.place[cut->tensor].at;
	const float *data = request->message.data;

	for (uint32_t i = 0; data && !request->is_answered && i < cut->elements; i++)
		CHECK(data[i] == gradient_at(request->part->serial, first + i));
	memmove(sim->order, sim->order + 1, --sim->taken * sizeof(*sim->order));
	const struct transport_message message = request->message;
	request->is_sent = true;
	if (request->is_answered)
		*request = (struct sim_request){0};
	USER->sent(sim->lane, 0, message.channel, message.cookie);
}

static void sim_deliver(struct sim *sim, struct transport_message *message, const float *data)
{
	uint32_t at = 0;

	message->data = data;
	if (rng_chance(&sim->rng, 1, 3)) {
		CHECK(USER->take(sim->lane, 0, message) == ESP_OK);
		return;
	}
	message->data = NULL;
	CHECK(USER->begin(sim->lane, 0, message) == ESP_OK);
	while (at < message->bytes) {
		struct transport_room room = USER->room(sim->lane, 0, message->channel);
		CHECK(room.at && room.bytes == message->bytes - at);
		uint32_t piece = 1 + (uint32_t)rng_below(&sim->rng, room.bytes);
		memcpy(room.at, (const char *)data + at, piece);
		USER->arrived(sim->lane, 0, message->channel, piece);
		at += piece;
	}
	USER->ended(sim->lane, 0, message->channel);
}

/* Some request, mostly a sent one, is answered. */
static void sim_answer(struct sim *sim)
{
	const uint32_t chunk = (uint32_t)rng_below(&sim->rng, sim->layout.chunks + 1);
	struct sim_request *request = &sim->request[chunk];
	float data[CHUNK_ELEMENTS];

	if (!request->message.cookie || request->is_answered || (!request->is_sent && !rng_chance(&sim->rng, 1, 8)))
		return;
	const uint16_t kind = request->message.channel;
	sim->version[chunk] += kind == HUB_PULL ? rng_below(&sim->rng, 3) : 1;
	for (uint32_t i = 0; i < CHUNK_ELEMENTS; i++)
		data[i] = weight_at(chunk, sim->version[chunk], i);
	struct transport_message message = {.channel = kind == HUB_PUSH ? HUB_DONE : HUB_WEIGHTS,
	                                    .index = sim->index_out++,
	                                    .ack = (uint32_t)sim->version[chunk],
	                                    .call = chunk,
	                                    .bytes = kind == HUB_PUSH ? 0 : sim->layout.chunk[chunk].elements * 4};
	sim->known[chunk] = sim->version[chunk];
	request->is_answered = true;
	if (request->is_sent)
		*request = (struct sim_request){0};
	sim_deliver(sim, &message, data);
}

/* The versions that the weights have are not known here: a chunk's elements belong together, and to a version so far.
 */
static void check_weights(const struct sim *sim, const struct sim_part *part)
{
	const struct layout_place *place = &sim->layout.place[part->part.tensor];

	for (uint32_t c = place->first_chunk; c < place->first_chunk + place->chunks; c++) {
		const struct layout_chunk *cut = &sim->layout.chunk[c];
		const float *got = part->weights + (cut->at - place->at);
		uint64_t version = 0;
		if (cut->lane != sim->lane_number)
			continue;
		while (got[0] != weight_at(c, version, 0)) {
			version++;
			CHECK(version <= sim->version[c]);
		}
		for (uint32_t i = 1; i < cut->elements; i++)
			CHECK(got[i] == weight_at(c, version, i));
	}
}

static void sim_take_done(struct sim *sim)
{
	struct client_part *done;

	while ((done = client_lane_take_done(sim->lane)) != NULL) {
		struct sim_part *part = done->cookie;
		CHECK(!part->is_done);
		if (done->status == ESP_OK) {
			CHECK(part->chunks_seen == chunks_here(sim, done->tensor));
			if (done->kind != HUB_PUSH)
				check_weights(sim, part);
		} else {
			CHECK(sim->has_failed && done->status == ESP_ELINK);
			CHECK(sim->was_asked || part->chunks_seen == 0);
		}
		if (part->weights != part->gradient)
			free(part->weights);
		free(part->gradient);
		part->is_done = true;
		sim->done++;
	}
}

static void sim_hyper(struct sim *sim)
{
	const struct optimizer avg = {.kind = OPTIMIZER_AVG};

	if (sim->hypers == SIM_HYPERS || client_lane_hyper(sim->lane, 0, sim->hypers, &avg) != ESP_OK)
		return;
	sim->hyper_after[sim->hypers++] = sim->started;
}

static void sim_fail(struct sim *sim)
{
	USER->lost(sim->lane, 0, ESP_ELINK);
	sim->has_failed = true;
	sim_take_done(sim);
	CHECK(USER->failed(sim->lane) == ESP_ELINK);
	sim->was_asked = true;
	sim_take_done(sim);
	CHECK_U64(sim->done, sim->started);
}

static void sim_step(struct sim *sim)
{
	switch (rng_below(&sim->rng, 8)) {
	case 0:
		if (sim->started < SIM_PARTS)
			sim_start(sim);
		break;
	case 1:
		if (rng_chance(&sim->rng, 1, 4))
			sim_hyper(sim);
		break;
	case 2:
	case 3:
		sim_pull(sim);
		break;
	case 4:
	case 5:
		sim_settle(sim);
		break;
	case 6:
		sim_answer(sim);
		break;
	default:
		sim_take_done(sim);
		break;
	}
}

/* Without a failure everything ends; with one everything ends, too. */
static void run_sim(uint64_t seed)
{
	static struct sim sim;
	uint64_t steps = 0;

	sim_open(&sim, seed);
	const uint64_t fails_at = rng_chance(&sim.rng, 1, 2) ? rng_below(&sim.rng, 5000) : UINT64_MAX;
	while ((sim.started < SIM_PARTS || sim.done < SIM_PARTS) && !sim.has_failed) {
		CHECK_MSG(steps < 1000000, "%u of %u parts are done", sim.done, sim.started);
		if (steps++ == fails_at)
			sim_fail(&sim);
		else
			sim_step(&sim);
	}
	if (!sim.has_failed)
		for (uint32_t t = 0; t < SIM_TENSORS; t++) {
			uint64_t least = UINT64_MAX;
			for (uint32_t c = 0; c < sim.layout.chunks; c++)
				if (sim.layout.chunk[c].lane == sim.lane_number && sim.layout.chunk[c].tensor == t &&
				    sim.version[c] < least)
					least = sim.version[c];
			CHECK_U64(client_lane_version(sim.lane, t), least == UINT64_MAX ? 0 : least);
		}
	sim_close(&sim);
}

int main(int argc, char **argv)
{
	const uint64_t first = test_option(argc, argv, "--seed", 1), count = test_option(argc, argv, "--count", 300);

	for (uint64_t seed = first; seed < first + count; seed++) {
		printf("seed %" PRIu64 "\n", seed);
		fflush(stdout);
		run_sim(seed);
	}
	return 0;
}
