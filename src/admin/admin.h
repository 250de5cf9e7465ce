/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The operator's socket: RESP requests on a Unix socket (mode 0660) or TCP,
 * commands of INTERFACE.md. It parses, checks arguments and finds the filter;
 * what is done is done by the calls given to it. Runs on the loop given to it.
 */
#ifndef ADMIN_ADMIN_H
#define ADMIN_ADMIN_H

#include "config/settings.h"
#include "core/err.h"
#include "core/slice.h"

struct event_base;
struct admin;
struct admin_request; /* one command that waits for its answer */

struct admin_calls {
	/* Text for STATUS as JSON; index -1: all. Returned, free(). */
	char *(*status_json)(long index, void *arg);
	/* 0, or -1 with the reason. */
	int (*rebuild)(size_t index, bool force, struct err *err, void *arg);
	int (*abort)(size_t index, struct err *err, void *arg);
	int (*mode)(size_t index, int mode, struct err *err, void *arg);
	/*
	 * CHECK and ADD: items are what placeholders capture (borrowed for the
	 * call). Answered later, on the same loop, by admin_answer.
	 */
	void (*check)(size_t index, const struct slice *items, size_t count,
	    struct admin_request *request, void *arg);
	void (*add)(size_t index, const struct slice *items, size_t count,
	    struct admin_request *request, void *arg);
	char *(*config_yaml)(void *arg);  /* free() */
	char *(*clients_text)(void *arg); /* a line a client; free() */
	void (*drain)(void *arg);
};

struct admin_options {
	struct event_base *base;
	const struct address *listen;    /* borrowed for the call */
	const struct settings *settings; /* filter names; borrowed */
	struct admin_calls calls;
	void *arg;
};

struct admin *admin_new(const struct admin_options *o, struct err *err);
void admin_free(struct admin *a); /* unlinks its Unix socket */
/* The bound address ("host:port" or "unix:/path"), borrowed. */
const char *admin_address(const struct admin *a);

/*
 * Ends a waiting CHECK or ADD: values, count as the items (CHECK: 0 absent, 1
 * maybe; ADD: 1 new, 0 known), or error (then values is NULL), borrowed. Safe
 * also after the client has gone: request is freed here, once.
 */
void admin_answer(struct admin_request *request, const int *values,
    size_t count, const char *error);

#endif
