/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An element template taken apart: literal text, {filter} filled in, around the
 * one placeholder (DESIGN.md, "Key patterns"). Its grammar is checked by
 * keypattern_check_element. Pure. Any thread.
 */
#ifndef CONFIG_KEYTEMPLATE_H
#define CONFIG_KEYTEMPLATE_H

#include <stddef.h>
#include <stdint.h>

#include "core/slice.h"

/* An element is before, the capture, after. */
struct keytemplate {
	char *before, *after; /* owned; no NUL */
	size_t before_len, after_len;
};

/* text: checked by keypattern_check_element, or "" or NULL for the placeholder
 * alone. filter: the filter's name. Freed with keytemplate_fini. */
void keytemplate_init(
    struct keytemplate *out, const char *text, const char *filter);
void keytemplate_fini(struct keytemplate *t);

/*
 * The element of a capture: capture itself or in scratch, which holds max bytes.
 * Data NULL where it would be longer than max.
 */
struct slice keytemplate_apply(const struct keytemplate *t,
    struct slice capture, uint8_t *scratch, size_t max);

#endif
