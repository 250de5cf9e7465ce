/* SPDX-License-Identifier: BSD-2-Clause */
/* What happens when an assertion fails. Any thread. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/check.h"

void
check_failed(const char *expr, const char *file, int line)
{
	fprintf(stderr, "bloomgate: %s:%d: assertion failed: %s\n", file, line,
	    expr);
	abort();
}
