/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formats commands into one buffer that is used again for each; a NUL stands behind
 * and does not count, for hiredis reads them as strings. Lengths are our own (never
 * a peer's), so the buffer has no cap; memory above 256 KiB is given back at the
 * next wire_begin. One owner, one thread.
 */
#ifndef REDIS_WIRE_H
#define REDIS_WIRE_H

#include <stddef.h>

#include "core/slice.h"

struct wire {
	char *data; /* owned; NULL while nothing was formatted */
	size_t len; /* bytes of the command, without the NUL */
	size_t capacity;
};

void wire_init(struct wire *w);
void wire_fini(struct wire *w);

/* Starts a command of argc arguments. */
void wire_begin(struct wire *w, size_t argc);
void wire_arg(struct wire *w, struct slice arg);
void wire_str(struct wire *w, const char *arg);
void wire_number(struct wire *w, size_t arg);
/* Bytes that are formatted already. */
void wire_raw(struct wire *w, const void *data, size_t len);
/* Overwrites what was formatted: it held a secret. */
void wire_wipe(struct wire *w);

#endif
