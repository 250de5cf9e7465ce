/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Passing over plain replies: see reply.h. It keeps nothing and judges nothing;
 * where it stops, the framer goes on.
 */
#include "config.h"

#include <string.h>

#include "resp/digits.h"
#include "resp/reply.h"

/* Where the plain reply at p ends; NULL when it is none, or not whole. */
static const uint8_t *
plain_end(const uint8_t *p, const uint8_t *end)
{
	const uint8_t *next;
	uint64_t number;

	if (end - p < 4)
		return NULL;
	switch (*p) {
	case '$':
		next = digits_line(p + 1, end, &number);
		if (next == NULL)
			return end - p >= 5 && memcmp(p, "$-1\r\n", 5) == 0
			    ? p + 5
			    : NULL;
		if (next[-1] != '\n' || end - next < 2 ||
		    (uint64_t)(end - next) - 2 < number)
			return NULL;
		next += number;
		return next[0] == '\r' && next[1] == '\n' ? next + 2 : NULL;
	case ':':
		next = digits_line(p + 1, end, &number);
		return next != NULL && next[-1] == '\n' ? next : NULL;
	case '+':
		return end - p >= 5 && memcmp(p, "+OK\r\n", 5) == 0 ? p + 5
								    : NULL;
	default:
		return NULL;
	}
}

size_t
reply_skip_plain(const uint8_t *data, size_t len, size_t max, size_t *count)
{
	const uint8_t *p = data, *next;

	*count = 0;
	while (*count < max && (next = plain_end(p, data + len)) != NULL) {
		p = next;
		++*count;
	}
	return (size_t)(p - data);
}
