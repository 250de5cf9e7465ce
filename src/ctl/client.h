/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection to the daemon's admin socket: one command, one reply, blocking,
 * with a timeout. Replies are simple types and arrays of them.
 */
#ifndef CTL_CLIENT_H
#define CTL_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/slice.h"

#define CLIENT_REPLY_MAX    ((size_t)64 << 20) /* a bulk string, bytes */
#define CLIENT_ELEMENTS_MAX 100000

struct client;

struct client_reply {
	char type; /* + - : $ * */
	int64_t integer;
	char *text; /* + - $, NUL-terminated */
	size_t len;
	struct client_reply *items; /* *: count of them, none an array */
	size_t count;
};

/* Returned; NULL with the reason. Freed with client_free. */
struct client *client_connect(const char *address, struct err *err);
void client_free(struct client *c);

/* Sends and waits. 0, or -1 with the reason: the connection is of no more use.
 * An error reply is a reply. *reply is freed with client_reply_fini. */
int client_call(struct client *c, const struct slice *argv, size_t argc,
    struct client_reply *reply, struct err *err)
    __attribute__((warn_unused_result));
void client_reply_fini(struct client_reply *r);

#endif
