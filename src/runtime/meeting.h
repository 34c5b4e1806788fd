/*
 * meeting.h - the first call of all ranks, with which joining ends.
 *
 * When it is over everybody is connected; all have agreed on how fast their rails are, and know what rank 0 knows of the
 * network (site.h).
 */
#ifndef RUNTIME_MEETING_H
#define RUNTIME_MEETING_H

#include "runtime/failure.h"

struct context;

ESP_CHECKED enum esp_status meet_all(struct context *context, struct failure *failure);

#endif
