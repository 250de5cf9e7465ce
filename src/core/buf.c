/* SPDX-License-Identifier: BSD-2-Clause */
/* The byte queue. It grows by doubling, moves what it holds to the front rather
 * than grow, and never passes its cap. One owner, one thread. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/buf.h"
#include "core/check.h"
#include "core/mem.h"

#define BUF_FIRST 512   /* bytes of a first allocation */
#define BUF_TRIM  16384 /* kept when trimmed */

void
buf_init(struct buf *b, size_t max_bytes)
{
	*b = (struct buf){.max = max_bytes};
}

void
buf_fini(struct buf *b)
{
	free(b->data);
	*b = (struct buf){.max = b->max};
}

uint8_t *
buf_reserve(struct buf *b, size_t len)
{
	size_t held = buf_len(b), want;

	if (len > b->max - held)
		return NULL;
	if (b->capacity - b->end >= len && b->data != NULL)
		return b->data + b->end;
	if (b->capacity >= held + len && b->start >= held) {
		memcpy(b->data, b->data + b->start, held);
	} else {
		uint8_t *data;

		want = b->capacity != 0 ? b->capacity : BUF_FIRST;
		while (want < held + len)
			want *= 2;
		data = mem_alloc(want);
		if (held != 0)
			memcpy(data, b->data + b->start, held);
		free(b->data);
		b->data = data;
		b->capacity = want;
	}
	b->start = 0;
	b->end = held;
	return b->data + b->end;
}

void
buf_commit(struct buf *b, size_t len)
{
	check(len <= b->capacity - b->end);
	b->end += len;
}

int
buf_append(struct buf *b, const void *data, size_t len)
{
	uint8_t *to;

	if (len == 0)
		return 0;
	to = buf_reserve(b, len);
	if (to == NULL)
		return -1;
	memcpy(to, data, len);
	b->end += len;
	return 0;
}

int
buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	uint8_t *to;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return -1;
	/* One byte more for the NUL of vsnprintf; it is not committed. */
	to = buf_reserve(b, (size_t)n + 1);
	if (to == NULL)
		return -1;
	va_start(ap, fmt);
	vsnprintf((char *)to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->end += (size_t)n;
	return 0;
}

void
buf_consume(struct buf *b, size_t len)
{
	check(len <= buf_len(b));
	b->start += len;
	if (b->start == b->end)
		b->start = b->end = 0;
}

void
buf_trim(struct buf *b)
{
	size_t held = buf_len(b);
	uint8_t *data = NULL;

	if (b->capacity <= BUF_TRIM || held > b->capacity / 4)
		return;
	if (held != 0) {
		data = mem_alloc(held);
		memcpy(data, b->data + b->start, held);
	}
	free(b->data);
	b->data = data;
	b->start = 0;
	b->end = b->capacity = held;
}
