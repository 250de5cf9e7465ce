/* SPDX-License-Identifier: BSD-2-Clause */
/* The operator tool's pure parts: the JSON reader and the number formats. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "ctl/format.h"
#include "ctl/tree.h"

static int
parse(struct tree *t, const char *text)
{
	struct err err;

	return tree_parse(t, slice_str(text), &err);
}

START_TEST(tree_reads)
{
	static const char text[] =
	    " { \"a\" : [ 1 , -2.5e3, {\"x\":true}, [] ], \"b\":{},\n"
	    "\"c\":\"q\\\"\\u00e9\\n\", \"d\":null,\"e\":false } ";
	struct tree t;
	long a, i;
	char *s;

	ck_assert_int_eq(parse(&t, text), 0);
	a = tree_find(&t, 0, "a");
	ck_assert_int_eq(t.nodes[a].type, TREE_ARRAY);
	i = tree_child(&t, a);
	ck_assert(slice_is(t.nodes[i].text, "1"));
	i = tree_next(&t, i);
	ck_assert(slice_is(t.nodes[i].text, "-2.5e3"));
	i = tree_next(&t, i);
	ck_assert(tree_bool(&t, i, "x"));
	i = tree_next(&t, i);
	ck_assert_int_eq(t.nodes[i].type, TREE_ARRAY);
	ck_assert_int_eq(tree_child(&t, i), -1);
	ck_assert_int_eq(tree_next(&t, i), -1);
	ck_assert_int_eq(tree_child(&t, tree_find(&t, 0, "b")), -1);
	s = tree_string(&t, 0, "c");
	ck_assert_str_eq(s, "q\"\xc3\xa9?");
	free(s);
	ck_assert_int_eq(t.nodes[tree_find(&t, 0, "d")].type, TREE_NULL);
	ck_assert(!tree_bool(&t, 0, "e"));
	/* What is not there, or of another type. */
	ck_assert_int_eq(tree_find(&t, 0, "z"), -1);
	ck_assert_int_eq(tree_find(&t, -1, "z"), -1);
	ck_assert_int_eq(tree_find(&t, a, "z"), -1);
	ck_assert(tree_number(&t, 0, "c", 7) == 7);
	s = tree_string(&t, 0, "a");
	ck_assert_str_eq(s, "");
	free(s);
	tree_fini(&t);
}
END_TEST

START_TEST(tree_numbers)
{
	struct tree t;

	ck_assert_int_eq(parse(&t, "{\"a\":-0.5,\"b\":1e3,\"c\":0}"), 0);
	ck_assert(tree_number(&t, 0, "a", 0) == -0.5);
	ck_assert(tree_number(&t, 0, "b", 0) == 1000);
	ck_assert(tree_number(&t, 0, "c", 9) == 0);
	tree_fini(&t);
}
END_TEST

START_TEST(tree_refuses)
{
	static const char *const bad[] = {"", " ", "{", "}", "[", "]", "[1,]",
	    "[,1]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}", "{,}", "{a:1}",
	    "{\"a\":1 \"b\":2}", "[1 2]", "[1}", "{\"a\":1]", "1 2", "tru",
	    "nul", "01", "-", "1.", "1e", ".5", "+1", "\"a", "\"\\", "\"\n\"",
	    "'a'", "[1]]", "{\"a\":1}}", "\x01"};
	struct tree t;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		ck_assert_msg(parse(&t, bad[i]) != 0, "taken: %s", bad[i]);
		tree_fini(&t);
	}
}
END_TEST

/* Deep nesting is refused, not followed. */
START_TEST(tree_depth)
{
	char text[2 * TREE_DEPTH_MAX + 8];
	struct tree t;

	memset(text, '[', TREE_DEPTH_MAX);
	memset(text + TREE_DEPTH_MAX, ']', TREE_DEPTH_MAX);
	text[2 * TREE_DEPTH_MAX] = '\0';
	ck_assert_int_eq(parse(&t, text), 0);
	tree_fini(&t);
	memset(text, '[', TREE_DEPTH_MAX + 1);
	memset(text + TREE_DEPTH_MAX + 1, ']', TREE_DEPTH_MAX + 1);
	text[2 * TREE_DEPTH_MAX + 2] = '\0';
	ck_assert_int_ne(parse(&t, text), 0);
	tree_fini(&t);
}
END_TEST

/* No prefix of a document crashes the reader or passes for one. */
START_TEST(tree_prefixes)
{
	static const char text[] =
	    "{\"a\":[1,{\"b\":\"x\\u00e9\\\\\"},true,null],\"c\":-1.5e+2}";
	struct err err;
	struct tree t;
	size_t i;
	char *copy;

	for (i = 0; i < strlen(text); i++) {
		copy = mem_dup(text, i + 1); /* exact, for the sanitizer */
		ck_assert_int_ne(tree_parse(&t, slice_of(copy, i), &err), 0);
		tree_fini(&t);
		free(copy);
	}
}
END_TEST

START_TEST(strings_are_fit_for_terminals)
{
	struct tree t;
	char *s;

	ck_assert_int_eq(parse(&t,
			     "{\"a\":\"\\u001b[31m\x7f\\u0000\\ud83d\\ude00"
			     "\\u20ac\\uzzzz\xc2\x9bm\"}"),
	    0);
	s = tree_string(&t, 0, "a");
	ck_assert_ptr_null(strchr(s, '\033'));
	ck_assert_ptr_null(strchr(s, 0x7f));
	ck_assert_ptr_null(strstr(s, "\xc2\x9b"));
	ck_assert_ptr_nonnull(strstr(s, "\xe2\x82\xac"));
	free(s);
	tree_fini(&t);
}
END_TEST

START_TEST(formats)
{
	static const struct {
		double value;
		const char *count;
	} counts[] = {{0, "0"}, {999, "999"}, {1000, "1,000"},
	    {-1234567, "-1,234,567"}, {1e10, "10,000,000,000"}};
	char out[FORMAT_MAX];
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
		format_count(out, sizeof(out), counts[i].value);
		ck_assert_str_eq(out, counts[i].count);
	}
	format_share(out, sizeof(out), -1);
	ck_assert_str_eq(out, "-");
	format_share(out, sizeof(out), 0.01);
	ck_assert_str_eq(out, "1.00 %");
	format_share(out, sizeof(out), 0.00001);
	ck_assert_str_eq(out, "0.001 %");
	format_span(out, sizeof(out), 59.4);
	ck_assert_str_eq(out, "59 s");
	format_span(out, sizeof(out), 3600);
	ck_assert_str_eq(out, "1 h 0 min");
	format_span(out, sizeof(out), -5);
	ck_assert_str_eq(out, "0 s");
	format_span(out, sizeof(out), 200000);
	ck_assert_str_eq(out, "2 d 7 h");
	format_bytes(out, sizeof(out), 1023);
	ck_assert_str_eq(out, "1023 B");
	format_bytes(out, sizeof(out), 1536);
	ck_assert_str_eq(out, "1.5 KiB");
	ck_assert_int_eq(format_width("caf\xc3\xa9"), 4);
}
END_TEST

START_TEST(values)
{
	char text[128] = "";
	FILE *f = fmemopen(text, sizeof(text), "w");

	format_value(f, "plain");
	putc(' ', f);
	format_value(f, "");
	putc(' ', f);
	format_value(f, "a b=\"c\\");
	fclose(f);
	ck_assert_str_eq(text, "plain \"\" \"a b=\\\"c\\\\\"");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("ctl");
	TCase *t = tcase_create("ctl");
	SRunner *r;
	int failed;

	tcase_add_test(t, tree_reads);
	tcase_add_test(t, tree_numbers);
	tcase_add_test(t, tree_refuses);
	tcase_add_test(t, tree_depth);
	tcase_add_test(t, tree_prefixes);
	tcase_add_test(t, strings_are_fit_for_terminals);
	tcase_add_test(t, formats);
	tcase_add_test(t, values);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
