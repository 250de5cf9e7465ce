/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client's socket of a session: read, write, and when to do neither. A
 * worker's thread.
 */
#include "config.h"

#include <errno.h>
#include <sys/socket.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "proxy/session.h"

/* The socket takes no more. */
static bool
wait_for_client(struct session *s)
{
	if (buf_len(&s->out) < STRANGER_OUTPUT_MAX || !session_is_stranger(s))
		return true;
	log_warn("stranger_too_slow", LOG_STR("client", s->peer),
	    LOG_INT("unsent", buf_len(&s->out)));
	session_close(s);
	return false;
}

/* Writes what it can; false when the session closed. */
bool
client_flush(struct session *s)
{
	while (buf_len(&s->out) != 0) {
		ssize_t n = send(
		    s->fd, buf_head(&s->out), buf_len(&s->out), MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return wait_for_client(s);
		if (n < 0) {
			session_close(s);
			return false;
		}
		buf_consume(&s->out, (size_t)n);
	}
	buf_trim(&s->out);
	if (s->close_after_flush) {
		session_close(s);
		return false;
	}
	return true;
}

void
session_set_event(struct event *e, bool *added, bool want)
{
	if (*added == want)
		return;
	check((want ? event_add(e, NULL) : event_del(e)) == 0);
	*added = want;
}

static bool
wants_input(const struct session *s)
{
	size_t limit = s->cursor != NULL || s->stream != STREAM_NONE
	    ? SCRATCH_BYTES
	    : WHOLE_MAX + 1;

	return !s->end_of_file && !s->input_ended && session_has_room(s) &&
	    buf_len(&s->in) < limit;
}

void
client_update(struct session *s)
{
	if (s->closed)
		return;
	session_set_event(&s->read_event, &s->reading, wants_input(s));
	session_set_event(&s->write_event, &s->writing, buf_len(&s->out) != 0);
	upstream_update(s);
}

/* Reads once. The common case, nothing kept from before, lends the worker's
 * scratch to the input buffer: an idle session then holds no memory for it. */
static ssize_t
read_input(struct session *s)
{
	struct worker *w = s->worker;
	uint8_t *to;
	ssize_t n;

	if (buf_len(&s->in) == 0) {
		n = recv(s->fd, w->scratch, SCRATCH_BYTES, 0);
		if (n > 0) {
			size_t max = s->in.max;

			buf_fini(&s->in);
			s->in = (struct buf){.data = w->scratch,
			    .end = (size_t)n,
			    .capacity = (size_t)n,
			    .max = max};
			s->in_lent = true;
		}
		return n;
	}
	to = buf_reserve(&s->in, SCRATCH_BYTES);
	check(to != NULL); /* wants_input leaves room */
	n = recv(s->fd, to, SCRATCH_BYTES, 0);
	if (n > 0)
		buf_commit(&s->in, (size_t)n);
	return n;
}

/* Takes back what was lent; what is left moves to memory of its own. */
static void
return_input(struct session *s)
{
	struct buf own;

	if (!s->in_lent)
		return;
	s->in_lent = false;
	buf_init(&own, s->in.max);
	check(buf_append(&own, buf_head(&s->in), buf_len(&s->in)) == 0);
	s->in = own;
}

/* The client will send no more; whoever waits for ever is told so by closing. */
static void
on_end_of_file(struct session *s)
{
	struct slot *t;

	s->end_of_file = true;
	TAILQ_FOREACH (t, &s->slots, next) {
		if (t->blocking && t->state == SLOT_SENT) {
			session_close(s);
			return;
		}
	}
}

static void
on_client_read(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	ssize_t n;

	(void)fd;
	(void)what;
	session_enter(s);
	n = read_input(s);
	if (n < 0) {
		if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
			session_close(s);
		session_leave(s);
		return;
	}
	s->turn_ns = clock_boot_ns();
	if (n == 0)
		on_end_of_file(s);
	if (!s->closed)
		session_pump(s);
	return_input(s);
	session_leave(s);
}

static void
on_client_write(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;

	(void)fd;
	(void)what;
	session_enter(s);
	if (client_flush(s))
		session_pump(s);
	session_leave(s);
}

void
client_init(struct session *s)
{
	check(event_assign(&s->read_event, s->worker->base, s->fd,
		  EV_READ | EV_PERSIST, on_client_read, s) == 0);
	check(event_assign(&s->write_event, s->worker->base, s->fd,
		  EV_WRITE | EV_PERSIST, on_client_write, s) == 0);
}
