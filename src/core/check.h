/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Assertions about our own mistakes, always compiled in. Never used on what a
 * peer sent. Objects that pass through void * carry a magic first.
 */
#ifndef CORE_CHECK_H
#define CORE_CHECK_H

/* Logs to stderr and aborts. */
void check_failed(const char *expr, const char *file, int line)
    __attribute__((noreturn));

#define check(expr)                                                            \
	do {                                                                   \
		if (__builtin_expect(!(expr), 0))                              \
			check_failed(#expr, __FILE__, __LINE__);               \
	} while (0)

#endif
