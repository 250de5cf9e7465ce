/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a session is, as far as its own requests and Redis's replies tell
 * (DESIGN.md, State): database, protocol version, user, transaction,
 * subscriptions. Facts are learned from replies; only the level falls by
 * requests, and it never rises again. Pure; one owner, one thread.
 *
 *   PLAIN         covered reads may be answered here
 *   FORWARD_ONLY  every reply is Redis's own; replies are still counted
 *   OPAQUE        replies cannot be counted: bytes pass both ways
 */
#ifndef POLICY_MODE_H
#define POLICY_MODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/buf.h"
#include "core/slice.h"
#include "policy/command.h"
#include "resp/reply.h"

enum mode_level {
	MODE_PLAIN,
	MODE_FORWARD_ONLY,
	MODE_OPAQUE,
};

/* Kinds of subscription. */
enum {
	SUBS_CHANNEL,
	SUBS_PATTERN,
	SUBS_SHARD,
	SUBS_KINDS
};

/* What a request may change, kept until its reply says whether it did. */
struct change {
	enum effect effect;
	unsigned kind;   /* subscribe family: SUBS_* */
	uint64_t expect; /* subscribe family: replies due; 0: told by state */
	unsigned db;     /* SELECT */
	int proto;       /* HELLO with a version, else 0 */
	bool has_auth;
	char *user;      /* AUTH, HELLO AUTH; owned, NUL-terminated */
	uint8_t *secret; /* likewise; wiped when freed */
	size_t secret_len;
	bool has_name, has_lib_name, has_lib_version;
	uint8_t *text; /* CLIENT SETNAME/SETINFO, HELLO SETNAME: the value */
	size_t text_len;
};
struct change *change_new(enum effect effect); /* freed with change_free */
void change_free(struct change *c);

struct mode {
	enum mode_level level;
	int proto; /* 2 or 3 */
	unsigned db;
	char *user;    /* who Redis let in by AUTH or HELLO; NULL: nobody yet */
	bool in_multi; /* a transaction is open */
	bool multi_failed;    /* one in it was refused here: EXEC must fail */
	bool stateful;        /* holds what a lost upstream cannot give back */
	unsigned outstanding; /* replies due that may change any of this */
	unsigned multis;      /* those of them to MULTI */
	uint64_t subs[SUBS_KINDS];

	/* for rebuilding the session on another connection */
	int hello; /* version of the last HELLO that succeeded; 0 none */
	uint8_t *secret;
	size_t secret_len;
	uint8_t *name, *lib_name, *lib_version;
	size_t name_len, lib_name_len, lib_version_len;
};

void mode_init(struct mode *m);
void mode_fini(struct mode *m); /* wipes the secret */

/* What a request means for the session before it is sent. */
enum mode_wish {
	MODE_SEND,        /* forward it, as what it is */
	MODE_WAIT,        /* the state must be known first: hold it */
	MODE_OPAQUE_WISH, /* becomes opaque once earlier replies have left */
};

/*
 * Opaque are: MONITOR SYNC PSYNC; CLIENT REPLY; inside MULTI the SUBSCRIBE
 * family, CLIENT, HELLO, AUTH and SELECT; a HELLO of which Redis may do a part
 * before it refuses it; a channel so long that its confirmation hides the count.
 *
 * Looks at a request that is about to be forwarded, c being its command. May
 * lower the level. With MODE_SEND, *change is what its reply may change (NULL
 * for an ordinary command; else taken by the caller, counted in outstanding, and
 * given back to mode_reply or mode_abandon). whole: arguments are not cut.
 */
enum mode_wish mode_request(struct mode *m, const struct command *c,
    const struct slice *argv, size_t argc, bool whole, struct change **change);

/*
 * A complete reply to the oldest request with a change. True when it was the
 * last reply that the request gets (then c is freed); false for all but the last
 * of the subscribe family.
 */
bool mode_reply(struct mode *m, struct change *c, const struct reply *r);
/* Its reply will never come. Frees c. */
void mode_abandon(struct mode *m, struct change *c);

/*
 * True when a complete frame is no reply to anything: a push of RESP3, or a
 * message under RESP2. c: the change of the oldest request, or NULL: its own
 * confirmations, pushes too, are its replies.
 */
bool mode_out_of_band(
    const struct mode *m, const struct reply *r, const struct change *c);

/* True while any subscription is held under RESP2. */
bool mode_subscribed2(const struct mode *m);

/*
 * Writes the requests that rebuild the session on a fresh connection; returns
 * how many replies they get. 0 when there is nothing to rebuild.
 */
size_t mode_replay(const struct mode *m, struct buf *out);

#endif
