/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The running daemon: what main starts once the command line is read. It knows
 * every folder and wires them to each other; they do not know one another.
 *
 * Threads: the main thread's loop runs signals, control, stats and admin;
 * proxy has a thread a worker, rebuild one. What they have to tell the main
 * thread comes through run's mailbox.
 */
#ifndef DAEMON_RUN_H
#define DAEMON_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"
#include "core/err.h"
#include "core/mailbox.h"
#include "core/metrics.h"
#include "filter/filter.h"

struct event;
struct event_base;

struct run {
	struct settings *settings; /* one reference */
	struct event_base *base;
	struct mailbox *mailbox;
	struct metrics *metrics;
	struct filter **filters; /* settings->filter_count */
	unsigned *failures;      /* of rebuilds in a row; one a filter */
	struct control *control;
	struct rebuild *rebuild;
	struct proxy *proxy; /* NULL under --build */
	struct stats *stats; /* NULL where not configured */
	struct admin *admin; /* the same */
	struct event *signals[5];
	struct event *drain_timer;
	uint64_t began_ms;       /* clock_boot_ms at start */
	uint64_t drain_until_ms; /* while draining */
	bool listening;
	bool draining;
	bool at_once; /* a second signal: do not wait for anything */
};

/*
 * Log, limits, time zone, metrics, filters and the loop: what --build needs
 * too. 0, or -1 with the reason; run_fini either way. Takes the reference
 * settings.
 */
int run_init(struct run *r, struct settings *settings, struct err *err)
    __attribute__((warn_unused_result));
void run_fini(struct run *r);

/* Serves until a signal ends it. The exit status. */
int run_serve(struct run *r);

/* Stops accepting and ends the loop when the sessions are done. */
void run_drain(struct run *r);

/* rebuilds.c: asked for by control, ended by the rebuild thread. */
void rebuilds_want(size_t index, const char *reason, void *run);
void rebuilds_want_retire(size_t index, void *run);
void rebuilds_changed(size_t index, void *run);
void rebuilds_ended(size_t index, enum metric_rebuild result, void *run);

/* operator.c: the calls behind the admin socket. Returned; NULL with why. */
struct admin *operator_new(struct run *r, struct err *err);

/* build.c: --build. The exit status: 0 built, 1 refused or failed, 2 no such
 * filter, 3 someone else builds. */
int build_once(struct run *r, const char *filter);

#endif
