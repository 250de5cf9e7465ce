/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See resp_compare.h. The reference is the parse in one piece; what it must be
 * is for the unit tests to say. One thread.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/mem.h"
#include "resp/reply.h"
#include "resp/request.h"
#include "resp_compare.h"

#define BYTEWISE_MAX 3000 /* above it, pieces of one byte cost too much */
#define FOLLOWING    100
#define VARIANTS     6
/* What a parser may hold of bytes that arrived, whatever they declare: a list of
 * arguments at twice the need, of which two bytes may be one, and their copy. */
#define HELD_FIRST    1024
#define HELD_PER_BYTE 32

/* splitmix64: reproducible from the seed, unlike rand(). */
static uint64_t
next(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* The next piece: 1 byte, a few or many; at most left. */
static size_t
piece(uint64_t *state, size_t left, bool bytewise)
{
	uint64_t kind = next(state) % 4;
	size_t len = 1;

	if (!bytewise && kind > 0)
		len = 1 + next(state) % (kind == 1 ? 4 : kind == 2 ? 40 : 9000);
	return len < left ? len : left;
}

static struct request_limits
limits_of(uint64_t seed)
{
	switch (seed % 4) {
	case 0:
		return (struct request_limits){64, 200};
	case 1:
		return (struct request_limits){10000, 20000};
	default:
		return (struct request_limits){
		    (uint64_t)512 << 20, (uint64_t)1 << 30};
	}
}

/* b holds what a holds; b may be detached. */
static void
same_request(const struct request *a, const uint8_t *data,
    const struct request *b, const uint8_t *base)
{
	size_t i;

	check(strcmp(a->error, b->error) == 0);
	check(a->argc == b->argc && a->declared == b->declared);
	check(a->is_inline == b->is_inline && a->empty == b->empty);
	for (i = 0; i < a->argc; i++) {
		struct slice x = request_arg(a, data, i);
		struct slice y = request_arg(b, base, i);

		check(a->args[i].len == b->args[i].len);
		check(request_arg_whole(a, i) && x.len == a->args[i].len);
		if (b->detached && !b->is_inline && x.len > REQUEST_CAPTURE_MAX)
			x.len = REQUEST_CAPTURE_MAX;
		check(slice_eq(x, y));
		check(request_arg_whole(b, i) == (y.len == b->args[i].len));
	}
}

/* Parses data in pieces, whole up to detach_at and detached from there on. */
static void
request_variant(const struct request *ref, enum parse_status expected,
    const uint8_t *data, size_t len, uint64_t *state, bool bytewise,
    size_t detach_at)
{
	struct request r;
	enum parse_status status = PARSE_MORE;
	uint8_t *whole = NULL;
	size_t at = 0, used;

	request_init(&r, &ref->limits);
	request_set_unauthenticated(&r, ref->unauthenticated);
	if (detach_at == 0)
		request_detach(&r, NULL);
	while (status == PARSE_MORE && at < len) {
		size_t n = piece(state, len - at, bytewise);

		if (r.detached) {
			uint8_t *fresh = mem_dup(data + at, n);

			status = request_feed(&r, fresh, n, &used);
			check(used == n || status != PARSE_MORE);
			free(fresh);
			at += status == PARSE_BAD ? n : used;
			check(request_memory(&r) <=
			    HELD_FIRST + HELD_PER_BYTE * at);
			continue;
		}
		at += n;
		free(whole);
		whole = mem_dup(data, at);
		status = request_parse(&r, whole, at);
		check(status != PARSE_MORE || r.size == at);
		check(request_memory(&r) <= HELD_FIRST + HELD_PER_BYTE * at);
		if (status == PARSE_MORE && at >= detach_at) {
			request_detach(&r, whole);
			free(whole);
			whole = NULL;
		}
	}
	check(status == expected);
	check(status == PARSE_BAD || r.size == ref->size);
	same_request(ref, data, &r, whole);
	free(whole);
	request_fini(&r);
}

size_t
request_compare(const uint8_t *data, size_t len, uint64_t seed)
{
	struct request_limits limits = limits_of(seed);
	enum parse_status status = PARSE_READY;
	struct request ref;
	uint64_t state = seed;
	size_t done = 0;
	int i;

	request_init(&ref, &limits);
	request_set_unauthenticated(&ref, seed % 7 == 3);
	while (status == PARSE_READY && len > 0) {
		uint8_t *exact = mem_dup(data, len);
		size_t near;

		status = request_parse(&ref, exact, len);
		check(ref.size <= len && (status == PARSE_BAD || ref.size > 0));
		check(status != PARSE_MORE || ref.size == len);
		check((status == PARSE_BAD) == (ref.error[0] != '\0'));
		/* What follows a complete request need not be all there. */
		near = len;
		if (status == PARSE_READY && len - ref.size > FOLLOWING)
			near = (size_t)ref.size + FOLLOWING;
		for (i = 0; i < VARIANTS; i++) {
			bool bytewise = i < 2 && near <= BYTEWISE_MAX;
			size_t detach_at = SIZE_MAX;

			if (i == 1 || i == 2)
				detach_at = 0;
			else if (i >= 4)
				detach_at = next(&state) % (near + 1);
			request_variant(&ref, status, exact, near, &state,
			    bytewise, detach_at);
		}
		free(exact);
		if (status == PARSE_READY) {
			done++;
			data += ref.size;
			len -= ref.size;
			request_reset(&ref);
		}
	}
	request_fini(&ref);
	return done;
}

static void
same_reply(const struct reply *a, const struct reply *b)
{
	size_t i;

	check(a->type == b->type && a->nil == b->nil);
	check(a->number == b->number && a->size == b->size);
	check(a->elements_done == b->elements_done);
	check(a->head_len == b->head_len);
	check(memcmp(a->head, b->head, a->head_len) == 0);
	for (i = 0; i <= REPLY_ELEMENTS_MAX; i++) {
		struct slice x = reply_head_element(a, i);
		struct slice y = reply_head_element(b, i);

		check((x.data == NULL) == (y.data == NULL));
		check(slice_eq(x, y));
		check(x.data == NULL ||
		    (x.data > a->head &&
			x.data + x.len <= a->head + a->head_len));
	}
}

static void
reply_variant(const struct reply *ref, enum parse_status expected,
    const uint8_t *data, size_t len, uint64_t *state, bool bytewise,
    bool elements)
{
	enum parse_status status = PARSE_MORE;
	uint64_t stops = 0;
	struct reply r;
	size_t at = 0;

	reply_init(&r);
	while (status == PARSE_MORE && at < len) {
		size_t n = piece(state, len - at, bytewise), used;
		uint8_t *fresh = mem_dup(data + at, n);
		bool element = false;

		status = elements
		    ? reply_feed_element(&r, fresh, n, &used, &element)
		    : reply_feed(&r, fresh, n, &used);
		free(fresh);
		if (status == PARSE_BAD)
			break;
		check(used > 0 && used <= n);
		check(used == n || status == PARSE_READY || element);
		at += used;
		check(r.size == at);
		check(reply_memory(&r) <= HELD_FIRST + HELD_PER_BYTE * at);
		/* The header's stop is the first, with nothing done. */
		if (element)
			check(r.elements_done == stops++);
	}
	check(status == expected);
	if (status != PARSE_BAD) {
		same_reply(ref, &r);
		check(
		    !elements || stops == 0 || stops == ref->elements_done + 1);
	}
	reply_fini(&r);
}

/* The count of elements that were read is the one that was declared. */
static void
check_elements(const struct reply *r, enum parse_status status)
{
	bool aggregate = r->type != '\0' && strchr("*%~>", r->type) != NULL;
	uint64_t declared = 0;

	if (aggregate && !r->nil && r->number > 0)
		declared = (uint64_t)r->number * (r->type == '%' ? 2 : 1);
	if (status == PARSE_READY)
		check(r->elements_done == declared);
	else if (status == PARSE_MORE)
		check(r->elements_done <= declared);
}

/* What is passed over unframed ends where a reply does, and none of it is one of
 * those that somebody learns from. */
static void
plain_compare(const uint8_t *data, size_t len, uint64_t seed)
{
	size_t max = seed % 8, count, i, at = 0, used;
	uint8_t *exact = mem_dup(data, len);
	size_t skipped = reply_skip_plain(exact, len, max, &count);
	struct reply r;

	check(count <= max && (count == 0) == (skipped == 0));
	reply_init(&r);
	for (i = 0; i < count; i++) {
		check(at < skipped);
		check(
		    reply_feed(&r, exact + at, len - at, &used) == PARSE_READY);
		check(r.type == '$' || r.type == ':' || r.type == '+');
		at += used;
		reply_reset(&r);
	}
	check(at == skipped);
	reply_fini(&r);
	free(exact);
}

size_t
reply_compare(const uint8_t *data, size_t len, uint64_t seed)
{
	enum parse_status status = PARSE_READY;
	uint64_t state = seed;
	struct reply ref;
	size_t done = 0, used;
	int i;

	reply_init(&ref);
	plain_compare(data, len, seed);
	while (status == PARSE_READY && len > 0) {
		uint8_t *exact = mem_dup(data, len);
		size_t near = len;

		status = reply_feed(&ref, exact, len, &used);
		check(used <= len && (status == PARSE_BAD) == (used == 0));
		check(status != PARSE_MORE || used == len);
		check_elements(&ref, status);
		if (status == PARSE_READY && len - used > FOLLOWING)
			near = used + FOLLOWING;
		for (i = 0; i < VARIANTS; i++)
			reply_variant(&ref, status, exact, near, &state,
			    i < 2 && near <= BYTEWISE_MAX, i % 2 == 1);
		free(exact);
		if (status == PARSE_READY) {
			done++;
			data += used;
			len -= used;
			reply_reset(&ref);
		}
	}
	reply_fini(&ref);
	return done;
}
