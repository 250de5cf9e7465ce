/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fuzz target of key patterns. The input is lines: patterns, an empty line, an
 * element template, then a key to the end, which may hold anything. Lines that
 * are no pattern are left out; the rest are filters of one pattern each. What
 * pattern_match says is compared with each pattern tried by itself.
 */
#include "config.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/keypattern.h"
#include "core/check.h"
#include "core/mem.h"
#include "policy/pattern.h"

#define PATTERNS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	char *texts[PATTERNS_MAX]; /* owned */
	struct keypattern parsed[PATTERNS_MAX];
	struct filter_settings filters[PATTERNS_MAX];
	size_t count;
	char *element; /* owned */
	struct slice key;
};

/* The next line as a string, cut at a NUL; freed with free(). */
static char *
next_line(const uint8_t **data, size_t *size)
{
	const uint8_t *end = *size == 0 ? NULL : memchr(*data, '\n', *size);
	size_t len = end == NULL ? *size : (size_t)(end - *data);
	char *line = mem_zalloc(len + 1, 1);

	if (len > 0)
		memcpy(line, *data, len);
	if (end != NULL)
		len++;
	*data += len;
	*size -= len;
	return line;
}

/*
 * What a pattern means, read anew from its text: literal braces undone, and the
 * byte before the placeholder excluded unless it is a letter or a digit.
 */
static void
check_meaning(const struct keypattern *p, const char *text)
{
	char *literal[2] = {p->prefix, p->suffix};
	size_t len[2] = {p->prefix_len, p->suffix_len}, at = 0;
	int part = 0, excluded = -1;

	for (const char *c = text; *c != '\0'; c++) {
		if (*c == '{' && c[1] != '{') {
			const char *end = strchr(c, '}');
			unsigned char before = c == text ? 'a'
							 : (unsigned char)c[-1];

			check(part == 0 && end != NULL && at == len[0]);
			check(strncmp(c + 1, p->placeholder,
				  strlen(p->placeholder)) == 0);
			if (end[-1] != '*' &&
			    (before > 127 || !isalnum(before)))
				excluded = before;
			part = 1;
			at = 0;
			c = end;
			continue;
		}
		if (*c == '{' || *c == '}')
			c++; /* the second of two */
		check(at < len[part] && literal[part][at] == *c);
		at++;
	}
	check(part == 1 && at == len[1]);
	check(p->excluded == excluded);
}

static void
input_read(struct input *in, const uint8_t *data, size_t size)
{
	struct err err;

	while (size > 0) {
		char *line = next_line(&data, &size);
		size_t n = in->count;

		if (line[0] == '\0') {
			free(line);
			break;
		}
		if (n == PATTERNS_MAX ||
		    keypattern_parse(&in->parsed[n], line, &err) != 0) {
			free(line);
			continue;
		}
		check_meaning(&in->parsed[n], line);
		in->texts[n] = line;
		in->count++;
	}
	in->element = next_line(&data, &size);
	in->key = slice_of(data, size);
	for (size_t i = 0; i < in->count; i++) {
		struct filter_settings *f = &in->filters[i];

		f->name = in->texts[i];
		f->keys.items = &in->texts[i];
		f->keys.count = 1;
		if (keypattern_check_element(
			in->element, in->parsed[i].placeholder, &err) == 0)
			f->element = in->element;
	}
}

/* True when key fits p; its capture begins at *start. */
static bool
fits(const struct keypattern *p, struct slice key, size_t *start, size_t *len)
{
	size_t literals = p->prefix_len + p->suffix_len;

	if (key.len <= literals)
		return false;
	*start = p->prefix_len;
	*len = key.len - literals;
	for (size_t i = 0; i < p->prefix_len; i++) {
		if (key.data[i] != (uint8_t)p->prefix[i])
			return false;
	}
	for (size_t i = 0; i < p->suffix_len; i++) {
		if (key.data[*start + *len + i] != (uint8_t)p->suffix[i])
			return false;
	}
	for (size_t i = 0; i < *len; i++) {
		if (key.data[*start + i] == p->excluded)
			return false;
	}
	return true;
}

static void
compare(const struct input *in, const struct pattern_set *set)
{
	static uint8_t scratch[ELEMENT_MAX];
	size_t best = 0, literals = 0, start, len, at = 0, size = 0;
	bool expected = false;
	struct pattern_match m;
	struct slice e;

	for (size_t i = 0; i < in->count; i++) {
		const struct keypattern *p = &in->parsed[i];
		size_t own = p->prefix_len + p->suffix_len;

		if (!fits(p, in->key, &start, &len) ||
		    (expected && own < literals))
			continue;
		if (expected && own == literals) {
			/* Configurations with such a pair are refused. */
			check(keypattern_collide(&in->parsed[best], p));
			continue;
		}
		expected = true;
		best = i;
		literals = own;
		at = start;
		size = len;
	}
	check(pattern_match(set, 0, in->key, &m) == expected);
	check(!pattern_match(set, 1, in->key, &m));
	if (!expected)
		return;
	check(pattern_match(set, 0, in->key, &m) && m.filter == best);
	check(m.capture.data == in->key.data + at && m.capture.len == size);
	e = pattern_element(set, best, m.capture, scratch);
	check(e.data == NULL || (e.len >= size && e.len <= ELEMENT_MAX));
	check(e.data != NULL || in->filters[best].element != NULL ||
	    size > ELEMENT_MAX);
	if (in->filters[best].element == NULL && e.data != NULL)
		check(slice_eq(e, m.capture));
}

static void
compare_key(const struct input *in, const struct pattern_set *set, size_t i)
{
	struct pattern_match m;
	size_t len, start, size;
	/* A byte that no pattern excludes. */
	char *key = pattern_key(set, i, slice_str("0"), &len);

	check(fits(&in->parsed[i], slice_of(key, len), &start, &size) &&
	    size == 1);
	check(pattern_match(set, 0, slice_of(key, len), &m));
	free(key);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input *in = mem_zalloc(1, sizeof(*in));
	struct settings s = {.filters = in->filters};
	struct pattern_set *set;

	input_read(in, data, size);
	s.filter_count = in->count;
	set = pattern_set_new(&s);
	compare(in, set);
	for (size_t i = 0; i < in->count; i++) {
		compare_key(in, set, i);
		keypattern_fini(&in->parsed[i]);
		free(in->texts[i]);
	}
	pattern_set_free(set);
	free(in->element);
	free(in);
	return 0;
}
