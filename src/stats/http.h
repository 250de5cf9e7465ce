/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small HTTP server: one GET or HEAD a connection, answered whole, closed. Not
 * evhttp: that starts its timeout anew with every byte and tells nobody about a
 * connection before its first complete request, so neither a total time nor a
 * cap on connections can be kept with it.
 *
 * Bounds: HTTP_CONNECTIONS_MAX connections (at the cap the oldest one that is
 * not being answered gives way), HTTP_TOTAL_MS for each from accept to close,
 * HTTP_REQUEST_MAX bytes of request line and headers. One owner, one thread.
 */
#ifndef STATS_HTTP_H
#define STATS_HTTP_H

#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"
#include "core/err.h"

#define HTTP_CONNECTIONS_MAX 64
#define HTTP_TOTAL_MS        10000
#define HTTP_REQUEST_MAX     8192

struct event_base;
struct http;

struct http_response {
	int status;
	const char *type;  /* Content-Type; static */
	const char *extra; /* further header lines with CRLF, or NULL; static */
	const char *body;  /* body_len bytes */
	size_t body_len;
	void *owned; /* freed with free() once the answer is copied; or NULL */
};

struct http_options {
	struct event_base *base;
	const struct address *listen; /* borrowed for the call */
	uint64_t total_ms;            /* HTTP_TOTAL_MS; tests shorten it */
	/* path: without the query, NUL-terminated, borrowed. Fills response. */
	void (*handler)(
	    const char *path, struct http_response *response, void *arg);
	void *arg;
};

/* Returned, listening; NULL with the reason. Freed with http_free. */
struct http *http_new(const struct http_options *o, struct err *err);
void http_free(struct http *h);
const char *http_address(const struct http *h); /* borrowed */
size_t http_connections(const struct http *h);

#endif
