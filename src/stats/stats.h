/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stats port: /metrics, /status.json, /healthz, /readyz and the page at /.
 * GET and HEAD only; a total timer per connection and a cap on connections. Runs
 * on the loop given to it (never a worker's).
 */
#ifndef STATS_STATS_H
#define STATS_STATS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/settings.h"
#include "core/err.h"
#include "core/metrics.h"

struct event_base;
struct stats;

struct stats_options {
	struct event_base *base;
	const struct address *listen;  /* borrowed for the call */
	const struct metrics *metrics; /* borrowed */
	/* The JSON of /status.json; returned, freed with free(). */
	char *(*status_json)(void *arg);
	/* The body of /readyz (a line a filter; freed with free()); *ready says
	 * 200 or 503. */
	char *(*readiness)(bool *ready, void *arg);
	/* Refreshes gauges just before /metrics is written. */
	void (*refresh)(void *arg);
	void *arg;
};

/* Returned, listening; NULL with the reason. Freed with stats_free. */
struct stats *stats_new(const struct stats_options *o, struct err *err);
void stats_free(struct stats *s);
/* The bound address as "host:port" (port 0 resolved), borrowed from s. */
const char *stats_address(const struct stats *s);

#endif
