/*
 * probing_start.h - the setting topology=probe: a job measures its network when it starts, and plans by it.
 *
 * It is no failure if that does not work: a warning says why, and the job runs as one that knows nothing of its
 * network. Private to src/api.
 */
#ifndef API_PROBING_START_H
#define API_PROBING_START_H

#include "espalier/espalier.h"

/* Of a context that has just been opened; by all ranks. Takes some seconds if the job wants it, otherwise nothing. */
void probing_at_start(struct esp_context *context);

#endif
