/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Looking things up in the option table, and printing it for people. The table
 * itself is in options.c.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "config/options.h"
#include "config/value.h"
#include "core/check.h"
#include "core/mem.h"

#define KEY_MAX 64 /* longer keys are near to nothing */

const struct option *
option_find(enum option_scope scope, const char *path, size_t len)
{
	size_t i;

	for (i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];

		if (o->scope == scope && strlen(o->path) == len &&
		    memcmp(o->path, path, len) == 0)
			return o;
	}
	return NULL;
}

const char *
option_key(const struct option *o)
{
	const char *dot = strrchr(o->path, '.');

	return dot != NULL ? dot + 1 : o->path;
}

unsigned
option_depth(const struct option *o)
{
	unsigned n = 0;
	const char *p;

	for (p = o->path; *p != '\0'; p++)
		if (*p == '.')
			n++;
	return n;
}

bool
option_is_in(const struct option *o, enum option_scope scope,
    const struct option *section)
{
	size_t len = section != NULL ? strlen(section->path) + 1 : 0;

	if (o->scope != scope || strlen(o->path) <= len)
		return false;
	if (section != NULL &&
	    (memcmp(o->path, section->path, len - 1) != 0 ||
		o->path[len - 1] != '.'))
		return false;
	return strchr(o->path + len, '.') == NULL;
}

/* Case and '_' for '-' cost nothing. */
static char
fold(char c)
{
	if (c == '_')
		return '-';
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Edits (insert, delete, replace, swap of neighbours) from a to b. */
static unsigned
distance(const char *a, const char *b)
{
	unsigned rows[3][KEY_MAX + 1], *before = rows[0], *last = rows[1],
				       *row = rows[2], *spare, v;
	size_t la = strlen(a), lb = strlen(b), i, j;

	check(la <= KEY_MAX && lb <= KEY_MAX);
	for (j = 0; j <= lb; j++)
		last[j] = (unsigned)j;
	for (i = 1; i <= la; i++) {
		row[0] = (unsigned)i;
		for (j = 1; j <= lb; j++) {
			v = last[j - 1] + (fold(a[i - 1]) != fold(b[j - 1]));
			if (last[j] + 1 < v)
				v = last[j] + 1;
			if (row[j - 1] + 1 < v)
				v = row[j - 1] + 1;
			if (i > 1 && j > 1 &&
			    fold(a[i - 1]) == fold(b[j - 2]) &&
			    fold(a[i - 2]) == fold(b[j - 1]) &&
			    before[j - 2] + 1 < v)
				v = before[j - 2] + 1;
			row[j] = v;
		}
		spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[lb];
}

char *
option_suggest(
    enum option_scope scope, const struct option *section, const char *key)
{
	const struct option *best = NULL;
	unsigned least = (unsigned)strlen(key) / 3 + 1, d;
	size_t i;

	if (strlen(key) > KEY_MAX)
		return NULL;
	for (i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];

		if (!option_is_in(o, scope, section))
			continue;
		d = distance(key, option_key(o));
		if (d <= least && (best == NULL || d < least)) {
			best = o;
			least = d;
		}
	}
	if (best != NULL && least <= 1)
		return mem_strdup(option_key(best));
	/* The right name in the wrong place? */
	for (i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];
		const char *where = "";

		if (distance(key, option_key(o)) != 0)
			continue;
		if (o->scope != scope)
			where = o->scope == SCOPE_FILTER ? "a filter's "
							 : "the top level's ";
		return mem_printf("%s%s", where, o->path);
	}
	return best != NULL ? mem_strdup(option_key(best)) : NULL;
}

void
option_print_number(struct buf *out, const struct option *o, double v)
{
	if (o->type == OPTION_SIZE)
		value_print_size(out, (uint64_t)v);
	else if (o->type == OPTION_DURATION)
		value_print_duration(out, (uint64_t)v);
	else if (o->type == OPTION_REAL)
		value_print_real(out, v);
	else
		value_printf(out, "%llu", (unsigned long long)v);
}

void
option_print_range(struct buf *out, const struct option *o)
{
	const char *p;

	if (o->words != NULL) {
		for (p = o->words; *p != '\0'; p++)
			value_printf(out, "%s%c", *p == ' ' ? "," : "", *p);
		return;
	}
	if (o->max <= 0)
		return;
	if (o->flags & OPTION_OR_ZERO)
		value_printf(out, "0, or ");
	if (o->flags & OPTION_ABOVE_MIN)
		value_printf(out, "above ");
	option_print_number(out, o, o->min);
	value_printf(
	    out, "%s to ", o->flags & OPTION_ABOVE_MIN ? " and up" : "");
	option_print_number(out, o, o->max);
}

static const char *
type_name(enum option_type type)
{
	static const char *const names[] = {
	    [OPTION_SECTION] = "section",
	    [OPTION_FILTERS] = "list of filters",
	    [OPTION_BOOL] = "true or false",
	    [OPTION_UNSIGNED] = "whole number",
	    [OPTION_WHOLE] = "whole number",
	    [OPTION_REAL] = "number",
	    [OPTION_SIZE] = "size",
	    [OPTION_DURATION] = "duration",
	    [OPTION_STRING] = "text",
	    [OPTION_PATH] = "absolute path",
	    [OPTION_ADDRESS] = "address",
	    [OPTION_ADDRESSES] = "address or list of addresses",
	    [OPTION_STRINGS] = "list of texts",
	    [OPTION_WORD] = "word",
	    [OPTION_SCHEDULE] = "schedule",
	    [OPTION_ABSENT] = "nil, {value: V} or {error: TEXT}",
	    [OPTION_VALUES] = "list of texts",
	};
	return names[type];
}

static void
print_help(struct buf *out, const struct option *o)
{
	size_t at;

	value_printf(
	    out, "%s%s", o->scope == SCOPE_FILTER ? "filters." : "", o->path);
	if (o->type != OPTION_SECTION) {
		value_printf(out, " (%s", type_name(o->type));
		at = buf_len(out);
		value_printf(out, ": ");
		option_print_range(out, o);
		if (buf_len(out) == at + 2)
			out->end -= 2; /* no range to tell */
		if (o->flags & OPTION_REQUIRED)
			value_printf(out, "; required");
		else if (!(o->flags & OPTION_COMPUTED))
			value_printf(out, "; default %s",
			    o->fallback[0] ? o->fallback : "empty");
		value_printf(out, ")");
	}
	value_printf(out, "\n    %s%s%s\n", o->help,
	    o->flags & OPTION_LATER ? " Has no effect yet." : "",
	    o->flags & OPTION_RESTART ? " A change needs a restart." : "");
}

char *
settings_help(void)
{
	struct buf out;
	size_t i;

	value_text_start(&out);
	for (i = 0; i < option_count; i++)
		print_help(&out, &option_table[i]);
	return value_text_end(&out);
}
