/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Key patterns: a prefix, one placeholder, a suffix. See keypattern.h.
 *
 * Collision. Let a and b have equally many literal bytes and, say, a the
 * shorter prefix; d is the difference of the prefixes' lengths, and so also of
 * the suffixes' (a's is the longer). A key of both begins with b's prefix and
 * ends with a's suffix. Either the two do not overlap, and a captures the last
 * d bytes of b's prefix and whatever stands between, b captures whatever stands
 * between and the first d bytes of a's suffix; what stands between may be
 * nothing when d > 0, and one byte that neither excludes when d = 0. Or the two
 * overlap by o bytes, 0 < o < d, which must agree, and the captures are d - o
 * bytes long. An overlap of d or more would leave nothing to capture.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "config/issues.h"
#include "config/keypattern.h"
#include "core/buf.h"
#include "core/check.h"
#include "core/mem.h"

/* What stands at one place of a pattern. */
enum token {
	TOKEN_END,
	TOKEN_BYTE,
	TOKEN_PLACEHOLDER,
	TOKEN_BAD,
};

struct lexer {
	const char *at;
	char byte;        /* TOKEN_BYTE */
	const char *name; /* TOKEN_PLACEHOLDER, borrowed from the text */
	size_t name_len;
	bool star;
	struct err *err; /* TOKEN_BAD: why */
};

static bool
is_alnum(unsigned char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
	    (c >= 'A' && c <= 'Z');
}

static enum token
bad(struct lexer *l, const char *why)
{
	err_set(l->err, "%s", why);
	return TOKEN_BAD;
}

/* at stands on the opening brace. */
static enum token
next_placeholder(struct lexer *l)
{
	const char *p = l->at + 1;

	l->name = p;
	while (is_alnum((unsigned char)*p) || *p == '_' || *p == '-')
		p++;
	l->name_len = (size_t)(p - l->name);
	l->star = *p == '*';
	if (l->star)
		p++;
	if (l->name_len == 0 || *p != '}')
		return bad(l,
		    "'{' begins a placeholder such as {id} or {id*}; a literal "
		    "brace is written {{");
	l->at = p + 1;
	return TOKEN_PLACEHOLDER;
}

static enum token
next(struct lexer *l)
{
	char c = *l->at;

	if (c == '\0')
		return TOKEN_END;
	if ((c == '{' || c == '}') && l->at[1] == c) {
		l->byte = c;
		l->at += 2;
		return TOKEN_BYTE;
	}
	if (c == '{')
		return next_placeholder(l);
	if (c == '}')
		return bad(l, "'}' without '{'; a literal brace is written }}");
	l->byte = c;
	l->at++;
	return TOKEN_BYTE;
}

static bool
name_is(const struct lexer *l, const char *name)
{
	return l->name_len == strlen(name) &&
	    memcmp(l->name, name, l->name_len) == 0;
}

static int
take_placeholder(struct keypattern *out, const struct lexer *l)
{
	if (out->placeholder != NULL)
		return err_set(l->err, "a pattern has one placeholder only");
	if (name_is(l, "filter"))
		return err_set(l->err,
		    "a placeholder may not be called 'filter': in an element "
		    "that is the filter's name");
	out->placeholder = mem_printf("%.*s", (int)l->name_len, l->name);
	out->excluded = -1;
	if (!l->star && out->prefix_len > 0) {
		unsigned char before = (unsigned char)
					   out->prefix[out->prefix_len - 1];

		if (!is_alnum(before))
			out->excluded = before;
	}
	return 0;
}

int
keypattern_parse(struct keypattern *out, const char *text, struct err *err)
{
	struct lexer l = {.at = text, .err = err};
	size_t len = strlen(text);
	enum token t;
	int r = 0;

	*out = (struct keypattern){.excluded = -1};
	if (len > KEYPATTERN_MAX)
		return err_set(
		    err, "a pattern has at most %d bytes", KEYPATTERN_MAX);
	out->prefix = mem_alloc(len + 1);
	out->suffix = mem_alloc(len + 1);
	while (r == 0 && (t = next(&l)) != TOKEN_END) {
		if (t == TOKEN_BAD)
			r = -1;
		else if (t == TOKEN_PLACEHOLDER)
			r = take_placeholder(out, &l);
		else if (out->placeholder == NULL)
			out->prefix[out->prefix_len++] = l.byte;
		else
			out->suffix[out->suffix_len++] = l.byte;
	}
	if (r == 0 && out->placeholder == NULL)
		r = err_set(err, "a pattern needs a placeholder such as {id}");
	if (r != 0)
		keypattern_fini(out);
	return r;
}

void
keypattern_fini(struct keypattern *p)
{
	free(p->placeholder);
	free(p->prefix);
	free(p->suffix);
	*p = (struct keypattern){.excluded = -1};
}

static bool
holds(const char *text, size_t len, int byte)
{
	return byte >= 0 && len > 0 && memchr(text, byte, len) != NULL;
}

bool
keypattern_collide(const struct keypattern *a, const struct keypattern *b)
{
	const struct keypattern *swap;
	const char *left, *right; /* d bytes each: see above */
	size_t d, o;

	if (a->prefix_len + a->suffix_len != b->prefix_len + b->suffix_len)
		return false;
	if (a->prefix_len > b->prefix_len) {
		swap = a;
		a = b;
		b = swap;
	}
	d = b->prefix_len - a->prefix_len;
	if (memcmp(a->prefix, b->prefix, a->prefix_len) != 0 ||
	    memcmp(a->suffix + d, b->suffix, b->suffix_len) != 0)
		return false;
	left = b->prefix + a->prefix_len;
	right = a->suffix;
	if (d == 0)
		return true;
	for (o = 0; o < d; o++)
		if (memcmp(left + (d - o), right, o) == 0 &&
		    !holds(left, d - o, a->excluded) &&
		    !holds(right + o, d - o, b->excluded))
			return true;
	return false;
}

int
keypattern_check_element(
    const char *text, const char *placeholder, struct err *err)
{
	struct lexer l = {.at = text, .err = err};
	unsigned seen = 0;
	enum token t;

	if (strlen(text) > KEYPATTERN_MAX)
		return err_set(
		    err, "an element has at most %d bytes", KEYPATTERN_MAX);
	while ((t = next(&l)) != TOKEN_END) {
		if (t == TOKEN_BAD)
			return -1;
		if (t != TOKEN_PLACEHOLDER)
			continue;
		if (l.star)
			return err_set(err,
			    "'*' belongs in the pattern, not in the element");
		if (name_is(&l, placeholder))
			seen++;
		else if (!name_is(&l, "filter"))
			return err_set(err,
			    "{%.*s} is neither {%s}, the patterns' "
			    "placeholder, "
			    "nor {filter}",
			    (int)(l.name_len > 64 ? 64 : l.name_len), l.name,
			    placeholder);
	}
	if (seen != 1)
		return err_set(err, "must hold {%s} exactly once", placeholder);
	return 0;
}
