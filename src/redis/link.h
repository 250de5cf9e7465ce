/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection of bloomgate's own to a Redis (hiredis, async, RESP2), kept alive
 * by itself: resolve (off the loop), connect, AUTH (each secret of the password
 * file in turn, the file read at each connect), SELECT, INFO; it is up only when
 * INFO says role master and gives a run id. Lost or refused: back-off (doubling
 * from 50 ms to 2 s, with jitter), resolve again. READONLY, LOADING, MASTERDOWN
 * or UNBLOCKED in a reply drop the connection, so that it is resolved and its
 * role checked again. It never holds the loop. One owner, one thread.
 */
#ifndef REDIS_LINK_H
#define REDIS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"
#include "core/slice.h"

struct event_base;
struct link;
struct redisReply; /* hiredis; read only through the functions below */

enum link_reply_type {
	LINK_NONE, /* lost, timed out or never sent: reply is NULL */
	LINK_STATUS,
	LINK_ERROR,
	LINK_INTEGER,
	LINK_STRING,
	LINK_NIL,
	LINK_ARRAY,
};
enum link_reply_type link_reply_type(const struct redisReply *r);
/* Borrowed until the callback returns. Text of status, error or string. */
struct slice link_reply_text(const struct redisReply *r);
/* Of an integer, or of decimal text; 0 if none. */
int64_t link_reply_integer(const struct redisReply *r);
size_t link_reply_count(const struct redisReply *r); /* elements */
const struct redisReply *link_reply_at(const struct redisReply *r, size_t i);
/* The value after the field called name of a map in its flat form; NULL without. */
const struct redisReply *link_reply_field(
    const struct redisReply *r, const char *name);
/* True for an error reply that begins with code ("NOSCRIPT"). */
bool link_reply_is_error(const struct redisReply *r, const char *code);

struct link_options {
	struct event_base *base;
	const struct endpoint *endpoint; /* borrowed for the link's life */
	unsigned db;
	uint64_t connect_timeout_ms;
	bool any_role; /* up also on a replica (upstream's COMMAND, ACL) */
	const char *purpose; /* for logs: "check", "control"; borrowed */
	/* May be NULL. on_down's reason is borrowed for the call. Neither may
	 * free the link. */
	void (*on_up)(struct link *l, void *arg);
	void (*on_down)(struct link *l, const char *reason, void *arg);
	/* A message of a channel, or, with payload.data NULL, that the channel
	 * is subscribed. Only for a link that subscribes. */
	void (*on_message)(struct link *l, struct slice channel,
	    struct slice payload, void *arg);
	void *arg;
};

/* Returned, not yet connecting; freed with link_free, which answers everything
 * outstanding with NULL first. Never from within a callback of the link. */
struct link *link_new(const struct link_options *o);
void link_start(struct link *l);
void link_free(struct link *l);

bool link_is_up(const struct link *l);
/* Run id of the Redis behind the present connection; "" while not up. */
/*
 * It is "run_id:master_replid" of INFO: the process, and the history of its data,
 * which is another after a master was made a replica and promoted again.
 */
const char *link_run_id(const struct link *l);
/* Drops the connection now; it reconnects by itself. */
void link_drop(struct link *l, const char *reason);

/* reply is borrowed and NULL when there is none (lost, or timed out: a late
 * answer is dropped). Called exactly once per accepted command. */
typedef void (*link_reply_fn)(
    struct link *l, const struct redisReply *reply, void *arg);

/*
 * Sends one command. timeout_ms 0: none. Returns 0, or -1 when the link is not
 * up (fn is then not called). argv is borrowed for the call.
 */
int link_command(struct link *l, uint64_t timeout_ms, link_reply_fn fn,
    void *arg, const struct slice *argv, size_t argc)
    __attribute__((warn_unused_result));

/*
 * Subscribes, on the present connection only: a lost one is subscribed again by
 * the owner, in on_up. A link that subscribes sends no other command. Where Redis
 * refuses, the connection ends with its words as the reason. 0, or -1 when the
 * link is not up. channel is borrowed for the call.
 */
int link_subscribe(struct link *l, struct slice channel)
    __attribute__((warn_unused_result));

/* As link_command, waiting on the link's loop until the reply is there; for the rebuild
 * thread only. Returns the reply (freed with link_reply_free) or NULL; *cancel,
 * when set by another thread, ends the wait within 100 ms. A link that is not up
 * is waited for within the timeout too. */
struct redisReply *link_call(struct link *l, uint64_t timeout_ms,
    const struct slice *argv, size_t argc, const _Atomic bool *cancel);
void link_reply_free(struct redisReply *r);

#endif
