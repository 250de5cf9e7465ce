/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The word splitter of inline requests. It knows nothing of line ends or of
 * requests. Any thread.
 */
#include "config.h"

#include <stdbool.h>

#include "resp/inline.h"

/* A line and where in it we read and write; write <= read always. */
struct cursor {
	uint8_t *line; /* borrowed */
	size_t len;
	size_t read;
	size_t write;
};

/* The byte i places on, 0 past the end: a line holds no NUL of its own. */
static uint8_t
peek(const struct cursor *c, size_t i)
{
	return c->len - c->read > i ? c->line[c->read + i] : 0;
}

/* isspace of the C locale, which is the one Redis classifies bytes by. */
static bool
is_space(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static int
hex_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

static uint8_t
unescape(uint8_t c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 'r':
		return '\r';
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case 'a':
		return '\a';
	default:
		return c;
	}
}

/* Decodes one byte inside double quotes. */
static void
take_double(struct cursor *c)
{
	uint8_t byte = peek(c, 0);
	size_t used = 1;

	if (byte == '\\' && peek(c, 1) == 'x' && hex_value(peek(c, 2)) >= 0 &&
	    hex_value(peek(c, 3)) >= 0) {
		byte = (uint8_t)(hex_value(peek(c, 2)) * 16 +
		    hex_value(peek(c, 3)));
		used = 4;
	} else if (byte == '\\' && peek(c, 1) != 0) {
		byte = unescape(peek(c, 1));
		used = 2;
	}
	c->line[c->write++] = byte;
	c->read += used;
}

/* Decodes one byte inside single quotes. */
static void
take_single(struct cursor *c)
{
	uint8_t byte = peek(c, 0);

	if (byte == '\\' && peek(c, 1) == '\'') {
		byte = '\'';
		c->read++;
	}
	c->line[c->write++] = byte;
	c->read++;
}

/* From after the opening quote to after the closing one, which ends the word.
 * Returns 0, or -1 when it is missing or something stands right after it. */
static int
take_quoted(struct cursor *c, uint8_t quote)
{
	uint8_t byte;

	while ((byte = peek(c, 0)) != quote) {
		if (byte == 0)
			return -1;
		if (quote == '"')
			take_double(c);
		else
			take_single(c);
	}
	c->read++;
	byte = peek(c, 0);
	return byte == 0 || is_space(byte) ? 0 : -1;
}

int
inline_next(
    uint8_t *line, size_t len, size_t *at, size_t *offset, size_t *word_len)
{
	struct cursor c = {.line = line, .len = len, .read = *at};
	uint8_t byte;
	int status = 1;

	while (is_space(peek(&c, 0)))
		c.read++;
	if (c.read == len) {
		*at = len;
		return 0;
	}
	c.write = *offset = c.read;
	for (;;) {
		byte = peek(&c, 0);
		if (byte == 0)
			break;
		c.read++;
		/* VT and FF are skipped before a word but do not end one. */
		if (byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t')
			break;
		if (byte == '"' || byte == '\'') {
			if (take_quoted(&c, byte) == -1)
				status = -1;
			break;
		}
		line[c.write++] = byte;
	}
	*word_len = c.write - *offset;
	*at = c.read;
	return status;
}
