/* SPDX-License-Identifier: BSD-2-Clause */
/* The page at /: one constant HTML document that needs nothing from elsewhere. */
#ifndef STATS_PAGE_H
#define STATS_PAGE_H

#include <stddef.h>

extern const char page_html[];
extern const size_t page_html_len; /* bytes, without the NUL */

#endif
