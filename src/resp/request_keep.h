/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the request parser and what it keeps. Private to src/resp.
 */
#ifndef RESP_REQUEST_KEEP_H
#define RESP_REQUEST_KEEP_H

#include <stddef.h>
#include <stdint.h>

#include "resp/request.h"

/* request.state; the transitions are in request.c. */
enum request_state {
	STATE_START,
	STATE_COUNT,
	STATE_COUNT_END,
	STATE_LENGTH,
	STATE_LENGTH_END,
	STATE_BULK,
	STATE_INLINE,
	STATE_DONE,
	STATE_BAD,
};

/* Makes room for more arguments. */
void request_args_grow(struct request *r);
/* Copies len bytes to the end of r->kept. */
void request_keep(struct request *r, const uint8_t *data, size_t len);
/* How much of an argument of len bytes a detached request may keep. */
size_t request_capture_size(const struct request *r, uint64_t len);

#endif
