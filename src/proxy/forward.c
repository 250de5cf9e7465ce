/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes to the upstream. A whole request is copied from the input buffer, or made
 * anew without its absent keys. A large one streams: all but its last byte goes
 * ahead (Redis executes nothing earlier), and the last byte follows when the
 * elements it adds are acknowledged.
 *
 *   NONE -> FORWARD -> HELD -> NONE	 the request is complete, its adds are out
 *	     FORWARD -> NONE		 complete, nothing to add
 *	     FORWARD -> DISCARD -> NONE	 the upstream is lost, or has answered
 *   NONE -> DISCARD -> NONE		 it is for bloomgate and too large
 */
#include "config.h"

#include <stdio.h>

#include "core/check.h"
#include "core/mem.h"
#include "proxy/session.h"
#include "resp/encode.h"

/* What may be kept of a request that streams: its keys, cut, and a few bytes for
 * each argument. A million arguments are far below it. */
#define STREAM_MEMORY_MAX (REQUEST_KEPT_MAX * 2)

/* The request with its absent keys left out. */
static void
put_split(struct session *s, const struct slot *t)
{
	struct worker *w = s->worker;
	const uint8_t *base = session_request_base(s, t);
	size_t argc = 1, i;

	w->argv[0] = slice_str(t->covered->name);
	for (i = 0; i < t->key_count; i++)
		if (t->keys[i].verdict != KEY_ABSENT)
			w->argv[argc++] = slice_of(
			    base + t->keys[i].offset, t->keys[i].len);
	check(encode_request(&s->up_out, w->argv, argc) == 0);
}

bool
forward_slot(struct session *s, struct slot *t)
{
	struct slice discard = slice_str("DISCARD");

	check(t == s->cursor && t->state == SLOT_READY);
	if (!upstream_has_room(s))
		return false;
	upstream_need(s);
	switch (t->send) {
	case SEND_RAW:
		check(
		    buf_append(&s->up_out, buf_head(&s->in), t->raw_len) == 0);
		break;
	case SEND_SPLIT:
		put_split(s, t);
		break;
	case SEND_DISCARD:
		check(encode_request(&s->up_out, &discard, 1) == 0);
		break;
	case SEND_NOTHING:
		check(false);
	}
	buf_consume(&s->in, t->raw_len);
	s->parsed -= t->raw_len;
	t->state = SLOT_SENT;
	if (s->mode.level == MODE_OPAQUE) {
		/* Nobody counts its replies. */
		s->cursor = TAILQ_NEXT(t, next);
		TAILQ_REMOVE(&s->slots, t, next);
		s->slot_count -= t->count;
		slot_free(t);
	} else {
		metric_add(s->worker->metrics, METRIC_UPSTREAM_IN_FLIGHT, 0, 0,
		    t->count);
	}
	return true;
}

static struct slot *
stream_slot_new(struct session *s)
{
	struct slot *t = slot_new(s->turn_ns);

	t->streaming = true;
	t->state = SLOT_SENT;
	TAILQ_INSERT_TAIL(&s->slots, t, next);
	s->slot_count++;
	return t;
}

/* What is too large to be kept whole and is not Redis's to answer. */
static void
refuse_large(struct session *s, struct slot *t)
{
	char text[160];

	snprintf(text, sizeof(text),
	    "ERR bloomgate: a request of more than %d bytes can only be "
	    "forwarded; send this command in smaller parts",
	    WHOLE_MAX);
	t->send = SEND_NOTHING;
	slot_answer_error(
	    t, decide_table_missing(s) ? TABLE_MISSING_TEXT : text);
	s->stream = STREAM_DISCARD;
}

void
forward_stream_start(struct session *s)
{
	struct worker *w = s->worker;
	const uint8_t *base = buf_head(&s->in);
	bool may = decide_may_stream(s);
	const struct command *c = NULL;
	struct slot *t = NULL;

	check(s->cursor == NULL && s->parsed == 0);
	if (s->request.argc > 0)
		c = command_find(
		    w->commands, request_arg(&s->request, base, 0));
	/* A covered read that large is Redis's alone. */
	if (!may && c != NULL && c->covered != NULL)
		may = !decide_table_missing(s);
	request_detach(&s->request, base);
	buf_consume(&s->in, s->request.size);
	s->stream_has_last = false;
	s->stream = STREAM_FORWARD;
	if (s->mode.level != MODE_OPAQUE) {
		t = stream_slot_new(s);
		t->command = metric_command_index(c != NULL ? c->name : "other",
		    c != NULL ? strlen(c->name) : 5);
	}
	s->stream_slot = t;
	if (!may && t != NULL) {
		refuse_large(s, t);
		return;
	}
	if (t != NULL)
		metric_add(w->metrics, METRIC_UPSTREAM_IN_FLIGHT, 0, 0, 1);
	upstream_need(s);
	/* What was parsed so far has left the input buffer: it goes first. */
	check(buf_append(&s->up_out, base, s->request.size - 1) == 0);
	s->stream_last = base[s->request.size - 1];
	s->stream_has_last = true;
}

static void
stream_done(struct session *s)
{
	s->stream = STREAM_NONE;
	s->stream_slot = NULL;
	request_reset(&s->request);
}

/* The bytes are not RESP after all, or too many. */
static void
stream_bad(struct session *s)
{
	struct slot *t = s->stream_slot;
	bool sent = s->stream == STREAM_FORWARD;

	session_end_input(s);
	if (t == NULL) {
		/* Answered already, or opaque: nothing is left to say. */
		s->stream = STREAM_NONE;
		session_end(s);
		return;
	}
	s->stream_slot = NULL;
	t->protocol_end = true;
	if (sent) {
		t->send = SEND_NOTHING;
		slot_answer_error(t, s->request.error);
		metric_sub(
		    s->worker->metrics, METRIC_UPSTREAM_IN_FLIGHT, 0, 0, 1);
		/* A part has left; the connection can serve nobody else. */
		upstream_lost(s, "closed after a request that is not RESP");
	}
	s->stream = STREAM_NONE;
}

/* The request is complete but for the byte held back. */
static void
stream_complete(struct session *s)
{
	struct worker *w = s->worker;
	size_t argc = decide_argv(s, NULL);
	const struct command *c = command_find(w->commands, w->argv[0]);
	struct slot *t = s->stream_slot;

	if (s->stream == STREAM_DISCARD) {
		stream_done(s);
		return;
	}
	if (t != NULL) {
		slot_set_command(t, c);
		if (decide_mode(s, c, w->argv, argc, t) != MODE_SEND)
			check(false); /* decide_may_stream let only these by */
	}
	s->stream = STREAM_HELD;
	if (learn_start(s, t, c, w->argv, argc) == 0 && !s->closed)
		forward_stream_release(s, t != NULL ? t->failure : NULL);
}

bool
forward_stream(struct session *s)
{
	size_t available = buf_len(&s->in), used = 0;
	const uint8_t *data;
	enum parse_status status;

	if (s->stream == STREAM_HELD || available == 0)
		return false;
	if (s->stream == STREAM_FORWARD && !upstream_has_room(s))
		return false;
	if (available > SCRATCH_BYTES)
		available = SCRATCH_BYTES;
	data = buf_head(&s->in);
	status = request_feed(&s->request, data, available, &used);
	if (s->stream == STREAM_FORWARD && used > 0) {
		check(!s->stream_has_last ||
		    buf_append(&s->up_out, &s->stream_last, 1) == 0);
		check(buf_append(&s->up_out, data, used - 1) == 0);
		s->stream_last = data[used - 1];
		s->stream_has_last = true;
	}
	buf_consume(&s->in, used);
	if (status == PARSE_MORE &&
	    request_memory(&s->request) > STREAM_MEMORY_MAX) {
		snprintf(s->request.error, sizeof(s->request.error),
		    "ERR bloomgate: the request holds too many arguments; "
		    "send it in smaller parts");
		status = PARSE_BAD;
	}
	if (status == PARSE_BAD)
		stream_bad(s);
	else if (status == PARSE_READY)
		stream_complete(s);
	return !s->closed;
}

void
forward_stream_release(struct session *s, const char *failure)
{
	struct slot *t = s->stream_slot;
	char text[300];

	check(s->stream == STREAM_HELD);
	if (failure == NULL) {
		check(buf_append(&s->up_out, &s->stream_last, 1) == 0);
		if (t != NULL)
			t->streaming = false;
		stream_done(s);
		return;
	}
	/* Not executed: its last byte never leaves. */
	if (t == NULL) {
		session_end(s);
		return;
	}
	snprintf(
	    text, sizeof(text), "ERR bloomgate: not executed: %s", failure);
	s->stream_slot = NULL;
	session_abandon_change(s, t);
	slot_answer_error(t, text);
	metric_sub(s->worker->metrics, METRIC_UPSTREAM_IN_FLIGHT, 0, 0, 1);
	stream_done(s);
	upstream_lost(s, "closed after a write that was not executed");
}

/* Nothing may be forwarded, and so be answered, before t has its answer. */
static void
wait_for_adds(struct session *s, struct slot *t)
{
	check(s->cursor == NULL && TAILQ_NEXT(t, next) == NULL);
	t->streaming = false;
	t->state = SLOT_PENDING;
	s->cursor = t;
}

void
forward_stream_lost(struct session *s, const char *reason)
{
	struct slot *t = s->stream_slot;

	check(s->stream == STREAM_HELD && t != NULL && t->pending > 0);
	if (t->failure == NULL)
		t->failure = mem_printf("upstream %s", reason);
	metric_sub(s->worker->metrics, METRIC_UPSTREAM_IN_FLIGHT, 0, 0, 1);
	wait_for_adds(s, t);
	stream_done(s);
}

void
forward_stream_answered(struct session *s)
{
	struct slot *t = s->stream_slot;

	s->stream_slot = NULL;
	if (t->pending != 0) {
		/* The adds still point to it. */
		metric_sub(
		    s->worker->metrics, METRIC_UPSTREAM_IN_FLIGHT, 0, 0, 1);
		t->replied = true;
		wait_for_adds(s, t);
	} else {
		session_pop(s, 1);
	}
	if (s->stream == STREAM_HELD)
		stream_done(s);
	else
		s->stream = STREAM_DISCARD;
	/* It would take what comes next for the rest of this request. */
	upstream_lost(s, "closed after an answer to a part of a request");
}
