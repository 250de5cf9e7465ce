/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A listening socket on a loop, TCP or Unix: binding, the stale socket file, and
 * running out of file descriptors (it then pauses, instead of spinning on a
 * readiness that it cannot serve). It knows nothing of what is spoken. Used for
 * the operator's and the stats port. One owner, one thread.
 */
#ifndef CORE_ACCEPTOR_H
#define CORE_ACCEPTOR_H

#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

struct event_base;
struct acceptor;

struct acceptor_options {
	struct event_base *base;
	const char *name; /* for logs: "stats"; borrowed for its life */
	/* Either a path, or host and port (0 picks a free one). For the call. */
	const char *path;
	mode_t mode; /* of the socket file */
	const char *host;
	uint16_t port;
	/* A new connection, non-blocking; fd is taken. */
	void (*on_accept)(int fd, void *arg);
	void *arg;
};

/*
 * Bound and accepting. A Unix socket's folder is created where it is missing; a
 * socket file that nobody answers on is replaced. Call it before there are
 * threads (it sets the umask for a moment) and outside callbacks (it resolves
 * host, blocking). Returned; NULL with the reason. Freed with acceptor_free,
 * which removes its socket file.
 */
struct acceptor *acceptor_new(
    const struct acceptor_options *o, struct err *err);
void acceptor_free(struct acceptor *l);

/* "host:port" with the real port, "[v6]:port" or "unix:/path"; borrowed. */
const char *acceptor_address(const struct acceptor *l);

#endif
