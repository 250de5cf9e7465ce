/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An error text for a person: what, where, what to do. Any thread, one owner.
 */
#ifndef CORE_ERR_H
#define CORE_ERR_H

struct err {
	char text[512]; /* NUL-terminated, no newline */
};

/* Sets the text, cut to fit. Always returns -1, for "return err_set(...)". */
int err_set(struct err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
