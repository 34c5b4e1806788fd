/*
 * hub_dispatch.h - which part of the hub takes what connections say: operators' messages are the jobs', workers' the
 * session's, its sets' or its updates'. The control thread's.
 */
#ifndef HUB_SERVER_HUB_DISPATCH_H
#define HUB_SERVER_HUB_DISPATCH_H

#include "hub/server/hub_conn.h"

extern const struct hub_conn_events hub_dispatch;

#endif
