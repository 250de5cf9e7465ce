/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client side: listeners, worker threads, sessions, remote checks and adds.
 * The daemon owns the one object; every function here is called on the daemon's
 * thread unless it says otherwise.
 */
#ifndef PROXY_PROXY_H
#define PROXY_PROXY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"
#include "core/err.h"
#include "core/metrics.h"
#include "core/slice.h"
#include "filter/filter.h"

struct proxy;

struct proxy_options {
	struct settings *settings; /* referenced */
	struct filter **filters;   /* borrowed */
	struct metrics *metrics;   /* borrowed */
	/*
	 * A worker saw another epoch, or a wrong tag in shard (-1: none) of
	 * filters[index]: have control look. On a worker's thread.
	 */
	void (*refresh)(size_t index, int64_t shard, void *arg);
	void *arg;
};

/* Binds every listener. Returned; NULL with the reason. proxy_free. */
struct proxy *proxy_new(const struct proxy_options *o, struct err *err);
/* Starts the worker threads. */
void proxy_start(struct proxy *p);
/* Stops accepting; idle sessions are closed, busy ones when they have answered
 * what they were sent. */
void proxy_drain(struct proxy *p);
/* Sessions still open, over all workers. Any thread. */
size_t proxy_sessions(const struct proxy *p);
/* Closes what is left, joins the workers. */
void proxy_stop(struct proxy *p);
void proxy_free(struct proxy *p);

/* The i-th bound address ("host:port" with the real port, or "unix:/path"),
 * borrowed from p; NULL past the end. */
const char *proxy_address(const struct proxy *p, size_t i);

/*
 * For operators: checks or adds items (what placeholders capture; copied for
 * the call) of filters[index] on a worker. done is called once, on that worker's
 * thread: values (count of them; CHECK 0 absent, 1 maybe; ADD 1 new, 0 known),
 * borrowed, or NULL and error. What is not answered when the workers have stopped
 * is answered in proxy_free; what is asked then, at once.
 */
typedef void (*proxy_done_fn)(
    const int *values, size_t count, const char *error, void *arg);
void proxy_check(struct proxy *p, size_t index, const struct slice *items,
    size_t count, proxy_done_fn done, void *arg);
void proxy_add(struct proxy *p, size_t index, const struct slice *items,
    size_t count, proxy_done_fn done, void *arg);

/* ACL rules that bloomgate's own user may lack. */
enum proxy_lack {
	LACK_GETUSER,
	LACK_DRYRUN, /* also where Redis has no such command */
	LACKS
};
/* The rule ("+acl|getuser"), and a sentence about what its lack means. */
const char *proxy_lack_rule(enum proxy_lack lack);
const char *proxy_lack_text(enum proxy_lack lack);
/* True while bloomgate's own user is known to lack it. Any thread. */
bool proxy_lacks(const struct proxy *p, enum proxy_lack lack);

/* A line a client (address, db, protocol, mode, in flight); free(). Waits for
 * the workers to write theirs. */
char *proxy_clients(struct proxy *p);

#endif
