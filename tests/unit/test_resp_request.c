/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the request parser. Expected texts and edges are those measured
 * on redis-server 7.0.15.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "resp_fixture.h"

START_TEST(pipeline)
{
	struct fixture f;

	BEGIN(&f,
	    "*2\r\n$3\r\nGET\r\n$7\r\nuser:42\r\nPING\r\n"
	    "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$12\r\nhello\r\nworld\r\n");
	fixture_expect(&f, "GET|user:42");
	fixture_expect(&f, "PING");
	fixture_expect(&f, "SET|a|hello\r\nworld");
	fixture_end(&f);
}
END_TEST

START_TEST(partial_arguments_are_visible)
{
	static const uint8_t data[] = "*3\r\n$3\r\nSET\r\n$2\r\nab\r\n$5\r\nhe";
	struct fixture f;

	fixture_begin(&f, data, sizeof data - 1);
	ck_assert_int_eq(f.r.declared, -1);
	ck_assert_int_eq(request_parse(&f.r, data, f.len), PARSE_MORE);
	ck_assert_int_eq(f.r.declared, 3);
	ck_assert_uint_eq(f.r.argc, 2);
	ck_assert_uint_eq(f.r.size, f.len);
	ck_assert(slice_is(request_arg(&f.r, data, 1), "ab"));
	request_fini(&f.r);
}
END_TEST

START_TEST(bad_counts)
{
	BAD("*\r\n", BAD_COUNT);
	BAD("*x\r\n", BAD_COUNT);
	BAD("*+1\r\n", BAD_COUNT);
	BAD("*01\r\n", BAD_COUNT);
	BAD("*-0\r\n", BAD_COUNT);
	BAD("* 1\r\n", BAD_COUNT);
	BAD("*1 \r\n", BAD_COUNT);
	BAD("*2147483648\r\n", BAD_COUNT);
	BAD("*9223372036854775808\r\n", BAD_COUNT);
	BAD("*-9223372036854775809\r\n", BAD_COUNT);
	BAD("*1\n$4\nPING\n\r\n", BAD_COUNT);
	MORE("*2147483647\r\n");
	/* Redis looks once a byte stands after CR, whatever it is. */
	MORE("*x\r");
	BAD("*x\rq", BAD_COUNT);
}
END_TEST

START_TEST(bad_lengths)
{
	BAD("*1\r\n$\r\n", BAD_LENGTH);
	BAD("*1\r\n$x\r\n", BAD_LENGTH);
	BAD("*1\r\n$+4\r\n", BAD_LENGTH);
	BAD("*1\r\n$04\r\nPING\r\n", BAD_LENGTH);
	BAD("*1\r\n$536870913\r\n", BAD_LENGTH);
	BAD("*1\r\n$99999999999999999999999\r\n", BAD_LENGTH);
	BAD("*1\r\n$9223372036854775807\r\n", BAD_LENGTH);
	MORE("*1\r\n$536870912\r\n");
	MORE("*1\r\n$-1\r");
}
END_TEST

START_TEST(bad_type)
{
	BAD("*1\r\n:4\r\n", BAD_DOLLAR(":"));
	BAD("*1\r\n\x01"
	    "4\r\n",
	    BAD_DOLLAR("\x01"));
	BAD("*1\r\n\xff"
	    "4\r\n",
	    BAD_DOLLAR("\xff"));
	/* Redis writes CR and LF in an error as blanks. */
	BAD("*1\r\n\r\n", BAD_DOLLAR(" "));
	BAD("*1\r\n\n4\r\n", BAD_DOLLAR(" "));
	BAD("*2\r\n$1\r\na\r\nGET\r\n", BAD_DOLLAR("G"));
	MORE("*1\r\n:4\r");
}
END_TEST

/* prefix, then fill up to len bytes, then suffix */
static uint8_t *
padded(
    const char *prefix, int fill, size_t len, const char *suffix, size_t *total)
{
	size_t before = strlen(prefix), after = strlen(suffix);
	uint8_t *data = mem_alloc(len + after);

	memcpy(data, prefix, before);
	memset(data + before, fill, len - before);
	memcpy(data + len, suffix, after);
	*total = len + after;
	return data;
}

/* A line of REQUEST_INLINE_MAX bytes may still end; one more may not. */
START_TEST(long_lines)
{
	static const struct {
		const char *head; /* before the line */
		const char *prefix, *mark;
		const char *at_most; /* error of the longest line, or NULL */
		const char *too_long;
	} cases[] = {
	    {"", "*", "\r\n", BAD_COUNT,
		"ERR Protocol error: too big mbulk count string"},
	    {"*1\r\n", "$", "\r\n", BAD_LENGTH,
		"ERR Protocol error: too big bulk count string"},
	    {"*1\r\n", ":", "\r\n", BAD_DOLLAR(":"),
		"ERR Protocol error: too big bulk count string"},
	    {"", "a", "\n", NULL, "ERR Protocol error: too big inline request"},
	};
	size_t i, len;

	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		size_t most = strlen(cases[i].head) + REQUEST_INLINE_MAX;
		char *start = mem_printf(
		    "%s%s", cases[i].head, cases[i].prefix);
		uint8_t *data = padded(start, '1', most, "", &len);

		fixture_expect_more(data, len);
		free(data);
		data = padded(start, '1', most + 1, "", &len);
		fixture_expect_bad(data, len, cases[i].too_long);
		free(data);
		data = padded(start, '1', most, cases[i].mark, &len);
		if (cases[i].at_most != NULL) {
			fixture_expect_bad(data, len, cases[i].at_most);
		} else {
			ck_assert_uint_eq(request_compare(data, len, 2), 1);
		}
		free(data);
		data = padded(start, '1', most + 1, cases[i].mark, &len);
		fixture_expect_bad(data, len, cases[i].too_long);
		free(data);
		free(start);
	}
}
END_TEST

/* Redis searches line ends with strchr, so a NUL hides them. */
START_TEST(nul_hides_the_line_end)
{
	uint8_t *data;
	size_t len;

	MORE("PI\0NG\r\nPING\r\n");
	MORE("\0\n");
	MORE("*1\0\r\n$4\r\nPING\r\n");
	MORE("*1\r\n$4\0\r\nPING\r\n");
	data = padded("\n", 'a', REQUEST_INLINE_MAX + 1, "", &len);
	data[0] = '\0';
	data[1] = '\n';
	fixture_expect_more(data, len - 1);
	fixture_expect_bad(
	    data, len, "ERR Protocol error: too big inline request");
	free(data);
}
END_TEST

START_TEST(inline_words)
{
	struct fixture f;

	BEGIN(&f,
	    "a \tb  c\r\n"
	    "  x\n"
	    "a\vb \v\fc d\f\n" /* VT and FF are skipped, but end no word */
	    "a\rb\r\r\n"
	    "\"\" '' e\n"
	    "\"a b\" 'c d'\n"
	    "a\"b\" c'd'\n" /* a quote may open inside a word, and ends it */
	    "\"\\n\\r\\t\\b\\a\\q\\\\\\\"\"\n"
	    "'\\n\\'\\\\x'\n"
	    "\"\\x4a\\X4a\\x4\\xzz\"\n"
	    "\\x41 \\\"a\"\n"
	    "\"a\"\vb\n");
	fixture_expect(&f, "a|b|c");
	fixture_expect(&f, "x");
	fixture_expect(&f, "a\vb|c|d\f");
	fixture_expect(&f, "a|b");
	fixture_expect(&f, "||e");
	fixture_expect(&f, "a b|c d");
	fixture_expect(&f, "ab|cd");
	fixture_expect(&f, "\n\r\t\b\aq\\\"");
	fixture_expect(&f, "\\n'\\\\x");
	fixture_expect(&f, "JX4ax4xzz");
	fixture_expect(&f, "\\x41|\\a");
	fixture_expect(&f, "a|b");
	fixture_end(&f);
}
END_TEST

START_TEST(inline_unbalanced)
{
	BAD("SET k \"x\n", BAD_QUOTES);
	BAD("SET k 'x\r\n", BAD_QUOTES);
	BAD("SET k \"x\"y\n", BAD_QUOTES);
	BAD("SET k 'x'y\n", BAD_QUOTES);
	BAD("\"a\\\n", BAD_QUOTES);
	BAD("\"a\\\"\n", BAD_QUOTES);
	BAD("'\n", BAD_QUOTES);
}
END_TEST

START_TEST(inline_decodes_nul)
{
	struct fixture f;
	struct slice arg;

	BEGIN(&f, "ECHO \"a\\x00b\"\n");
	ck_assert_int_eq(request_parse(&f.r, f.data, f.len), PARSE_READY);
	ck_assert(f.r.is_inline);
	ck_assert_int_eq(f.r.declared, 2);
	arg = request_arg(&f.r, f.data, 1);
	ck_assert(slice_eq(arg, slice_of("a\0b", 3)));
	request_fini(&f.r);
}
END_TEST

START_TEST(request_bytes)
{
	static const char text[] =
	    "ERR bloomgate: request larger than limits.request-bytes";
	struct request_limits limits = {100, 40};
	struct request r;
	const char *data;

	request_init(&r, &limits);
	data = "*2\r\n$3\r\nGET\r\n$21\r\n012345678901234567890\r\n";
	ck_assert_uint_eq(strlen(data), 41);
	/* Refused at the header: before any of the value goes anywhere. */
	ck_assert_int_eq(
	    request_parse(&r, (const uint8_t *)data, 18), PARSE_BAD);
	ck_assert_str_eq(r.error, text);
	request_reset(&r);
	data = "*2\r\n$3\r\nGET\r\n$20\r\n01234567890123456789\r\n";
	ck_assert_int_eq(
	    request_parse(&r, (const uint8_t *)data, 40), PARSE_READY);
	request_reset(&r);
	/* Detached too, and inline. */
	request_detach(&r, NULL);
	{
		size_t used;
		const char *big =
		    "*2\r\n$3\r\nGET\r\n$21\r\n012345678901234567890\r\n";

		ck_assert_int_eq(
		    request_feed(&r, (const uint8_t *)big, 41, &used),
		    PARSE_BAD);
		ck_assert_str_eq(r.error, text);
	}
	request_reset(&r);
	data = "PING 67890123456789012345678901234567890\n";
	ck_assert_int_eq(
	    request_parse(&r, (const uint8_t *)data, 41), PARSE_BAD);
	ck_assert_str_eq(r.error, text);
	request_reset(&r);
	ck_assert_int_eq(
	    request_parse(&r, (const uint8_t *)data + 1, 40), PARSE_READY);
	request_fini(&r);
}
END_TEST

START_TEST(request_bytes_of_the_count)
{
	struct request_limits limits = {100, 3};
	struct request r;

	request_init(&r, &limits);
	ck_assert_int_eq(
	    request_parse(&r, (const uint8_t *)"*2\r\n", 4), PARSE_BAD);
	request_reset(&r);
	ck_assert_int_eq(
	    request_parse(&r, (const uint8_t *)"*2\r", 3), PARSE_MORE);
	ck_assert_int_eq(
	    request_parse(&r, (const uint8_t *)"*2\r\n", 4), PARSE_BAD);
	request_fini(&r);
}
END_TEST

START_TEST(bulk_limit)
{
	struct request_limits limits = {5, 1000};
	struct request r;

	request_init(&r, &limits);
	ck_assert_int_eq(
	    request_parse(&r, (const uint8_t *)"*1\r\n$5\r\nhello\r\n", 15),
	    PARSE_READY);
	request_reset(&r);
	ck_assert_int_eq(
	    request_parse(&r, (const uint8_t *)"*1\r\n$6\r\nhello!\r\n", 16),
	    PARSE_BAD);
	ck_assert_str_eq(r.error, BAD_LENGTH);
	request_fini(&r);
}
END_TEST

START_TEST(detached_cuts_arguments)
{
	enum {
		VALUE = REQUEST_CAPTURE_MAX + 5
	};
	struct request_limits limits = LIMITS;
	struct request r;
	char *head = mem_printf(
	    "*3\r\n$3\r\nSET\r\n$2\r\nab\r\n$%d\r\n", VALUE);
	size_t head_len = strlen(head), len = head_len + VALUE + 2, used;
	uint8_t *data = mem_alloc(len + 1);

	memcpy(data, head, head_len);
	memset(data + head_len, 'v', VALUE);
	memcpy(data + len - 2, "\r\n*", 3);
	request_init(&r, &limits);
	ck_assert_int_eq(request_parse(&r, data, head_len + 7), PARSE_MORE);
	request_detach(&r, data);
	memset(data, 'X', head_len + 7); /* nothing may point there now */
	ck_assert(r.detached);
	ck_assert(slice_is(request_arg(&r, NULL, 0), "SET"));
	ck_assert_int_eq(
	    request_feed(&r, data + r.size, len + 1 - r.size, &used),
	    PARSE_READY);
	ck_assert_uint_eq(used, len - head_len - 7);
	ck_assert_uint_eq(r.size, len);
	ck_assert_uint_eq(r.argc, 3);
	ck_assert(slice_is(request_arg(&r, NULL, 1), "ab"));
	ck_assert_uint_eq(r.args[2].len, VALUE);
	ck_assert_uint_eq(request_arg(&r, NULL, 2).len, REQUEST_CAPTURE_MAX);
	ck_assert_uint_eq(request_arg(&r, NULL, 2).data[8], 'v');
	ck_assert(!request_arg_whole(&r, 2));
	ck_assert(request_arg_whole(&r, 1));
	ck_assert_uint_lt(request_memory(&r), 32768);
	request_fini(&r);
	free(data);
	free(head);
}
END_TEST

START_TEST(detached_total_is_bounded)
{
	static uint8_t value[REQUEST_CAPTURE_MAX + 2];
	struct request_limits limits = LIMITS;
	size_t count = REQUEST_KEPT_MAX / REQUEST_CAPTURE_MAX, i, used;
	struct request r;

	request_init(&r, &limits);
	request_detach(&r, NULL);
	ck_assert_int_eq(
	    request_feed(&r, (const uint8_t *)"*8194\r\n", 7, &used),
	    PARSE_MORE);
	ck_assert_uint_eq(count, 8192);
	for (i = 0; i < count + 1; i++) {
		ck_assert_int_eq(
		    request_feed(&r, (const uint8_t *)"$8192\r\n", 7, &used),
		    PARSE_MORE);
		ck_assert_int_eq(
		    request_feed(&r, value, sizeof value, &used), PARSE_MORE);
	}
	ck_assert_int_eq(
	    request_feed(&r, (const uint8_t *)"$0\r\n\r\n", 6, &used),
	    PARSE_READY);
	ck_assert(request_arg_whole(&r, count - 1));
	ck_assert_uint_eq(r.args[count].len, 8192);
	ck_assert_uint_eq(r.args[count].kept, 0);
	ck_assert(!request_arg_whole(&r, count));
	ck_assert(request_arg_whole(&r, count + 1));
	ck_assert_uint_le(r.kept_cap, REQUEST_KEPT_MAX);
	/* What is large is given back. */
	request_reset(&r);
	ck_assert_uint_eq(request_memory(&r), 0);
	request_fini(&r);
}
END_TEST

START_TEST(reset_keeps_small_allocations)
{
	struct fixture f;
	size_t before;

	BEGIN(&f, "*2\r\n$1\r\na\r\n$1\r\nb\r\n*1\r\n$4\r\nPING\r\n");
	fixture_expect(&f, "a|b");
	before = request_memory(&f.r);
	ck_assert_uint_gt(before, 0);
	fixture_expect(&f, "PING");
	ck_assert_uint_eq(request_memory(&f.r), before);
	fixture_end(&f);
}
END_TEST

/* Byte by byte a request is linear: a line is never searched twice. Counted by
 * work done, as the parser sees only fresh bytes: the old ones may change. */
START_TEST(bytes_are_seen_once)
{
	static const char text[] =
	    "*3\r\n$3\r\nSET\r\n$12\r\nuser:1234567\r\n$10\r\n0123456789\r\n";
	struct request_limits limits = LIMITS;
	uint8_t data[sizeof text];
	struct request r;
	size_t i, len = sizeof text - 1;
	enum parse_status status = PARSE_MORE;

	request_init(&r, &limits);
	for (i = 0; i < len; i++) {
		memset(data, 'Z', sizeof data);
		data[i] = (uint8_t)text[i];
		ck_assert_int_eq(status, PARSE_MORE);
		status = request_parse(&r, data, i + 1);
	}
	ck_assert_int_eq(status, PARSE_READY);
	ck_assert_uint_eq(r.argc, 3);
	ck_assert(slice_is(
	    request_arg(&r, (const uint8_t *)text, 1), "user:1234567"));
	request_fini(&r);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("resp_request");
	TCase *t = tcase_create("resp_request");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, pipeline);
	tcase_add_test(t, partial_arguments_are_visible);
	tcase_add_test(t, bad_counts);
	tcase_add_test(t, bad_lengths);
	tcase_add_test(t, bad_type);
	tcase_add_test(t, long_lines);
	tcase_add_test(t, nul_hides_the_line_end);
	tcase_add_test(t, inline_words);
	tcase_add_test(t, inline_unbalanced);
	tcase_add_test(t, inline_decodes_nul);
	tcase_add_test(t, request_bytes);
	tcase_add_test(t, request_bytes_of_the_count);
	tcase_add_test(t, bulk_limit);
	tcase_add_test(t, detached_cuts_arguments);
	tcase_add_test(t, detached_total_is_bounded);
	tcase_add_test(t, reset_keeps_small_allocations);
	tcase_add_test(t, bytes_are_seen_once);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
