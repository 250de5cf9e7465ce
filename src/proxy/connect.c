/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a session comes to an upstream connection: for the first command that needs
 * it, and after a loss rebuilt from what the mode remembers.
 *
 *   NONE -> RESOLVING -> CONNECTING -> OPEN -> NONE
 *	     (names only)		  any failure: NONE, by upstream_lost
 *
 * What was appended to up_out before it is OPEN waits there, behind the replay. A
 * worker's thread.
 */
#include "config.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/check.h"
#include "core/random.h"
#include "proxy/session.h"
#include "proxy/socket.h"
#include "redis/resolve.h"

/* Connects to a Unix socket whose backlog is full are tried again this often,
 * some 10 ms apart. */
#define BACKLOG_TRIES 50

/* The replay goes first: what waits in up_out moves behind it. */
static void
prepend_replay(struct session *s)
{
	struct buf replay;
	size_t replies, i;

	buf_init(&replay, UP_OUT_MAX * 2);
	replies = mode_replay(&s->mode, &replay);
	if (replies != 0) {
		check(buf_append(&replay, buf_head(&s->up_out),
			  buf_len(&s->up_out)) == 0);
		buf_fini(&s->up_out);
		s->up_out = replay;
		s->up_out.max = UP_OUT_MAX;
	} else {
		buf_fini(&replay);
	}
	for (i = 0; i < replies; i++) {
		struct slot *t = slot_new(s->turn_ns), *first = NULL, *at;

		t->state = SLOT_SENT;
		t->shape = SHAPE_SWALLOW;
		metric_add(
		    s->worker->metrics, METRIC_UPSTREAM_IN_FLIGHT, 0, 0, 1);
		/* Before the first slot that waits for this connection. */
		TAILQ_FOREACH (at, &s->slots, next) {
			if (at == s->cursor || at->state == SLOT_SENT) {
				first = at;
				break;
			}
		}
		if (first != NULL)
			TAILQ_INSERT_BEFORE(first, t, next);
		else
			TAILQ_INSERT_TAIL(&s->slots, t, next);
		s->slot_count++;
	}
}

void
upstream_arm_timer(struct session *s, uint64_t ms)
{
	struct timeval tv = {.tv_sec = (time_t)(ms / 1000),
	    .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	check(evtimer_add(&s->up_timer, &tv) == 0);
}

void
upstream_connect_failed(struct session *s, int error)
{
	char reason[120], text[80];

	snprintf(reason, sizeof(reason), "connection failed: %s",
	    strerror_r(error, text, sizeof(text)));
	upstream_lost(s, reason);
	session_pump(s);
}

void
upstream_opened(struct session *s)
{
	evtimer_del(&s->up_timer);
	s->upstream = UPSTREAM_OPEN;
	s->admitted = s->worker->default_open;
	s->connect_tries = 0;
	metric_add(s->worker->metrics, METRIC_UPSTREAM_CONNECTS_TOTAL, 0, 0, 1);
}

/* Starts a connect; 0, EAGAIN to try again, or another errno. */
static int
start_connect(struct session *s, const struct sockaddr *sa, socklen_t len)
{
	int fd = socket(
	    sa->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int result;

	if (fd < 0)
		return errno;
	socket_options(
	    fd, sa->sa_family, s->worker->settings->tcp_keepalive_ms);
	do {
		result = connect(fd, sa, len);
	} while (result < 0 && errno == EINTR);
	if (result < 0 && errno != EINPROGRESS) {
		int error = errno;

		close(fd);
		return error;
	}
	s->up_fd = fd;
	check(event_assign(&s->up_read_event, s->worker->base, fd,
		  EV_READ | EV_PERSIST, upstream_on_read, s) == 0);
	check(event_assign(&s->up_write_event, s->worker->base, fd,
		  EV_WRITE | EV_PERSIST, upstream_on_write, s) == 0);
	if (result == 0) {
		upstream_opened(s);
		return 0;
	}
	s->upstream = UPSTREAM_CONNECTING;
	session_set_event(&s->up_write_event, &s->up_writing, true);
	upstream_arm_timer(s, s->worker->settings->connect_timeout_ms);
	return 0;
}

static void
connect_unix(struct session *s)
{
	const struct address *a = &s->worker->settings->upstream.address;
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int error;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", a->path);
	error = start_connect(s, (struct sockaddr *)&sun, sizeof(sun));
	if (error == EAGAIN && s->connect_tries++ < BACKLOG_TRIES) {
		s->upstream = UPSTREAM_CONNECTING;
		upstream_arm_timer(s, 5 + random_below(10));
	} else if (error != 0) {
		upstream_connect_failed(s, error);
	}
}

static int
connect_ip(struct session *s, const char *ip)
{
	struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
	    .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	char port[8];
	int error;

	snprintf(port, sizeof(port), "%u",
	    s->worker->settings->upstream.address.port);
	if (getaddrinfo(ip, port, &hints, &list) != 0)
		return EADDRNOTAVAIL;
	error = start_connect(s, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return error;
}

static void
connect_any(struct session *s, const struct addresses *a)
{
	int error = EHOSTUNREACH;
	size_t i;

	for (i = 0; i < a->count; i++) {
		error = connect_ip(s, a->ip[i]);
		if (error == 0)
			return;
	}
	upstream_connect_failed(s, error);
}

static void
on_resolved(const struct addresses *a, void *arg)
{
	struct session *s = arg;

	session_enter(s);
	s->resolving = NULL;
	if (a->count == 0)
		upstream_connect_failed(s, EHOSTUNREACH);
	else
		connect_any(s, a);
	if (!s->closed)
		session_pump(s);
	session_leave(s);
}

void
upstream_need(struct session *s)
{
	const struct address *a = &s->worker->settings->upstream.address;
	struct addresses addresses;

	if (s->upstream != UPSTREAM_NONE)
		return;
	/* Failure is reported from the timer, on a later turn: the caller is
	 * about to queue the request that needs the connection. */
	prepend_replay(s);
	s->upstream = UPSTREAM_CONNECTING;
	if (a->kind == ADDRESS_UNIX ||
	    resolve_numeric(&addresses, a->host) == 0) {
		upstream_arm_timer(s, 0);
		return;
	}
	s->upstream = UPSTREAM_RESOLVING;
	s->resolving = resolve_start(
	    s->worker->mailbox, a->host, on_resolved, s);
	if (s->resolving == NULL)
		upstream_arm_timer(s, 0);
}

/* The first call starts to connect; later ones are its timeout, and once the
 * connection is open that of its replies. */
void
upstream_on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	const struct address *a = &s->worker->settings->upstream.address;
	struct addresses addresses;

	(void)fd;
	(void)what;
	session_enter(s);
	if (s->upstream == UPSTREAM_OPEN)
		upstream_late(s);
	else if (s->up_fd >= 0)
		upstream_connect_failed(s, ETIMEDOUT);
	else if (a->kind == ADDRESS_UNIX)
		connect_unix(s);
	else if (resolve_numeric(&addresses, a->host) == 0)
		connect_any(s, &addresses);
	else
		upstream_connect_failed(s, EAGAIN);
	if (!s->closed)
		session_pump(s);
	session_leave(s);
}
