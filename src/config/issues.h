/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Collects what is wrong with a configuration file, and where. It keeps one
 * report below a cap, silent on lines that already hold a broken byte, and in
 * the order of the file at the end. One owner, one thread.
 */
#ifndef CONFIG_ISSUES_H
#define CONFIG_ISSUES_H

#include <stdbool.h>
#include <stddef.h>

#include "config/settings.h"

#define ISSUES_MAX 200 /* kept; the rest is counted */

struct issues {
	struct settings_report *report; /* borrowed until issues_finish */
	bool fatal;                     /* an error was added */
	size_t dropped;                 /* errors above ISSUES_MAX */
	unsigned *muted; /* owned; lines that take no more, rising */
	size_t muted_count;
};

/* report is filled from empty. */
void issues_init(struct issues *is, struct settings_report *report);
/* Sorts the report by place and frees what issues holds itself. */
void issues_finish(struct issues *is);

/* An error at line:column (from 1; line 0: the file as a whole). */
void issues_error(struct issues *is, unsigned line, unsigned column,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* A remark: the configuration is good, yet something is worth saying. */
void issues_remark(struct issues *is, unsigned line, unsigned column,
    const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* From now on line takes no more issues. Lines come in rising order. */
void issues_mute(struct issues *is, unsigned line);

/*
 * Text for a message: cut to a few dozen bytes, control characters as \xHH.
 * Returned; freed with free().
 */
char *issues_quote(const char *text, size_t len);

#endif
