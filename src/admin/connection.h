/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One operator's connection: requests in, replies out, one request at a time.
 * It does not know what the commands mean (commands.h).
 */
#ifndef ADMIN_CONNECTION_H
#define ADMIN_CONNECTION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "admin/admin.h"
#include "core/buf.h"
#include "resp/request.h"

#define ADMIN_CONNECTIONS_MAX 64
#define ADMIN_BULK_MAX        ((uint64_t)1 << 20)
#define ADMIN_REQUEST_MAX     ((uint64_t)4 << 20)
#define ADMIN_STALL_MS        30000 /* to finish a request, or take a reply */

struct event;

/* A CHECK or ADD under way. The connection may go before the answer comes. */
struct admin_request {
	struct connection *connection; /* borrowed; NULL once it is gone */
	size_t count;                  /* items asked about */
};

struct connection {
	TAILQ_ENTRY(connection) entry; /* least recently active first */
	struct admin *admin;           /* borrowed */
	int fd;
	struct event *readable; /* owned */
	struct event *writable; /* owned */
	struct event *stall;    /* owned: runs while something is half done */
	bool stall_runs;
	struct buf in;
	struct buf out; /* at most one reply */
	struct request request;
	struct admin_request *waiting; /* owned by whoever will answer it */
	bool running; /* a command is being executed: do not resume */
	bool eof;     /* the client sends no more */
	bool closing; /* closed once out is empty */
	bool dead;    /* freed where control returns to the loop */
};

/* fd is taken. */
void connection_new(struct admin *a, int fd);
void connection_free(struct connection *c);

/* The replies; commands give exactly one of them, or start to wait. */
void connection_status(struct connection *c, const char *text);
void connection_error(struct connection *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* text is taken. */
void connection_bulk(struct connection *c, char *text);

struct admin_request *connection_wait(struct connection *c, size_t count);

#endif
