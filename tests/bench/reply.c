/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting of replies; see reply.h. */
#include "config.h"

#include <string.h>

#include "reply.h"

static void
note_error(struct reply_totals *t, const char *text, size_t len)
{
	const char *end = len == 0 ? NULL : memchr(text, '\r', len);

	t->errors++;
	if (t->first_error[0] != '\0' || len == 0)
		return;
	if (end != NULL)
		len = (size_t)(end - text);
	if (len >= sizeof(t->first_error))
		len = sizeof(t->first_error) - 1;
	memcpy(t->first_error, text, len);
}

static bool
is_one_of(char c, const char *set)
{
	return c != '\0' && strchr(set, c) != NULL;
}

/* The line of a reply has ended. True when the reply has. */
static bool
line_ended(struct reply_state *s, struct reply_totals *t)
{
	char type = s->type;

	s->type = 0;
	if (s->elements > 0)
		s->elements--;
	if (type == '_' || ((type == '$' || type == '*') && s->negative))
		t->nils++;
	else if (type == '$' || type == '=')
		s->skip = s->number + 2;
	else if (type == '*' || type == '~')
		s->elements += s->number;
	else if (type == '%')
		s->elements += 2 * s->number;
	return s->elements == 0 && s->skip == 0;
}

int
reply_count(
    struct reply_state *s, struct reply_totals *t, const char *data, size_t len)
{
	int done = 0;

	for (size_t i = 0; i < len;) {
		char b;

		if (s->skip > 0) {
			size_t n = len - i;

			if (s->skip < n)
				n = (size_t)s->skip;
			i += n;
			s->skip -= n;
			done += s->skip == 0 && s->elements == 0;
			continue;
		}
		b = data[i++];
		if (s->type == 0) {
			if (!is_one_of(b, "+-:$*_#,(~%="))
				return -1;
			s->type = b;
			s->number = 0;
			s->negative = false;
			if (b == '-')
				note_error(t, data + i, len - i);
		} else if (b == '\n') {
			done += line_ended(s, t);
		} else if (b == '-') {
			s->negative = true;
		} else if (b >= '0' && b <= '9') {
			s->number = s->number * 10 + (uint64_t)(b - '0');
		}
	}
	return done;
}
