/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One event-loop thread for client traffic: its listeners, sessions, links for
 * checks and adds, the upstream's command table and the permission cache. All of
 * it belongs to its thread; other threads reach it by its mailbox.
 */
#ifndef PROXY_WORKER_H
#define PROXY_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include <event2/event.h>

#include "core/mailbox.h"
#include "core/metrics.h"
#include "filter/filter.h"
#include "policy/command.h"
#include "policy/pattern.h"
#include "proxy/proxy.h"
#include "redis/link.h"

/* One read from a socket takes at most this. */
#define SCRATCH_BYTES 65536

struct session;
struct slot;
struct adder;
struct permissions;
struct sweep;
TAILQ_HEAD(sessions, session);

/* A link to the store for the filters of one database. */
struct store {
	unsigned db;
	uint64_t dropped_ms; /* clock_boot_ms of worker_store_doubt's last */
	struct link *link;
	struct worker *worker;
};

/* The command that was looked up last. */
struct recent_command {
	uint8_t name[16];              /* as it was sent */
	size_t len;                    /* 0: none */
	const struct command *command; /* of the worker's table */
	bool only_key;                 /* covered_is_only_key */
	size_t metric;                 /* metric_command_index */
};

struct worker {
	struct proxy *proxy; /* for refresh */
	size_t index;
	pthread_t thread;
	struct event_base *base;
	struct mailbox *mailbox;
	const struct settings *settings; /* the proxy's reference */
	struct filter **filters;
	struct metrics *metrics;
	struct pattern_set *patterns;
	struct link *upstream; /* COMMAND and ACL */
	struct command_table *commands;
	struct recent_command recent; /* forgotten with the table */
	bool commands_known;          /* the table is the upstream's */
	bool commands_refused;        /* the upstream would not tell */
	struct event *patience; /* the end of waiting for the command table */
	bool default_closed;  /* sessions must authenticate; as far as known */
	bool default_open;    /* they need not; as far as known */
	bool upstream_failed; /* patience is over and the table not known */
	size_t checks;        /* remote checks out */
	struct store *stores;
	size_t store_count;
	struct adder **adders; /* one a filter */
	struct permissions *permissions;
	struct sweep *sweep;
	struct sessions sessions;
	_Atomic size_t session_count; /* read by any thread; relaxed */
	struct listener **listeners;
	size_t listener_count;
	bool draining;
	size_t output_pause; /* unsent replies above which reading pauses */
	uint8_t *scratch;    /* SCRATCH_BYTES, for one read at a time */
	struct slice *argv;  /* of the request being decided */
	size_t argv_cap;
};

struct worker *worker_new(struct proxy *proxy, size_t index);
void worker_start(struct worker *w); /* the daemon's thread */
/* Closes everything and joins. The daemon's thread. */
void worker_stop(struct worker *w);
void worker_free(struct worker *w); /* after worker_stop */

/* Stops accepting, ends idle sessions; busy ones end when they have answered. */
void worker_drain(struct worker *w);

/* The proxy's options, for its workers; borrowed. proxy.c. */
const struct proxy_options *proxy_options_of(const struct proxy *p);

/* The link for checks and adds of filters[index]. */
struct link *worker_store(struct worker *w, size_t index);
/*
 * The view trusts another run of Redis than the link reached: it is made anew, at
 * most once a second.
 */
void worker_store_doubt(struct worker *w, size_t index);
/* Somebody saw another epoch or a wrong tag: tell control. */
void worker_refresh(struct worker *w, size_t index, int64_t shard);
/* Redis told (or, lacking, refused with error) what bloomgate's own user needs the
 * rule for: for operators. proxy.c. */
void worker_lacks(
    struct worker *w, enum proxy_lack lack, bool lacking, struct slice error);
/* Runs every session again: something that sessions wait for has changed. */
void worker_pump_all(struct worker *w);

/* Reads COMMAND on the upstream link into w->commands; worker_pump_all after. */
void commands_load(struct worker *w);

#endif
