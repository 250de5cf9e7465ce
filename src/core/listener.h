/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A listening socket on a loop, TCP or Unix: binding, the stale socket file, and
 * running out of file descriptors (it then pauses, instead of spinning on a
 * readiness that it cannot serve). It knows nothing of what is spoken. Used for
 * the operator's and the stats port. One owner, one thread.
 */
#ifndef CORE_LISTENER_H
#define CORE_LISTENER_H

#include <stdint.h>
#include <sys/types.h>

#include "core/err.h"

struct event_base;
struct listener;

struct listener_options {
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
 * host, blocking). Returned; NULL with the reason. Freed with listener_free,
 * which removes its socket file.
 */
struct listener *listener_new(
    const struct listener_options *o, struct err *err);
void listener_free(struct listener *l);

/* "host:port" with the real port, "[v6]:port" or "unix:/path"; borrowed. */
const char *listener_address(const struct listener *l);

#endif
