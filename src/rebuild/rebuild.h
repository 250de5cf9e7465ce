/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread that builds generations: begin, make, open, wait for peers, read the
 * source, merge, verify, guards, seal, commit, retire (DESIGN.md, Rebuild). One
 * build at a time; requests queue. A build that is refused, interrupted, loses
 * its lock or fails its checks leaves the serving generation as it was.
 */
#ifndef REBUILD_REBUILD_H
#define REBUILD_REBUILD_H

#include <stdbool.h>

#include "config/settings.h"
#include "core/metrics.h"
#include "filter/filter.h"

struct rebuild;

struct rebuild_options {
	struct settings *settings; /* referenced */
	struct filter **filters;   /* borrowed */
	struct metrics *metrics;   /* borrowed */
	/* The epoch of filters[index] changed by our doing: have control look.
	 * Called on the rebuild thread. */
	void (*changed)(size_t index, void *arg);
	/* A build ended; result as metric_rebuild. On the rebuild thread. */
	void (*ended)(size_t index, enum metric_rebuild result, void *arg);
	void *arg;
};

struct rebuild *rebuild_new(const struct rebuild_options *o);
void rebuild_start(struct rebuild *r);
/* Cancels what runs (abort in Redis included, up to timeout_ms), joins. */
void rebuild_stop(struct rebuild *r, uint64_t timeout_ms);
void rebuild_free(struct rebuild *r);

/* Any thread. Queues a build of filters[index], once: 0, or -1 when one is
 * queued or runs already. reason is copied. */
int rebuild_request(
    struct rebuild *r, size_t index, bool force, const char *reason);
/* Any thread. Cancels the queued or running build of filters[index]: 0, or -1
 * when there is none. */
int rebuild_abort(struct rebuild *r, size_t index);
/* Any thread. Goes on unlinking generations listed as retiring. */
void rebuild_retire(struct rebuild *r, size_t index);

#endif
