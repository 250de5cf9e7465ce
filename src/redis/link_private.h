/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The link's inside, for the files of this folder. One owner, one thread.
 *
 *	state        ends by
 *	IDLE         link_start -> RESOLVING or CONNECTING
 *	RESOLVING    an answer -> CONNECTING; none -> FAILING
 *	CONNECTING   connected -> HANDSHAKE; refused, late -> FAILING
 *	HANDSHAKE    master, run id, loaded -> UP; else, or late -> FAILING
 *	UP           lost, READONLY and the like, overdue, drop -> FAILING
 *	FAILING      next turn of the loop -> the context is freed, everything
 *	             outstanding is answered NULL; CONNECTING (next address)
 *	             or WAITING
 *	WAITING      back-off over -> RESOLVING or CONNECTING
 *
 * hiredis contexts are freed by us only from the turn event and from link_free,
 * never under a callback of hiredis.
 */
#ifndef REDIS_LINK_PRIVATE_H
#define REDIS_LINK_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "redis/link.h"
#include "redis/requests.h"
#include "redis/resolve.h"
#include "redis/wire.h"

struct event;
struct mailbox;
struct redisAsyncContext;

#define LINK_MAGIC      0x6c696e6bU
#define LINK_REASON_MAX 256
/* run_id, ":", master_replid */
#define LINK_RUN_ID_LEN 81

enum link_state {
	LINK_STATE_IDLE,
	LINK_STATE_RESOLVING,
	LINK_STATE_CONNECTING,
	LINK_STATE_HANDSHAKE,
	LINK_STATE_UP,
	LINK_STATE_FAILING,
	LINK_STATE_WAITING,
};

/* What the handshake under way has learned. */
struct handshake {
	struct secrets secrets; /* wiped when AUTH is over */
	size_t secret;          /* the one being tried */
	unsigned outstanding;   /* INFO answers to come */
	bool refused;           /* a section was refused */
	bool whole;             /* plain INFO was asked */
	bool master, replica;   /* role: as INFO says */
	bool loading;
	char process[41]; /* run_id of INFO */
	char history[41]; /* master_replid of INFO; "" without */
	char run_id[LINK_RUN_ID_LEN + 1]; /* both */
};

struct link {
	uint32_t magic; /* LINK_MAGIC */
	struct link_options o;
	enum link_state state;
	bool was_up;             /* on_up ran, on_down not yet */
	unsigned in_callback;    /* depth of hiredis's callbacks */
	struct mailbox *mailbox; /* for lookups; NULL until the first */
	struct resolve *resolve; /* the lookup under way, or NULL */
	struct addresses addresses;
	size_t address;               /* index of the one in use */
	struct redisAsyncContext *ac; /* NULL while there is none */
	struct event *turn;           /* fired to end FAILING */
	struct event *timer;          /* connect timeout, or back-off */
	struct event *tick; /* link_call looks around; NULL until used */
	unsigned failures;  /* in a row, for the back-off */
	uint64_t up_since_ns;
	char reason[LINK_REASON_MAX];     /* of FAILING */
	char logged[LINK_REASON_MAX];     /* the last one logged, "" after up */
	char run_id[LINK_RUN_ID_LEN + 1]; /* "" while not up */
	struct handshake handshake;
	struct requests requests;
	struct wire wire; /* the command being formatted */
};

/* Ends what there is with reason (printf); nothing when it ended already. */
void link_fail(struct link *l, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Handshake is over: the link is up. */
void link_up(struct link *l);

/*
 * Sends the command in l->wire, in any state that has a connection. Returned,
 * and freed by the link once answered; NULL when it could not be sent.
 */
struct request *link_send(
    struct link *l, uint64_t timeout_ms, link_reply_fn fn, void *arg);

/* Connected: AUTH and what follows. Ends in link_up or link_fail. */
void handshake_start(struct link *l);
void handshake_fini(struct link *l);

/* link_call in two steps: waits for up, then for the answer to l->wire. Both
 * until until_ns (0: no end) or *cancel. 0 and -1; the reply or NULL. */
int call_wait_up(struct link *l, uint64_t until_ns, const _Atomic bool *cancel);
struct redisReply *call_send(
    struct link *l, uint64_t until_ns, const _Atomic bool *cancel);
uint64_t call_until(uint64_t timeout_ms);

/* Takes what r holds out of hiredis's hands; freed with link_reply_free. */
struct redisReply *reply_take(const struct redisReply *r);

#endif
