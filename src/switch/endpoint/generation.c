#include "switch/endpoint/generation.h"

#include <stdlib.h>

#include "wire/bytes.h"

/* Uses of a secret. */
enum { USE_FLOW, USE_KEY_LOW, USE_KEY_HIGH };

static uint64_t derive(const uint8_t secret[GENERATION_SECRET], uint32_t number, uint32_t use)
{
	const uint64_t key[2] = {bytes_get64(secret), bytes_get64(secret + 8)};
	uint8_t about[8];

	bytes_put32(about, number);
	bytes_put32(about + 4, use);
	return tag_siphash(key, about, sizeof(about));
}

uint64_t generation_flow(const uint8_t secret[GENERATION_SECRET], uint32_t number)
{
	return derive(secret, number, USE_FLOW);
}

static enum esp_status open_keys(struct generation *generation, const struct generation_config *config,
                                 struct error *err)
{
	uint8_t key[TAG_KEY_BYTES];

	bytes_put64(key, derive(config->secret, generation->number, USE_KEY_LOW));
	bytes_put64(key + 8, derive(config->secret, generation->number, USE_KEY_HIGH));
	return tag_keys_init(&generation->keys, key, config->owner.words_max, err);
}

static enum esp_status open_sender(struct generation *generation, const struct generation_config *config,
                                   struct error *err)
{
	struct sender_config sender = config->sender;

	sender.flow = generation->flow;
	sender.keys = &generation->keys;
	return config->sends ? sender_open(&sender, &generation->sender, err) : ESP_OK;
}

static enum esp_status open_owner(struct generation *generation, const struct generation_config *config,
                                  struct error *err)
{
	struct owner_config owner = config->owner;

	owner.flow = generation->flow;
	owner.keys = &generation->keys;
	return config->owns ? owner_open(&owner, &generation->owner, err) : ESP_OK;
}

static void use_switch(struct generation *generation)
{
	bool helps = membership_helps(&generation->membership);

	if (generation->sender)
		sender_use_switch(generation->sender, helps);
	if (generation->owner)
		owner_use_switch(generation->owner, helps);
}

enum esp_status generation_open(const struct generation_config *config, uint32_t number, uint64_t now_ns,
                                struct generation **out, struct error *err)
{
	struct generation *generation = calloc(1, sizeof(*generation));
	struct membership_config membership = config->membership;

	if (!generation)
		return error_set(err, ESP_ENOMEM, "no memory for a flow");
	generation->number = number;
	generation->flow = membership.flow = generation_flow(config->secret, number);
	enum esp_status status = open_keys(generation, config, err);
	if (status == ESP_OK)
		status = open_sender(generation, config, err);
	if (status == ESP_OK)
		status = open_owner(generation, config, err);
	if (status != ESP_OK) {
		generation_close(generation);
		return status;
	}
	membership_init(&generation->membership, &membership, now_ns);
	reach_init(&generation->reach, &generation->keys, generation->flow, membership.self,
	           number == 0 ? config->probed : 0, membership.words_max, now_ns);
	use_switch(generation); /* until the switch has answered, packets go straight */
	*out = generation;
	return ESP_OK;
}

void generation_close(struct generation *generation)
{
	if (!generation)
		return;
	sender_close(generation->sender);
	owner_close(generation->owner);
	tag_keys_fini(&generation->keys);
	free(generation);
}

static enum generation_event at_owner(struct generation *generation, const struct atp_packet *packet, const void *words)
{
	if (packet->type == ATP_BYE) {
		owner_bye(generation->owner, packet);
		return GENERATION_NOTHING;
	}
	return owner_packet(generation->owner, packet, words) == OWNER_COMPLETED ? GENERATION_COMPLETED :
	       GENERATION_NOTHING;
}

static enum generation_event at_sender(struct generation *generation, const struct atp_packet *packet,
                                       const void *words, uint64_t now_ns)
{
	if (packet->type == ATP_ASK) {
		sender_ask(generation->sender, packet);
		return GENERATION_NOTHING;
	}
	return sender_result(generation->sender, packet, words, now_ns) == SENDER_NEW ? GENERATION_RESULT :
	       GENERATION_NOTHING;
}

enum generation_event generation_packet(struct generation *generation, const struct atp_packet *packet,
                                        const void *words, uint64_t now_ns)
{
	switch ((enum atp_type)packet->type) {
	case ATP_WELCOME:
		membership_welcome(&generation->membership, packet, words, now_ns);
		use_switch(generation);
		if (generation->sender)
			sender_expect(generation->sender, generation->membership.round_trip_ns);
		break;
	case ATP_BYE:
	case ATP_GRADIENT: return generation->owner ? at_owner(generation, packet, words) : GENERATION_NOTHING;
	case ATP_ASK:
	case ATP_RESULT: return generation->sender ? at_sender(generation, packet, words, now_ns) : GENERATION_NOTHING;
	case ATP_PROBE: reach_packet(&generation->reach, packet); break;
	case ATP_HELLO: break;
	}
	return GENERATION_NOTHING;
}

bool generation_helps(const struct generation *generation)
{
	return membership_helps(&generation->membership);
}

bool generation_greet(struct generation *generation, uint64_t now_ns, struct endpoint_out *out)
{
	bool greets = membership_next(&generation->membership, now_ns, out);

	use_switch(generation);
	return greets;
}

/* Time-outs: is the switch still there? */
static void look_after_switch(struct generation *generation, uint64_t now_ns)
{
	uint64_t timeouts = sender_counters(generation->sender)->timeouts;

	if (timeouts > generation->timeouts)
		membership_suspect(&generation->membership, now_ns);
	generation->timeouts = timeouts;
}

bool generation_next(struct generation *generation, uint64_t now_ns, struct endpoint_out *out)
{
	if (reach_next(&generation->reach, now_ns, out) || (generation->owner && owner_next(generation->owner, out)))
		return true;
	if (!generation->sender)
		return false;
	bool sends = sender_next(generation->sender, now_ns, out);
	look_after_switch(generation, now_ns);
	return sends;
}

uint64_t generation_wake_ns(const struct generation *generation)
{
	uint64_t wake = membership_wake_ns(&generation->membership);
	uint64_t sender = generation->sender ? sender_wake_ns(generation->sender) : UINT64_MAX;

	uint64_t reach = reach_wake_ns(&generation->reach);

	wake = sender < wake ? sender : wake;
	return reach < wake ? reach : wake;
}
