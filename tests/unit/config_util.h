/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of config share: a file in a temporary folder, and the report
 * of loading it as text. For tests only.
 */
#ifndef TESTS_UNIT_CONFIG_UTIL_H
#define TESTS_UNIT_CONFIG_UTIL_H

#include <stddef.h>

#include "config/settings.h"

/* Writes len bytes to a new file; its path. Returned; free(). */
char *util_file(const void *data, size_t len);

/*
 * Loads text. *report gets "LINE:COLUMN: text" per issue, one a line, remarks
 * with "remark " before; freed with free(). NULL where it may not be loaded.
 */
struct settings *util_load(const void *text, size_t len, char **report);

/* Loads text, which must be good; remarks are allowed. */
struct settings *util_good(const char *text);

/* Fails the test unless loading text reports exactly these errors. */
void util_expect_errors(const void *text, size_t len, const char *errors);
/* The same for remarks; no errors. */
void util_expect_remarks(const char *text, const char *remarks);

#define expect_errors(text, errors)                                            \
	util_expect_errors((text), sizeof(text) - 1, (errors))

/* A filter to which lines of four spaces of indentation can be added. */
#define FILTER                                                                 \
	"filters:\n"                                                           \
	"  - name: user\n"                                                     \
	"    keys: [\"user:{id}\"]\n"                                          \
	"    capacity: 1000\n"

#endif
