/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the messages of a filter's channel: see events.h. No state. */
#include "config.h"

#include "control/events.h"
#include "core/check.h"

#define EVENT_VERSION    1
#define EVENT_HEAD_BYTES 22

static uint64_t
big_endian(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

/* The element at the head of rest; -1 when it does not lie within. */
static int
take(struct slice *rest, struct slice *element)
{
	uint64_t len;

	if (rest->len < 4)
		return -1;
	len = big_endian(rest->data, 4);
	if (len > rest->len - 4)
		return -1;
	*element = slice_of(rest->data + 4, (size_t)len);
	*rest = slice_of(rest->data + 4 + len, rest->len - 4 - (size_t)len);
	return 0;
}

int
event_parse(struct filter_event *e, struct slice message)
{
	const uint8_t *p = message.data;
	struct slice rest, element;

	if (message.len < EVENT_HEAD_BYTES || p[0] != EVENT_VERSION ||
	    (p[1] != EVENT_ADDED && p[1] != EVENT_EPOCH))
		return -1;
	*e = (struct filter_event){
	    .kind = (enum event_kind)p[1],
	    .epoch = big_endian(p + 2, 8),
	    .seq = big_endian(p + 10, 8),
	    .count = (uint32_t)big_endian(p + 18, 4),
	    .rest = slice_of(
		p + EVENT_HEAD_BYTES, message.len - EVENT_HEAD_BYTES),
	};
	rest = e->rest;
	for (uint32_t i = 0; i < e->count; i++) {
		if (take(&rest, &element) != 0)
			return -1;
	}
	return rest.len == 0 ? 0 : -1;
}

struct slice
event_next(struct filter_event *e)
{
	struct slice element;

	check(e->count > 0);
	e->count--;
	check(take(&e->rest, &element) == 0);
	return element;
}
