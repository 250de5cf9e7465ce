/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One request, made over and over: the first {id} of each argument becomes a
 * random number. All that can be is done beforehand. One thread.
 */
#ifndef BENCH_REQUEST_H
#define BENCH_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DIGITS_MAX 20 /* of an id */

/* A run of constant bytes, or an argument with an id in it. */
struct piece {
	bool has_id;
	/* Without an id only the first: the bytes. With one, by its digits:
	 * "$<length>\r\n" and what stands before the id. */
	char *head[DIGITS_MAX + 1]; /* owned */
	size_t head_len[DIGITS_MAX + 1];
	char *tail; /* what stands after it, with CRLF; owned */
	size_t tail_len;
};

struct request {
	uint64_t low, high; /* range of ids, both included; set by the caller */
	uint64_t random;    /* seed, then state; set by the caller */
	struct piece *pieces; /* owned */
	size_t piece_count;
	size_t max; /* bytes of the longest one */
};

/* argv: the command and its arguments, argc of them. */
void request_compile(struct request *r, char *const *argv, int argc);
/* Writes one, at most r->max bytes; returns where it ends. */
char *request_put(struct request *r, char *out);
void request_fini(struct request *r);

#endif
