/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The grammar of key patterns and element templates (DESIGN.md, "Key patterns")
 * as far as checking needs it: is it well formed, and can two patterns match
 * one key. Matching itself belongs to policy. Any thread.
 */
#ifndef CONFIG_KEYPATTERN_H
#define CONFIG_KEYPATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"

#define KEYPATTERN_MAX 512 /* bytes of a pattern or template as written */

struct keypattern {
	char *placeholder; /* the name between the braces, without '*' */
	char *prefix;      /* literal bytes before it, braces undone */
	char *suffix;      /* literal bytes after it */
	size_t prefix_len, suffix_len;
	int excluded; /* the byte that a capture never holds, or -1 */
};

/* 0, or -1 with the reason. Freed with keypattern_fini in the first case. */
int keypattern_parse(struct keypattern *out, const char *text, struct err *err)
    __attribute__((warn_unused_result));
void keypattern_fini(struct keypattern *p);

/*
 * True when a and b have equally many literal bytes and some key fits both.
 * Exact: no key is overlooked and none is made up.
 */
bool keypattern_collide(const struct keypattern *a, const struct keypattern *b);

/*
 * An element template: {placeholder} exactly once, {filter} any number of
 * times, nothing else in braces. 0, or -1 with the reason.
 */
int keypattern_check_element(const char *text, const char *placeholder,
    struct err *err) __attribute__((warn_unused_result));

#endif
