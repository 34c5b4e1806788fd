#include "tools/launcher/launcher_end.h"

#include <signal.h>

static uint64_t add_time(uint64_t now_ns, uint64_t after_ns)
{
	return after_ns < RUN_END_NEVER - now_ns ? now_ns + after_ns : RUN_END_NEVER;
}

/* Stages only advance. */
static int enter_stage(struct run_end *end, enum run_stage stage, uint64_t now_ns)
{
	static const int signals[] = {[RUN_TERM] = SIGTERM, [RUN_KILL] = SIGKILL, [RUN_CUT] = SIGKILL};
	end->stage = (uint8_t)stage;
	end->next_ns = RUN_END_NEVER;
	if (stage == RUN_GRACE)
		end->next_ns = add_time(now_ns, end->grace_ns);
	else if (stage < RUN_CUT)
		end->next_ns = add_time(now_ns, RUN_END_STEP_NS);
	return signals[stage];
}

void launcher_end_init(struct run_end *end, uint64_t grace_ns, uint64_t limit_ns, uint64_t now_ns)
{
	*end = (struct run_end){
		.grace_ns = grace_ns,
		.limit_ns = limit_ns ? add_time(now_ns, limit_ns) : RUN_END_NEVER,
		.next_ns = RUN_END_NEVER,
	};
}

void launcher_end_on_failure(struct run_end *end, uint64_t now_ns)
{
	if (end->stage == RUN_CALM)
		enter_stage(end, RUN_GRACE, now_ns);
}

static bool is_same_interrupt(const struct run_end *end, uint64_t now_ns)
{
	return end->interrupts == 1 && now_ns - end->interrupt_ns < RUN_END_AGAIN_NS;
}

int launcher_end_on_signal(struct run_end *end, int signal_number, uint64_t now_ns)
{
	end->asked = end->asked ? end->asked : signal_number;
	if (signal_number == SIGINT && is_same_interrupt(end, now_ns))
		return 0;
	if (signal_number == SIGINT && end->interrupts < RUN_END_INTERRUPTS) {
		end->interrupts++;
		end->interrupt_ns = now_ns;
	}
	if (signal_number == SIGINT && end->interrupts == RUN_END_INTERRUPTS)
		return end->stage < RUN_KILL ? enter_stage(end, RUN_KILL, now_ns) : SIGKILL;
	if (signal_number == SIGTERM && end->stage < RUN_TERM) {
		uint64_t grace_over_ns = end->stage == RUN_GRACE ? end->next_ns : add_time(now_ns, end->grace_ns);
		enter_stage(end, RUN_TERM, now_ns);
		end->next_ns = grace_over_ns > end->next_ns ? grace_over_ns : end->next_ns;
	} else if (end->stage == RUN_CALM) {
		enter_stage(end, RUN_GRACE, now_ns);
	}
	return signal_number;
}

int launcher_end_on_trouble(struct run_end *end, uint64_t now_ns)
{
	return end->stage < RUN_TERM ? enter_stage(end, RUN_TERM, now_ns) : 0;
}

int launcher_end_on_standstill(struct run_end *end, uint64_t now_ns)
{
	return end->stage < RUN_KILL ? enter_stage(end, RUN_KILL, now_ns) : 0;
}

int launcher_end_on_time(struct run_end *end, uint64_t now_ns)
{
	if (now_ns >= end->limit_ns) {
		end->limit_ns = RUN_END_NEVER;
		if (end->stage < RUN_TERM) {
			end->timed_out = true;
			return enter_stage(end, RUN_TERM, now_ns);
		}
		uint64_t last_ns = add_time(now_ns, RUN_END_STEP_NS);
		end->next_ns = last_ns < end->next_ns && end->stage < RUN_CUT ? last_ns : end->next_ns;
	}
	return now_ns >= end->next_ns ? enter_stage(end, (enum run_stage)(end->stage + 1), now_ns) : 0;
}

uint64_t launcher_end_next_ns(const struct run_end *end)
{
	return end->limit_ns < end->next_ns ? end->limit_ns : end->next_ns;
}
