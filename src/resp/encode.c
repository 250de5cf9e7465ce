/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The RESP encoder: see encode.h. Each function reserves its whole length
 * first, so that a full buffer is left as it was. Any thread that owns the
 * buffer.
 */
#include "config.h"

#include <string.h>

#include "resp/encode.h"

#define DIGITS_MAX 20               /* of UINT64_MAX */
#define HEADER_MAX (DIGITS_MAX + 4) /* type, sign, digits, CR LF */

/* Writes value in decimal; returns the place after it. By hand: snprintf takes
 * several times as long, and a reply has one or two numbers per element. */
static uint8_t *
put_unsigned(uint8_t *p, uint64_t value)
{
	uint8_t digits[DIGITS_MAX];
	size_t at = sizeof digits;

	do {
		digits[--at] = (uint8_t)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	memcpy(p, digits + at, sizeof digits - at);
	return p + (sizeof digits - at);
}

static uint8_t *
put_end(uint8_t *p)
{
	p[0] = '\r';
	p[1] = '\n';
	return p + 2;
}

static uint8_t *
put_header(uint8_t *p, char type, uint64_t value)
{
	*p++ = (uint8_t)type;
	return put_end(put_unsigned(p, value));
}

static uint8_t *
put_bytes(uint8_t *p, struct slice s)
{
	if (s.len > 0)
		memcpy(p, s.data, s.len);
	return p + s.len;
}

static int
commit(struct buf *b, const uint8_t *from, const uint8_t *to)
{
	buf_commit(b, (size_t)(to - from));
	return 0;
}

/* A simple type: one line, in which CR and LF would end it early. */
static int
encode_line(struct buf *b, char type, struct slice text)
{
	uint8_t *from, *p;
	size_t i;

	if (text.len > SIZE_MAX - 3)
		return -1;
	if ((from = buf_reserve(b, text.len + 3)) == NULL)
		return -1;
	p = from;
	*p++ = (uint8_t)type;
	for (i = 0; i < text.len; i++) {
		uint8_t byte = text.data[i];

		*p++ = byte == '\r' || byte == '\n' ? ' ' : byte;
	}
	return commit(b, from, put_end(p));
}

static int
encode_header(struct buf *b, char type, uint64_t value)
{
	uint8_t line[HEADER_MAX];

	return buf_append(
	    b, line, (size_t)(put_header(line, type, value) - line));
}

int
encode_status(struct buf *b, const char *text)
{
	return encode_line(b, '+', slice_str(text));
}

int
encode_error(struct buf *b, const char *text)
{
	return encode_line(b, '-', slice_str(text));
}

int
encode_error_slice(struct buf *b, struct slice text)
{
	return encode_line(b, '-', text);
}

int
encode_integer(struct buf *b, int64_t value)
{
	uint8_t line[HEADER_MAX], *p = line;

	*p++ = ':';
	if (value < 0)
		*p++ = '-';
	/* Negated as unsigned, so that INT64_MIN is no overflow. */
	p = put_unsigned(p, value < 0 ? -(uint64_t)value : (uint64_t)value);
	p = put_end(p);
	return buf_append(b, line, (size_t)(p - line));
}

int
encode_bulk(struct buf *b, struct slice value)
{
	uint8_t line[HEADER_MAX], *from;
	size_t len = (size_t)(put_header(line, '$', value.len) - line);

	if (value.len > SIZE_MAX - HEADER_MAX - 2)
		return -1;
	if ((from = buf_reserve(b, len + value.len + 2)) == NULL)
		return -1;
	memcpy(from, line, len);
	return commit(b, from, put_end(put_bytes(from + len, value)));
}

int
encode_nil(struct buf *b, int proto)
{
	return proto >= 3 ? buf_append(b, "_\r\n", 3)
			  : buf_append(b, "$-1\r\n", 5);
}

int
encode_bool(struct buf *b, int proto, bool value)
{
	if (proto >= 3)
		return buf_append(b, value ? "#t\r\n" : "#f\r\n", 4);
	return buf_append(b, value ? ":1\r\n" : ":0\r\n", 4);
}

int
encode_array(struct buf *b, size_t count)
{
	return encode_header(b, '*', count);
}

int
encode_map(struct buf *b, int proto, size_t pairs)
{
	if (proto >= 3)
		return encode_header(b, '%', pairs);
	if (pairs > SIZE_MAX / 2)
		return -1;
	return encode_header(b, '*', pairs * 2);
}

int
encode_set(struct buf *b, int proto, size_t count)
{
	return encode_header(b, proto >= 3 ? '~' : '*', count);
}

int
encode_request(struct buf *b, const struct slice *argv, size_t argc)
{
	uint8_t line[HEADER_MAX], *from, *p;
	size_t total = (size_t)(put_header(line, '*', argc) - line), i;

	for (i = 0; i < argc; i++) {
		size_t len = (size_t)(put_header(line, '$', argv[i].len) -
		    line);

		if (argv[i].len > SIZE_MAX - HEADER_MAX - 2 - total)
			return -1;
		total += len + argv[i].len + 2;
	}
	if ((from = buf_reserve(b, total)) == NULL)
		return -1;
	p = put_header(from, '*', argc);
	for (i = 0; i < argc; i++) {
		p = put_header(p, '$', argv[i].len);
		p = put_end(put_bytes(p, argv[i]));
	}
	return commit(b, from, p);
}
