/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The families of RESP types. Private to src/resp. Any thread.
 */
#ifndef RESP_REPLY_TYPES_H
#define RESP_REPLY_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* How a type's first line is read; a type that is not here is not RESP. */
enum reply_kind {
	REPLY_KIND_NONE,
	REPLY_KIND_TEXT,   /* to its end, whatever it is */
	REPLY_KIND_NUMBER, /* a value or length */
	REPLY_KIND_WORD,   /* _ and #: short, not a number */
};

/* By type byte. */
extern const uint8_t reply_kinds[256];

/* One line that may have any length. */
static inline bool
reply_is_text(uint8_t type)
{
	return type == '+' || type == '-' || type == '(' || type == ',';
}

/* A length, then so many bytes. */
static inline bool
reply_is_bulk(uint8_t type)
{
	return type == '$' || type == '=' || type == '!';
}

/* A count, then so many values; an attribute is not itself a value. */
static inline bool
reply_is_aggregate(uint8_t type)
{
	return type == '*' || type == '%' || type == '~' || type == '>' ||
	    type == '|';
}

#endif
