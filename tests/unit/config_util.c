/* SPDX-License-Identifier: BSD-2-Clause */
/* See config_util.h. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config_util.h"
#include "core/mem.h"

char *
util_file(const void *data, size_t len)
{
	const char *folder = getenv("TMPDIR");
	char *path = mem_printf(
	    "%s/bloomgate-config-XXXXXX", folder != NULL ? folder : "/tmp");
	int fd = mkstemp(path);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, data, len), (ssize_t)len);
	close(fd);
	return path;
}

static char *
report_text(const struct settings_report *r, int fatal)
{
	char *text = mem_strdup(""), *longer;
	size_t i;

	for (i = 0; i < r->count; i++) {
		const struct settings_issue *is = &r->items[i];

		if (fatal >= 0 && is->fatal != (fatal != 0))
			continue;
		longer = mem_printf("%s%s%u:%u: %s\n", text,
		    fatal < 0 && !is->fatal ? "remark " : "", is->line,
		    is->column, is->text);
		free(text);
		text = longer;
	}
	return text;
}

static struct settings *
load(const void *text, size_t len, struct settings_report *report)
{
	char *path = util_file(text, len);
	struct settings *s = settings_load(path, report);

	if (s != NULL)
		ck_assert_str_eq(s->path, path);
	unlink(path);
	free(path);
	return s;
}

struct settings *
util_load(const void *text, size_t len, char **out)
{
	struct settings_report report;
	struct settings *s = load(text, len, &report);

	*out = report_text(&report, -1);
	settings_report_fini(&report);
	return s;
}

struct settings *
util_good(const char *text)
{
	char *report;
	struct settings *s = util_load(text, strlen(text), &report);

	if (s == NULL)
		ck_abort_msg("not accepted:\n%s%s", text, report);
	free(report);
	return s;
}

void
util_expect_errors(const void *text, size_t len, const char *errors)
{
	struct settings_report report;
	struct settings *s = load(text, len, &report);
	char *got = report_text(&report, 1);

	if (strcmp(got, errors) != 0)
		ck_abort_msg("file:\n%.*s\nexpected:\n%sgot:\n%s", (int)len,
		    (const char *)text, errors, got);
	ck_assert((s == NULL) == (errors[0] != '\0'));
	settings_unref(s);
	settings_report_fini(&report);
	free(got);
}

void
util_expect_remarks(const char *text, const char *remarks)
{
	struct settings_report report;
	struct settings *s = load(text, strlen(text), &report);
	char *got = report_text(&report, 0), *errors = report_text(&report, 1);

	ck_assert_str_eq(errors, "");
	if (strcmp(got, remarks) != 0)
		ck_abort_msg(
		    "file:\n%s\nexpected:\n%sgot:\n%s", text, remarks, got);
	ck_assert_ptr_nonnull(s);
	settings_unref(s);
	settings_report_fini(&report);
	free(got);
	free(errors);
}
