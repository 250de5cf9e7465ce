/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Key patterns: which filter covers a key, and which element it stands for
 * (DESIGN.md, "Key patterns"). Built once from the settings, immutable after. Any
 * thread.
 */
#ifndef POLICY_PATTERN_H
#define POLICY_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "config/settings.h"
#include "core/slice.h"
#include "filter/scheme.h"

struct pattern_set; /* compiled patterns of all filters, by db */

/* settings are valid (settings_load checked every pattern). Returned; freed with
 * pattern_set_free. */
struct pattern_set *pattern_set_new(const struct settings *s);
void pattern_set_free(struct pattern_set *set);

struct pattern_match {
	size_t filter;        /* index in settings->filters */
	struct slice capture; /* borrowed from the key */
};
/* True and *out when key of database db is covered. */
bool pattern_match(const struct pattern_set *set, unsigned db, struct slice key,
    struct pattern_match *out);

/*
 * The element of a capture: the filter's template applied. Points into capture
 * or into scratch (ELEMENT_MAX bytes at least). Data NULL when it would be
 * longer than ELEMENT_MAX: maybe, adds nothing.
 */
struct slice pattern_element(const struct pattern_set *set, size_t filter,
    struct slice capture, uint8_t scratch[ELEMENT_MAX]);

/*
 * A key that the filter's first pattern makes of capture, for asking Redis what
 * a user may read. Returned; freed with free(); *len_out its bytes.
 */
char *pattern_key(const struct pattern_set *set, size_t filter,
    struct slice capture, size_t *len_out);

/* Index of the filter called name (BF.*), or -1. */
int pattern_filter_named(const struct pattern_set *set, struct slice name);

/* True when v is one of the filter's null-values. */
bool pattern_is_null_value(
    const struct pattern_set *set, size_t filter, struct slice v);

#endif
