/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listening sockets and accepting. One address may have a socket in each worker
 * (TCP, SO_REUSEPORT) or one that all share (Unix).
 */
#ifndef PROXY_LISTENER_H
#define PROXY_LISTENER_H

#include "config/settings.h"
#include "core/err.h"

struct worker;
struct listener;

/*
 * Binds a. port: 0 takes the address's own; else it replaces a port 0 (the
 * second worker's socket of the same listener). shared_fd: -1, or a Unix socket
 * to share. Returned, not yet accepting; NULL with the reason. listener_free.
 */
struct listener *listener_new(struct worker *w, const struct address *a,
    unsigned port, int shared_fd, struct err *err);
void listener_start(struct listener *l);
/* Closes the socket; a Unix one is unlinked by the listener that made it. */
void listener_free(struct listener *l);
/* "host:port" with the real port, or "unix:/path"; borrowed from l. */
const char *listener_address(const struct listener *l);
unsigned listener_port(const struct listener *l); /* 0 for Unix */
int listener_fd(const struct listener *l);

#endif
