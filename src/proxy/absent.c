/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an absent key is answered with: the filter's absent-reply, or what Redis
 * answers for a missing key. A worker's thread.
 */
#include "config.h"

#include "core/check.h"
#include "proxy/session.h"
#include "resp/encode.h"

bool
answer_absent_error(struct session *s, size_t filter, struct slice *text)
{
	const struct filter_settings *f = &s->worker->settings->filters[filter];

	if (f->absent != SETTING_ABSENT_ERROR)
		return false;
	*text = slice_of(f->absent_text.data, f->absent_text.len);
	return true;
}

void
answer_put_absent(struct session *s, struct buf *b, size_t filter)
{
	const struct filter_settings *f = &s->worker->settings->filters[filter];

	if (f->absent == SETTING_ABSENT_VALUE)
		check(encode_bulk(b,
			  slice_of(f->absent_text.data, f->absent_text.len)) ==
		    0);
	else
		check(encode_nil(b, s->mode.proto) == 0);
}

void
answer_put_missing(struct session *s, struct buf *b, const struct slot *t)
{
	check(covered_put_missing(t->covered, s->mode.proto, t->elements, b) ==
	    0);
}

bool
answer_first_error(struct session *s, const struct slot *t, struct slice *text)
{
	size_t i;

	for (i = 0; i < t->key_count; i++)
		if (t->keys[i].verdict == KEY_ABSENT &&
		    answer_absent_error(s, t->keys[i].filter, text))
			return true;
	return false;
}

void
answer_absent(struct slot *t)
{
	t->send = SEND_NOTHING;
	t->source = SOURCE_FILTER;
	t->state = SLOT_ANSWERED;
	t->absent = true;
}

/* Moves b's bytes to the client. */
static void
put(struct session *s, struct buf *b)
{
	session_put(s, buf_head(b), buf_len(b));
	buf_consume(b, buf_len(b));
}

static void
put_all_absent(struct session *s, const struct slot *t)
{
	struct slice text;
	struct buf b;
	size_t i;

	buf_init(&b, SIZE_MAX / 4);
	if (answer_first_error(s, t, &text)) {
		check(encode_error_slice(&b, text) == 0);
	} else if (!t->covered->value) {
		answer_put_missing(s, &b, t);
	} else {
		if (t->covered->args == ARGS_KEYS)
			check(encode_array(&b, t->key_count) == 0);
		for (i = 0; i < t->key_count && !s->closed; i++) {
			answer_put_absent(s, &b, t->keys[i].filter);
			if (buf_len(&b) >= SCRATCH_BYTES)
				put(s, &b);
		}
	}
	put(s, &b);
	buf_fini(&b);
}

void
answer_write(struct session *s, const struct slot *t)
{
	if (t->absent)
		put_all_absent(s, t);
	else
		session_put(s, t->answer, t->answer_len);
}
