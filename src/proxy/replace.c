/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies that do not pass as they are: elements that are local come between
 * Redis's (MGET), and where Redis says "missing" of a key that the filter calls
 * absent, the filter's absent reply takes its place. A worker's thread.
 */
#include "config.h"

#include <string.h>

#include "core/check.h"
#include "core/mem.h"
#include "proxy/answer.h"
#include "resp/encode.h"

/* The longest element that means "missing": $-1, or _ under RESP3. */
#define NIL_MAX 5

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

/* What was kept back turns out to be an ordinary reply. */
static void
relay_stash(struct session *s)
{
	answer_relay(s, s->stash, s->stash_len);
	s->stash_len = 0;
}

/* The same bytes as those that were kept back. */
static void
relay_matched(struct session *s, struct slot *t)
{
	answer_relay(s, t->answer, t->position);
	t->position = 0;
}

/* The absent key's reply, in the filter's way. */
static void
put_replacement(struct session *s, struct slot *t)
{
	struct slice text;

	t->source = SOURCE_FILTER;
	if (answer_absent_error(s, t->keys[0].filter, &text))
		answer_put_error(s, text);
	else if (t->covered->value)
		put_absent(s, t->keys[0].filter);
	else
		relay_matched(s, t);
}

/* A read of one absent key: as long as the reply is like the one for a missing
 * key it is kept back, for the absent reply may take its place. */
size_t
replace_missing(
    struct session *s, struct slot *t, const uint8_t *data, size_t len)
{
	size_t used = 0;
	enum parse_status status = reply_feed(&s->reply, data, len, &used);

	if (status == PARSE_BAD) {
		answer_bad_reply(s);
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
		answer_relay(s, data, used);
	}
	if (status == PARSE_READY) {
		if (t->position == t->answer_len)
			put_replacement(s, t);
		else
			relay_matched(s, t);
		answer_complete(s, t);
	}
	return used;
}

/* EXISTS with an absent key whose filter answers with an error: said once Redis
 * has counted, which shows that the user may read. */
size_t
replace_count(
    struct session *s, struct slot *t, const uint8_t *data, size_t len)
{
	struct slice text;
	size_t used = 0, i;
	enum parse_status status = reply_feed(&s->reply, data, len, &used);

	if (status == PARSE_BAD) {
		answer_bad_reply(s);
		return used;
	}
	if (s->relayed || s->stash_len + used > sizeof(s->stash)) {
		relay_stash(s);
		answer_relay(s, data, used);
	} else {
		for (i = 0; i < used; i++)
			s->stash[s->stash_len++] = data[i];
	}
	if (status != PARSE_READY)
		return used;
	if (s->reply.type == ':' && answer_first_error(s, t, &text) &&
	    s->reply.number <= (int64_t)(t->key_count - slot_absent_count(t))) {
		answer_put_error(s, text);
		t->source = SOURCE_FILTER;
	} else {
		relay_stash(s);
	}
	answer_complete(s, t);
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
		answer_put_error(s, text);
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

size_t
replace_elements(
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
		answer_bad_reply(s);
		return used;
	}
	if (in_header && type != '*') {
		/* An error as it is; nothing else can be merged with. */
		if (t->send == SEND_SPLIT && type != '-' && type != '!') {
			answer_bad_reply(s);
			return used;
		}
		t->shape = SHAPE_RELAY;
		answer_relay(s, data, used);
		if (status == PARSE_READY)
			answer_complete(s, t);
		return used;
	}
	if (in_header) {
		s->stash[0] = '*';
		if (element && s->reply.number != elements_due(t)) {
			answer_bad_reply(s);
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
		answer_complete(s, t);
	return used;
}
