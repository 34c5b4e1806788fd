#include "plan/check.h"

#include "plan/check_run.h"

static void find_busiest(struct check_run *run)
{
	struct plan_report *report = &run->report;

	for (uint32_t node = 0; node < run->plan->nodes; node++) {
		uint64_t sent = run->sent_bytes[node], received = run->received_bytes[node];

		if (sent + received > report->busiest_bytes) {
			report->busiest_bytes = sent + received;
			report->busiest_node = node;
		}
		if (sent > report->busiest_sent)
			report->busiest_sent = sent;
		if (received > report->busiest_received)
			report->busiest_received = received;
	}
}

enum esp_status plan_check_range(const struct plan *plan, uint64_t first, uint64_t count,
                                 const struct plan_observer *observer, struct plan_report *out_report,
                                 struct plan_fault *out_fault, struct error *err)
{
	struct check_run run;
	enum esp_status status = plan_check_run_init(&run, plan, observer, err);

	run.fault = (struct plan_fault){UINT64_MAX, PLAN_NONE, PLAN_NONE};
	if (status == ESP_OK)
		status = plan_check_pieces(plan, &run.fault, err);
	for (uint64_t c = first; status == ESP_OK && c - first < count && c < plan->chunks.chunk_count; c++)
		status = plan_check_run_chunk(&run, c);
	if (status == ESP_OK) {
		find_busiest(&run);
		*out_report = run.report;
	} else if (out_fault) {
		*out_fault = run.fault;
	}
	plan_check_run_fini(&run);
	return status;
}

enum esp_status plan_check(const struct plan *plan, const struct plan_observer *observer,
                           struct plan_report *out_report, struct plan_fault *out_fault, struct error *err)
{
	return plan_check_range(plan, 0, UINT64_MAX, observer, out_report, out_fault, err);
}
