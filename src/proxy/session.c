/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session's life, the client's socket, and the pump: parse, decide, forward,
 * deliver, as long as anything moves. See session.h for the whole picture.
 */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "proxy/session.h"
#include "resp/encode.h"

static void on_client_read(evutil_socket_t fd, short what, void *arg);
static void on_client_write(evutil_socket_t fd, short what, void *arg);
static void update_events(struct session *s);

void
session_new(struct worker *w, int fd, const char *peer)
{
	struct session *s = mem_zalloc(1, sizeof(*s));
	struct request_limits limits = {
	    .bulk_bytes = w->settings->limit_bulk_bytes,
	    .request_bytes = w->settings->limit_request_bytes};

	s->magic = SESSION_MAGIC;
	s->worker = w;
	s->fd = fd;
	mode_init(&s->mode);
	TAILQ_INIT(&s->slots);
	request_init(&s->request, &limits);
	buf_init(&s->in, WHOLE_MAX + SCRATCH_BYTES);
	buf_init(&s->out, w->settings->limit_client_output_bytes);
	snprintf(s->peer, sizeof(s->peer), "%s", peer);
	check(event_assign(&s->read_event, w->base, fd, EV_READ | EV_PERSIST,
		  on_client_read, s) == 0);
	check(event_assign(&s->write_event, w->base, fd, EV_WRITE | EV_PERSIST,
		  on_client_write, s) == 0);
	upstream_init(s);
	TAILQ_INSERT_TAIL(&w->sessions, s, next);
	atomic_fetch_add_explicit(&w->session_count, 1, memory_order_relaxed);
	metric_add(w->metrics, METRIC_CLIENT_CONNECTIONS, STATE_PLAIN, 0, 1);
	metric_add(w->metrics, METRIC_CLIENT_CONNECTIONS_TOTAL, 0, 0, 1);
	update_events(s);
}

/* Frees every slot whose checks and adds have all come back. */
static void
free_slots(struct session *s)
{
	struct slot *t;

	while ((t = TAILQ_FIRST(&s->slots)) != NULL) {
		TAILQ_REMOVE(&s->slots, t, next);
		if (t->change != NULL) {
			mode_abandon(&s->mode, t->change);
			t->change = NULL;
		}
		t->pending = 0;
		slot_free(t);
	}
}

static void
free_session(struct session *s)
{
	free_slots(s);
	request_fini(&s->request);
	if (s->in_lent)
		s->in = (struct buf){0};
	buf_fini(&s->in);
	buf_fini(&s->out);
	mode_fini(&s->mode);
	s->magic = 0;
	free(s);
}

void
session_enter(struct session *s)
{
	check(s->magic == SESSION_MAGIC);
	s->busy++;
}

void
session_leave(struct session *s)
{
	check(s->busy > 0);
	if (--s->busy == 0 && s->closed && s->ops == 0)
		free_session(s);
}

void
session_close(struct session *s)
{
	struct worker *w = s->worker;

	if (s->closed)
		return;
	s->closed = true;
	upstream_close(s);
	event_del(&s->read_event);
	event_del(&s->write_event);
	close(s->fd);
	s->fd = -1;
	TAILQ_REMOVE(&w->sessions, s, next);
	atomic_fetch_sub_explicit(&w->session_count, 1, memory_order_relaxed);
	metric_sub(w->metrics, METRIC_CLIENT_CONNECTIONS, s->mode.level, 0, 1);
	/* Somebody up the stack may hold it still: session_leave frees it. */
	if (s->busy == 0 && s->ops == 0)
		free_session(s);
}

void
session_end_input(struct session *s)
{
	s->input_ended = true;
}

void
session_end(struct session *s)
{
	s->input_ended = true;
	s->close_after_flush = true;
}

void
session_put(struct session *s, const void *data, size_t len)
{
	if (s->closed)
		return;
	if (buf_append(&s->out, data, len) != 0) {
		log_warn("client_too_slow", LOG_STR("client", s->peer),
		    LOG_INT("unsent", buf_len(&s->out)),
		    LOG_STR("limit", "limits.client-output-bytes"));
		session_close(s);
	}
}

/* Writes what it can; false when the session closed. */
static bool
flush_client(struct session *s)
{
	while (buf_len(&s->out) != 0) {
		ssize_t n = send(
		    s->fd, buf_head(&s->out), buf_len(&s->out), MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return true;
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

static void
set_event(struct event *e, bool *added, bool want)
{
	if (*added == want)
		return;
	check((want ? event_add(e, NULL) : event_del(e)) == 0);
	*added = want;
}

/* True while both directions have room for what a new request may cause. */
static bool
has_room(const struct session *s)
{
	return buf_len(&s->out) < s->worker->output_pause &&
	    upstream_has_room(s) &&
	    s->slot_count < s->worker->settings->limit_pipeline;
}

static bool
wants_input(const struct session *s)
{
	size_t limit = s->cursor != NULL || s->stream != STREAM_NONE
	    ? SCRATCH_BYTES
	    : WHOLE_MAX + 1;

	return !s->end_of_file && !s->input_ended && has_room(s) &&
	    buf_len(&s->in) < limit;
}

static void
update_events(struct session *s)
{
	if (s->closed)
		return;
	set_event(&s->read_event, &s->reading, wants_input(s));
	set_event(&s->write_event, &s->writing, buf_len(&s->out) != 0);
	upstream_update(s);
}

void
session_pop(struct session *s)
{
	struct slot *t = TAILQ_FIRST(&s->slots);
	struct metrics *m = s->worker->metrics;

	check(t != NULL && t != s->cursor && t != s->held);
	if (t == s->stream_slot)
		s->stream_slot = NULL;
	metric_add(m, METRIC_COMMANDS_TOTAL, t->command, t->source, 1);
	metric_observe(m, METRIC_COMMAND_DURATION, t->source,
	    clock_boot_ns() - t->began_ns);
	if (t->protocol_end || t->quit)
		session_end(s);
	TAILQ_REMOVE(&s->slots, t, next);
	s->slot_count--;
	slot_free(t);
}

void
session_deliver(struct session *s)
{
	struct slot *t;

	while (!s->closed && (t = TAILQ_FIRST(&s->slots)) != NULL &&
	    t != s->cursor && t->state == SLOT_ANSWERED &&
	    (buf_len(&s->out) < s->worker->output_pause)) {
		session_put(s, t->answer, t->answer_len);
		if (!s->closed)
			session_pop(s);
	}
}

const uint8_t *
session_request_base(const struct session *s, const struct slot *t)
{
	if (t == s->cursor)
		return buf_head(&s->in);
	return buf_head(&s->in) + s->parsed - t->raw_len;
}

static struct slot *
append_slot(struct session *s, size_t raw_len)
{
	struct slot *t = slot_new(s->turn_ns);

	t->raw_len = raw_len;
	s->parsed += raw_len;
	TAILQ_INSERT_TAIL(&s->slots, t, next);
	s->slot_count++;
	if (s->cursor == NULL)
		s->cursor = t;
	return t;
}

/* The request at the parse position is not RESP: the same text and end as Redis,
 * behind the replies that are due before. */
static void
refuse(struct session *s)
{
	struct slot *t;

	metric_add(
	    s->worker->metrics, METRIC_CLIENT_PROTOCOL_ERRORS_TOTAL, 0, 0, 1);
	t = append_slot(s, buf_len(&s->in) - s->parsed);
	t->command = metric_command_index("other", 5);
	t->protocol_end = true;
	t->send = SEND_NOTHING;
	slot_answer_error(t, s->request.error);
	session_end_input(s);
}

/* Whatever follows in an opaque session is Redis's to judge. */
static void
pass_rest(struct session *s)
{
	size_t len = buf_len(&s->in);

	upstream_need(s);
	if (buf_append(&s->up_out, buf_head(&s->in), len) != 0)
		session_close(s);
	else
		buf_consume(&s->in, len);
	s->parsed = 0;
	session_end_input(s);
}

/* A request that is not whole: leave it, or begin to stream it. */
static bool
consider_stream(struct session *s, size_t available)
{
	if (available < STREAM_MIN || s->cursor != NULL)
		return false;
	if (available < WHOLE_MAX && !decide_may_stream(s))
		return false;
	forward_stream_start(s);
	return true;
}

static bool
can_parse(const struct session *s)
{
	return !s->closed && !s->input_ended && s->held == NULL &&
	    s->stream == STREAM_NONE && has_room(s) &&
	    buf_len(&s->in) > s->parsed;
}

/* Parses and decides one request; false when there is no whole one. */
static bool
parse_one(struct session *s)
{
	size_t available = buf_len(&s->in) - s->parsed;
	struct slot *t;

	/* Redis asks strangers to be brief, and so do we (FAULTS, A14). */
	request_set_unauthenticated(
	    &s->request, s->mode.user == NULL && s->worker->default_closed);
	switch (request_parse(
	    &s->request, buf_head(&s->in) + s->parsed, available)) {
	case PARSE_MORE:
		return consider_stream(s, available);
	case PARSE_BAD:
		if (s->mode.level == MODE_OPAQUE)
			pass_rest(s);
		else
			refuse(s);
		return true;
	case PARSE_READY:
		break;
	}
	if (s->request.empty) {
		/* No reply is due; its bytes go with the slot before. */
		if (s->cursor == NULL) {
			buf_consume(&s->in, s->request.size);
		} else {
			t = TAILQ_LAST(&s->slots, slots);
			t->raw_len += s->request.size;
			s->parsed += s->request.size;
		}
		request_reset(&s->request);
		return true;
	}
	t = append_slot(s, s->request.size);
	if (decide(s, t))
		request_reset(&s->request);
	else
		s->held = t;
	return true;
}

/* Forwards what may go, in order. */
static bool
advance(struct session *s)
{
	bool moved = false;

	while (!s->closed && s->cursor != NULL) {
		struct slot *t = s->cursor;
		struct slot *next = TAILQ_NEXT(t, next);

		if (t->state == SLOT_READY) {
			if (!forward_slot(s, t))
				break;
		} else if (t->state == SLOT_ANSWERED) {
			buf_consume(&s->in, t->raw_len);
			s->parsed -= t->raw_len;
		} else {
			break;
		}
		s->cursor = next;
		moved = true;
	}
	return moved;
}

static bool
step(struct session *s)
{
	bool moved = false;

	if (s->stream != STREAM_NONE)
		moved = forward_stream(s);
	if (!s->closed && s->held != NULL && decide(s, s->held)) {
		s->held = NULL;
		request_reset(&s->request);
		moved = true;
	}
	moved |= advance(s);
	session_deliver(s);
	if (can_parse(s))
		moved |= parse_one(s);
	return moved && !s->closed;
}

/* True when nothing that the client sent is unanswered and no more can come. */
static bool
is_finished(const struct session *s)
{
	if (s->slot_count != 0 || s->close_after_flush)
		return false;
	if (s->mode.level == MODE_OPAQUE)
		return false; /* Redis ends it: upstream_update half-closes */
	return s->input_ended || s->end_of_file ||
	    (s->worker->draining && buf_len(&s->in) == 0 &&
		s->stream == STREAM_NONE);
}

/* The client went in the middle of a request that streams. */
static bool
is_cut_off(const struct session *s)
{
	return s->end_of_file && s->stream == STREAM_FORWARD &&
	    buf_len(&s->in) == 0;
}

void
session_pump(struct session *s)
{
	if (s->pumping) {
		s->pump_again = true;
		return;
	}
	s->pumping = true;
	do {
		s->pump_again = false;
		while (!s->closed && step(s))
			;
	} while (!s->closed && s->pump_again);
	s->pumping = false;
	if (!s->closed && is_cut_off(s))
		session_close(s);
	if (!s->closed && is_finished(s))
		session_end(s);
	if (!s->closed)
		upstream_flush(s);
	if (!s->closed && flush_client(s))
		update_events(s);
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
	if (flush_client(s))
		session_pump(s);
	session_leave(s);
}

void
session_describe(const struct session *s, struct buf *out)
{
	static const char *const levels[] = {"plain", "forward_only", "opaque"};

	if (buf_printf(out,
		"client=%s db=%u resp=%d mode=%s in_flight=%zu unsent=%zu "
		"upstream=%s\n",
		s->peer, s->mode.db, s->mode.proto, levels[s->mode.level],
		s->slot_count, buf_len(&s->out),
		s->upstream == UPSTREAM_OPEN ? "open" : "none") != 0)
		return; /* a list that is too long is cut */
}
