/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers and texts as people read them. Pure, but for format_value. */
#ifndef CTL_FORMAT_H
#define CTL_FORMAT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define FORMAT_MAX    64
#define FORMAT_GREEN  "\033[32m"
#define FORMAT_YELLOW "\033[33m"
#define FORMAT_RED    "\033[1;31m"
#define FORMAT_PLAIN  "\033[0m"

/* "1,234,567"; rounded to a whole number. */
void format_count(char *out, size_t size, double value);
/* "1.00 %"; "-" where value is negative (unknown). */
void format_share(char *out, size_t size, double value);
/* "42 s", "3 min 5 s", "2 h 10 min", "4 d 3 h". */
void format_span(char *out, size_t size, double seconds);
/* "1.2 MiB". */
void format_bytes(char *out, size_t size, double bytes);
/* Columns that UTF-8 text takes (each code point one). */
int format_width(const char *text);
/* A logfmt value: quoted where it holds blanks, quotes or '='. */
void format_value(FILE *to, const char *text);

#endif
