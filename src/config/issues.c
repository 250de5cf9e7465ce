/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The report of settings_load: see issues.h. Messages are built here and never
 * hold a newline, whatever the file held.
 */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/issues.h"
#include "core/check.h"
#include "core/mem.h"

#define QUOTE_MAX 48 /* bytes of the file shown in a message */

void
issues_init(struct issues *is, struct settings_report *report)
{
	*report = (struct settings_report){0};
	*is = (struct issues){.report = report};
}

static bool
is_muted(const struct issues *is, unsigned line)
{
	size_t low = 0, high = is->muted_count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (is->muted[middle] == line)
			return true;
		if (is->muted[middle] < line)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

/* text is taken. */
static void
push(struct issues *is, bool fatal, unsigned line, unsigned column, char *text)
{
	struct settings_report *r = is->report;

	r->items = mem_realloc(r->items, (r->count + 1) * sizeof(*r->items));
	r->items[r->count++] = (struct settings_issue){
	    .fatal = fatal, .line = line, .column = column, .text = text};
}

static char *
format(const char *fmt, va_list ap)
{
	char text[1024];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	return mem_strdup(text);
}

void
issues_error(
    struct issues *is, unsigned line, unsigned column, const char *fmt, ...)
{
	va_list ap;

	is->fatal = true;
	if (is_muted(is, line))
		return;
	if (is->report->count >= ISSUES_MAX) {
		is->dropped++;
		return;
	}
	va_start(ap, fmt);
	push(is, true, line, column, format(fmt, ap));
	va_end(ap);
}

void
issues_remark(
    struct issues *is, unsigned line, unsigned column, const char *fmt, ...)
{
	va_list ap;

	if (is_muted(is, line) || is->report->count >= ISSUES_MAX)
		return;
	va_start(ap, fmt);
	push(is, false, line, column, format(fmt, ap));
	va_end(ap);
}

void
issues_mute(struct issues *is, unsigned line)
{
	check(is->muted_count == 0 || is->muted[is->muted_count - 1] <= line);
	if (is->muted_count > 0 && is->muted[is->muted_count - 1] == line)
		return;
	is->muted = mem_realloc(
	    is->muted, (is->muted_count + 1) * sizeof(*is->muted));
	is->muted[is->muted_count++] = line;
}

static int
compare(const struct settings_issue *a, const struct settings_issue *b)
{
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->column != b->column)
		return a->column < b->column ? -1 : 1;
	return 0;
}

/* Insertion keeps the order of equals; the report is short, nearly sorted. */
void
issues_finish(struct issues *is)
{
	struct settings_report *r = is->report;
	struct settings_issue moved;
	size_t i, j;

	for (i = 1; i < r->count; i++) {
		moved = r->items[i];
		for (j = i; j > 0 && compare(&r->items[j - 1], &moved) > 0; j--)
			r->items[j] = r->items[j - 1];
		r->items[j] = moved;
	}
	if (is->dropped > 0)
		push(is, true, 0, 0,
		    mem_printf("%zu more errors are not shown", is->dropped));
	free(is->muted);
	is->muted = NULL;
	is->muted_count = 0;
}

char *
issues_quote(const char *text, size_t len)
{
	char out[QUOTE_MAX * 4 + 4];
	size_t i, n = 0, shown = len;

	if (shown > QUOTE_MAX) {
		shown = QUOTE_MAX;
		/* Not in the middle of a character. */
		while (shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80)
			shown--;
	}
	for (i = 0; i < shown; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= 0x20 && c != 0x7f)
			out[n++] = (char)c;
		else
			n += (size_t)snprintf(
			    out + n, sizeof(out) - n, "\\x%02x", c);
	}
	(void)snprintf(
	    out + n, sizeof(out) - n, "%s", len > shown ? "..." : "");
	return mem_strdup(out);
}

void
settings_report_fini(struct settings_report *report)
{
	size_t i;

	for (i = 0; i < report->count; i++)
		free(report->items[i].text);
	free(report->items);
	*report = (struct settings_report){0};
}
