/* SPDX-License-Identifier: BSD-2-Clause */
/* The errors in a filter and between filters, each with its exact place. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "config_util.h"
#include "core/mem.h"

START_TEST(test_patterns)
{
	static const struct {
		const char *keys, *error;
	} cases[] = {
	    {"user", "keys: a pattern needs a placeholder such as {id}"},
	    {"user:{{id}}", "keys: a pattern needs a placeholder such as {id}"},
	    {"{a}{a}", "keys: a pattern has one placeholder only"},
	    {"{}",
		"keys: '{' begins a placeholder such as {id} or {id*}; a "
		"literal brace is written {{"},
	    {"{id",
		"keys: '{' begins a placeholder such as {id} or {id*}; a "
		"literal brace is written {{"},
	    {"{i d}",
		"keys: '{' begins a placeholder such as {id} or {id*}; a "
		"literal brace is written {{"},
	    {"{id}}", "keys: '}' without '{'; a literal brace is written }}"},
	    {"{filter}",
		"keys: a placeholder may not be called 'filter': in an element "
		"that is the filter's name"},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = mem_printf("filters:\n  - name: a\n"
					"    keys:\n      - \"%s\"\n"
					"    capacity: 1\n",
		    cases[i].keys);
		char *error = mem_printf("4:9: %s\n", cases[i].error);

		util_expect_errors(text, strlen(text), error);
		free(text);
		free(error);
	}
	expect_errors("filters:\n  - name: a\n"
		      "    keys: [\"a:{id}\", \"b:{x}\", \"a:{id}\", \"}\"]\n"
		      "    capacity: 1\n",
	    "3:22: keys: the placeholder is {x} here and {id} in the pattern "
	    "before: a filter has one\n"
	    "3:31: keys: the pattern is given twice\n"
	    "3:41: keys: '}' without '{'; a literal brace is written }}\n");
}
END_TEST

START_TEST(test_element)
{
	expect_errors(FILTER "    element: id\n",
	    "5:14: element: must hold {id} exactly once\n");
	expect_errors(FILTER "    element: \"{id}{id}\"\n",
	    "5:14: element: must hold {id} exactly once\n");
	expect_errors(FILTER "    element: \"{filter}:{user}\"\n",
	    "5:14: element: {user} is neither {id}, the patterns' placeholder, "
	    "nor {filter}\n");
	expect_errors(FILTER "    element: \"{id*}\"\n",
	    "5:14: element: '*' belongs in the pattern, not in the element\n");
	expect_errors(FILTER "    element: \"{id\"\n",
	    "5:14: element: '{' begins a placeholder such as {id} or {id*}; a "
	    "literal brace is written {{\n");
	expect_errors(FILTER "    element: \"{filter}:{id}{{}}\"\n", "");
}
END_TEST

START_TEST(test_filter_checks)
{
	expect_errors("filters:\n  - name: a b\n    keys: [\"{id}\"]\n"
		      "    capacity: 1\n",
	    "2:11: name: must be 1 to 64 bytes without spaces and braces\n");
	expect_errors(FILTER "    redis-key: bloom\n",
	    "5:16: redis-key: must hold exactly one hash tag: {text}\n");
	expect_errors(FILTER "    redis-key: bloom{}\n",
	    "5:16: redis-key: must hold exactly one hash tag: {text}\n");
	expect_errors(FILTER "    redis-key: a{b}{c}\n",
	    "5:16: redis-key: must hold exactly one hash tag: {text}\n");
	expect_errors(FILTER "    redis-key: a}{b}\n",
	    "5:16: redis-key: must hold exactly one hash tag: {text}\n");
	expect_errors(FILTER "    redis-key: a b{c}\n",
	    "5:16: redis-key: must be at most 384 bytes without spaces\n");
	expect_errors(FILTER "    scheme: poly\n",
	    "5:13: scheme: scheme poly needs layout single\n");
	expect_errors(FILTER "    scheme: poly\n    layout: sharded\n"
			     "    rebuild: {grow: true}\n",
	    "6:13: layout: scheme poly needs layout single\n"
	    "7:21: rebuild.grow: scheme poly has a fixed size and cannot "
	    "grow\n");
	expect_errors(FILTER "    scheme: keyed\n",
	    "5:13: scheme: keyed needs key-file\n");
	expect_errors("filters:\n  - name: a\n    keys: [\"{id}\"]\n"
		      "    layout: single\n    capacity: 500000000\n",
	    "5:15: capacity: needs 4792529188 bits at this error-rate, and "
	    "layout single has at most 4294967232\n");
	/* The last capacity that fits, and the first that does not. */
	expect_errors("filters:\n  - name: a\n    keys: [\"{id}\"]\n"
		      "    layout: single\n    capacity: 448089835\n",
	    "");
	expect_errors("filters:\n  - name: a\n    keys: [\"{id}\"]\n"
		      "    layout: single\n    capacity: 448089836\n",
	    "5:15: capacity: needs 4294967236 bits at this error-rate, and "
	    "layout single has at most 4294967232\n");
}
END_TEST

START_TEST(test_suffix)
{
	expect_errors(FILTER "    suffix: \"%Y/%m\"\n",
	    "5:13: suffix: makes a name such as '2024/01', which holds '/'\n");
	expect_errors(FILTER "    suffix: \"%H:%M\"\n",
	    "5:13: suffix: makes a name such as '00:00', which holds ':'\n");
	expect_errors(FILTER "    suffix: \"%Y%e\"\n",
	    "5:13: suffix: makes a name such as '2024 1', which holds a space "
	    "or control\n");
	expect_errors(FILTER "    suffix: \"%Q\"\n",
	    "5:13: suffix: strftime has no conversion '%Q'\n");
	expect_errors(FILTER "    suffix: \"a%\"\n",
	    "5:13: suffix: ends inside a conversion\n");
	expect_errors(FILTER "    suffix: \"%999999Y\"\n",
	    "5:13: suffix: must make a name of 1 to 48 bytes at any time\n");
	expect_errors(
	    FILTER "    suffix: \"\"\n", "5:13: suffix: must not be empty\n");
	expect_errors(FILTER "    suffix: \"%Y%m%d-%H%M%S\"\n", "");
	expect_errors(FILTER "    suffix: one\n", "");
}
END_TEST

START_TEST(test_absent)
{
	expect_errors(FILTER "    absent-reply: null\n",
	    "5:19: absent-reply: must be nil, {value: V} or {error: TEXT}\n");
	expect_errors(FILTER "    absent-reply: {value: a, error: b}\n",
	    "5:19: absent-reply: must be nil, {value: V} or {error: TEXT}\n");
	expect_errors(FILTER "    absent-reply: {text: a}\n",
	    "5:20: absent-reply: must be nil, {value: V} or {error: TEXT}\n");
	expect_errors(FILTER "    absent-reply: {value: }\n",
	    "5:27: absent-reply: a text is missing (\"\" is an empty value)\n");
	expect_errors(FILTER "    absent-reply: {value: [a]}\n",
	    "5:27: absent-reply: must be a text\n");
	expect_errors(FILTER "    absent-reply: {error: \"a\\r\\nb\"}\n",
	    "5:27: absent-reply: the error must be one line of 1 to 512 "
	    "bytes\n");
	expect_errors(FILTER "    absent-reply: {error: \"\"}\n",
	    "5:27: absent-reply: the error must be one line of 1 to 512 "
	    "bytes\n");
	expect_errors(FILTER "    null-values: [a]\n",
	    "5:18: null-values: needs absent-reply {value: V}\n");
	expect_errors(FILTER "    absent-reply: {error: a}\n"
			     "    null-values: [a]\n",
	    "6:18: null-values: needs absent-reply {value: V}\n");
	expect_errors(FILTER "    absent-reply: {value: a}\n"
			     "    null-values: [[b]]\n",
	    "6:19: null-values: an item must be a text\n");
}
END_TEST

START_TEST(test_sources)
{
	expect_errors(FILTER "    rebuild:\n      source: {}\n",
	    "6:15: rebuild.source: must hold command, file or set (leave it "
	    "out for none)\n");
	expect_errors(FILTER "    rebuild:\n"
			     "      source: {command: [a], file: /b}\n",
	    "6:15: rebuild.source: must be one of command, file and set\n");
	expect_errors(FILTER "    rebuild: {source: {trust: true, set: a}}\n",
	    "5:31: rebuild.source.trust: belongs to a file\n");
	expect_errors(FILTER "    rebuild: {source: {file: a}}\n",
	    "5:30: rebuild.source.file: must be an absolute path\n");
	expect_errors(FILTER "    rebuild: {source: {command: a}}\n",
	    "5:33: rebuild.source.command: must be a list: [a, b]\n");
	expect_errors(FILTER "    rebuild: {source: {command: [\"\", b]}}\n",
	    "5:33: rebuild.source.command: the program's name is empty\n");
	expect_errors(FILTER "    rebuild: {source: x}\n",
	    "5:23: rebuild.source: must hold options (key: value)\n");
	expect_errors(
	    FILTER "    feed: {group: a}\n", "5:11: feed: needs stream\n");
	expect_errors(FILTER "    rebuild: {schedule: monthly 3:00}\n",
	    "5:25: rebuild.schedule: must be 'monthly HH:MM', 'weekly mon "
	    "HH:MM', 'daily HH:MM', 'every 6h' (1m to 366d) or 'never', not "
	    "'monthly 3:00'\n");
}
END_TEST

/* Two filters with one pattern each, the second's checked against the first. */
static void
pair(const char *first, const char *second, int collides)
{
	char *text = mem_printf("filters:\n"
				"  - {name: a, capacity: 1, keys: [\"%s\"]}\n"
				"  - {name: b, capacity: 1, keys: [\"%s\"]}\n",
	    first, second);
	char *error = mem_printf("3:35: keys: one key can match this and '%s' "
				 "of the filter in line 2 with equally many "
				 "literal bytes\n",
	    first);

	util_expect_errors(text, strlen(text), collides ? error : "");
	free(error);
	free(text);
}

START_TEST(test_collisions)
{
	pair("user:{id}", "user:{id}", 1);
	pair("user:{id}", "user:{other}", 1);
	pair("user:{id}", "item:{id}", 0);
	pair("user:{id}", "user:{id}:x", 0); /* more literals win */
	pair("a{id}", "{id}a", 1);           /* aa, or a?a */
	pair("a:{id}", "{id}:b", 1);         /* a:b, no other */
	pair("a:{id}", "{id}:a:", 0);
	pair("a:b{id}", "{id}c:d", 1);
	pair("a:-{id}", "{id}:-b", 1); /* a:-b: the overlap is the whole ":-" */
	pair("a::{id}", "{id}::b", 1);
	pair("x:{id}:y", "x:{id}:z", 0);
	pair("x:{id}:yy", "x:a:{id}:y", 0); /* other lengths */
	pair("u:{id}", "{{:{id}", 0);
}
END_TEST

START_TEST(test_between_filters)
{
	expect_errors("filters:\n"
		      "  - {name: a, capacity: 1, keys: [\"a:{id}\"]}\n"
		      "  - {name: a, capacity: 1, keys: [\"b:{id}\"]}\n",
	    "3:12: name: is the name of the filter in line 2 already\n");
	expect_errors("filters:\n"
		      "  - {name: a, capacity: 1, keys: [\"a:{id}\"]}\n"
		      "  - {name: b, capacity: 1, keys: [\"b:{id}\"],\n"
		      "     db: 1, redis-key: \"bloom:{a}\"}\n",
	    "4:24: redis-key: is that of the filter in line 2 already\n");
	/* Another database: no key in common. */
	expect_errors("filters:\n"
		      "  - {name: a, capacity: 1, keys: [\"a:{id}\"]}\n"
		      "  - {name: b, capacity: 1, keys: [\"a:{id}\"], db: 1}\n",
	    "");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("config filters");
	TCase *t = tcase_create("filters");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	tcase_add_test(t, test_patterns);
	tcase_add_test(t, test_element);
	tcase_add_test(t, test_filter_checks);
	tcase_add_test(t, test_suffix);
	tcase_add_test(t, test_absent);
	tcase_add_test(t, test_sources);
	tcase_add_test(t, test_collisions);
	tcase_add_test(t, test_between_filters);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
