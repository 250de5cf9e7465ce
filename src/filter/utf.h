/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UTF-8 read as the UTF-16 units that Java's String has. Private to src/filter.
 * Pure. Any thread.
 */
#ifndef FILTER_UTF_H
#define FILTER_UTF_H

#include <stddef.h>
#include <stdint.h>

#include "core/slice.h"

/*
 * Takes the first code point off s and gives its one or two units. Returns how
 * many; 0 at the end of s; -1 where s does not go on as UTF-8 (RFC 3629: no
 * overlong form, no surrogate, nothing above U+10FFFF, nothing cut off).
 */
int utf_next(struct slice *s, uint16_t units[2]);

#endif
