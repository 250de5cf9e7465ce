/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The incremental parser of client requests: RESP arrays of bulk strings and
 * inline commands, split at any byte. It does no I/O, keeps no more of a
 * request than REQUEST_CAPTURE_MAX bytes of each argument once detached, and
 * allocates by what has arrived, never by what was declared.
 *
 * Two ways of use, one state machine:
 *
 *   whole     the caller keeps the bytes of the request contiguous from its
 *	       first byte; request_parse is called again with more of them and
 *	       goes on where it stopped. Arguments are offsets into these bytes.
 *   detached  when a request grows too large to keep, request_detach copies
 *	       what was seen of the arguments (each cut at REQUEST_CAPTURE_MAX);
 *	       request_feed then takes only fresh bytes, which the caller
 *	       may forget once it has relayed them.
 *
 * Texts of errors are those of Redis 7.0 (reply lines without "-" and CRLF).
 */
#ifndef RESP_REQUEST_H
#define RESP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/check.h"
#include "core/slice.h"

/* Of a detached request this much of each argument is kept: an element is at
 * most 4096 bytes, and the rest is room for what surrounds it in a key. */
#define REQUEST_CAPTURE_MAX 8192
/* Of a detached request this much is kept over all arguments: one that would
 * pass it is kept with kept == 0 (its length stays known), and so is each
 * later one that does not fit. Whoever must know every key of a request checks
 * request_arg_whole, or that kept bytes are enough, before relying on them. */
#define REQUEST_KEPT_MAX ((size_t)64 << 20)
/* An inline request's longest line, as in Redis (PROTO_INLINE_MAX_SIZE). */
#define REQUEST_INLINE_MAX 65536

enum parse_status {
	PARSE_MORE,  /* all bytes used, the thing is not complete */
	PARSE_READY, /* complete */
	PARSE_BAD,   /* not RESP: answer ->error and close */
};

struct request_arg {
	uint64_t len;  /* its whole length in bytes, as declared */
	size_t offset; /* where its kept bytes begin */
	size_t kept;   /* kept bytes: len, or less when cut or not yet here */
};

struct request_limits {
	uint64_t bulk_bytes; /* one argument: above it, "invalid bulk length" */
	uint64_t request_bytes; /* a whole request: above it, BAD */
};

/* Private fields are named in request.c; the public ones are read only. */
struct request {
	/* public, valid after READY, and while MORE for complete arguments */
	size_t argc;      /* complete arguments so far; at READY: all */
	int64_t declared; /* arguments the header declared; -1 not yet known; 0
			   * for *0 and *-1; inline: argc once READY */
	uint64_t size;    /* bytes of the request consumed so far */
	bool is_inline;
	bool empty; /* READY but nothing to execute (blank line, *0, *-1): no
		     * reply is due; argc is 0 */
	bool detached;
	char error[128]; /* BAD: the reply's text, "ERR Protocol error: .." */

	/* private */
	struct request_limits limits;
	struct request_arg *args; /* grown as arguments arrive */
	size_t args_cap;
	uint8_t *kept; /* inline decoded args, or detached copies */
	size_t kept_len, kept_cap;
	int state;
	bool unauthenticated;
	uint64_t bulk_left;  /* bytes of the argument and its CR LF to come */
	size_t capture_left; /* detached: of these, bytes still to keep */
	uint8_t line[64];    /* the first bytes of a header line cut in two */
	size_t line_len;     /* bytes of the header or inline line so far */
	bool line_nul;       /* a NUL was in it: Redis then finds no end */
};

void request_init(struct request *r, const struct request_limits *limits);
void request_fini(struct request *r);
/* Ready for the next request; keeps small allocations, frees large ones. */
void request_reset(struct request *r);

/*
 * While on, the parser refuses what Redis refuses before a client has
 * authenticated (CVE-2021-32675): more than 10 arguments or one above 16 KiB.
 * Off after request_init; request_reset leaves it as it is.
 */
void request_set_unauthenticated(struct request *r, bool on);

/* Heap bytes that r holds, for the account of a client's memory. An argument
 * costs sizeof(struct request_arg), its wire form at least 6 bytes. */
size_t request_memory(const struct request *r);

/*
 * Whole: data holds len bytes from the request's first byte on, at least as
 * many as in the call before and the same ones. On READY r->size is the
 * request's length; bytes after it belong to the next.
 */
enum parse_status request_parse(
    struct request *r, const uint8_t *data, size_t len);

/* Copies what was parsed so far; data as in the last request_parse, which
 * returned MORE (before the first one: NULL). An inline request is kept whole,
 * it is at most REQUEST_INLINE_MAX bytes. */
void request_detach(struct request *r, const uint8_t *data);

/*
 * Detached: takes fresh bytes, from the one at r->size on. *used is how many
 * belong to this request (all of them on MORE). On BAD it is 0.
 */
enum parse_status request_feed(
    struct request *r, const uint8_t *data, size_t len, size_t *used);

/*
 * Complete argument i (i < argc); base is the request's first byte (ignored for
 * inline and detached requests, whose arguments are kept in r). The bytes hold
 * until base moves, r is fed or r is reset. Where the argument was cut, the
 * slice is only its first bytes and request_arg_whole is false.
 */
static inline struct slice
request_arg(const struct request *r, const uint8_t *base, size_t i)
{
	const struct request_arg *arg;

	check(i < r->argc);
	arg = &r->args[i];
	if (r->is_inline || r->detached)
		base = r->kept;
	return slice_of(base == NULL ? NULL : base + arg->offset, arg->kept);
}
static inline bool
request_arg_whole(const struct request *r, size_t i)
{
	return r->args[i].kept == r->args[i].len;
}

#endif
