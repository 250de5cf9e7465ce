/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of RESP types. Any thread.
 */
#include "config.h"

#include "resp/reply_types.h"

const uint8_t reply_kinds[256] = {
    ['+'] = REPLY_KIND_TEXT,
    ['-'] = REPLY_KIND_TEXT,
    ['('] = REPLY_KIND_TEXT,
    [','] = REPLY_KIND_TEXT,
    [':'] = REPLY_KIND_NUMBER,
    ['$'] = REPLY_KIND_NUMBER,
    ['!'] = REPLY_KIND_NUMBER,
    ['='] = REPLY_KIND_NUMBER,
    ['*'] = REPLY_KIND_NUMBER,
    ['%'] = REPLY_KIND_NUMBER,
    ['~'] = REPLY_KIND_NUMBER,
    ['>'] = REPLY_KIND_NUMBER,
    ['|'] = REPLY_KIND_NUMBER,
    ['_'] = REPLY_KIND_WORD,
    ['#'] = REPLY_KIND_WORD,
};
