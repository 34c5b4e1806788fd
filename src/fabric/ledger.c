#include "fabric/ledger.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "fabric/calendar.h"

const char *ledger_end_name(uint8_t end)
{
	static const char *const names[LEDGER_ENDS] = {
		[LEDGER_APPLIED] = "applied",
		[LEDGER_LATE] = "late at source",
		[LEDGER_CROWDED] = "crowded out",
		[LEDGER_OVERTAKEN] = "overtaken",
		[LEDGER_LATE_AT_OFFER] = "late at offer",
		[LEDGER_LATE_AT_HUB] = "late at hub",
		[LEDGER_GONE] = "worker gone",
		[LEDGER_UNHEARD] = "unheard of",
		[LEDGER_BROKEN] = "sum broken",
	};

	assert(end < LEDGER_ENDS);
	return names[end];
}

void ledger_init(struct ledger *ledger, uint32_t workers, uint32_t bound)
{
	assert(workers >= 1 && workers <= LEDGER_WORKERS_MOST && bound >= 1);
	*ledger = (struct ledger){.workers = workers, .bound = bound};
}

enum esp_status ledger_ready(struct ledger *ledger, uint32_t worker, const struct ledger_update *update,
                             struct error *err)
{
	if (worker >= ledger->workers)
		return error_set(err, ESP_EINVAL, "there is no worker %u of %u", worker, ledger->workers);
	if (ledger->updates[worker].state != LEDGER_NONE)
		return error_set(err, ESP_EINVAL, "worker %u announced an update before its former one had ended", worker);
	if (update->number <= ledger->last[worker])
		return error_set(err, ESP_EINVAL, "worker %u announced update %" PRIu64 " after %" PRIu64, worker,
		                 update->number, ledger->last[worker]);
	if (update->bytes == 0 || update->bytes > CALENDAR_BYTES_MOST)
		return error_set(err, ESP_EINVAL, "worker %u announced an update of %" PRIu64 " bytes", worker, update->bytes);
	if (!(update->norm >= 0) || isinf(update->norm))
		return error_set(err, ESP_EINVAL, "worker %u announced an update whose norm is negative or no number", worker);
	ledger->updates[worker] = *update;
	ledger->updates[worker].state = LEDGER_READY;
	ledger->updates[worker].batches = 0;
	ledger->last[worker] = update->number;
	ledger->announced++;
	ledger_see(ledger, worker, update->computed_from);
	return ESP_OK;
}

void ledger_decide(struct ledger *ledger, uint32_t worker, uint64_t position, uint64_t lease_ns)
{
	struct ledger_update *update = &ledger->updates[worker];

	assert(worker < ledger->workers && update->state == LEDGER_READY && position > 0);
	update->state = LEDGER_DECIDED;
	update->position = position;
	update->lease_ns = lease_ns;
	ledger->decided++;
}

static void count_delay(struct ledger *ledger, uint64_t delay)
{
	uint64_t most = delay < ledger->bound ? delay : ledger->bound;

	ledger->delays[most > 0 ? (most - 1) * LEDGER_DELAYS / ledger->bound : 0]++;
	ledger->delay_sum += delay;
	if (delay > ledger->delay_most)
		ledger->delay_most = delay;
}

static bool was_unsent(uint8_t end)
{
	return end == LEDGER_LATE || end == LEDGER_CROWDED || end == LEDGER_OVERTAKEN || end == LEDGER_LATE_AT_OFFER;
}

void ledger_end(struct ledger *ledger, uint32_t worker, uint8_t end, uint64_t delay)
{
	struct ledger_update *update = &ledger->updates[worker];

	assert(worker < ledger->workers && end < LEDGER_ENDS);
	if (update->state == LEDGER_NONE)
		return;
	if (update->state == LEDGER_DECIDED)
		ledger->decided--;
	if (end == LEDGER_APPLIED)
		count_delay(ledger, delay);
	if (was_unsent(end))
		ledger->unsent_bytes += update->bytes;
	ledger->ends[end]++;
	update->state = LEDGER_NONE;
}

void ledger_see(struct ledger *ledger, uint32_t worker, uint64_t version)
{
	assert(worker < ledger->workers);
	if (version > ledger->seen[worker])
		ledger->seen[worker] = version;
	if (version > ledger->version)
		ledger->version = version;
}

void ledger_gone(struct ledger *ledger, uint32_t worker)
{
	assert(worker < ledger->workers);
	ledger_end(ledger, worker, LEDGER_GONE, 0);
	ledger->seen[worker] = 0;
	ledger->version = 0;
	for (uint32_t other = 0; other < ledger->workers; other++)
		ledger->version = ledger->seen[other] > ledger->version ? ledger->seen[other] : ledger->version;
}
