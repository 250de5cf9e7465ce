/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the users of sessions may do with the keys of each filter: asked of Redis
 * by ACL GETUSER and ACL DRYRUN (what they prove: permission_rule.h), kept for
 * permission-ttl, and not for a session that has authenticated since. Worker's
 * thread.
 */
#ifndef PROXY_PERMISSION_H
#define PROXY_PERMISSION_H

#include "policy/covered.h"
#include "policy/mode.h"
#include "proxy/worker.h"

enum permission {
	PERMISSION_ALL,     /* Redis would execute it, whichever the keys */
	PERMISSION_NO,      /* it might not */
	PERMISSION_NOAUTH,  /* the session has to authenticate first */
	PERMISSION_UNKNOWN, /* Redis cannot be asked, or will not tell */
	PERMISSION_ASKING,  /* not known yet: worker_pump_all when it is */
};

struct permissions;
struct permissions *permissions_new(struct worker *w);
void permissions_free(struct permissions *p);

/* The upstream link has come up: asks what bloomgate itself may ask, and about
 * the default user, who every session is at first. */
void permissions_begin(struct permissions *p);

/*
 * What the session's user may do with the keys of the filter: read them by r, or
 * (r NULL) SET them. Asks Redis when it is not known or too old.
 */
enum permission permission_of(struct permissions *p, const struct mode *m,
    const struct covered_read *r, size_t filter);

/*
 * Whether the absent ones among the keys (count of them) of a plain request of r
 * may be answered without asking Redis: ALL, NO or ASKING.
 */
enum permission permission_of_request(struct permissions *p,
    const struct mode *m, const struct covered_read *r,
    const struct slice *keys, size_t count);

/*
 * True when Redis is known to ask every session for a password: then strangers
 * may be let in (protected). False also while it is not known; it is asked. What
 * is older than permission-ttl is asked anew, and holds until the answer comes.
 */
bool permission_default_closed(struct permissions *p);
/* Asks anew what is too old, so that the answer above is never much older than
 * permission-ttl. For a timer. */
void permission_renew_default(struct permissions *p);

#endif
