/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The upstream's socket of a session: opened for the first command that needs
 * it, rebuilt after a loss from what the mode remembers.
 *
 *   NONE -> RESOLVING -> CONNECTING -> OPEN -> NONE
 *	     (names only)		  any failure: NONE, by upstream_lost
 *
 * What was appended to up_out before it is OPEN waits there, behind the replay.
 */
#include "config.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/check.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/random.h"
#include "proxy/session.h"
#include "redis/resolve.h"

/* Room for a whole request made anew, and the replay, above the pause. */
#define UP_OUT_MAX (OUTPUT_PAUSE + 4 * WHOLE_MAX)
/* Connects to a Unix socket whose backlog is full are tried again this often,
 * some 10 ms apart. */
#define BACKLOG_TRIES 50

static void on_up_read(evutil_socket_t fd, short what, void *arg);
static void on_up_write(evutil_socket_t fd, short what, void *arg);
static void on_up_timer(evutil_socket_t fd, short what, void *arg);
static void connect_unix(struct session *s);

void
upstream_init(struct session *s)
{
	s->up_fd = -1;
	buf_init(&s->up_out, UP_OUT_MAX);
	reply_init(&s->reply);
	check(event_assign(
		  &s->up_timer, s->worker->base, -1, 0, on_up_timer, s) == 0);
}

static void
set_event(struct event *e, bool *added, bool want)
{
	if (*added == want)
		return;
	check((want ? event_add(e, NULL) : event_del(e)) == 0);
	*added = want;
}

static void
drop_connection(struct session *s)
{
	evtimer_del(&s->up_timer);
	if (s->resolving != NULL) {
		resolve_cancel(s->resolving);
		s->resolving = NULL;
	}
	if (s->up_fd >= 0) {
		set_event(&s->up_read_event, &s->up_reading, false);
		set_event(&s->up_write_event, &s->up_writing, false);
		close(s->up_fd);
		s->up_fd = -1;
	}
	s->upstream = UPSTREAM_NONE;
	s->connect_tries = 0;
	buf_fini(&s->up_out);
	reply_reset(&s->reply);
	s->relayed = false;
	s->stash_len = 0;
	s->swallow = false;
}

void
upstream_close(struct session *s)
{
	struct slot *t;

	TAILQ_FOREACH (t, &s->slots, next)
		if (t->state == SLOT_SENT && s->upstream != UPSTREAM_NONE)
			metric_sub(s->worker->metrics,
			    METRIC_UPSTREAM_IN_FLIGHT, 0, 0, 1);
	drop_connection(s);
	reply_fini(&s->reply);
	reply_init(&s->reply);
}

/* The error in place of each reply that was due. */
static void
fail_sent(struct session *s, const char *reason)
{
	struct slot *t, *next;
	char text[200];

	snprintf(text, sizeof(text), "ERR bloomgate: upstream %s", reason);
	for (t = TAILQ_FIRST(&s->slots); t != NULL && t != s->cursor;
	     t = next) {
		next = TAILQ_NEXT(t, next);
		if (t->state != SLOT_SENT)
			continue;
		metric_sub(
		    s->worker->metrics, METRIC_UPSTREAM_IN_FLIGHT, 0, 0, 1);
		if (t->change != NULL) {
			if (t->change->effect == EFFECT_SELECT ||
			    t->change->effect == EFFECT_RESET)
				s->databases--;
			mode_abandon(&s->mode, t->change);
			t->change = NULL;
		}
		if (t == s->stream_slot) {
			/* Its rest is read and dropped. */
			s->stream = STREAM_DISCARD;
			s->stream_slot = NULL;
		}
		if (t->shape == SHAPE_SWALLOW) {
			TAILQ_REMOVE(&s->slots, t, next);
			s->slot_count--;
			slot_free(t);
			continue;
		}
		t->send = SEND_NOTHING;
		slot_answer_error(t, text);
	}
}

void
upstream_lost(struct session *s, const char *reason)
{
	bool partial = s->relayed;

	metric_add(
	    s->worker->metrics, METRIC_UPSTREAM_ERRORS_TOTAL, ERROR_EOF, 0, 1);
	log_debug("upstream_lost", LOG_STR("client", s->peer),
	    LOG_STR("reason", reason));
	drop_connection(s);
	/* Half a reply cannot be taken back, and what an opaque session or one
	 * with a transaction, subscriptions or the like had is gone. */
	if (partial || s->mode.level == MODE_OPAQUE) {
		session_end(s);
		return;
	}
	if (s->stream == STREAM_HELD)
		forward_stream_lost(s, reason);
	fail_sent(s, reason);
	if (s->mode.stateful) {
		struct slot *last = NULL, *t;

		for (t = TAILQ_FIRST(&s->slots); t != NULL && t != s->cursor;
		     t = TAILQ_NEXT(t, next))
			last = t;
		session_end_input(s);
		if (last != NULL)
			last->protocol_end = true;
		else
			session_end(s);
	}
}

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

static void
set_options(struct session *s, int fd, int family)
{
	int one = 1, idle = (int)(s->worker->settings->tcp_keepalive_ms / 1000);

	if (family == AF_UNIX)
		return;
	/* Best effort: a connection without them still serves. */
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (idle <= 0)
		return;
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	(void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
}

static void
arm_timer(struct session *s, uint64_t ms)
{
	struct timeval tv = {.tv_sec = (time_t)(ms / 1000),
	    .tv_usec = (suseconds_t)(ms % 1000 * 1000)};

	check(evtimer_add(&s->up_timer, &tv) == 0);
}

static void
fail_connect(struct session *s, int error)
{
	char reason[120], text[80];

	snprintf(reason, sizeof(reason), "connection failed: %s",
	    strerror_r(error, text, sizeof(text)));
	upstream_lost(s, reason);
	session_pump(s);
}

static void
opened(struct session *s)
{
	evtimer_del(&s->up_timer);
	s->upstream = UPSTREAM_OPEN;
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
	set_options(s, fd, sa->sa_family);
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
		  EV_READ | EV_PERSIST, on_up_read, s) == 0);
	check(event_assign(&s->up_write_event, s->worker->base, fd,
		  EV_WRITE | EV_PERSIST, on_up_write, s) == 0);
	if (result == 0) {
		opened(s);
		return 0;
	}
	s->upstream = UPSTREAM_CONNECTING;
	set_event(&s->up_write_event, &s->up_writing, true);
	arm_timer(s, s->worker->settings->connect_timeout_ms);
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
		arm_timer(s, 5 + random_below(10));
	} else if (error != 0) {
		fail_connect(s, error);
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
	fail_connect(s, error);
}

static void
on_resolved(const struct addresses *a, void *arg)
{
	struct session *s = arg;

	session_enter(s);
	s->resolving = NULL;
	if (a->count == 0)
		fail_connect(s, EHOSTUNREACH);
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
		arm_timer(s, 0);
		return;
	}
	s->upstream = UPSTREAM_RESOLVING;
	s->resolving = resolve_start(
	    s->worker->mailbox, a->host, on_resolved, s);
	if (s->resolving == NULL)
		arm_timer(s, 0);
}

/*
 * response-timeout counts while the oldest request waits, whose every byte is
 * sent; what blocks by its nature and what the client does not read are not
 * Redis's doing.
 */
static void
update_deadline(struct session *s)
{
	uint64_t ms = s->worker->settings->response_timeout_ms;
	const struct slot *t = TAILQ_FIRST(&s->slots);

	if (ms == 0)
		return;
	if (t == NULL || t == s->cursor || t->state != SLOT_SENT ||
	    t->blocking || t == s->stream_slot || !s->up_reading)
		evtimer_del(&s->up_timer);
	else if (!evtimer_pending(&s->up_timer, NULL))
		arm_timer(s, ms);
}

/* A late reply must find nobody: the connection goes. */
static void
on_late(struct session *s)
{
	struct pollfd p = {.fd = s->up_fd, .events = POLLIN};

	/* It was us who were late where bytes wait to be read. */
	if (poll(&p, 1, 0) == 0)
		upstream_lost(s, "did not answer in time");
}

/* The first call starts to connect; later ones are its timeout, and once the
 * connection is open that of its replies. */
static void
on_up_timer(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	const struct address *a = &s->worker->settings->upstream.address;
	struct addresses addresses;

	(void)fd;
	(void)what;
	session_enter(s);
	if (s->upstream == UPSTREAM_OPEN)
		on_late(s);
	else if (s->up_fd >= 0)
		fail_connect(s, ETIMEDOUT);
	else if (a->kind == ADDRESS_UNIX)
		connect_unix(s);
	else if (resolve_numeric(&addresses, a->host) == 0)
		connect_any(s, &addresses);
	else
		fail_connect(s, EAGAIN);
	if (!s->closed)
		session_pump(s);
	session_leave(s);
}

void
upstream_flush(struct session *s)
{
	while (s->upstream == UPSTREAM_OPEN && buf_len(&s->up_out) != 0) {
		ssize_t n = send(s->up_fd, buf_head(&s->up_out),
		    buf_len(&s->up_out), MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		/* A lost connection is noticed by reading: what Redis said
		 * before it closed must not be lost with it. */
		if (n < 0)
			break;
		buf_consume(&s->up_out, (size_t)n);
	}
	buf_trim(&s->up_out);
}

void
upstream_update(struct session *s)
{
	if (s->upstream != UPSTREAM_OPEN) {
		if (s->mode.level == MODE_OPAQUE && s->end_of_file &&
		    s->upstream == UPSTREAM_NONE)
			session_end(s);
		return;
	}
	set_event(&s->up_read_event, &s->up_reading,
	    buf_len(&s->out) < s->worker->output_pause);
	set_event(&s->up_write_event, &s->up_writing, buf_len(&s->up_out) != 0);
	update_deadline(s);
	/* The client's end of input is Redis's to see where nobody counts
	 * replies. Asked again and again it does nothing new. */
	if (s->mode.level == MODE_OPAQUE && buf_len(&s->up_out) == 0 &&
	    (s->end_of_file || s->input_ended))
		(void)shutdown(s->up_fd, SHUT_WR);
}

static void
on_up_read(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct worker *w = s->worker;
	char text[80], reason[120];
	ssize_t n;

	(void)what;
	session_enter(s);
	/* What is read has room: reading stops at output_pause. */
	n = recv(fd, w->scratch,
	    w->output_pause < SCRATCH_BYTES ? w->output_pause : SCRATCH_BYTES,
	    0);
	if (n > 0) {
		evtimer_del(&s->up_timer); /* what comes next counts anew */
		answer_feed(s, w->scratch, (size_t)n);
	} else if (n == 0) {
		upstream_lost(s, "connection lost");
	} else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
		snprintf(reason, sizeof(reason), "connection lost: %s",
		    strerror_r(errno, text, sizeof(text)));
		upstream_lost(s, reason);
	}
	if (!s->closed)
		session_pump(s);
	session_leave(s);
}

static void
on_up_write(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	int error = 0;
	socklen_t len = sizeof(error);

	(void)what;
	session_enter(s);
	if (s->upstream == UPSTREAM_CONNECTING) {
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
			error = errno;
		if (error == 0)
			opened(s);
		else
			fail_connect(s, error);
	}
	if (!s->closed)
		session_pump(s);
	session_leave(s);
}
