/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Name resolution off the loop: a thread a lookup, which may outlive whoever
 * asked. The answer comes by mailbox, on the owner's loop. A numeric address is
 * answered at once, without a thread.
 */
#ifndef REDIS_RESOLVE_H
#define REDIS_RESOLVE_H

#include <stddef.h>

struct mailbox;
struct resolve;

#define RESOLVE_MAX    8
#define RESOLVE_IP_MAX 64 /* INET6_ADDRSTRLEN, '%', an interface's name */

struct addresses {
	char ip[RESOLVE_MAX][RESOLVE_IP_MAX]; /* numeric, as getaddrinfo says */
	size_t count;                         /* 0: failed, see error */
	char error[128];                      /* why */
};

/* 0 and *out when host is numeric; -1 when it must be looked up. */
int resolve_numeric(struct addresses *out, const char *host);

typedef void (*resolve_fn)(const struct addresses *a, void *arg);

/*
 * Looks host up; fn is called once on m's loop, unless resolve_cancel comes
 * first. Returned; it ends with fn or with resolve_cancel, whichever is first.
 * NULL when no thread could be started. m must live until then, not longer.
 */
struct resolve *resolve_start(
    struct mailbox *m, const char *host, resolve_fn fn, void *arg);
void resolve_cancel(struct resolve *r);

#endif
