/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Splits the line of an inline request into words by the rules of Redis's
 * sdssplitargs: "double quotes" with \n \r \t \b \a \xHH and \any, 'single
 * quotes' with \', and a closing quote must be followed by a blank or the end.
 * Private to src/resp. Any thread.
 */
#ifndef RESP_INLINE_H
#define RESP_INLINE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Takes the next word of line, which holds no NUL, from *at on, and decodes it
 * in place: a word is never longer than what it was written as. Returns 1 with
 * the word at line + *offset, 0 when there is none, -1 on unbalanced quotes.
 */
int inline_next(uint8_t *line, size_t len, size_t *at, size_t *offset,
    size_t *word_len) __attribute__((warn_unused_result));

#endif
