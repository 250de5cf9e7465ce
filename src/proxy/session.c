/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session's life, and the pump: parse, decide, forward,
 * deliver, as long as anything moves. See session.h for the whole picture.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "proxy/session.h"
#include "resp/encode.h"

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
	s->turn_ns = clock_boot_ns();
	mode_init(&s->mode);
	TAILQ_INIT(&s->slots);
	request_init(&s->request, &limits);
	buf_init(&s->in, WHOLE_MAX + SCRATCH_BYTES);
	buf_init(&s->out, w->settings->limit_client_output_bytes);
	snprintf(s->peer, sizeof(s->peer), "%s", peer);
	client_init(s);
	upstream_init(s);
	TAILQ_INSERT_TAIL(&w->sessions, s, next);
	atomic_fetch_add_explicit(&w->session_count, 1, memory_order_relaxed);
	metric_add(w->metrics, METRIC_CLIENT_CONNECTIONS, STATE_PLAIN, 0, 1);
	metric_add(w->metrics, METRIC_CLIENT_CONNECTIONS_TOTAL, 0, 0, 1);
	client_update(s);
}

/* Frees every slot whose checks and adds have all come back. */
static void
free_slots(struct session *s)
{
	struct slot *t;

	while ((t = TAILQ_FIRST(&s->slots)) != NULL) {
		TAILQ_REMOVE(&s->slots, t, next);
		session_abandon_change(s, t);
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
	if (s->busy++ == 0)
		s->now_ns = 0;
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
session_count_level(struct session *s, enum mode_level before)
{
	struct metrics *m = s->worker->metrics;

	if (s->mode.level == before || s->closed)
		return; /* a closed one is counted no more */
	metric_sub(m, METRIC_CLIENT_CONNECTIONS, before, 0, 1);
	metric_add(m, METRIC_CLIENT_CONNECTIONS, s->mode.level, 0, 1);
}

void
session_abandon_change(struct session *s, struct slot *t)
{
	if (t->change == NULL)
		return;
	s->databases -= change_moves_database(t->change);
	mode_abandon(&s->mode, t->change);
	t->change = NULL;
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

void
session_pop(struct session *s, size_t replies)
{
	struct slot *t = TAILQ_FIRST(&s->slots);

	check(t != NULL && t != s->cursor && t != s->held);
	check(replies <= t->count);
	s->slot_count -= replies;
	t->answered += (unsigned)replies;
	t->count -= (unsigned)replies;
	if (t->count != 0)
		return;
	session_count(s);
	if (t == s->stream_slot)
		s->stream_slot = NULL;
	if (t->protocol_end || t->quit)
		session_end(s);
	TAILQ_REMOVE(&s->slots, t, next);
	slot_free(t);
}

void
session_count(struct session *s)
{
	struct slot *t = TAILQ_FIRST(&s->slots);
	struct metrics *m = s->worker->metrics;

	if (t == NULL || t->answered == 0)
		return;
	/* One look at the clock a callback is near enough. */
	if (s->now_ns == 0)
		s->now_ns = clock_boot_ns();
	if (t->state == SLOT_SENT)
		metric_sub(m, METRIC_UPSTREAM_IN_FLIGHT, 0, 0, t->answered);
	metric_add(
	    m, METRIC_COMMANDS_TOTAL, t->command, t->source, t->answered);
	metric_observe(m, METRIC_COMMAND_DURATION, t->source,
	    s->now_ns - t->began_ns, t->answered);
	t->answered = 0;
}

bool
session_deliver(struct session *s)
{
	struct slot *t;
	bool moved = false;

	while (!s->closed && (t = TAILQ_FIRST(&s->slots)) != NULL &&
	    t != s->cursor && t->state == SLOT_ANSWERED &&
	    !session_is_full(s)) {
		answer_write(s, t);
		if (!s->closed)
			session_pop(s, 1);
		moved = true;
	}
	session_count(s);
	return moved;
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

/* The parsed request may be one more of those right before it: it needs no slot
 * of its own then. */
static bool
extend_run(struct session *s)
{
	struct slot *run;
	size_t size = s->request.size;

	if (s->cursor == NULL)
		return false;
	run = TAILQ_LAST(&s->slots, slots);
	if (!slot_is_run(run, s->turn_ns) || !decide_passes(s, run->command))
		return false;
	slot_extend(run, size);
	s->slot_count++;
	s->parsed += size;
	return true;
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

/* Whatever follows in an opaque session is Redis's to judge: it closes in its own
 * time, behind a request that still blocks. */
static void
pass_rest(struct session *s)
{
	size_t len = buf_len(&s->in);

	check(s->cursor == NULL);
	upstream_need(s);
	if (buf_append(&s->up_out, buf_head(&s->in), len) != 0)
		session_close(s);
	else
		buf_consume(&s->in, len);
	s->parsed = 0;
}

/* A request that is not whole: leave it, or begin to stream it. */
static bool
consider_stream(struct session *s, size_t available)
{
	if (available < STREAM_MIN || s->cursor != NULL)
		return false;
	if (decide_table_missing(s) && !s->worker->upstream_failed)
		return false; /* worker_pump_all comes back here */
	if (available < WHOLE_MAX && !decide_may_stream(s))
		return false;
	forward_stream_start(s);
	return true;
}

static bool
can_parse(const struct session *s)
{
	return !s->closed && !s->input_ended && s->held == NULL &&
	    s->stream == STREAM_NONE && session_has_room(s) &&
	    buf_len(&s->in) > s->parsed;
}

/* Parses and decides one request; false when there is no whole one. */
static bool
parse_one(struct session *s)
{
	size_t available = buf_len(&s->in) - s->parsed;
	struct slot *t;

	if (s->unparsed) {
		pass_rest(s);
		return true;
	}
	request_set_unauthenticated(&s->request, session_is_stranger(s));
	switch (request_parse(
	    &s->request, buf_head(&s->in) + s->parsed, available)) {
	case PARSE_MORE:
		return consider_stream(s, available);
	case PARSE_BAD:
		if (s->mode.level != MODE_OPAQUE)
			refuse(s);
		else if (s->cursor != NULL)
			return false; /* what is before it goes first */
		else
			s->unparsed = true;
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
	if (!extend_run(s)) {
		t = append_slot(s, s->request.size);
		if (!decide(s, t)) {
			s->held = t;
			return true;
		}
	}
	request_reset(&s->request);
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
	bool moved;

	if (s->close_after_flush)
		return false; /* nothing more is due, so nothing is executed */
	moved = upstream_resume(s);
	if (!s->closed && s->stream != STREAM_NONE)
		moved |= forward_stream(s);
	if (!s->closed && s->held != NULL && decide(s, s->held)) {
		s->held = NULL;
		request_reset(&s->request);
		moved = true;
	}
	moved |= advance(s);
	moved |= session_deliver(s);
	while (can_parse(s) && parse_one(s))
		moved = true;
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

/* The client went in the middle of a request that streams, and has what was due
 * before it. */
static bool
is_cut_off(const struct session *s)
{
	return s->end_of_file && s->stream == STREAM_FORWARD &&
	    buf_len(&s->in) == 0 &&
	    (s->stream_slot == NULL ||
		s->stream_slot == TAILQ_FIRST(&s->slots));
}

/* Sends what is there. True when that made room which was missing: what stopped
 * for it must go on now, for no event will say so. */
static bool
flush_both(struct session *s)
{
	bool up = !upstream_has_room(s), client = session_is_full(s);

	upstream_flush(s);
	return client_flush(s) &&
	    ((up && upstream_has_room(s)) || (client && !session_is_full(s)));
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
	} while (!s->closed && (flush_both(s) || s->pump_again));
	s->pumping = false;
	/* Nothing may be sent here but for the end: what waits for room would not
	 * learn that there is some. */
	if (!s->closed && (is_cut_off(s) || is_finished(s))) {
		session_end(s);
		client_flush(s);
	}
	if (!s->closed)
		client_update(s);
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
