#include "fabric/sched_log.h"

#include <inttypes.h>

static const char *place(uint32_t worker, char text[16])
{
	snprintf(text, 16, worker == SCHED_HUB ? "hub" : "%u", worker);
	return text;
}

static uint32_t next_of(const struct sched_decision *decision)
{
	if (decision->bundle == 0 || decision->aggregator == decision->worker)
		return SCHED_HUB;
	return decision->is_chain ? decision->next_hop : decision->aggregator;
}

void sched_log_begin(FILE *log, uint64_t now, const struct sched_log_begin *begin)
{
	if (log)
		fprintf(log, "%" PRIu64 " scheduler %" PRIu64 " session %" PRIu64 " workers %u bound %u\n", now, begin->epoch,
		        begin->session, begin->workers, begin->bound);
}

void sched_log_decision(FILE *log, uint64_t now, const struct sched_decision *decision)
{
	char to[16];

	if (log)
		fprintf(log,
		        "%" PRIu64 " decide %u %" PRIu64 " position %" PRIu64 " sum %" PRIu64 " to %s start %" PRIu64
		        " rate %" PRIu64 " %s\n",
		        now, decision->worker, decision->number, decision->position, decision->bundle,
		        place(next_of(decision), to), decision->start_ns, decision->rate, ledger_end_name(decision->end));
}

void sched_log_end(FILE *log, uint64_t now, const struct sched_log_end *end)
{
	if (log)
		fprintf(log,
		        "%" PRIu64 " end %u %" PRIu64 " from %" PRIu64 " delay %" PRIu64 " version %" PRIu64 " %s\n", now,
		        end->worker, end->number, end->computed_from, end->delay, end->version, ledger_end_name(end->end));
}

void sched_log_model(FILE *log, uint64_t now, const struct sched_model *model)
{
	char from[16];

	if (log)
		fprintf(log, "%" PRIu64 " model %u tree %" PRIu64 " from %s start %" PRIu64 " rate %" PRIu64 "\n", now,
		        model->worker, model->tree, place(model->source, from), model->start_ns, model->rate);
}
