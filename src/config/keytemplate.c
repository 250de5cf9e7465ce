/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Element templates: see keytemplate.h.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "config/keytemplate.h"
#include "core/check.h"
#include "core/mem.h"

static void
append(char **out, size_t *len, const char *data, size_t n)
{
	*out = mem_realloc(*out, *len + n + 1);
	memcpy(*out + *len, data, n);
	*len += n;
}

void
keytemplate_init(struct keytemplate *out, const char *text, const char *filter)
{
	const char *end;
	char **side = &out->before;
	size_t *len = &out->before_len;

	*out = (struct keytemplate){0};
	for (const char *p = text != NULL ? text : ""; *p != '\0'; p++) {
		if (p[0] != '{' && p[0] != '}') {
			append(side, len, p, 1);
		} else if (p[1] == p[0]) {
			append(side, len, p++, 1); /* "{{" and "}}" */
		} else {
			end = strchr(p, '}');
			check(p[0] == '{' && end != NULL);
			if (end - p - 1 == 6 &&
			    memcmp(p + 1, "filter", 6) == 0) {
				append(side, len, filter, strlen(filter));
			} else {
				side = &out->after;
				len = &out->after_len;
			}
			p = end;
		}
	}
}

void
keytemplate_fini(struct keytemplate *t)
{
	free(t->before);
	free(t->after);
	*t = (struct keytemplate){0};
}

struct slice
keytemplate_apply(const struct keytemplate *t, struct slice capture,
    uint8_t *scratch, size_t max)
{
	size_t around = t->before_len + t->after_len;

	if (around > max || capture.len > max - around)
		return slice_of(NULL, 0);
	if (around == 0)
		return capture;
	if (t->before_len > 0)
		memcpy(scratch, t->before, t->before_len);
	if (capture.len > 0)
		memcpy(scratch + t->before_len, capture.data, capture.len);
	if (t->after_len > 0)
		memcpy(scratch + t->before_len + capture.len, t->after,
		    t->after_len);
	return slice_of(scratch, around + capture.len);
}
