/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading of hiredis's replies for those who may not know hiredis. NULL stands
 * for "no reply" everywhere and is never taken for an answer.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <hiredis/hiredis.h>

#include "core/mem.h"
#include "redis/link_private.h"

enum link_reply_type
link_reply_type(const struct redisReply *r)
{
	if (r == NULL)
		return LINK_NONE;
	switch (r->type) {
	case REDIS_REPLY_STATUS:
		return LINK_STATUS;
	case REDIS_REPLY_ERROR:
		return LINK_ERROR;
	case REDIS_REPLY_INTEGER:
		return LINK_INTEGER;
	case REDIS_REPLY_STRING:
		return LINK_STRING;
	case REDIS_REPLY_NIL:
		return LINK_NIL;
	case REDIS_REPLY_ARRAY:
		return LINK_ARRAY;
	default:
		return LINK_NONE; /* RESP3: never asked for */
	}
}

struct slice
link_reply_text(const struct redisReply *r)
{
	switch (link_reply_type(r)) {
	case LINK_STATUS:
	case LINK_ERROR:
	case LINK_STRING:
		return slice_of(r->str, r->len);
	default:
		return slice_of(NULL, 0);
	}
}

/* Decimal text counts as an integer: scripts answer large numbers as text. */
int64_t
link_reply_integer(const struct redisReply *r)
{
	int64_t n;

	switch (link_reply_type(r)) {
	case LINK_INTEGER:
		return r->integer;
	case LINK_STATUS:
	case LINK_STRING:
		return slice_to_int64(link_reply_text(r), &n) == 0 ? n : 0;
	default:
		return 0;
	}
}

size_t
link_reply_count(const struct redisReply *r)
{
	return link_reply_type(r) == LINK_ARRAY ? r->elements : 0;
}

const struct redisReply *
link_reply_at(const struct redisReply *r, size_t i)
{
	return i < link_reply_count(r) ? r->element[i] : NULL;
}

const struct redisReply *
link_reply_field(const struct redisReply *r, const char *name)
{
	size_t n = link_reply_count(r);

	for (size_t i = 0; i + 1 < n; i += 2)
		if (slice_is(link_reply_text(link_reply_at(r, i)), name))
			return link_reply_at(r, i + 1);
	return NULL;
}

/* True when text holds code at offset at, and the word ends there. */
static bool
is_word(struct slice text, size_t at, const char *code)
{
	size_t len = strlen(code);

	return text.len >= at + len && memcmp(text.data + at, code, len) == 0 &&
	    (text.len == at + len || text.data[at + len] == ' ');
}

/*
 * Before Redis 7 the error of a command within a script is wrapped: "ERR Error
 * running script (call to f_SHA): @user_script:1: @user_script: 1: -OOM ...".
 */
bool
link_reply_is_error(const struct redisReply *r, const char *code)
{
	static const char wrapper[] = "ERR Error running script";
	struct slice text = link_reply_text(r);

	if (link_reply_type(r) != LINK_ERROR)
		return false;
	if (is_word(text, 0, code))
		return true;
	if (text.len < sizeof(wrapper) ||
	    memcmp(text.data, wrapper, sizeof(wrapper) - 1) != 0)
		return false;
	for (size_t i = sizeof(wrapper); i + 1 < text.len; i++) {
		if (text.data[i] == ' ' && text.data[i + 1] == '-')
			return is_word(text, i + 2, code);
	}
	return false;
}

struct redisReply *
reply_take(const struct redisReply *r)
{
	/* Ours until hiredis frees it after the callback: what it holds moves
	 * to a reply of our own, and an empty one is left to be freed. */
	struct redisReply *from = (struct redisReply *)(uintptr_t)r;
	struct redisReply *to;

	if (r == NULL)
		return NULL;
	to = mem_dup(from, sizeof(*from));
	memset(from, 0, sizeof(*from));
	from->type = REDIS_REPLY_NIL;
	return to;
}

void
link_reply_free(struct redisReply *r)
{
	if (r != NULL)
		freeReplyObject(r);
}
