/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formatting of commands: see wire.h. It knows nothing of connections.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "redis/wire.h"

#define WIRE_KEEP (256 * 1024)
#define HEAD_MAX  24 /* type byte, 20 digits, CRLF */

void
wire_init(struct wire *w)
{
	*w = (struct wire){.data = NULL};
}

void
wire_fini(struct wire *w)
{
	free(w->data);
	*w = (struct wire){.data = NULL};
}

static void
wire_room(struct wire *w, size_t len)
{
	size_t want = w->len + len + 1, capacity = w->capacity;

	if (want <= capacity)
		return;
	if (capacity < 1024)
		capacity = 1024;
	while (capacity < want)
		capacity *= 2;
	w->data = mem_realloc(w->data, capacity);
	w->capacity = capacity;
}

/* hiredis looks for arguments as in a string: it must find an end. */
static void
wire_end(struct wire *w)
{
	w->data[w->len] = '\0';
}

/* The type byte, n in decimal, CRLF; room was made. */
static void
wire_head(struct wire *w, char type, size_t n)
{
	char digits[20];
	size_t count = 0;

	w->data[w->len++] = type;
	do {
		digits[count++] = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	while (count > 0)
		w->data[w->len++] = digits[--count];
	w->data[w->len++] = '\r';
	w->data[w->len++] = '\n';
}

void
wire_begin(struct wire *w, size_t argc)
{
	if (w->capacity > WIRE_KEEP)
		wire_fini(w);
	w->len = 0;
	wire_room(w, HEAD_MAX);
	wire_head(w, '*', argc);
	wire_end(w);
}

void
wire_arg(struct wire *w, struct slice arg)
{
	wire_room(w, HEAD_MAX + arg.len + 2);
	wire_head(w, '$', arg.len);
	if (arg.len > 0)
		memcpy(w->data + w->len, arg.data, arg.len);
	w->len += arg.len;
	w->data[w->len++] = '\r';
	w->data[w->len++] = '\n';
	wire_end(w);
}

void
wire_str(struct wire *w, const char *arg)
{
	wire_arg(w, slice_str(arg));
}

void
wire_number(struct wire *w, size_t arg)
{
	char text[20];
	size_t at = sizeof(text);

	do {
		text[--at] = (char)('0' + arg % 10);
		arg /= 10;
	} while (arg > 0);
	wire_arg(w, slice_of(text + at, sizeof(text) - at));
}

void
wire_raw(struct wire *w, const void *data, size_t len)
{
	wire_room(w, len);
	memcpy(w->data + w->len, data, len);
	w->len += len;
	wire_end(w);
}

void
wire_wipe(struct wire *w)
{
	if (w->data != NULL)
		mem_wipe(w->data, w->capacity);
}
