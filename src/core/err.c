/* SPDX-License-Identifier: BSD-2-Clause */
/* Error texts for people. Any thread, one owner. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/err.h"

int
err_set(struct err *err, const char *fmt, ...)
{
	va_list ap;
	char *p;

	va_start(ap, fmt);
	if (vsnprintf(err->text, sizeof(err->text), fmt, ap) < 0)
		err->text[0] = '\0';
	va_end(ap);
	for (p = err->text; *p != '\0'; p++)
		if (*p == '\n' || *p == '\r')
			*p = ' ';
	return -1;
}
