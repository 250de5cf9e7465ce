/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The request parser: see request.h. Both ways of use run one state machine
 * over fresh bytes only; they differ in where arguments are kept. It does no
 * I/O and knows no commands. One owner, one thread.
 *
 *   state      on                            next
 *   START      '*'                           COUNT
 *              any other byte                INLINE
 *   COUNT      CR                            COUNT_END
 *   COUNT_END  any byte, count > 0           LENGTH
 *              any byte, count <= 0          DONE (empty)
 *   LENGTH     CR                            LENGTH_END
 *   LENGTH_END any byte                      BULK
 *   BULK       last of length + 2 bytes      LENGTH, or DONE after the last
 *   INLINE     LF                            DONE
 *   any        what Redis refuses            BAD
 *
 * Redis looks for the end of a line with strchr: a NUL hides it, and the line
 * then grows until it is too long. So it does here (line_nul). The byte after
 * CR and the two bytes after an argument are skipped unchecked, as in Redis.
 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "resp/digits.h"
#include "resp/inline.h"
#include "resp/request.h"
#include "resp/request_keep.h"

/* What request_reset leaves allocated. */
#define ARGS_KEEP      1024
#define KEPT_KEEP      16384
#define UNAUTH_ARGS    10    /* Redis: more is refused before AUTH */
#define UNAUTH_BULK    16384 /* the same, bytes of one argument */
#define likely(expr)   __builtin_expect(!!(expr), 1)
#define unlikely(expr) __builtin_expect(!!(expr), 0)

void
request_init(struct request *r, const struct request_limits *limits)
{
	memset(r, 0, sizeof *r);
	r->limits = *limits;
	request_reset(r);
}

void
request_fini(struct request *r)
{
	free(r->args);
	free(r->kept);
	memset(r, 0, sizeof *r);
}

void
request_reset(struct request *r)
{
	if (unlikely(r->args_cap > ARGS_KEEP)) {
		free(r->args);
		r->args = NULL;
		r->args_cap = 0;
	}
	if (unlikely(r->kept_cap > KEPT_KEEP)) {
		free(r->kept);
		r->kept = NULL;
		r->kept_cap = 0;
	}
	r->argc = 0;
	r->declared = -1;
	r->size = 0;
	r->is_inline = r->empty = r->detached = false;
	r->error[0] = '\0';
	r->kept_len = 0;
	r->state = STATE_START;
	r->bulk_left = 0;
	r->capture_left = 0;
	r->line_len = 0;
	r->line_nul = false;
}

void
request_set_unauthenticated(struct request *r, bool on)
{
	r->unauthenticated = on;
}

static enum parse_status
fail(struct request *r, const char *text)
{
	snprintf(r->error, sizeof r->error, "ERR %s", text);
	r->state = STATE_BAD;
	return PARSE_BAD;
}

static enum parse_status
fail_protocol(struct request *r, const char *text)
{
	snprintf(r->error, sizeof r->error, "ERR Protocol error: %s", text);
	r->state = STATE_BAD;
	return PARSE_BAD;
}

static enum parse_status
fail_size(struct request *r)
{
	return fail(r, "bloomgate: request larger than limits.request-bytes");
}

static enum parse_status
finish(struct request *r)
{
	r->state = STATE_DONE;
	r->empty = r->argc == 0;
	return PARSE_READY;
}

/* The count is known; size is that of the request up to after its line. */
static enum parse_status
on_count(struct request *r, int64_t count, uint64_t size)
{
	if (count > INT_MAX)
		return fail_protocol(r, "invalid multibulk length");
	if (r->unauthenticated && count > UNAUTH_ARGS)
		return fail_protocol(r, "unauthenticated multibulk length");
	if (size > r->limits.request_bytes)
		return fail_size(r);
	r->declared = count > 0 ? count : 0;
	if (r->declared == 0)
		return finish(r);
	r->state = STATE_LENGTH;
	return PARSE_MORE;
}

/* An argument's length is known; it begins size bytes into the request. */
static enum parse_status
on_length(struct request *r, int64_t len, uint64_t size)
{
	struct request_arg *arg;

	if (len < 0 || (uint64_t)len > r->limits.bulk_bytes)
		return fail_protocol(r, "invalid bulk length");
	if (r->unauthenticated && len > UNAUTH_BULK)
		return fail_protocol(r, "unauthenticated bulk length");
	if (size + (uint64_t)len + 2 > r->limits.request_bytes)
		return fail_size(r);
	if (r->argc == r->args_cap)
		request_args_grow(r);
	arg = &r->args[r->argc];
	arg->len = (uint64_t)len;
	if (r->detached) {
		arg->offset = r->kept_len;
		arg->kept = 0;
		r->capture_left = request_capture_size(r, arg->len);
	} else {
		arg->offset = size;
		arg->kept = arg->len;
	}
	r->bulk_left = (uint64_t)len + 2;
	r->state = STATE_BULK;
	return PARSE_MORE;
}

/*
 * Searches the line being read for its end. Returns how many of the bytes from
 * p on belong to it, *found when its end mark follows them; -1 when the line is
 * longer than Redis takes.
 */
static ssize_t
line_search(struct request *r, const uint8_t *p, size_t avail, uint8_t mark,
    bool *found)
{
	size_t room = REQUEST_INLINE_MAX + 1 - r->line_len;
	const uint8_t *at = NULL;
	size_t len;

	if (avail > room)
		avail = room;
	if (!r->line_nul) {
		at = memchr(p, mark, avail);
		len = at != NULL ? (size_t)(at - p) : avail;
		if (memchr(p, '\0', len) != NULL) {
			r->line_nul = true;
			at = NULL;
		}
	}
	*found = at != NULL;
	len = at != NULL ? (size_t)(at - p) : avail;
	if (at == NULL && r->line_len + len > REQUEST_INLINE_MAX)
		return -1;
	return (ssize_t)len;
}

/* Reads on in a header line; *p moves up to its CR, or to the end. */
static enum parse_status
read_header(struct request *r, const uint8_t **p, const uint8_t *end)
{
	bool found;
	ssize_t len = line_search(r, *p, (size_t)(end - *p), '\r', &found);
	size_t room;

	if (len == -1)
		return fail_protocol(r,
		    r->state == STATE_COUNT ? "too big mbulk count string"
					    : "too big bulk count string");
	room = r->line_len < sizeof r->line ? sizeof r->line - r->line_len : 0;
	if (room > (size_t)len)
		room = (size_t)len;
	if (room > 0)
		memcpy(r->line + r->line_len, *p, room);
	r->line_len += (size_t)len;
	*p += len;
	if (found) {
		(*p)++;
		r->state = r->state == STATE_COUNT ? STATE_COUNT_END
						   : STATE_LENGTH_END;
	}
	return PARSE_MORE;
}

/* The byte after CR is here, which Redis waits for before it looks. */
static enum parse_status
end_header(struct request *r, uint64_t size)
{
	size_t len = r->line_len;
	uint8_t first = r->line[0];
	int64_t number = 0;
	bool ok;

	r->line_len = 0;
	/* A line longer than r->line is no number, whatever it holds. */
	ok = len > 1 && len <= sizeof r->line &&
	    slice_to_int64(slice_of(r->line + 1, len - 1), &number) == 0;
	if (r->state == STATE_COUNT_END) {
		if (!ok)
			return fail_protocol(r, "invalid multibulk length");
		return on_count(r, number, size);
	}
	if (len == 0)
		first = '\r';
	if (first != '$') {
		/* Redis makes CR and LF in an error's text blanks. */
		if (first == '\r' || first == '\n')
			first = ' ';
		snprintf(r->error, sizeof r->error,
		    "ERR Protocol error: expected '$', got '%c'", first);
		r->state = STATE_BAD;
		return PARSE_BAD;
	}
	if (!ok)
		return fail_protocol(r, "invalid bulk length");
	return on_length(r, number, size);
}

/* Takes what is here of the argument being read. */
static enum parse_status
read_bulk(struct request *r, const uint8_t **p, const uint8_t *end)
{
	uint64_t avail = (uint64_t)(end - *p);
	uint64_t used = avail < r->bulk_left ? avail : r->bulk_left;

	if (r->detached && r->capture_left > 0) {
		size_t len = used < r->capture_left ? used : r->capture_left;

		request_keep(r, *p, len);
		r->args[r->argc].kept += len;
		r->capture_left -= len;
	}
	*p += used;
	r->bulk_left -= used;
	if (r->bulk_left > 0)
		return PARSE_MORE;
	r->argc++;
	if ((int64_t)r->argc == r->declared)
		return finish(r);
	r->state = STATE_LENGTH;
	return PARSE_MORE;
}

/* The whole line is in kept: splits it there. */
static enum parse_status
split_inline(struct request *r)
{
	size_t len = r->kept_len, at = 0, offset, word_len;
	int status;

	if (len > 0 && r->kept[len - 1] == '\r')
		len--;
	while ((status = len == 0 ? 0
				  : inline_next(r->kept, len, &at, &offset,
					&word_len)) == 1) {
		if (r->argc == r->args_cap)
			request_args_grow(r);
		r->args[r->argc++] = (struct request_arg){
		    .len = word_len, .offset = offset, .kept = word_len};
	}
	if (status == -1) {
		r->argc = 0;
		return fail_protocol(r, "unbalanced quotes in request");
	}
	r->declared = (int64_t)r->argc;
	return finish(r);
}

/* Reads on in an inline line. Whole, its bytes are copied once it is complete;
 * detached, as they come. */
static enum parse_status
read_inline(struct request *r, const uint8_t **p, const uint8_t *end)
{
	bool found;
	ssize_t len = line_search(r, *p, (size_t)(end - *p), '\n', &found);

	if (len == -1)
		return fail_protocol(r, "too big inline request");
	if (r->detached)
		request_keep(r, *p, (size_t)len);
	r->line_len += (size_t)len;
	*p += len;
	if (!found)
		return PARSE_MORE;
	(*p)++;
	if (r->line_len + 1 > r->limits.request_bytes)
		return fail_size(r);
	if (!r->detached)
		request_keep(r, *p - 1 - r->line_len, r->line_len);
	return split_inline(r);
}

/*
 * The fast path: arguments that are here whole, in whole mode. Returns where
 * the first byte lies that it leaves to the state machine, in state LENGTH or
 * DONE; base is the request's first byte.
 */
static const uint8_t *
skip_arguments(struct request *r, const uint8_t *base, const uint8_t *p,
    const uint8_t *end)
{
	struct request_arg *args = r->args;
	size_t argc = r->argc, cap = r->args_cap, count = (size_t)r->declared;
	uint64_t most = r->unauthenticated ? UNAUTH_BULK : UINT64_MAX;

	if (most > r->limits.bulk_bytes)
		most = r->limits.bulk_bytes;
	while (argc < count) {
		const uint8_t *bulk;
		uint64_t len;

		if (p == end || *p != '$')
			break;
		bulk = digits_line(p + 1, end, &len);
		if (bulk == NULL || len > most ||
		    (uint64_t)(end - bulk) < len + 2)
			break;
		if ((uint64_t)(bulk - base) + len + 2 > r->limits.request_bytes)
			break;
		if (unlikely(argc == cap)) {
			request_args_grow(r);
			args = r->args;
			cap = r->args_cap;
		}
		args[argc].len = len;
		args[argc].offset = (size_t)(bulk - base);
		args[argc].kept = len;
		argc++;
		p = bulk + len + 2;
	}
	r->argc = argc;
	return p;
}

/* One step of the state machine; there is at least one byte at *p, which lies
 * r->size + (*p - fresh) bytes into the request. */
static enum parse_status
step(struct request *r, const uint8_t *fresh, const uint8_t **p,
    const uint8_t *end)
{
	const uint8_t *next;
	uint64_t number;

	switch ((enum request_state)r->state) {
	case STATE_START:
		r->is_inline = **p != '*';
		r->state = r->is_inline ? STATE_INLINE : STATE_COUNT;
		return PARSE_MORE;
	case STATE_COUNT:
	case STATE_LENGTH:
		next = r->line_len > 0 ||
			(r->state == STATE_LENGTH && **p != '$')
		    ? NULL
		    : digits_line(*p + 1, end, &number);
		if (next == NULL)
			return read_header(r, p, end);
		*p = next;
		return (r->state == STATE_COUNT ? on_count : on_length)(
		    r, (int64_t)number, r->size + (uint64_t)(next - fresh));
	case STATE_COUNT_END:
	case STATE_LENGTH_END:
		(*p)++;
		return end_header(r, r->size + (uint64_t)(*p - fresh));
	case STATE_BULK:
		return read_bulk(r, p, end);
	case STATE_INLINE:
		return read_inline(r, p, end);
	case STATE_DONE:
	case STATE_BAD:
		break;
	}
	check(r->state == STATE_BAD); /* after READY comes request_reset */
	return PARSE_BAD;
}

enum parse_status
request_parse(struct request *r, const uint8_t *data, size_t len)
{
	const uint8_t *fresh, *p, *end;
	enum parse_status status = PARSE_MORE;
	uint64_t count;

	check(!r->detached && len >= r->size);
	if (len == r->size)
		return r->state == STATE_BAD ? PARSE_BAD : PARSE_MORE;
	end = data + len;
	p = fresh = data + r->size;
	if (likely(r->state == STATE_START && *p == '*') &&
	    (p = digits_line(data + 1, end, &count)) != NULL) {
		status = on_count(r, (int64_t)count, (uint64_t)(p - data));
	} else {
		p = fresh;
	}
	while (status == PARSE_MORE) {
		if (r->state == STATE_LENGTH && r->line_len == 0) {
			p = skip_arguments(r, data, p, end);
			if ((int64_t)r->argc == r->declared) {
				status = finish(r);
				break;
			}
		}
		if (p == end)
			break;
		status = step(r, fresh, &p, end);
	}
	r->size += (uint64_t)(p - fresh);
	return status;
}

enum parse_status
request_feed(struct request *r, const uint8_t *data, size_t len, size_t *used)
{
	const uint8_t *p = data, *end = data + len;
	enum parse_status status = PARSE_MORE;

	check(r->detached);
	*used = 0;
	if (r->state == STATE_BAD)
		return PARSE_BAD;
	while (status == PARSE_MORE && p != end)
		status = step(r, data, &p, end);
	if (status == PARSE_BAD)
		return status;
	*used = (size_t)(p - data);
	r->size += *used;
	return status;
}
