/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The upstream's socket of a session once it is there: reading, writing, and its
 * loss. How it comes to be: connect.c. A worker's thread.
 */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/check.h"
#include "core/log.h"
#include "proxy/session.h"
#include "redis/resolve.h"

void
upstream_init(struct session *s)
{
	s->up_fd = -1;
	buf_init(&s->up_out, UP_OUT_MAX);
	buf_init(&s->up_in, SCRATCH_BYTES);
	reply_init(&s->reply);
	check(event_assign(&s->up_timer, s->worker->base, -1, 0,
		  upstream_on_timer, s) == 0);
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
		session_set_event(&s->up_read_event, &s->up_reading, false);
		session_set_event(&s->up_write_event, &s->up_writing, false);
		close(s->up_fd);
		s->up_fd = -1;
	}
	s->upstream = UPSTREAM_NONE;
	s->admitted = false;
	s->connect_tries = 0;
	buf_fini(&s->up_out);
	buf_fini(&s->up_in);
	reply_reset(&s->reply);
	s->relayed = false;
	s->stash_len = 0;
	s->swallow = false;
}

/* Nothing more will come for what was sent. */
static void
count_unanswered(struct session *s)
{
	const struct slot *t;

	session_count(s);
	TAILQ_FOREACH (t, &s->slots, next)
		if (t->state == SLOT_SENT)
			metric_sub(s->worker->metrics,
			    METRIC_UPSTREAM_IN_FLIGHT, 0, 0, t->count);
}

void
upstream_close(struct session *s)
{
	if (s->upstream != UPSTREAM_NONE)
		count_unanswered(s);
	drop_connection(s);
	reply_fini(&s->reply);
	reply_init(&s->reply);
}

/* The error in place of each reply that was due. True when what comes next would
 * not find the session that it was sent for: a SELECT or a MULTI, say, is lost. */
static bool
fail_sent(struct session *s, const char *reason)
{
	struct slot *t, *next;
	bool changed = false;
	char text[200];

	session_count(s);
	snprintf(text, sizeof(text), "ERR bloomgate: upstream %s", reason);
	for (t = TAILQ_FIRST(&s->slots); t != NULL && t != s->cursor;
	     t = next) {
		next = TAILQ_NEXT(t, next);
		if (t->state != SLOT_SENT)
			continue;
		metric_sub(s->worker->metrics, METRIC_UPSTREAM_IN_FLIGHT, 0, 0,
		    t->count);
		if (t->change != NULL && !t->change->harmless)
			changed = true;
		session_abandon_change(s, t);
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
	return changed;
}

void
upstream_lost(struct session *s, const char *reason)
{
	bool partial = s->relayed, held = s->stream == STREAM_HELD;
	struct slot *last = NULL, *t;

	metric_add(
	    s->worker->metrics, METRIC_UPSTREAM_ERRORS_TOTAL, ERROR_EOF, 0, 1);
	log_debug("upstream_lost", LOG_STR("client", s->peer),
	    LOG_STR("reason", reason));
	drop_connection(s);
	/* Half a reply cannot be taken back, what an opaque session had is gone,
	 * and after a protocol error Redis would have closed it. */
	if (partial || s->refused || s->mode.level == MODE_OPAQUE) {
		count_unanswered(s);
		session_end(s);
		return;
	}
	if (held) {
		last = s->stream_slot;
		forward_stream_lost(s, reason);
	}
	if (fail_sent(s, reason) || mode_is_stateful(&s->mode)) {
		/* The lost one of a stream is the last of all. */
		for (t = TAILQ_FIRST(&s->slots);
		     !held && t != NULL && t != s->cursor;
		     t = TAILQ_NEXT(t, next))
			last = t;
		session_end_input(s);
		if (last != NULL)
			last->protocol_end = true;
		else
			session_end(s);
	}
}

/*
 * response-timeout counts while the oldest request waits, whose every byte is
 * sent; what blocks by its nature, or may for all that is known, and what the
 * client does not read are not Redis's doing.
 */
static void
update_deadline(struct session *s)
{
	uint64_t ms = s->worker->settings->response_timeout_ms;
	const struct slot *t = TAILQ_FIRST(&s->slots);

	if (ms == 0)
		return;
	if (t == NULL || t == s->cursor || t->state != SLOT_SENT ||
	    t->blocking || t->unknown || t == s->stream_slot || !s->up_reading)
		evtimer_del(&s->up_timer);
	else if (!evtimer_pending(&s->up_timer, NULL))
		upstream_arm_timer(s, ms);
}

/* A late reply must find nobody: the connection goes. */
void
upstream_late(struct session *s)
{
	struct pollfd p = {.fd = s->up_fd, .events = POLLIN};

	/* It was us who were late where bytes wait to be read. */
	if (poll(&p, 1, 0) == 0)
		upstream_lost(s, "did not answer in time");
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
		if (n < 0) {
			/* Nobody will read it, and an event that says that it
			 * can be written would come again and again. */
			if (errno != EAGAIN && errno != EWOULDBLOCK)
				buf_consume(&s->up_out, buf_len(&s->up_out));
			break;
		}
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
	session_set_event(&s->up_read_event, &s->up_reading,
	    !session_is_full(s) && buf_len(&s->up_in) == 0);
	session_set_event(
	    &s->up_write_event, &s->up_writing, buf_len(&s->up_out) != 0);
	update_deadline(s);
	/* The client's end of input is Redis's to see where nobody counts
	 * replies. Asked again and again it does nothing new. */
	if (s->mode.level == MODE_OPAQUE && buf_len(&s->up_out) == 0 &&
	    (s->end_of_file || s->input_ended))
		(void)shutdown(s->up_fd, SHUT_WR);
}

/* What was read and has no room yet is kept. */
static void
feed(struct session *s, const uint8_t *data, size_t len)
{
	size_t used = answer_feed(s, data, len);

	if (used < len && !s->closed && s->upstream == UPSTREAM_OPEN)
		check(buf_append(&s->up_in, data + used, len - used) == 0);
}

bool
upstream_resume(struct session *s)
{
	size_t used;

	if (buf_len(&s->up_in) == 0 || session_is_full(s))
		return false;
	used = answer_feed(s, buf_head(&s->up_in), buf_len(&s->up_in));
	/* Both are empty where the connection was given up meanwhile. */
	if (!s->closed && s->upstream == UPSTREAM_OPEN) {
		buf_consume(&s->up_in, used);
		if (buf_len(&s->up_in) == 0)
			buf_fini(&s->up_in);
	}
	return true;
}

void
upstream_on_read(evutil_socket_t fd, short what, void *arg)
{
	struct session *s = arg;
	struct worker *w = s->worker;
	char text[80], reason[120];
	ssize_t n;

	(void)what;
	session_enter(s);
	/* What is read has room: reading stops at output_pause, and while
	 * anything that was read before waits. */
	check(buf_len(&s->up_in) == 0);
	n = recv(fd, w->scratch,
	    w->output_pause < SCRATCH_BYTES ? w->output_pause : SCRATCH_BYTES,
	    0);
	if (n > 0) {
		evtimer_del(&s->up_timer); /* what comes next counts anew */
		feed(s, w->scratch, (size_t)n);
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

void
upstream_on_write(evutil_socket_t fd, short what, void *arg)
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
			upstream_opened(s);
		else
			upstream_connect_failed(s, error);
	}
	if (!s->closed)
		session_pump(s);
	session_leave(s);
}
