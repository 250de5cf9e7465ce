/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a session is, as far as Redis's replies tell (DESIGN.md, State):
 * database, protocol version, user, transaction, subscriptions and so on. Every
 * fact is learned from a reply, and the level follows from the facts. While a
 * reply is due that may change any of them (`outstanding`) nothing is known for
 * certain and everything is forwarded. Pure; one owner, one thread.
 *
 *   PLAIN         covered reads may be answered here, unless outstanding
 *   FORWARD_ONLY  every reply is Redis's own; replies are still counted
 *   OPAQUE        replies cannot be counted: bytes pass both ways, for good
 *
 * A session is FORWARD_ONLY as long as one of these facts holds:
 *
 *   in_multi         from MULTI's +OK to the end of the transaction
 *   watched          from WATCH's +OK to UNWATCH's, or the transaction's end
 *   tracking         CLIENT TRACKING is on: only what Redis itself has read for
 *                    the session is it told of when it changes
 *   subscribed       under RESP2 (RESP3 executes every command)
 *   foreign          for good: a command that nobody knows did not fail. It may
 *                    be any of the above by another name (rename-command)
 *
 * RESET ends all but the last.
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

/* What CLIENT turns on and off. */
enum client_switch {
	SWITCH_TRACKING,
	SWITCH_NO_EVICT,
	SWITCH_NO_TOUCH,
	SWITCHES
};

/*
 * What a request may change, kept until its reply says whether it did. Of
 * EFFECT_ORDINARY: nothing, but Redis may execute it late (BLPOP), and what
 * follows only then. Of EFFECT_UNKNOWN: anything, unless it fails.
 */
struct change {
	enum effect effect;
	bool harmless;   /* lost without a reply, nothing that follows in the
			* session is executed otherwise than it should be */
	bool cut;        /* what it brings was not kept whole */
	bool opens;      /* it may open a transaction */
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
	bool has_switch, on; /* CLIENT TRACKING, NO-EVICT, NO-TOUCH */
	enum client_switch which;
};
struct change *change_new(enum effect effect); /* freed with change_free */
void change_free(struct change *c);
/* True while its reply may bring another database. */
bool change_moves_database(const struct change *c);

struct mode {
	enum mode_level level;
	int proto; /* 2 or 3 */
	unsigned db;
	char *user; /* who Redis let in by AUTH or HELLO; NULL: nobody yet */
	uint64_t since_ns; /* clock_boot_ns when user was told; 0: at first */
	bool in_multi;     /* a transaction is open */
	bool multi_failed; /* one in it was refused here: EXEC must fail */
	bool watched;      /* keys are watched */
	bool switches[SWITCHES];
	bool foreign;         /* an unknown command did not fail: neither the
			       * database nor the user is certain */
	bool foreign_state;   /* and what it left behind cannot be rebuilt */
	unsigned outstanding; /* replies due that may change any of this */
	unsigned opening;     /* those that may open a transaction */
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
 * Opaque are: MONITOR SYNC PSYNC REPLCONF; CLIENT REPLY but ON; inside MULTI, or
 * where an unknown command may have been one, the SUBSCRIBE family, CLIENT,
 * HELLO, AUTH and SELECT; a HELLO of which Redis may do a part before it refuses
 * it; a channel so long that its confirmation hides the count.
 *
 * Looks at a request that is about to be forwarded, c being its command. With
 * MODE_SEND, *change is what its reply may change (NULL for an ordinary command
 * that does not block; else taken by the caller, counted in outstanding, and
 * given back to mode_reply or mode_abandon). whole: arguments are not cut.
 */
enum mode_wish mode_request(struct mode *m, const struct command *c,
    const struct slice *argv, size_t argc, bool whole, struct change **change);
/* The change of a DISCARD that is sent without a request of the client's; as of
 * mode_request. */
struct change *mode_discard(struct mode *m);

/*
 * A complete reply to the oldest request with a change. True when it was the
 * last reply that the request gets (then c is freed); false for all but the last
 * of the subscribe family.
 */
bool mode_reply(struct mode *m, struct change *c, const struct reply *r);
/* An unknown command is not known because none is: it leaves no state. */
void mode_excuse(struct mode *m, struct change *c);
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

/* True while the session has what another connection cannot be given. */
bool mode_is_stateful(const struct mode *m);

/*
 * Writes the requests that rebuild the session on a fresh connection; returns
 * how many replies they get. 0 when there is nothing to rebuild.
 */
size_t mode_replay(const struct mode *m, struct buf *out);

#endif
