/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames replies without building them: finds where each ends, for every type
 * of RESP2 and RESP3, nested to REPLY_DEPTH_MAX on a heap stack, split at any
 * byte. It keeps only the first bytes of a reply, for those who learn from it.
 *
 * An attribute (|) and the value it precedes are one reply.
 */
#ifndef RESP_REPLY_H
#define RESP_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/slice.h"
#include "resp/request.h" /* enum parse_status */

#define REPLY_DEPTH_MAX    128
#define REPLY_HEAD_MAX     256
#define REPLY_ELEMENTS_MAX 8 /* leading elements remembered */

struct reply {
	/* public, valid once READY (type and nil also once their line is read) */
	char type;      /* + - : $ * _ # , ( ! = % ~ > (after any attribute) */
	bool nil;       /* $-1, *-1 or _ */
	int64_t number; /* : value; $ = and ! length; #: 1 or 0; aggregates:
			 * declared count (pairs for %); -1 where that is what
			 * was declared; streamed lengths are BAD */
	uint64_t size;  /* bytes consumed so far, attributes included */
	/* The first bytes of the reply after attributes, its type included, as
	 * they came: enough to see "+OK" or "*3\r\n$7\r\nmessage...". */
	uint8_t head[REPLY_HEAD_MAX];
	size_t head_len;
	/* For an aggregate: elements of depth 1 completed so far. */
	uint64_t elements_done;

	/* private */
	int state;
	uint64_t *stack; /* elements still due per level; heap */
	size_t depth, stack_cap;
	bool in_attribute; /* reading an attribute of the reply itself */
	uint8_t line_type; /* of the header line being read */
	uint8_t line[32];  /* a numeric header line cut in two */
	size_t line_len;
	uint64_t bulk_left; /* bytes of the bulk to come, without CR LF */
};

void reply_init(struct reply *r);
void reply_fini(struct reply *r);
void reply_reset(struct reply *r);

/*
 * Takes fresh bytes, from the one at r->size on; *used is how many belong to
 * this reply. READY: the reply ends at the last used byte. BAD: the peer does
 * not speak RESP (or nests deeper than REPLY_DEPTH_MAX); *used is 0.
 *
 * Every CR LF is checked, that after a bulk too: Redis always sends it, and a
 * stream that has slipped must not be taken for replies. A status, an error, a
 * double or a big number ends at the first CR LF and may have any length.
 */
enum parse_status reply_feed(
    struct reply *r, const uint8_t *data, size_t len, size_t *used);

/*
 * The same, but returns also (as MORE with *element = true) after the header
 * line of a top-level aggregate and after each of its elements: for merging.
 * A top-level reply that is no aggregate, or an empty one, just ends with READY.
 * After the last element READY is returned (with *element = true).
 */
enum parse_status reply_feed_element(struct reply *r, const uint8_t *data,
    size_t len, size_t *used, bool *element);

/*
 * Bytes of the whole plain replies that data begins with, at most max of them;
 * *count: how many. Plain are those from which nobody learns anything: bulk
 * strings, nil among them, counts and +OK. data begins where a reply does.
 */
size_t reply_skip_plain(
    const uint8_t *data, size_t len, size_t max, size_t *count);

/* Heap bytes that r holds. */
size_t reply_memory(const struct reply *r);

/* True when the reply is an error (- or !). */
static inline bool
reply_is_error(const struct reply *r)
{
	return r->type == '-' || r->type == '!';
}

/* True when the head that is remembered begins with text. */
bool reply_head_starts(const struct reply *r, const char *text);

/*
 * The i-th leading element of an aggregate, or the payload of a simple or bulk
 * type (i = 0), read from head: only when it is of a simple or bulk type and
 * lies wholly in head; else a slice with data NULL. NULL also for a nil, for i
 * from REPLY_ELEMENTS_MAX on, and for an element under an attribute. Of a map
 * i counts keys and values. Elements before it may be of any type.
 */
struct slice reply_head_element(const struct reply *r, size_t i);

#endif
