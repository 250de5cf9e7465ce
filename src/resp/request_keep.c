/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a request keeps: the list of its arguments, and copies of them where the
 * caller does not keep their bytes. Everything here grows by what has arrived.
 * One owner, one thread.
 */
#include "config.h"

#include <string.h>

#include "core/check.h"
#include "core/mem.h"
#include "resp/request.h"
#include "resp/request_keep.h"

#define ARGS_FIRST 16
#define KEPT_FIRST 256

size_t
request_memory(const struct request *r)
{
	return r->args_cap * sizeof *r->args + r->kept_cap;
}

void
request_args_grow(struct request *r)
{
	r->args_cap = r->args_cap == 0 ? ARGS_FIRST : r->args_cap * 2;
	r->args = mem_realloc(r->args, r->args_cap * sizeof *r->args);
}

void
request_keep(struct request *r, const uint8_t *data, size_t len)
{
	if (len == 0)
		return;
	if (r->kept_cap - r->kept_len < len) {
		size_t cap = r->kept_cap == 0 ? KEPT_FIRST : r->kept_cap * 2;

		if (cap > REQUEST_KEPT_MAX)
			cap = REQUEST_KEPT_MAX;
		if (cap < r->kept_len + len)
			cap = r->kept_len + len;
		r->kept = mem_realloc(r->kept, cap);
		r->kept_cap = cap;
	}
	memcpy(r->kept + r->kept_len, data, len);
	r->kept_len += len;
}

size_t
request_capture_size(const struct request *r, uint64_t len)
{
	size_t want = len < REQUEST_CAPTURE_MAX ? len : REQUEST_CAPTURE_MAX;

	return want <= REQUEST_KEPT_MAX - r->kept_len ? want : 0;
}

void
request_detach(struct request *r, const uint8_t *data)
{
	size_t i, count = r->argc;

	check(!r->detached && r->state != STATE_DONE && r->state != STATE_BAD);
	r->detached = true;
	if (r->state == STATE_INLINE) {
		request_keep(r, data, r->line_len);
		return;
	}
	if (r->state == STATE_BULK)
		count++;
	for (i = 0; i < count; i++) {
		struct request_arg *arg = &r->args[i];
		size_t want = request_capture_size(r, arg->len), here = want;

		if (i == r->argc) {
			uint64_t seen = arg->len + 2 - r->bulk_left;

			here = seen < want ? (size_t)seen : want;
			r->capture_left = want - here;
		}
		if (here > 0)
			request_keep(r, data + arg->offset, here);
		arg->offset = r->kept_len - here;
		arg->kept = here;
	}
}
