/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A borrowed run of bytes. It owns nothing and may hold NUL. Any thread.
 */
#ifndef CORE_SLICE_H
#define CORE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

struct slice {
	const uint8_t *data; /* borrowed; may be NULL when len is 0 */
	size_t len;          /* bytes */
};

static inline struct slice
slice_of(const void *data, size_t len)
{
	return (struct slice){.data = data, .len = len};
}

/* A slice over a C string, without its NUL. */
static inline struct slice
slice_str(const char *s)
{
	return slice_of(s, strlen(s));
}

static inline bool
slice_eq(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || !memcmp(a.data, b.data, a.len));
}

static inline bool
slice_is(struct slice a, const char *s)
{
	return slice_eq(a, slice_str(s));
}

/* Equal but for ASCII case. */
static inline bool
slice_is_nocase(struct slice a, const char *s)
{
	return a.len == strlen(s) &&
	    strncasecmp((const char *)a.data, s, a.len) == 0;
}

/*
 * The whole slice as a decimal int64 as Redis reads one: an optional '-', no
 * plus, no leading zeros, no spaces. Returns 0, or -1 when it is not one.
 */
int slice_to_int64(struct slice s, int64_t *out)
    __attribute__((warn_unused_result));

#endif
