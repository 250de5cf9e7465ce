/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads and writes single values: see value.h. Nothing here guesses: what is
 * not exactly in the grammar is refused with the grammar in the message.
 */
#include "config.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "config/issues.h"
#include "config/value.h"
#include "core/check.h"
#include "core/mem.h"

static const char weekdays[] = "sun mon tue wed thu fri sat";

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
    {"GiB", UINT64_C(1) << 30},
    {"MiB", UINT64_C(1) << 20},
    {"KiB", UINT64_C(1) << 10},
    {NULL, 0},
};

static const struct unit duration_units[] = {
    {"d", 86400000},
    {"h", 3600000},
    {"m", 60000},
    {"s", 1000},
    {"ms", 1},
    {NULL, 0},
};

/* "must be <wanted>, not '<text>'" */
static int
refuse(struct err *err, const char *wanted, const char *text)
{
	char *shown = issues_quote(text, strlen(text));

	err_set(err, "must be %s, not '%s'", wanted, shown);
	free(shown);
	return -1;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * The digits at the start of text: their count, 0 where there are none, they
 * have a leading zero, or the number is above 64 bits.
 */
static size_t
digits(const char *text, uint64_t *out)
{
	uint64_t v = 0;
	size_t n;

	for (n = 0; is_digit(text[n]); n++) {
		unsigned d = (unsigned)(text[n] - '0');

		if (v > (UINT64_MAX - d) / 10)
			return 0;
		v = v * 10 + d;
	}
	if (n > 1 && text[0] == '0')
		return 0;
	*out = v;
	return n;
}

int
value_parse_whole(const char *text, uint64_t *out, struct err *err)
{
	size_t n = digits(text, out);

	if (n == 0 || text[n] != '\0')
		return refuse(err, "a whole number", text);
	return 0;
}

/* True when all of text is digits, fraction and exponent as JSON has them. */
static bool
is_real(const char *text)
{
	const char *p = text;

	if (!is_digit(*p) || (p[0] == '0' && is_digit(p[1])))
		return false;
	while (is_digit(*p))
		p++;
	if (*p == '.') {
		if (!is_digit(*++p))
			return false;
		while (is_digit(*p))
			p++;
	}
	if (*p == 'e' || *p == 'E') {
		p++;
		if (*p == '+' || *p == '-')
			p++;
		if (!is_digit(*p))
			return false;
		while (is_digit(*p))
			p++;
	}
	return *p == '\0';
}

int
value_parse_real(const char *text, double *out, struct err *err)
{
	if (is_real(text)) {
		*out = strtod(text, NULL);
		if (isfinite(*out))
			return 0;
	}
	return refuse(err, "a number", text);
}

int
value_parse_bool(const char *text, bool *out, struct err *err)
{
	static const char *const words[] = {
	    "false", "true", "no", "yes", "off", "on"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasecmp(text, words[i]) == 0) {
			*out = i % 2 != 0;
			return 0;
		}
	return refuse(err, "true or false", text);
}

/* A number and one of units; *bare tells that there was no unit. */
static int
with_unit(const char *text, const struct unit *units, uint64_t *out, bool *bare)
{
	uint64_t v;
	size_t n = digits(text, &v);

	if (n == 0)
		return -1;
	*bare = text[n] == '\0';
	*out = v;
	if (*bare)
		return 0;
	for (; units->name != NULL; units++)
		if (strcmp(text + n, units->name) == 0) {
			if (v > UINT64_MAX / units->factor)
				return -1;
			*out = v * units->factor;
			return 0;
		}
	return -1;
}

int
value_parse_size(const char *text, uint64_t *out, struct err *err)
{
	bool bare;

	if (with_unit(text, size_units, out, &bare) == 0)
		return 0;
	return refuse(err, "a size such as 32KiB, 64MiB, 1GiB or bytes", text);
}

int
value_parse_duration(const char *text, uint64_t *out_ms, struct err *err)
{
	bool bare;

	if (with_unit(text, duration_units, out_ms, &bare) == 0 &&
	    (!bare || *out_ms == 0))
		return 0;
	return refuse(err, "a duration such as 500ms, 2s, 5m, 1h or 7d", text);
}

/* Finds text among words; their number when it is not there. */
static unsigned
word_index(const char *text, size_t len, const char *words, bool *found)
{
	unsigned index = 0;
	size_t n;

	for (*found = false;; index++) {
		n = strcspn(words, " ");
		if (n == len && memcmp(words, text, len) == 0) {
			*found = true;
			return index;
		}
		if (words[n] == '\0')
			return index;
		words += n + 1;
	}
}

int
value_parse_word(
    const char *text, const char *words, unsigned *out, struct err *err)
{
	bool found;
	char *wanted;
	int r;

	*out = word_index(text, strlen(text), words, &found);
	if (found)
		return 0;
	wanted = mem_printf("one of: %s", words);
	r = refuse(err, wanted, text);
	free(wanted);
	return r;
}

static int
parse_time(const char *text, struct schedule *out)
{
	if (strlen(text) != 5 || !is_digit(text[0]) || !is_digit(text[1]) ||
	    text[2] != ':' || !is_digit(text[3]) || !is_digit(text[4]))
		return -1;
	out->hour = (text[0] - '0') * 10 + text[1] - '0';
	out->minute = (text[3] - '0') * 10 + text[4] - '0';
	return out->hour < 24 && out->minute < 60 ? 0 : -1;
}

static int
parse_weekly(const char *text, struct schedule *out)
{
	bool found;

	if (strlen(text) < 4 || text[3] != ' ')
		return -1;
	out->weekday = (int)word_index(text, 3, weekdays, &found);
	return found ? parse_time(text + 4, out) : -1;
}

static int
parse_every(const char *text, struct schedule *out)
{
	bool bare;

	/* A minute at least: a rebuild reads the whole source. */
	if (with_unit(text, duration_units, &out->every_ms, &bare) != 0 ||
	    bare || out->every_ms < 60000 ||
	    out->every_ms > UINT64_C(366) * 86400000)
		return -1;
	return 0;
}

int
value_parse_schedule(const char *text, struct schedule *out, struct err *err)
{
	int r = -1;

	*out = (struct schedule){.kind = SCHEDULE_NEVER};
	if (strcmp(text, "never") == 0)
		return 0;
	if (strncmp(text, "monthly ", 8) == 0) {
		out->kind = SCHEDULE_MONTHLY;
		r = parse_time(text + 8, out);
	} else if (strncmp(text, "weekly ", 7) == 0) {
		out->kind = SCHEDULE_WEEKLY;
		r = parse_weekly(text + 7, out);
	} else if (strncmp(text, "daily ", 6) == 0) {
		out->kind = SCHEDULE_DAILY;
		r = parse_time(text + 6, out);
	} else if (strncmp(text, "every ", 6) == 0) {
		out->kind = SCHEDULE_EVERY;
		r = parse_every(text + 6, out);
	}
	if (r == 0)
		return 0;
	return refuse(err,
	    "'monthly HH:MM', 'weekly mon HH:MM', 'daily HH:MM', 'every 6h' "
	    "(1m to 366d) or 'never'",
	    text);
}

/*
 * The cap is far above what a file of DOCUMENT_BYTES_MAX can come to (each of
 * its bytes at most four, in an escape), so appending never fails.
 */
void
value_text_start(struct buf *out)
{
	buf_init(out, (size_t)64 << 20);
}

char *
value_text_end(struct buf *out)
{
	size_t len = buf_len(out);
	char *text = mem_alloc(len + 1);

	if (len > 0)
		memcpy(text, buf_head(out), len);
	text[len] = '\0';
	buf_fini(out);
	return text;
}

void
value_printf(struct buf *out, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	check(n >= 0 && (size_t)n < sizeof(text));
	check(buf_append(out, text, (size_t)n) == 0);
}

/* The shortest decimal that reads back as the same double. */
void
value_print_real(struct buf *out, double v)
{
	char text[32];
	int precision;

	for (precision = 1; precision <= 17; precision++) {
		(void)snprintf(text, sizeof(text), "%.*g", precision, v);
		if (strtod(text, NULL) >= v && strtod(text, NULL) <= v)
			break;
	}
	value_printf(out, "%s", text);
}

/* In the largest unit that divides v; the last unit is 1 or none at all. */
static void
print_with_unit(struct buf *out, uint64_t v, const struct unit *units)
{
	for (; v != 0 && units->name != NULL; units++)
		if (v % units->factor == 0) {
			value_printf(out, "%llu%s",
			    (unsigned long long)(v / units->factor),
			    units->name);
			return;
		}
	value_printf(out, "%llu", (unsigned long long)v);
}

void
value_print_size(struct buf *out, uint64_t bytes)
{
	print_with_unit(out, bytes, size_units);
}

void
value_print_duration(struct buf *out, uint64_t ms)
{
	print_with_unit(out, ms, duration_units);
}

void
value_print_word(struct buf *out, const char *words, unsigned index)
{
	while (index-- > 0) {
		words = strchr(words, ' ');
		check(words != NULL);
		words++;
	}
	value_printf(out, "%.*s", (int)strcspn(words, " "), words);
}

void
value_print_schedule(struct buf *out, const struct schedule *s)
{
	switch (s->kind) {
	case SCHEDULE_NEVER:
		value_printf(out, "never");
		break;
	case SCHEDULE_MONTHLY:
		value_printf(out, "monthly %02d:%02d", s->hour, s->minute);
		break;
	case SCHEDULE_WEEKLY:
		value_printf(out, "weekly ");
		value_print_word(out, weekdays, (unsigned)s->weekday);
		value_printf(out, " %02d:%02d", s->hour, s->minute);
		break;
	case SCHEDULE_DAILY:
		value_printf(out, "daily %02d:%02d", s->hour, s->minute);
		break;
	case SCHEDULE_EVERY:
		value_printf(out, "every ");
		value_print_duration(out, s->every_ms);
		break;
	}
}

/*
 * Bytes that YAML does not take as they are leave as escapes: controls, and the
 * few characters above ASCII that are not printable or would end a line. All of
 * these are 2 or 3 bytes long, and text is well-formed UTF-8.
 */
void
value_print_string(struct buf *out, const void *text, size_t len)
{
	const unsigned char *s = text;
	size_t i;
	unsigned rune;

	value_printf(out, "\"");
	for (i = 0; i < len; i++) {
		rune = 0;
		if (s[i] == '"' || s[i] == '\\')
			value_printf(out, "\\%c", s[i]);
		else if (s[i] < 0x20 || s[i] == 0x7f)
			value_printf(out, "\\x%02X", s[i]);
		else if (s[i] == 0xc2 && i + 1 < len && s[i + 1] <= 0xa0) {
			value_printf(out, "\\x%02X", s[i + 1]);
			i++;
		} else if (s[i] >= 0xe0 && s[i] < 0xf0 && i + 2 < len) {
			rune = (s[i] & 0x0fu) << 12 | (s[i + 1] & 0x3fu) << 6 |
			    (s[i + 2] & 0x3fu);
			if (rune == 0x2028 || rune == 0x2029 ||
			    rune == 0xfeff || rune >= 0xfffe) {
				value_printf(out, "\\u%04X", rune);
			} else
				check(buf_append(out, s + i, 3) == 0);
			i += 2;
		} else
			check(buf_append(out, s + i, 1) == 0);
	}
	value_printf(out, "\"");
}
