/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads elements from the first bytes of a framed reply. What lies there has
 * been through the framer, but may end anywhere. One owner, one thread.
 */
#include "config.h"

#include "resp/reply.h"
#include "resp/reply_types.h"

/* A value's header in head. */
struct header {
	uint8_t type;
	struct slice line; /* after the type, without CR LF */
	const uint8_t *next;
	int64_t number; /* 0 for what has none */
};

/* Reads the header line at p; -1 when it is not wholly there. */
static int
header_read(const uint8_t *p, const uint8_t *end, struct header *h)
{
	const uint8_t *cr;

	if (p >= end)
		return -1;
	h->type = *p++;
	for (cr = p; (cr = memchr(cr, '\r', (size_t)(end - cr))) != NULL;
	     cr++) {
		if (end - cr >= 2 && cr[1] == '\n')
			break;
	}
	if (cr == NULL)
		return -1;
	h->line = slice_of(p, (size_t)(cr - p));
	h->next = cr + 2;
	h->number = 0;
	/* Framed before, so a failure here means a type without a number. */
	if (reply_is_text(h->type) || slice_to_int64(h->line, &h->number) != 0)
		h->number = 0;
	return 0;
}

/* The payload of the simple or bulk value at p; data NULL when it is none. */
static struct slice
payload(const uint8_t *p, const uint8_t *end)
{
	const struct slice none = slice_of(NULL, 0);
	struct header h;

	if (header_read(p, end, &h) == -1 || reply_is_aggregate(h.type) ||
	    h.type == '_')
		return none;
	if (!reply_is_bulk(h.type))
		return h.line;
	if (h.number < 0 || h.number > end - h.next)
		return none;
	return slice_of(h.next, (size_t)h.number);
}

/* The place after the value at p, of whatever type; NULL when not in head. */
static const uint8_t *
value_skip(const uint8_t *p, const uint8_t *end)
{
	uint64_t due = 1;

	while (due > 0) {
		struct header h;

		if (header_read(p, end, &h) == -1)
			return NULL;
		p = h.next;
		if (h.type != '|')
			due--;
		if (reply_is_bulk(h.type) && h.number >= 0) {
			if (h.number > end - p - 2)
				return NULL;
			p += h.number + 2;
		} else if (reply_is_aggregate(h.type) && h.number > 0) {
			uint64_t each = h.type == '%' || h.type == '|' ? 2 : 1;

			/* More than head can hold: do not let it wrap. */
			if (h.number > REPLY_HEAD_MAX)
				return NULL;
			due += (uint64_t)h.number * each;
		}
	}
	return p;
}

struct slice
reply_head_element(const struct reply *r, size_t i)
{
	const struct slice none = slice_of(NULL, 0);
	const uint8_t *p = r->head, *end = r->head + r->head_len;
	struct header h;
	uint64_t count;

	if (i >= REPLY_ELEMENTS_MAX || header_read(p, end, &h) == -1)
		return none;
	if (!reply_is_aggregate(h.type))
		return i == 0 ? payload(p, end) : none;
	count = h.number < 0 ? 0 : (uint64_t)h.number;
	if (h.type == '%' && count < REPLY_ELEMENTS_MAX)
		count *= 2;
	if (i >= count)
		return none;
	for (p = h.next; i > 0 && p != NULL; i--)
		p = value_skip(p, end);
	return p == NULL ? none : payload(p, end);
}
