/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A byte queue in one allocation: bytes are appended at the end and consumed
 * from the start. It never holds more than its hard cap. One owner, one thread.
 *
 *   data            data+start          data+end           data+capacity
 *   | consumed      | held              | free             |
 */
#ifndef CORE_BUF_H
#define CORE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/slice.h"

struct buf {
	uint8_t *data;   /* owned; NULL while nothing was ever held */
	size_t start;    /* first held byte */
	size_t end;      /* one past the last held byte */
	size_t capacity; /* allocated bytes */
	size_t max;      /* hard cap on held bytes */
};

void buf_init(struct buf *b, size_t max_bytes);
void buf_fini(struct buf *b); /* frees; the buf may be used again after init */

static inline size_t
buf_len(const struct buf *b)
{
	return b->end - b->start;
}

static inline const uint8_t *
buf_head(const struct buf *b)
{
	return b->data + b->start;
}

/*
 * Makes room for len more bytes and returns where to write them; buf_commit
 * then takes the count written. NULL when the cap would be passed. The pointer
 * holds until the next call on b.
 */
uint8_t *buf_reserve(struct buf *b, size_t len);
void buf_commit(struct buf *b, size_t len);

/* Appends; returns 0, or -1 (nothing appended) when the cap would be passed. */
int buf_append(struct buf *b, const void *data, size_t len)
    __attribute__((warn_unused_result));
int buf_printf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3), warn_unused_result));

/* Drops len held bytes from the start; len <= buf_len(). */
void buf_consume(struct buf *b, size_t len);

/* Gives unused memory back when much more is allocated than held. */
void buf_trim(struct buf *b);

#endif
