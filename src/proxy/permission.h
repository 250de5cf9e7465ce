/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which users may read (and write) everything, asked of Redis by ACL GETUSER and
 * kept for permission-ttl. Worker's thread.
 */
#ifndef PROXY_PERMISSION_H
#define PROXY_PERMISSION_H

#include "policy/mode.h"
#include "proxy/worker.h"

enum permission {
	PERMISSION_ASKING,  /* not known yet: worker_pump_all when it is */
	PERMISSION_ALL,     /* every command on every key */
	PERMISSION_NO,      /* less, or Redis would not tell */
	PERMISSION_NOAUTH,  /* the session has to authenticate first */
	PERMISSION_UNKNOWN, /* Redis cannot be asked, or will not tell */
};

struct permissions;
struct permissions *permissions_new(struct worker *w);
void permissions_free(struct permissions *p);

/* What the session's user may do. Asks Redis when it is not known or too old. */
enum permission permission_of(struct permissions *p, const struct mode *m);

/*
 * True when Redis is known to ask every session for a password: then strangers
 * may be let in (protected). False also while it is not known; it is asked.
 */
bool permission_default_closed(struct permissions *p);

#endif
