/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Source bytes to elements: see lines.h.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "rebuild/lines.h"

void
lines_init(struct lines *l, struct build *b)
{
	l->build = b;
	l->number = 0;
	l->held = 0;
}

static int
add(struct build *b, struct slice element, uint64_t number)
{
	struct positions p;

	b->elements++;
	if (b->elements > b->capacity && b->settings->rebuild.grow &&
	    b->geometry.scheme != SCHEME_POLY)
		b->counting = true;
	if (b->counting)
		return 0;
	if (scheme_positions(&b->geometry, &b->filter->key, element, &p) != 0)
		return build_fail(b,
		    "line %" PRIu64 " of the source is not UTF-8, which the "
		    "scheme needs",
		    number);
	bits_add(&b->bits, &p);
	sample_offer(&b->sample, &p);
	return 0;
}

static int
too_long(struct lines *l, uint64_t number)
{
	return build_fail(l->build,
	    "line %" PRIu64 " of the source is longer than %d bytes", number,
	    ELEMENT_MAX);
}

static int
line(struct lines *l, const uint8_t *data, size_t len)
{
	struct slice element;

	l->number++;
	if (len > 0 && data[len - 1] == '\r')
		len--;
	if (len == 0) {
		l->build->empty_lines++;
		return 0;
	}
	if (len > ELEMENT_MAX)
		return too_long(l, l->number);
	element = keytemplate_apply(&l->build->template, slice_of(data, len),
	    l->element, sizeof(l->element));
	if (element.data == NULL)
		return too_long(l, l->number);
	return add(l->build, element, l->number);
}

static int
hold(struct lines *l, const uint8_t *data, size_t len)
{
	if (len > sizeof(l->line) - l->held)
		return too_long(l, l->number + 1);
	memcpy(l->line + l->held, data, len);
	l->held += len;
	return 0;
}

int
lines_feed(struct lines *l, const uint8_t *data, size_t len)
{
	while (len > 0) {
		const uint8_t *end = memchr(data, '\n', len);
		size_t n = end != NULL ? (size_t)(end - data) : len;
		int rc;

		if (end == NULL)
			return hold(l, data, n);
		if (l->held > 0) {
			if (hold(l, data, n) != 0)
				return -1;
			rc = line(l, l->line, l->held);
			l->held = 0;
		} else {
			rc = line(l, data, n);
		}
		if (rc != 0)
			return -1;
		data += n + 1;
		len -= n + 1;
	}
	return 0;
}

int
lines_end(struct lines *l)
{
	size_t n = l->held;

	l->held = 0;
	return n > 0 ? line(l, l->line, n) : 0;
}
