/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values of the meta hash, one by one: strict readers of text that anybody
 * may have written. Private to src/filter. Pure. Any thread.
 */
#ifndef FILTER_META_FIELD_H
#define FILTER_META_FIELD_H

#include "filter/meta.h"

/* What stands after "g:NAME:". */
enum generation_field {
	FIELD_STATE,
	FIELD_SHARDS,
	FIELD_BITS,
	FIELD_K,
	FIELD_SCHEME,
	FIELD_SINGLE,
	FIELD_KEY,
	FIELD_TAG,
	FIELD_CAPACITY,
	FIELD_ERROR_RATE,
	FIELD_ELEMENTS,
	FIELD_BEGAN,
	FIELD_ENDED,
	FIELD_SEALED,
	FIELD_CARRIED,
	FIELD_SET,
	FIELD_COUNT,
};

/* The field called name, or -1 for one that this program does not read. */
int meta_field_lookup(struct slice name);
const char *meta_field_name(enum generation_field f);
/* One field of a generation into g. -1: not as this program knows it. */
int meta_field_read(struct generation *g, enum generation_field field,
    struct slice value) __attribute__((warn_unused_result));

/* A decimal number from 0 to max. 0, or -1. */
int meta_field_unsigned(struct slice s, uint64_t max, uint64_t *out)
    __attribute__((warn_unused_result));
/* Microseconds, 0 or more. 0, or -1. */
int meta_field_time(struct slice s, int64_t *out)
    __attribute__((warn_unused_result));
/* Text without NUL, shorter than size, into out with a NUL. 0, or -1. */
int meta_field_text(struct slice s, char *out, size_t size)
    __attribute__((warn_unused_result));

#endif
