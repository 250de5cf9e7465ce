/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the replies in a stream of RESP, which may be cut anywhere. It keeps
 * nothing of them but the first error's text. One thread.
 */
#ifndef BENCH_REPLY_H
#define BENCH_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of all connections together. */
struct reply_totals {
	uint64_t nils, errors;
	char first_error[128]; /* as far as it came in one read */
};

/* The reply that a connection is in; zeroed at first. */
struct reply_state {
	char type;         /* its first byte; 0: none begun */
	bool negative;     /* the number after it */
	uint64_t number;   /* the same */
	uint64_t skip;     /* bytes of a bulk that are still to come */
	uint64_t elements; /* replies inside an array that are due */
};

/* Returns how many replies are complete with these bytes, -1: not RESP. */
int reply_count(struct reply_state *s, struct reply_totals *t, const char *data,
    size_t len);

#endif
