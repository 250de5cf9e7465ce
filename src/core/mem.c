/* SPDX-License-Identifier: BSD-2-Clause */
/* Allocation that aborts on exhaustion. Any thread. */
#include "config.h"

#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/mem.h"

/* Blocks of this size and more are mapped on their own, so that no neighbour
 * keeps them; of smaller ones this much stays free at the heap's end. */
#define MAP_MIN  (128 * 1024)
#define FREE_MAX (1024 * 1024)

void
mem_init(void)
{
#ifdef M_MMAP_THRESHOLD
	/* A sanitizer's allocator takes none of it: advice, then. */
	(void)mallopt(M_MMAP_THRESHOLD, MAP_MIN);
	(void)mallopt(M_TRIM_THRESHOLD, FREE_MAX);
#endif
}

static void *
must(void *p, size_t size)
{
	if (p == NULL && size != 0)
		check_failed("memory is to be had", __FILE__, __LINE__);
	return p;
}

void *
mem_alloc(size_t size)
{
	return must(malloc(size), size);
}

void *
mem_zalloc(size_t count, size_t size)
{
	return must(calloc(count, size), count != 0 ? size : 0);
}

void *
mem_realloc(void *p, size_t size)
{
	return must(realloc(p, size), size);
}

char *
mem_strdup(const char *s)
{
	return mem_dup(s, strlen(s) + 1);
}

void *
mem_dup(const void *data, size_t len)
{
	void *p = mem_alloc(len != 0 ? len : 1);

	if (len != 0)
		memcpy(p, data, len);
	return p;
}

char *
mem_printf(const char *fmt, ...)
{
	va_list ap;
	char *text = NULL;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		text = NULL;
	return must(text, 1);
}

void
mem_wipe(void *p, size_t len)
{
	if (len != 0)
		explicit_bzero(p, len);
}
