/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single values as text: numbers, sizes, durations, booleans, words, schedules;
 * read and written. They know nothing of options or files. Any thread.
 *
 * value_parse_*: 0 and *out, or -1 with a reason that begins with what the
 * value must be ("must be ...").
 */
#ifndef CONFIG_VALUE_H
#define CONFIG_VALUE_H

#include <stdbool.h>
#include <stdint.h>

#include "config/settings.h"
#include "core/buf.h"
#include "core/err.h"

/* Decimal digits; no sign, no leading zeros. */
int value_parse_whole(const char *text, uint64_t *out, struct err *err)
    __attribute__((warn_unused_result));
/* A decimal fraction, maybe with an exponent; never infinite or NaN. */
int value_parse_real(const char *text, double *out, struct err *err)
    __attribute__((warn_unused_result));
/* true false yes no on off, in any case. */
int value_parse_bool(const char *text, bool *out, struct err *err)
    __attribute__((warn_unused_result));
/* Bytes: a whole number, alone or with KiB, MiB or GiB. */
int value_parse_size(const char *text, uint64_t *out, struct err *err)
    __attribute__((warn_unused_result));
/* Milliseconds: a whole number with ms, s, m, h or d; 0 needs no unit. */
int value_parse_duration(const char *text, uint64_t *out_ms, struct err *err)
    __attribute__((warn_unused_result));
/* The index of text in words, which are separated by single spaces. */
int value_parse_word(const char *text, const char *words, unsigned *out,
    struct err *err) __attribute__((warn_unused_result));
/* "monthly HH:MM", "weekly mon HH:MM", "daily HH:MM", "every 6h", "never". */
int value_parse_schedule(const char *text, struct schedule *out,
    struct err *err) __attribute__((warn_unused_result));

/* Append what the functions above read back as the same value. */
void value_print_real(struct buf *out, double v);
void value_print_size(struct buf *out, uint64_t bytes);
void value_print_duration(struct buf *out, uint64_t ms);
void value_print_word(struct buf *out, const char *words, unsigned index);
void value_print_schedule(struct buf *out, const struct schedule *s);
/* A double-quoted YAML scalar of UTF-8 bytes. */
void value_print_string(struct buf *out, const void *text, size_t len);

/* A text that grows; the end returns it as a string, freed with free(). */
void value_text_start(struct buf *out);
char *value_text_end(struct buf *out);
/* Appends to such a text; at most 1023 bytes a call. */
void value_printf(struct buf *out, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
