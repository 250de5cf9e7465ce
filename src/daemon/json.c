/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JSON writer. It builds no tree and reads nothing.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/check.h"
#include "core/mem.h"
#include "daemon/json.h"

/* Far above what a status of some thousand filters needs. */
#define JSON_BYTES_MAX ((size_t)256 << 20)

static void
put(struct json *j, const char *text, size_t len)
{
	check(buf_append(&j->out, text, len) == 0);
}

static void
put_text(struct json *j, const char *text)
{
	put(j, text, strlen(text));
}

void
json_init(struct json *j)
{
	*j = (struct json){0};
	buf_init(&j->out, JSON_BYTES_MAX);
}

char *
json_finish(struct json *j)
{
	char *text;

	check(j->depth == 0);
	put(j, "", 1);
	text = mem_dup(buf_head(&j->out), buf_len(&j->out));
	buf_fini(&j->out);
	return text;
}

/*
 * Bytes of the UTF-8 sequence at s (left of them), or 0 where none begins:
 * overlong forms, surrogates and what is above U+10FFFF are none.
 */
static size_t
utf8_len(const unsigned char *s, size_t left)
{
	size_t n, i;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf)
		n = 2;
	else if (s[0] >= 0xe0 && s[0] <= 0xef)
		n = 3;
	else if (s[0] >= 0xf0 && s[0] <= 0xf4)
		n = 4;
	else
		return 0;
	if (n > left)
		return 0;
	for (i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
	    (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

static void
put_quoted(struct json *j, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;
	size_t left = strlen(text), n;

	put(j, "\"", 1);
	while (left > 0) {
		n = utf8_len(s, left);
		if (n == 0) {
			put_text(j, "\\ufffd");
			n = 1;
		} else if (*s == '"' || *s == '\\') {
			put(j, "\\", 1);
			put(j, (const char *)s, 1);
		} else if (*s < 0x20 || *s == 0x7f) {
			check(buf_printf(&j->out, "\\u%04x", *s) == 0);
		} else {
			put(j, (const char *)s, n);
		}
		s += n;
		left -= n;
	}
	put(j, "\"", 1);
}

/* What stands before a value: comma and key. */
static void
begin_value(struct json *j, const char *key)
{
	if (j->filled[j->depth])
		put(j, ",", 1);
	j->filled[j->depth] = true;
	if (key != NULL) {
		put_quoted(j, key);
		put(j, ":", 1);
	}
}

void
json_open(struct json *j, const char *key, char bracket)
{
	begin_value(j, key);
	put(j, &bracket, 1);
	check(j->depth + 1 < JSON_DEPTH_MAX);
	j->filled[++j->depth] = false;
}

void
json_close(struct json *j, char bracket)
{
	check(j->depth > 0);
	j->depth--;
	put(j, &bracket, 1);
}

void
json_str(struct json *j, const char *key, const char *value)
{
	begin_value(j, key);
	put_quoted(j, value);
}

void
json_int(struct json *j, const char *key, int64_t value)
{
	begin_value(j, key);
	check(buf_printf(&j->out, "%" PRId64, value) == 0);
}

void
json_uint(struct json *j, const char *key, uint64_t value)
{
	begin_value(j, key);
	check(buf_printf(&j->out, "%" PRIu64, value) == 0);
}

void
json_real(struct json *j, const char *key, double value)
{
	if (!isfinite(value)) {
		json_null(j, key);
		return;
	}
	begin_value(j, key);
	check(buf_printf(&j->out, "%.9g", value) == 0);
}

void
json_bool(struct json *j, const char *key, bool value)
{
	begin_value(j, key);
	put_text(j, value ? "true" : "false");
}

void
json_null(struct json *j, const char *key)
{
	begin_value(j, key);
	put_text(j, "null");
}
