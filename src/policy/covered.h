/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reads that may be answered here: one row a command, with the plain form
 * that alone is covered and what Redis answers where the key is missing (WIRE.md;
 * tests/integration/test_covered.py asks Redis). Pure; any thread.
 */
#ifndef POLICY_COVERED_H
#define POLICY_COVERED_H

#include <stdbool.h>
#include <stddef.h>

#include "core/buf.h"
#include "core/slice.h"

/* What follows the first key. */
enum covered_args {
	ARGS_NONE,
	ARGS_KEYS,    /* more keys, or none */
	ARGS_FIELD,   /* one, of any bytes */
	ARGS_FIELDS,  /* one or more of any bytes */
	ARGS_INTEGER, /* one */
	ARGS_RANGE,   /* two integers */
	ARGS_BIT,     /* a bit offset that every Redis takes */
};

/* The reply for a missing key. */
enum covered_missing {
	MISSING_NIL,
	MISSING_NILS, /* an array of as many as keys or fields were asked for */
	MISSING_ZERO, /* EXISTS: of each key */
	MISSING_ZEROS,
	MISSING_TTL,  /* -2 */
	MISSING_NONE, /* +none */
	MISSING_EMPTY_STRING,
	MISSING_EMPTY_ARRAY,
	MISSING_EMPTY_MAP,
	MISSING_EMPTY_SET,
};

struct covered_read {
	const char *name; /* lower case */
	const char *sub;  /* its subcommand, before the key; NULL: none */
	enum covered_args args;
	enum covered_missing missing;
	bool value; /* an absent-reply value stands for what is missing */
	bool tells; /* only of a missing key is the reply this one */
};

/* The row of name (lower case); NULL without. */
const struct covered_read *covered_find(const char *name);
/* Rows are 0 <= index < covered_count(). */
size_t covered_count(void);
const struct covered_read *covered_at(size_t index);
size_t covered_index(const struct covered_read *r);

/* True where an upstream that says arity of the command takes the plain form. */
bool covered_fits(const struct covered_read *r, int arity);
/* True for a request in the plain form: its arguments are as many and as they
 * should be. argv[0] is the name, and is not looked at. */
bool covered_is_plain(
    const struct covered_read *r, const struct slice *argv, size_t argc);

/* True where any name and one argument is the plain form, that argument the key. */
bool covered_is_only_key(const struct covered_read *r);

/* Of a plain request: the index of its first key, how many there are, and how
 * many elements an array of one for each key or field has. */
size_t covered_first_key(const struct covered_read *r);
size_t covered_key_count(const struct covered_read *r, size_t argc);
size_t covered_element_count(const struct covered_read *r, size_t argc);

/* What Redis answers where no key of a plain request exists; count as told by
 * covered_element_count. 0, or -1 where out is full. */
int covered_put_missing(const struct covered_read *r, int proto, size_t count,
    struct buf *out) __attribute__((warn_unused_result));

/* A plain request about key, for asking Redis who may send it: fills argv, whose
 * slices are borrowed; how many. */
#define COVERED_SAMPLE_MAX 5
size_t covered_sample(const struct covered_read *r, struct slice key,
    struct slice argv[COVERED_SAMPLE_MAX]);

#endif
