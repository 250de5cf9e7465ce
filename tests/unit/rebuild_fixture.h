/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of control and rebuild: a redis-server of the test's own on a Unix
 * socket in a temporary folder, settings made from YAML, the filter, and control
 * and rebuild wired as the daemon does. One per test process.
 */
#ifndef TESTS_REBUILD_FIXTURE_H
#define TESTS_REBUILD_FIXTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include <event2/event.h>

#include "config/settings.h"
#include "core/metrics.h"
#include "filter/filter.h"
#include "redis/link.h"

#define FIXTURE_WAIT_MS 20000

struct fixture {
	char dir[64], socket[96];
	pid_t redis;
	struct event_base *base;
	struct settings *settings;
	struct filter *filter;
	struct metrics *metrics;
	struct link *link; /* the test's own, for plain commands */
	_Atomic int changes, ends, results[4];
};

/* Starts Redis and makes a filter called "user"; options are lines of its YAML,
 * indented by four. */
void fixture_init(struct fixture *f, const char *options);
void fixture_fini(struct fixture *f);
void fixture_redis_start(struct fixture *f);
void fixture_redis_stop(struct fixture *f); /* SIGKILL: nothing is saved */

/* Runs the loop until done says so; false after FIXTURE_WAIT_MS. */
bool fixture_until(struct fixture *f, bool (*done)(struct fixture *f))
    __attribute__((warn_unused_result));

/* A command of words (NULL ends them). The reply is freed with
 * link_reply_free; NULL fails the test. */
struct redisReply *fixture_call(struct fixture *f, ...)
    __attribute__((sentinel));
int64_t fixture_integer(struct fixture *f, ...) __attribute__((sentinel));
/* Returned; free(). NULL for nil. */
char *fixture_text(struct fixture *f, ...) __attribute__((sentinel));
/* The meta as it is; m is filled. */
void fixture_meta(struct fixture *f, struct meta *m);

/* Writes lines "PREFIX0" to "PREFIXn-1" from first on to dir/name. Returns its
 * path, free(). */
char *fixture_list(struct fixture *f, const char *name, const char *prefix,
    unsigned first, unsigned n);
/* How many of PREFIXfirst.. (n of them) the active generation has. */
unsigned fixture_present(
    struct fixture *f, const char *prefix, unsigned first, unsigned n);
#endif
