/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What bloomgate says about itself: the JSON of /status.json and STATUS, the
 * lines of /readyz, and the gauges that are read from the filters' views just
 * before /metrics is written. Main thread.
 */
#ifndef DAEMON_STATUS_H
#define DAEMON_STATUS_H

#include <stdbool.h>

struct run;

/* index of the filter, or -1: all. Returned; freed with free(). */
char *status_json(const struct run *r, long index);
/* A line a filter, "NAME WORD"; freed with free(). */
char *status_readiness(const struct run *r, bool *ready);
void status_refresh(const struct run *r);

#endif
