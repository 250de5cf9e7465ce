/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operator's port: the listener and the list of connections. At the cap the
 * connection that was silent for longest gives way, so that nobody locks the
 * operator out by holding sockets open.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/admin.h"
#include "admin/connection.h"
#include "admin/private.h"
#include "core/acceptor.h"
#include "core/mem.h"

#define ADMIN_SOCKET_MODE 0660

static bool
give_way(struct admin *a)
{
	struct connection *c;

	TAILQ_FOREACH (c, &a->connections, entry) {
		if (c->waiting == NULL && !c->running) {
			connection_free(c);
			return true;
		}
	}
	return false;
}

static void
on_accept(int fd, void *arg)
{
	struct admin *a = arg;

	if (a->count >= ADMIN_CONNECTIONS_MAX && !give_way(a)) {
		close(fd);
		return;
	}
	connection_new(a, fd);
}

struct admin *
admin_new(const struct admin_options *o, struct err *err)
{
	struct admin *a = mem_zalloc(1, sizeof(*a));
	struct acceptor_options lo = {
	    .base = o->base,
	    .name = "admin",
	    .path = o->listen->kind == ADDRESS_UNIX ? o->listen->path : NULL,
	    .mode = ADMIN_SOCKET_MODE,
	    .host = o->listen->host,
	    .port = o->listen->port,
	    .on_accept = on_accept,
	    .arg = a,
	};

	a->options = *o;
	a->options.listen = NULL;
	TAILQ_INIT(&a->connections);
	a->acceptor = acceptor_new(&lo, err);
	if (a->acceptor == NULL) {
		free(a);
		return NULL;
	}
	return a;
}

void
admin_free(struct admin *a)
{
	struct connection *c;

	while ((c = TAILQ_FIRST(&a->connections)) != NULL)
		connection_free(c);
	acceptor_free(a->acceptor);
	free(a);
}

const char *
admin_address(const struct admin *a)
{
	return acceptor_address(a->acceptor);
}
