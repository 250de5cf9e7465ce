/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The upstream's replies on their way to the client. Most pass as they are, in
 * one run of bytes. The replies of split and of watched reads are taken apart by
 * elements: what is local is put between them, and where Redis says "missing" of
 * a key that the filter calls absent, the filter's absent reply takes its place.
 */
#include "config.h"

#include <string.h>

#include "core/check.h"
#include "core/log.h"
#include "core/mem.h"
#include "proxy/session.h"
#include "resp/encode.h"

/* The longest element that means "missing": $-1, or _ under RESP3. */
#define NIL_MAX 5
/* The longest reply that only a missing key has: +none. */
#define MISSING_MAX 7

static void
put_buf(struct session *s, struct buf *b)
{
	session_put(s, buf_head(b), buf_len(b));
	buf_fini(b);
}

static void
put_absent(struct session *s, size_t filter)
{
	struct buf b;

	buf_init(&b, SIZE_MAX / 4);
	answer_put_absent(s, &b, filter);
	put_buf(s, &b);
}

static void
put_error(struct session *s, struct slice text)
{
	struct buf b;

	buf_init(&b, SIZE_MAX / 4);
	check(encode_error_slice(&b, text) == 0);
	put_buf(s, &b);
}

/* Bytes of the reply being framed that go on as they are. */
static void
relay(struct session *s, const uint8_t *data, size_t len)
{
	if (len == 0)
		return;
	session_put(s, data, len);
	s->relayed = true;
}

/* What was kept back turns out to be an ordinary reply. */
static void
relay_stash(struct session *s)
{
	relay(s, s->stash, s->stash_len);
	s->stash_len = 0;
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

/* response-timeout counts anew for the next reply. */
static void
count_anew(struct session *s)
{
	if (s->worker->settings->response_timeout_ms != 0)
		evtimer_del(&s->up_timer);
}

/* The framed reply is complete; t is the slot at the head. */
static void
complete(struct session *s, struct slot *t)
{
	bool last = true;
	bool early = t == s->stream_slot && t->streaming;

	if (reply_is_error(&s->reply))
		count_error(s, &s->reply);
	/* Strangers' limits are Redis's to judge while an AUTH is out; it
	 * closes then. */
	s->refused = reply_head_starts(
	    &s->reply, "-ERR Protocol error: unauthenticated");
	count_false_positive(s, t);
	if (t->change != NULL) {
		bool database = change_moves_database(t->change);
		enum mode_level before = s->mode.level;

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
	count_anew(s);
	if (!last || s->closed)
		return;
	if (early)
		forward_stream_answered(s);
	else
		session_pop(s, 1);
}

static void
bad_reply(struct session *s)
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

	relay(s, data, used);
	if (status == PARSE_BAD) {
		bad_reply(s);
	} else if (status == PARSE_READY) {
		if (t == NULL ||
		    mode_out_of_band(&s->mode, &s->reply, t->change)) {
			reply_reset(&s->reply);
			s->relayed = false;
		} else {
			complete(s, t);
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
	count_anew(s);
	session_pop(s, count);
	return used;
}

/* The same bytes as those that were kept back. */
static void
relay_matched(struct session *s, struct slot *t)
{
	relay(s, t->answer, t->position);
	t->position = 0;
}

/* The absent key's reply, in the filter's way. */
static void
put_replacement(struct session *s, struct slot *t)
{
	struct slice text;

	t->source = SOURCE_FILTER;
	if (answer_absent_error(s, t->keys[0].filter, &text))
		put_error(s, text);
	else if (t->covered->value)
		put_absent(s, t->keys[0].filter);
	else
		relay_matched(s, t);
}

/* A read of one absent key: as long as the reply is like the one for a missing
 * key it is kept back, for the absent reply may take its place. */
static size_t
feed_missing(struct session *s, struct slot *t, const uint8_t *data, size_t len)
{
	size_t used = 0;
	enum parse_status status = reply_feed(&s->reply, data, len, &used);

	if (status == PARSE_BAD) {
		bad_reply(s);
		return used;
	}
	if (t->answer == NULL) {
		struct buf b;

		buf_init(&b, SIZE_MAX / 4);
		answer_put_missing(s, &b, t);
		t->answer_len = buf_len(&b);
		t->answer = mem_dup(buf_head(&b), t->answer_len);
		buf_fini(&b);
	}
	if (!s->relayed && used <= t->answer_len - t->position &&
	    memcmp(data, t->answer + t->position, used) == 0) {
		t->position += used;
	} else {
		relay_matched(s, t);
		relay(s, data, used);
	}
	if (status == PARSE_READY) {
		if (t->position == t->answer_len)
			put_replacement(s, t);
		else
			relay_matched(s, t);
		complete(s, t);
	}
	return used;
}

/* EXISTS with an absent key whose filter answers with an error: said once Redis
 * has counted, which shows that the user may read. */
static size_t
feed_count(struct session *s, struct slot *t, const uint8_t *data, size_t len)
{
	struct slice text;
	size_t used = 0, i;
	enum parse_status status = reply_feed(&s->reply, data, len, &used);

	if (status == PARSE_BAD) {
		bad_reply(s);
		return used;
	}
	if (s->relayed || s->stash_len + used > sizeof(s->stash)) {
		relay_stash(s);
		relay(s, data, used);
	} else {
		for (i = 0; i < used; i++)
			s->stash[s->stash_len++] = data[i];
	}
	if (status != PARSE_READY)
		return used;
	if (s->reply.type == ':' && answer_first_error(s, t, &text) &&
	    s->reply.number <= (int64_t)(t->key_count - slot_absent_count(t))) {
		put_error(s, text);
		t->source = SOURCE_FILTER;
	} else {
		relay_stash(s);
	}
	complete(s, t);
	return used;
}

/* The elements that are not in the upstream's reply and come next. */
static void
put_local_elements(struct session *s, struct slot *t)
{
	while (t->permitted && t->position < t->key_count &&
	    t->keys[t->position].verdict == KEY_ABSENT) {
		put_absent(s, t->keys[t->position].filter);
		t->position++;
	}
}

/* The header of the elements, as many as the client asked for; where an absent
 * key is to be an error, that instead of everything. */
static void
begin_elements(struct session *s, struct slot *t)
{
	struct slice text;
	struct buf b;

	if (answer_first_error(s, t, &text)) {
		put_error(s, text);
		t->source = SOURCE_FILTER;
		s->swallow = true;
		s->relayed = true; /* its one answer has left */
		return;
	}
	buf_init(&b, 64);
	check(encode_array(&b, t->key_count) == 0);
	put_buf(s, &b);
	s->relayed = true;
	put_local_elements(s, t);
}

/* An element has ended; what is kept of it is in the stash. */
static void
end_element(struct session *s, struct slot *t)
{
	const struct slot_key *k = &t->keys[t->position];
	bool nil = (s->stash_len == 5 && !memcmp(s->stash, "$-1\r\n", 5)) ||
	    (s->stash_len == 3 && !memcmp(s->stash, "_\r\n", 3));

	if (nil && k->verdict == KEY_MAYBE)
		metric_add(s->worker->metrics,
		    METRIC_FILTER_FALSE_POSITIVES_TOTAL, k->filter, 0, 1);
	if (nil && k->verdict == KEY_ABSENT) {
		put_absent(s, k->filter);
		s->stash_len = 0;
	} else {
		session_put(s, s->stash, s->stash_len);
		s->stash_len = 0;
	}
	t->position++;
	put_local_elements(s, t);
}

/* Keeps up to NIL_MAX bytes of an element back until it is clear what they are. */
static void
keep_element(struct session *s, const uint8_t *data, size_t len, bool *started)
{
	if (!*started && s->stash_len + len <= NIL_MAX) {
		memcpy(s->stash + s->stash_len, data, len);
		s->stash_len += len;
		return;
	}
	*started = true;
	session_put(s, s->stash, s->stash_len);
	s->stash_len = 0;
	session_put(s, data, len);
}

/* How many elements the upstream was asked for. */
static int64_t
elements_due(const struct slot *t)
{
	return (
	    int64_t)(t->key_count - (t->permitted ? slot_absent_count(t) : 0));
}

static size_t
feed_elements(
    struct session *s, struct slot *t, const uint8_t *data, size_t len)
{
	size_t used = 0;
	bool element = false;
	bool first = s->reply.size == 0;
	bool in_header = t->position == 0 && !s->relayed && !s->swallow;
	uint8_t type = first ? data[0] : (uint8_t)s->stash[0];
	enum parse_status status;

	status = reply_feed_element(&s->reply, data, len, &used, &element);
	if (status == PARSE_BAD) {
		bad_reply(s);
		return used;
	}
	if (in_header && type != '*') {
		/* An error as it is; nothing else can be merged with. */
		if (t->send == SEND_SPLIT && type != '-' && type != '!') {
			bad_reply(s);
			return used;
		}
		t->shape = SHAPE_RELAY;
		relay(s, data, used);
		if (status == PARSE_READY)
			complete(s, t);
		return used;
	}
	if (in_header) {
		s->stash[0] = '*';
		if (element && s->reply.number != elements_due(t)) {
			bad_reply(s);
			return used;
		}
		if (element)
			begin_elements(s, t);
	} else if (!s->swallow) {
		keep_element(s, data, used, &t->element_out);
		if (element) {
			end_element(s, t);
			t->element_out = false;
		}
	}
	if (status == PARSE_READY)
		complete(s, t);
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
		bad_reply(s);
	} else if (status == PARSE_READY) {
		put_error(s,
		    slice_str("EXECABORT Transaction discarded because of "
			      "previous errors."));
		complete(s, t);
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
		bad_reply(s);
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
	return buf_len(&s->out) >= s->worker->output_pause &&
	    (!client_flush(s) || buf_len(&s->out) >= s->worker->output_pause);
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
		return feed_elements(s, t, data, len);
	case SHAPE_MISSING:
		return feed_missing(s, t, data, len);
	case SHAPE_COUNT:
		return feed_count(s, t, data, len);
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
