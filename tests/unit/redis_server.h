/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A private redis-server for unit tests: a child with a temporary folder and a
 * Unix socket of its own, and a TCP port if wanted. It dies with the test's
 * process. A failure to start fails the test.
 */
#ifndef TESTS_REDIS_SERVER_H
#define TESTS_REDIS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "config/settings.h"

#define REDIS_SERVER_ARGS 16

struct redis_server {
	char dir[64];
	char path[96];                           /* of the Unix socket */
	uint16_t port;                           /* 0: no TCP */
	pid_t pid;                               /* 0 while it does not run */
	const char *args[REDIS_SERVER_ARGS + 1]; /* borrowed, NULL at the end */
	struct endpoint unix_endpoint;           /* point into this struct */
	struct endpoint tcp_endpoint;
};

/* Makes the folder, starts nothing. args: more of the command line, ended by
 * NULL, or NULL; borrowed until the end. tcp: takes a free port too. */
void redis_server_init(
    struct redis_server *s, bool tcp, const char *const *args);
/* Starts it and waits until it answers. */
void redis_server_start(struct redis_server *s);
void redis_server_kill(struct redis_server *s); /* SIGKILL, and waits */
/* Kills it and removes the folder. */
void redis_server_fini(struct redis_server *s);

/*
 * Sends one command line (inline protocol) on a connection of its own; the
 * first line of the reply goes into out, without CRLF. 0, or -1 where nobody
 * answers.
 */
int redis_server_line(
    struct redis_server *s, const char *line, char *out, size_t size);
/* The same; fails the test unless the reply begins with want. */
void redis_server_want(
    struct redis_server *s, const char *line, const char *want);

#endif
