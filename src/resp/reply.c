/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reply framer: see reply.h (what is read from a reply's first bytes is in
 * reply_head.c). It does no I/O, builds nothing and allocates only its stack,
 * which grows with the nesting that has arrived. One owner, one thread.
 *
 *   state      on                          next
 *   VALUE      + - ( ,                     TEXT
 *              any other type byte         NUMBER
 *   NUMBER     CR LF after a number        BULK, or the value is done, or
 *                                          VALUE inside the new level
 *   TEXT       CR                          TEXT_CR
 *   TEXT_CR    LF                          the value is done
 *              CR                          TEXT_CR
 *              any other byte              TEXT
 *   BULK       its last byte               BULK_CR
 *   BULK_CR    CR                          BULK_LF
 *   BULK_LF    LF                          the value is done
 *   any        what is not RESP            BAD
 *
 * A value that is done counts for its level; a level that has all its elements
 * is a value that is done in its turn, but an attribute's is not: the value it
 * describes comes next. At the bottom the reply is DONE.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/mem.h"
#include "resp/digits.h"
#include "resp/reply.h"
#include "resp/reply_types.h"

#define ATTRIBUTE      ((uint64_t)1 << 63) /* marks a level of the stack */
#define STACK_FIRST    8
#define COUNT_MAX      (INT64_MAX / 2) /* so that pairs * 2 leave the mark free */
#define likely(expr)   __builtin_expect(!!(expr), 1)
#define unlikely(expr) __builtin_expect(!!(expr), 0)

enum reply_state {
	STATE_VALUE,
	STATE_NUMBER,
	STATE_TEXT,
	STATE_TEXT_CR,
	STATE_BULK,
	STATE_BULK_CR,
	STATE_BULK_LF,
	STATE_DONE,
	STATE_BAD,
};

/* What a feed works with besides r. */
struct feed {
	const uint8_t *p;    /* next byte */
	const uint8_t *end;  /* one past the last */
	const uint8_t *head; /* from here on bytes belong in r->head */
	bool stop;           /* a top-level header or element was completed */
};

void
reply_init(struct reply *r)
{
	memset(r, 0, sizeof *r);
}

void
reply_fini(struct reply *r)
{
	free(r->stack);
	memset(r, 0, sizeof *r);
}

void
reply_reset(struct reply *r)
{
	/* The stack stays: it is at most REPLY_DEPTH_MAX levels. */
	r->type = '\0';
	r->nil = false;
	r->number = 0;
	r->size = 0;
	r->head_len = 0;
	r->elements_done = 0;
	r->state = STATE_VALUE;
	r->depth = 0;
	r->in_attribute = false;
	r->line_len = 0;
	r->bulk_left = 0;
}

size_t
reply_memory(const struct reply *r)
{
	return r->stack_cap * sizeof *r->stack;
}

/* Of the reply itself, not of an element or of an attribute? */
static bool
is_top(const struct reply *r)
{
	return r->depth == 0;
}

/* The reply's own attribute has ended: head begins after it. */
static void
attribute_done(struct reply *r, struct feed *f)
{
	r->in_attribute = false;
	f->head = f->p;
}

/* A value has ended at f->p, inside an aggregate or attribute. */
static void
element_done(struct reply *r, struct feed *f)
{
	while (r->depth > 0) {
		uint64_t *level = &r->stack[r->depth - 1];
		bool attribute = (*level & ATTRIBUTE) != 0;

		if (r->depth == 1 && !attribute) {
			r->elements_done++;
			f->stop = true;
		}
		(*level)--;
		if ((*level & ~ATTRIBUTE) != 0) {
			r->state = STATE_VALUE;
			return;
		}
		r->depth--;
		if (attribute) {
			if (r->depth == 0)
				attribute_done(r, f);
			r->state = STATE_VALUE;
			return;
		}
	}
	r->state = STATE_DONE;
}

/* A value has ended at f->p. */
static inline void
value_done(struct reply *r, struct feed *f)
{
	if (r->depth > 0)
		element_done(r, f);
	else
		r->state = STATE_DONE;
}

static void
level_push(struct reply *r, uint64_t level)
{
	if (r->depth == REPLY_DEPTH_MAX) {
		r->state = STATE_BAD;
		return;
	}
	if (r->depth == r->stack_cap) {
		r->stack_cap = r->stack_cap == 0 ? STACK_FIRST
						 : r->stack_cap * 2;
		r->stack = mem_realloc(
		    r->stack, r->stack_cap * sizeof *r->stack);
	}
	r->stack[r->depth++] = level;
	r->state = STATE_VALUE;
}

/* An aggregate or attribute of count elements or pairs begins. */
static void
on_aggregate(struct reply *r, struct feed *f, uint8_t type, uint64_t count)
{
	bool top = is_top(r);

	if (count > COUNT_MAX) {
		r->state = STATE_BAD;
		return;
	}
	if (type == '|') {
		if (count == 0) {
			if (top)
				attribute_done(r, f);
			r->state = STATE_VALUE;
			return;
		}
		level_push(r, (count * 2) | ATTRIBUTE);
		return;
	}
	if (count == 0) {
		value_done(r, f);
		return;
	}
	level_push(r, type == '%' ? count * 2 : count);
	if (top && r->state != STATE_BAD)
		f->stop = true;
}

/* The header line of a numeric type is read: what follows? */
static void
on_number(struct reply *r, struct feed *f, uint8_t type, int64_t number)
{
	bool nil = number == -1 && (type == '$' || type == '*');

	if (is_top(r) && type != '|') {
		r->number = number;
		r->nil = nil;
	}
	if (type == ':' || nil) {
		value_done(r, f);
		return;
	}
	if (number < 0) {
		r->state = STATE_BAD;
		return;
	}
	switch (type) {
	case '$':
	case '=':
	case '!':
		r->bulk_left = (uint64_t)number;
		r->state = number > 0 ? STATE_BULK : STATE_BULK_CR;
		break;
	default:
		on_aggregate(r, f, type, (uint64_t)number);
		break;
	}
}

/* The header line of any type but a text is in line, without CR LF. */
static void
on_line(struct reply *r, struct feed *f, uint8_t type, struct slice line)
{
	int64_t number;

	switch (type) {
	case '_':
		if (line.len != 0)
			break;
		if (is_top(r))
			r->nil = true;
		value_done(r, f);
		return;
	case '#':
		if (line.len != 1 ||
		    (line.data[0] != 't' && line.data[0] != 'f'))
			break;
		if (is_top(r))
			r->number = line.data[0] == 't';
		value_done(r, f);
		return;
	case ':':
		/* The protocol allows a plus, though Redis sends none. */
		if (line.len > 1 && line.data[0] == '+' && line.data[1] != '-')
			line = slice_of(line.data + 1, line.len - 1);
		break;
	default:
		break;
	}
	if (reply_kinds[type] == REPLY_KIND_WORD ||
	    slice_to_int64(line, &number) != 0) {
		r->state = STATE_BAD;
		return;
	}
	on_number(r, f, type, number);
}

/* Reads on in a header line that is unusual or cut in two. */
static void
read_number(struct reply *r, struct feed *f)
{
	while (f->p < f->end) {
		uint8_t byte = *f->p++;

		if (byte == '\n') {
			if (r->line_len == 0 ||
			    r->line[r->line_len - 1] != '\r') {
				r->state = STATE_BAD;
				return;
			}
			on_line(r, f, r->line_type,
			    slice_of(r->line, r->line_len - 1));
			return;
		}
		if (r->line_len == sizeof r->line) {
			r->state = STATE_BAD;
			return;
		}
		r->line[r->line_len++] = byte;
	}
}

/* Reads on in a line of any length. */
static void
read_text(struct reply *r, struct feed *f)
{
	while (f->p < f->end) {
		const uint8_t *cr = memchr(f->p, '\r', (size_t)(f->end - f->p));

		if (cr == NULL) {
			f->p = f->end;
			return;
		}
		f->p = cr + 1;
		if (f->p == f->end) {
			r->state = STATE_TEXT_CR;
			return;
		}
		if (*f->p == '\n') {
			f->p++;
			value_done(r, f);
			return;
		}
	}
}

static void
read_text_cr(struct reply *r, struct feed *f)
{
	if (*f->p == '\n') {
		f->p++;
		value_done(r, f);
		return;
	}
	/* A lone CR belongs to the text; this byte may be another. */
	r->state = STATE_TEXT;
	read_text(r, f);
}

static void
read_bulk(struct reply *r, struct feed *f)
{
	uint64_t avail = (uint64_t)(f->end - f->p);

	if (avail >= r->bulk_left + 2 && r->bulk_left <= COUNT_MAX) {
		const uint8_t *after = f->p + r->bulk_left;

		if (unlikely(after[0] != '\r' || after[1] != '\n')) {
			r->state = STATE_BAD;
			return;
		}
		r->bulk_left = 0;
		f->p = after + 2;
		value_done(r, f);
		return;
	}
	if (avail < r->bulk_left) {
		f->p = f->end;
		r->bulk_left -= avail;
		return;
	}
	f->p += r->bulk_left;
	r->bulk_left = 0;
	r->state = STATE_BULK_CR;
}

/* A value begins at f->p, which is not the end. */
static void
read_value(struct reply *r, struct feed *f)
{
	uint8_t type = *f->p;
	const uint8_t *next;
	uint64_t number;

	if (unlikely(reply_kinds[type] == REPLY_KIND_NONE)) {
		r->state = STATE_BAD;
		return;
	}
	if (is_top(r)) {
		if (type == '|')
			r->in_attribute = true;
		else
			r->type = (char)type;
	}
	f->p++;
	if (reply_kinds[type] == REPLY_KIND_TEXT) {
		r->state = STATE_TEXT;
		read_text(r, f);
		return;
	}
	if (likely(reply_kinds[type] == REPLY_KIND_NUMBER)) {
		next = digits_line(f->p, f->end, &number);
		if (likely(next != NULL && next[-1] == '\n')) {
			f->p = next;
			on_number(r, f, type, (int64_t)number);
			if (r->state == STATE_BULK && f->p < f->end)
				read_bulk(r, f);
			return;
		}
		/* The commonest reply of a cache that misses: $-1. */
		if (f->end - f->p >= 4 && memcmp(f->p, "-1\r\n", 4) == 0) {
			f->p += 4;
			on_number(r, f, type, -1);
			return;
		}
	}
	r->line_type = type;
	r->line_len = 0;
	r->state = STATE_NUMBER;
	read_number(r, f);
}

/* One step in the middle of a value; there is at least one byte. */
static void
step(struct reply *r, struct feed *f)
{
	switch ((enum reply_state)r->state) {
	case STATE_NUMBER:
		read_number(r, f);
		return;
	case STATE_TEXT:
		read_text(r, f);
		return;
	case STATE_TEXT_CR:
		read_text_cr(r, f);
		return;
	case STATE_BULK:
		read_bulk(r, f);
		return;
	case STATE_BULK_CR:
		r->state = *f->p++ == '\r' ? STATE_BULK_LF : STATE_BAD;
		return;
	case STATE_BULK_LF:
		if (*f->p++ == '\n')
			value_done(r, f);
		else
			r->state = STATE_BAD;
		return;
	case STATE_VALUE: /* read_value */
	case STATE_DONE:
	case STATE_BAD:
		break;
	}
	check(false);
}

/* Keeps what this feed brought of the reply's first bytes. */
static void
keep_head(struct reply *r, const struct feed *f)
{
	size_t room = sizeof r->head - r->head_len;
	size_t len = (size_t)(f->p - f->head);

	if (r->in_attribute)
		return;
	if (len > room)
		len = room;
	if (len > 0) {
		memcpy(r->head + r->head_len, f->head, len);
		r->head_len += len;
	}
}

static inline enum parse_status
feed(struct reply *r, const uint8_t *data, size_t len, size_t *used,
    bool elements, bool *element)
{
	struct feed f = {.p = data, .end = data + len, .head = data};

	check(r->state != STATE_DONE);
	while (f.p < f.end && r->state < STATE_DONE) {
		if (likely(r->state == STATE_VALUE))
			read_value(r, &f);
		else
			step(r, &f);
		if (elements && f.stop)
			break;
	}
	if (element != NULL)
		*element = f.stop && r->state != STATE_BAD;
	*used = 0;
	if (r->state == STATE_BAD)
		return PARSE_BAD;
	keep_head(r, &f);
	*used = (size_t)(f.p - data);
	r->size += *used;
	return r->state == STATE_DONE ? PARSE_READY : PARSE_MORE;
}

enum parse_status
reply_feed(struct reply *r, const uint8_t *data, size_t len, size_t *used)
{
	return feed(r, data, len, used, false, NULL);
}

enum parse_status
reply_feed_element(struct reply *r, const uint8_t *data, size_t len,
    size_t *used, bool *element)
{
	return feed(r, data, len, used, true, element);
}

bool
reply_head_starts(const struct reply *r, const char *text)
{
	size_t len = strlen(text);

	return r->head_len >= len && memcmp(r->head, text, len) == 0;
}
