/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of the proxy as one object: a redis-server, settings with one filter
 * ("user", keys "user:{id}"), and the proxy on a Unix socket. One per test
 * process, so these are its globals.
 */
#ifndef TESTS_PROXY_FIXTURE_H
#define TESTS_PROXY_FIXTURE_H

#include "proxy/proxy.h"
#include "redis_server.h"

#define WAIT_MS 20000
#define META    "bloom:{user}:meta"

extern struct redis_server server;
extern struct settings *settings;
extern struct filter *filter;
extern struct metrics *metrics;
extern struct proxy *proxy; /* NULL until fixture_open */
extern char *path;          /* of the proxy's socket */

/* Everything but the proxy. */
void fixture_init(unsigned workers);
/* Makes the proxy; it is not started. */
void fixture_open(void);
void fixture_fini(void);

/* Other settings, listening elsewhere (YAML). settings_unref. */
struct settings *fixture_settings(const char *listen, unsigned workers);

/* Makes a sealed generation of one shard in Redis, and publishes it as control
 * would, with a lease that does not end. */
void fixture_serve(void);

/* A connection to a Unix socket; -1 where nobody listens. */
int fixture_dial(const char *to);
void fixture_say(int fd, const char *line);
/* Reads exactly want, or fails; "" waits for the end. */
void fixture_want(int fd, const char *want);
void fixture_ask(int fd, const char *line, const char *want);
/* Waits until the proxy has n sessions. */
void fixture_want_sessions(size_t n);

#endif
