/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The upstream's replies on their way to the client, framed and given to the slot
 * that each belongs to. Most pass as they are, in one run of bytes; the others
 * are for replace.c.
 */
#include "config.h"

#include <string.h>

#include "core/check.h"
#include "core/log.h"
#include "core/mem.h"
#include "proxy/answer.h"
#include "resp/encode.h"

/* The longest reply that only a missing key has: +none. */
#define MISSING_MAX 7

void
answer_put_error(struct session *s, struct slice text)
{
	struct buf b;

	buf_init(&b, SIZE_MAX / 4);
	check(encode_error_slice(&b, text) == 0);
	session_put(s, buf_head(&b), buf_len(&b));
	buf_fini(&b);
}

/* Bytes of the reply being framed that go on as they are. */
void
answer_relay(struct session *s, const uint8_t *data, size_t len)
{
	if (len == 0)
		return;
	session_put(s, data, len);
	s->relayed = true;
}

static void
count_error(struct session *s, const struct reply *r)
{
	static const struct {
		const char *code;
		enum metric_error label;
	} codes[] = {{"-READONLY", ERROR_READONLY}, {"-LOADING", ERROR_LOADING},
	    {"-BUSY ", ERROR_BUSY}, {"-OOM", ERROR_OOM},
	    {"-NOAUTH", ERROR_NOAUTH}, {"-MOVED", ERROR_MOVED}};
	enum metric_error label = ERROR_OTHER;
	size_t i;

	for (i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (reply_head_starts(r, codes[i].code))
			label = codes[i].label;
	metric_add(
	    s->worker->metrics, METRIC_UPSTREAM_ERRORS_TOTAL, label, 0, 1);
}

/* The reply of a missing key that the filter did not rule out; where a key that
 * is there may be answered so too, nobody can tell. */
static void
count_false_positive(struct session *s, const struct slot *t)
{
	struct buf b;

	if (t->covered == NULL || !t->covered->tells ||
	    t->keys[0].verdict != KEY_MAYBE || s->reply.size > MISSING_MAX)
		return;
	buf_init(&b, REPLY_HEAD_MAX);
	answer_put_missing(s, &b, t);
	if (s->reply.head_len == buf_len(&b) &&
	    memcmp(s->reply.head, buf_head(&b), buf_len(&b)) == 0)
		metric_add(s->worker->metrics,
		    METRIC_FILTER_FALSE_POSITIVES_TOTAL, t->keys[0].filter, 0,
		    1);
	buf_fini(&b);
}

/* The framed reply is complete; t is the slot at the head. */
void
answer_complete(struct session *s, struct slot *t)
{
	bool last = true;
	bool early = t == s->stream_slot && t->streaming;

	if (reply_is_error(&s->reply))
		count_error(s, &s->reply);
	/* Strangers' limits are Redis's to judge while an AUTH is out; it
	 * closes then. */
	s->refused = reply_head_starts(
	    &s->reply, "-ERR Protocol error: unauthenticated");
	/* Nothing comes after it, what is answered here neither. Who is inside
	 * may have a script that says so. */
	if (s->refused && session_is_outside(s))
		t->protocol_end = true;
	count_false_positive(s, t);
	if (t->change != NULL) {
		bool database = change_moves_database(t->change);
		enum mode_level before = s->mode.level;

		if (t->change->effect == EFFECT_RESET)
			s->admitted = false;
		last = mode_reply(&s->mode, t->change, &s->reply);
		session_count_level(s, before);
		if (last) {
			t->change = NULL;
			s->databases -= database;
		}
	}
	reply_reset(&s->reply);
	s->relayed = false;
	s->stash_len = 0;
	s->swallow = false;
	if (!last || s->closed)
		return;
	if (early)
		forward_stream_answered(s);
	else
		session_pop(s, 1);
}

void
answer_bad_reply(struct session *s)
{
	log_error("upstream_not_resp", LOG_STR("client", s->peer),
	    LOG_STR("effect", "the session is closed"));
	session_end(s);
	upstream_close(s);
}

/* A reply that passes as it is; also what is no reply to anything (t NULL). */
static size_t
feed_relay(struct session *s, struct slot *t, const uint8_t *data, size_t len)
{
	size_t used = 0;
	enum parse_status status = reply_feed(&s->reply, data, len, &used);

	answer_relay(s, data, used);
	if (status == PARSE_BAD) {
		answer_bad_reply(s);
	} else if (status == PARSE_READY) {
		if (t == NULL ||
		    mode_out_of_band(&s->mode, &s->reply, t->change)) {
			reply_reset(&s->reply);
			s->relayed = false;
		} else {
			answer_complete(s, t);
		}
	}
	return used;
}

/* The plain replies of a run that are here leave together, unframed. */
static size_t
feed_run(struct session *s, struct slot *t, const uint8_t *data, size_t len)
{
	size_t count, used;

	if (t == NULL || t->count == 1 || s->reply.size != 0)
		return 0;
	used = reply_skip_plain(data, len, t->count, &count);
	if (used == 0)
		return 0;
	session_put(s, data, used);
	if (s->closed)
		return used;
	session_pop(s, count);
	return used;
}

/* DISCARD was sent for an EXEC that could not be. */
static size_t
feed_execabort(
    struct session *s, struct slot *t, const uint8_t *data, size_t len)
{
	size_t used = 0;
	enum parse_status status = reply_feed(&s->reply, data, len, &used);

	if (status == PARSE_BAD) {
		answer_bad_reply(s);
	} else if (status == PARSE_READY) {
		answer_put_error(s,
		    slice_str("EXECABORT Transaction discarded because of "
			      "previous errors."));
		answer_complete(s, t);
	}
	return used;
}

/* A reply to our own replay: refused, the session cannot be what it was. */
static size_t
feed_swallow(struct session *s, struct slot *t, const uint8_t *data, size_t len)
{
	size_t used = 0;
	enum parse_status status = reply_feed(&s->reply, data, len, &used);

	if (status == PARSE_BAD) {
		answer_bad_reply(s);
	} else if (status == PARSE_READY && reply_is_error(&s->reply)) {
		log_warn("session_not_rebuilt", LOG_STR("client", s->peer),
		    LOG_SLICE(
			"error", slice_of(s->reply.head, s->reply.head_len)));
		session_end(s);
		upstream_close(s);
	} else if (status == PARSE_READY) {
		metric_sub(
		    s->worker->metrics, METRIC_UPSTREAM_IN_FLIGHT, 0, 0, 1);
		TAILQ_REMOVE(&s->slots, t, next);
		s->slot_count--;
		slot_free(t);
		reply_reset(&s->reply);
	}
	return used;
}

static bool
is_full(struct session *s)
{
	/* Who reads makes room at once. */
	return session_is_full(s) && (!client_flush(s) || session_is_full(s));
}

/* Answers that wait before the next reply leave. False when the client has no
 * room; else *t is the slot that the reply belongs to, NULL for none. */
static bool
next_slot(struct session *s, struct slot **t)
{
	while (!is_full(s)) {
		*t = TAILQ_FIRST(&s->slots);
		if (*t == s->cursor)
			*t = NULL;
		if (*t == NULL || (*t)->state != SLOT_ANSWERED)
			return true;
		answer_write(s, *t);
		if (s->closed)
			return false;
		session_pop(s, 1);
	}
	return false;
}

/* A push comes in between and is no reply, whatever is due. */
static bool
is_push(const struct session *s, const uint8_t *data)
{
	if (s->reply.size == 0)
		return data[0] == '>';
	return s->reply.head_len != 0 && s->reply.head[0] == '>';
}

static size_t
feed(struct session *s, struct slot *t, const uint8_t *data, size_t len)
{
	size_t used;

	switch (t != NULL && !is_push(s, data) ? t->shape : SHAPE_RELAY) {
	case SHAPE_RELAY:
		used = feed_run(s, t, data, len);
		return used != 0 ? used : feed_relay(s, t, data, len);
	case SHAPE_ELEMENTS:
		return replace_elements(s, t, data, len);
	case SHAPE_MISSING:
		return replace_missing(s, t, data, len);
	case SHAPE_COUNT:
		return replace_count(s, t, data, len);
	case SHAPE_EXECABORT:
		return feed_execabort(s, t, data, len);
	case SHAPE_SWALLOW:
		return feed_swallow(s, t, data, len);
	}
	check(false);
	return 0;
}

size_t
answer_feed(struct session *s, const uint8_t *data, size_t len)
{
	struct slot *t;
	size_t used = 0;

	while (used < len && !s->closed && s->upstream == UPSTREAM_OPEN) {
		if (s->close_after_flush && s->mode.level != MODE_OPAQUE)
			return len; /* after QUIT and the like nothing is due */
		if (!next_slot(s, &t))
			break;
		/* Of an opaque session only the replay's replies are known. */
		if (s->mode.level == MODE_OPAQUE &&
		    (t == NULL || t->shape != SHAPE_SWALLOW)) {
			session_put(s, data + used, len - used);
			return len;
		}
		used += feed(s, t, data + used, len - used);
	}
	session_count(s);
	return used;
}
