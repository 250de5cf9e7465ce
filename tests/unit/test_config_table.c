/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The option table against what people read: the sample file holds every option
 * with its default, the manual holds every option with the table's own words.
 */
#include "config.h"

#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/document.h"
#include "config/options.h"
#include "config_util.h"
#include "core/mem.h"

static char *
read_source(const char *name)
{
	char *path = mem_printf("%s/%s", TOP_SRCDIR, name);
	FILE *f = fopen(path, "r");
	char *text = mem_alloc(1 << 20);
	size_t n;

	ck_assert_msg(f != NULL, "%s", path);
	n = fread(text, 1, (1 << 20) - 1, f);
	text[n] = '\0';
	fclose(f);
	free(path);
	return text;
}

/*
 * Deletes the '#' of each line that holds an option behind one: followed by a
 * letter, by "- ", or by two spaces or more. Prose has one space.
 */
static void
uncomment(char *text)
{
	char *line, *next, *p;

	for (line = text; line != NULL; line = next) {
		next = strchr(line, '\n');
		if (next != NULL)
			next++;
		p = line + strspn(line, " ");
		if (p[0] == '#' &&
		    (islower((unsigned char)p[1]) ||
			strncmp(p + 1, "- ", 2) == 0 ||
			strncmp(p + 1, "  ", 2) == 0)) {
			memmove(p, p + 1, strlen(p));
			if (next != NULL)
				next--;
		}
	}
}

/* The value at path (len bytes) in map, NULL when it is not there. */
static const struct node *
find(const struct node *map, const char *path)
{
	size_t len, i;

	for (;; path += len + 1) {
		const struct node *value = NULL;

		len = strcspn(path, ".");
		if (map->kind != NODE_MAPPING)
			return NULL;
		for (i = 0; i < map->count; i += 2)
			if (map->items[i]->len == len &&
			    memcmp(map->items[i]->text, path, len) == 0)
				value = map->items[i + 1];
		if (value == NULL || path[len] == '\0')
			return value;
		map = value;
	}
}

START_TEST(test_sample_as_it_is)
{
	char *text = read_source("conf/bloomgate.yaml"), *report;
	struct settings *s = util_load(text, strlen(text), &report);
	struct settings *empty = util_good("");
	char *a, *b;

	ck_assert_msg(s != NULL, "%s", report);
	ck_assert_str_eq(
	    report, "remark 0:0: no filters: everything is forwarded\n");
	a = settings_dump(s);
	b = settings_dump(empty);
	ck_assert_str_eq(a, b);
	free(a);
	free(b);
	free(report);
	free(text);
	settings_unref(s);
	settings_unref(empty);
}
END_TEST

START_TEST(test_sample_has_every_option)
{
	char *text = read_source("conf/bloomgate.yaml");
	struct settings_report report;
	struct document doc;
	struct issues issues;
	const struct node *filters;
	size_t i;

	uncomment(text);
	issues_init(&issues, &report);
	document_parse(&doc, text, strlen(text), &issues);
	issues_finish(&issues);
	ck_assert_uint_eq(report.count, 0);
	filters = find(doc.root, "filters");
	ck_assert_ptr_nonnull(filters);
	ck_assert_int_eq(filters->kind, NODE_SEQUENCE);
	ck_assert_uint_eq(filters->count, 1);
	for (i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];
		const struct node *in = o->scope == SCOPE_FILTER
		    ? filters->items[0]
		    : doc.root;

		ck_assert_msg(find(in, o->path) != NULL,
		    "conf/bloomgate.yaml lacks %s", o->path);
	}
	document_fini(&doc);
	settings_report_fini(&report);
	free(text);
}
END_TEST

START_TEST(test_sample_has_the_defaults)
{
	char *text = read_source("conf/bloomgate.yaml"), *a, *b;
	struct settings *s, *bare;

	uncomment(text);
	s = util_good(text);
	bare = util_good("filters:\n"
			 "  - name: user\n"
			 "    keys: [\"user:{id}\", \"user:{id}:profile\"]\n"
			 "    capacity: 1000000\n");
	a = settings_dump(s);
	b = settings_dump(bare);
	ck_assert_str_eq(a, b);
	free(a);
	free(b);
	free(text);
	settings_unref(s);
	settings_unref(bare);
}
END_TEST

/* mdoc as plain words: no \&, \e as a backslash, any space as one. */
static char *
plain_words(const char *text)
{
	char *out = mem_alloc(strlen(text) + 2);
	size_t n = 0;

	for (; *text != '\0'; text++) {
		if (text[0] == '\\' && text[1] == '&') {
			text++;
			continue;
		}
		if (text[0] == '\\' && text[1] == 'e') {
			out[n++] = '\\';
			text++;
		} else if (*text != ' ' && *text != '\n')
			out[n++] = *text;
		else if (n > 0 && out[n - 1] != ' ')
			out[n++] = ' ';
	}
	out[n] = '\0';
	return out;
}

/* One entry of settings_help as the manual writes it. */
static char *
manual_entry(char *head, const char *help)
{
	char *info = strstr(head, " ("), *entry, *words;

	if (strncmp(head, "filters.", 8) == 0)
		head += 8;
	if (info != NULL) {
		*info = '\0';
		info += 2;
		info[strlen(info) - 1] = '\0'; /* the closing parenthesis */
		info[0] = (char)toupper((unsigned char)info[0]);
		entry = mem_printf(
		    "\n.It Ic %s\n%s.\n.br\n%s\n", head, info, help);
	} else
		entry = mem_printf("\n.It Ic %s\n%s\n", head, help);
	words = plain_words(entry);
	free(entry);
	return words;
}

START_TEST(test_manual)
{
	char *page = read_source("man/bloomgate.yaml.5");
	char *words = plain_words(page), *help = settings_help();
	char *head, *end, *text, *entry;
	size_t entries = 0;

	for (head = help; *head != '\0'; entries++) {
		end = strchr(head, '\n');
		*end = '\0';
		text = end + 1;
		end = strchr(text, '\n');
		*end = '\0';
		entry = manual_entry(head, text);
		ck_assert_msg(strstr(words, entry) != NULL,
		    "man/bloomgate.yaml.5 lacks, or says otherwise:\n%s",
		    entry);
		free(entry);
		head = end + 1;
	}
	ck_assert_uint_eq(entries, option_count);
	free(help);
	free(words);
	free(page);
}
END_TEST

START_TEST(test_table)
{
	size_t i, j;

	for (i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];

		for (j = 0; j < i; j++)
			ck_assert_msg(option_table[j].scope != o->scope ||
				strcmp(option_table[j].path, o->path) != 0,
			    "%s is there twice", o->path);
		ck_assert_ptr_eq(
		    option_find(o->scope, o->path, strlen(o->path)), o);
		ck_assert_msg(
		    o->help != NULL && o->help[0] != '\0', "%s", o->path);
		ck_assert_ptr_nonnull(o->fallback);
		/* The section that it lies in is a row before it. */
		if (option_depth(o) > 0) {
			size_t len = (size_t)(option_key(o) - o->path) - 1;
			const struct option *in = option_find(
			    o->scope, o->path, len);

			ck_assert_ptr_nonnull(in);
			ck_assert(in < o);
			ck_assert_int_eq(in->type, OPTION_SECTION);
			ck_assert(option_is_in(o, o->scope, in));
		}
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("config table");
	TCase *t = tcase_create("table");
	SRunner *r;
	int failed;

	suite_add_tcase(s, t);
	tcase_add_test(t, test_table);
	tcase_add_test(t, test_sample_as_it_is);
	tcase_add_test(t, test_sample_has_every_option);
	tcase_add_test(t, test_sample_has_the_defaults);
	tcase_add_test(t, test_manual);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
