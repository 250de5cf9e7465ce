/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What differs between two settings that a reload does not apply: the options
 * that the table marks OPTION_RESTART, compared as the dump writes them.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "config/assign.h"
#include "config/value.h"

static char *
printed(const struct option *o, const void *base)
{
	struct buf out;

	value_text_start(&out);
	option_print(o, base, &out);
	return value_text_end(&out);
}

/* Appends the options of scope that differ; prefix goes before each. */
static void
compare(struct buf *out, enum option_scope scope, const void *a, const void *b,
    const char *prefix, const char *name)
{
	size_t i;

	for (i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];
		char *before, *after;

		if (o->scope != scope || !(o->flags & OPTION_RESTART))
			continue;
		before = printed(o, a);
		after = printed(o, b);
		if (strcmp(before, after) != 0)
			value_printf(out, "%s%s%s%s%s",
			    buf_len(out) > 0 ? ", " : "", prefix, name,
			    name[0] != '\0' ? ": " : "", o->path);
		free(before);
		free(after);
	}
}

char *
settings_restart(const struct settings *running, const struct settings *next)
{
	struct buf out;
	size_t i, j;
	char *text;

	value_text_start(&out);
	compare(&out, SCOPE_SETTINGS, running, next, "", "");
	for (i = 0; i < next->filter_count; i++)
		for (j = 0; j < running->filter_count; j++)
			if (strcmp(next->filters[i].name,
				running->filters[j].name) == 0)
				compare(&out, SCOPE_FILTER,
				    &running->filters[j], &next->filters[i],
				    "filter ", next->filters[i].name);
	text = value_text_end(&out);
	if (text[0] != '\0')
		return text;
	free(text);
	return NULL;
}
