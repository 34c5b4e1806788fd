/*
 * step.c - the step as functions that a program links. Compiled for BPF, too, by a test: no calls, bounded loops.
 */
#include "switch/step/step.h"

/* Behind the headers of a frame words stand at any address. */
typedef uint32_t word_at __attribute__((aligned(1), may_alias));

enum step_event step_run(const struct step_limits *limits, struct step_slot *slot, struct atp_packet *packet,
                         bool is_child, uint64_t now_ns)
{
	switch (packet->type) {
	case ATP_GRADIENT: return step_gradient(limits, slot, packet, is_child, now_ns);
	case ATP_RESULT: return packet->flags & ATP_BYPASS ? STEP_BYPASSED : step_result(slot, packet);
	default: return STEP_NOT_MINE;
	}
}

void step_run_words(enum step_event event, uint32_t *slot_words, void *packet_words, uint32_t count)
{
	enum step_words what = step_words_of(event);
	word_at *words = packet_words;

	for (uint32_t i = 0; i < ATP_WORDS_MAX && i < count; i++) {
		if (what == STEP_WORDS_STORE)
			slot_words[i] = words[i];
		else if (what == STEP_WORDS_ADD || what == STEP_WORDS_ADD_TAKE)
			slot_words[i] += words[i];
		else if (what == STEP_WORDS_MERGE)
			words[i] += slot_words[i];
		if (what == STEP_WORDS_ADD_TAKE || what == STEP_WORDS_TAKE)
			words[i] = slot_words[i];
	}
}
