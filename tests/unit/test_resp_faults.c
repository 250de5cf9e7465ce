/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public bug reports about parsing that other proxies and clients had, as
 * A1 to A17; each test is named after its own. Those that need a connection
 * (A10, A12, A15, A16) are tested with the proxy.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "resp/reply.h"

#include "resp_fixture.h"

START_TEST(fault_a1_inline_hex_escape)
{
	struct fixture f;

	BEGIN(&f, "SET k \"x\\x41\"\r\nSET k \"\\x\"\n");
	fixture_expect(&f, "SET|k|xA");
	fixture_expect(&f, "SET|k|x");
	fixture_end(&f);
	BAD("SET k \"x\\x4\n", BAD_QUOTES);
}
END_TEST

START_TEST(fault_a2_inline_escape_split)
{
	static const char text[] = "SET k \"x\\x41\\n\" 'it\\'s'\r\n";
	struct request_limits limits = LIMITS;
	size_t cut, len = sizeof text - 1;

	for (cut = 0; cut < len; cut++) {
		struct request r;

		request_init(&r, &limits);
		ck_assert_int_eq(
		    request_parse(&r, (const uint8_t *)text, cut), PARSE_MORE);
		ck_assert_int_eq(
		    request_parse(&r, (const uint8_t *)text, len), PARSE_READY);
		ck_assert_uint_eq(r.argc, 4);
		ck_assert(slice_is(request_arg(&r, NULL, 2), "xA\n"));
		ck_assert(slice_is(request_arg(&r, NULL, 3), "it's"));
		request_fini(&r);
	}
	ck_assert_uint_eq(request_compare((const uint8_t *)text, len, 2), 1);
}
END_TEST

START_TEST(fault_a3_empty_and_null_arrays)
{
	struct fixture f;

	BEGIN(&f,
	    "*0\r\n*2\r\n$3\r\nGET\r\n$1\r\na\r\n"
	    "*-1\r\n*2\r\n$3\r\nGET\r\n$1\r\nb\r\n"
	    "\r\n\n \t \r\n*-9223372036854775808\r\nPING\n");
	fixture_expect(&f, "");
	fixture_expect(&f, "GET|a");
	fixture_expect(&f, "");
	fixture_expect(&f, "GET|b");
	fixture_expect(&f, "");
	fixture_expect(&f, "");
	fixture_expect(&f, "");
	fixture_expect(&f, "");
	fixture_expect(&f, "PING");
	fixture_end(&f);
}
END_TEST

START_TEST(fault_a4_empty_arguments)
{
	struct fixture f;

	BEGIN(&f,
	    "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$0\r\n\r\n"
	    "*2\r\n$3\r\nGET\r\n$0\r\n\r\nPING\r\n");
	fixture_expect(&f, "SET|a|");
	fixture_expect(&f, "GET|");
	fixture_expect(&f, "PING");
	fixture_end(&f);
}
END_TEST

START_TEST(fault_a6_null_bulk_in_request)
{
	BAD("*1\r\n$-1\r\n", BAD_LENGTH);
	BAD("*2\r\n$3\r\nGET\r\n$-1\r\n", BAD_LENGTH);
}
END_TEST

START_TEST(fault_a9_command_alone)
{
	struct fixture f;

	BEGIN(&f, "*1\r\n$3\r\nGET\r\nGET\r\n");
	fixture_expect(&f, "GET");
	fixture_expect(&f, "GET");
	fixture_end(&f);
}
END_TEST

START_TEST(fault_a11_pipeline_split_anywhere)
{
	static const char text[] =
	    "*3\r\n$3\r\nSET\r\n$1\r\na\r\n$10\r\n01234\r\n789\r\n"
	    "*2\r\n$3\r\nGET\r\n$1\r\na\r\nPING\r\n*1\r\n$4\r\nQUIT\r\n";
	int seed;

	for (seed = 0; seed < 50; seed++)
		ck_assert_uint_eq(request_compare((const uint8_t *)text,
				      sizeof text - 1, (uint64_t)seed * 4 + 2),
		    4);
}
END_TEST

START_TEST(fault_a13_no_allocation_by_count)
{
	struct fixture f;

	BEGIN(&f, "*2147483647\r\n$536870912\r\nabc");
	ck_assert_int_eq(request_parse(&f.r, f.data, f.len), PARSE_MORE);
	ck_assert_uint_lt(request_memory(&f.r), 4096);
	request_detach(&f.r, f.data);
	ck_assert_uint_lt(request_memory(&f.r), 4096);
	request_fini(&f.r);
}
END_TEST

static void
unauthenticated(const char *text, enum parse_status status, const char *error)
{
	struct request_limits limits = LIMITS;
	struct request r;

	request_init(&r, &limits);
	request_set_unauthenticated(&r, true);
	request_reset(&r);
	ck_assert_int_eq(
	    request_parse(&r, (const uint8_t *)text, strlen(text)), status);
	ck_assert_str_eq(r.error, error);
	request_fini(&r);
}

START_TEST(fault_a14_unauthenticated_limits)
{
	unauthenticated("*11\r\n", PARSE_BAD,
	    "ERR Protocol error: unauthenticated multibulk length");
	unauthenticated("*10\r\n", PARSE_MORE, "");
	unauthenticated("*1\r\n$16385\r\n", PARSE_BAD,
	    "ERR Protocol error: unauthenticated bulk length");
	unauthenticated("*1\r\n$16384\r\n", PARSE_MORE, "");
	unauthenticated("*2147483648\r\n", PARSE_BAD, BAD_COUNT);
	unauthenticated("*1\r\n$536870913\r\n", PARSE_BAD, BAD_LENGTH);
	MORE("*11\r\n$17000\r\n");
}
END_TEST

START_TEST(fault_a17_unchecked_ends)
{
	struct fixture f;

	BEGIN(&f,
	    "*1\r\n$4\r\nPINGXX"
	    "*1\rX$4\rYPINGZZ"
	    "*1\r\r$4\r\rPING\r\r"
	    "PING\n");
	fixture_expect(&f, "PING");
	fixture_expect(&f, "PING");
	fixture_expect(&f, "PING");
	fixture_expect(&f, "PING");
	fixture_end(&f);
}
END_TEST

/* Frames text as exactly one reply. */
static void
one_reply(struct reply *r, const char *text)
{
	size_t len = strlen(text), used;

	reply_init(r);
	ck_assert_int_eq(
	    reply_feed(r, (const uint8_t *)text, len, &used), PARSE_READY);
	ck_assert_uint_eq(used, len);
	ck_assert_uint_eq(reply_compare((const uint8_t *)text, len, 1), 1);
}

START_TEST(fault_a5_empty_bulk_reply)
{
	static const char text[] = "$0\r\n\r\n+OK\r\n";
	struct reply r;
	size_t used;

	reply_init(&r);
	ck_assert_int_eq(
	    reply_feed(&r, (const uint8_t *)text, sizeof text - 1, &used),
	    PARSE_READY);
	ck_assert_uint_eq(used, 6);
	ck_assert(!r.nil);
	reply_fini(&r);
	ck_assert_uint_eq(
	    reply_compare((const uint8_t *)text, sizeof text - 1, 1), 2);
}
END_TEST

START_TEST(fault_a6_null_bulk_reply)
{
	static const char text[] = "$-1\r\n+OK\r\n";
	struct reply r;
	size_t used;

	reply_init(&r);
	ck_assert_int_eq(
	    reply_feed(&r, (const uint8_t *)text, sizeof text - 1, &used),
	    PARSE_READY);
	ck_assert_uint_eq(used, 5);
	ck_assert(r.nil);
	reply_fini(&r);
}
END_TEST

START_TEST(fault_a7_nested_arrays)
{
	struct reply r;

	one_reply(&r, "*3\r\n:1\r\n*1\r\n:2\r\n:3\r\n");
	ck_assert_uint_eq(r.elements_done, 3);
	reply_fini(&r);
	one_reply(&r, "*2\r\n*2\r\n*0\r\n*-1\r\n*1\r\n*1\r\n+x\r\n");
	ck_assert_uint_eq(r.elements_done, 2);
	reply_fini(&r);
}
END_TEST

START_TEST(fault_a8_any_type_is_an_element)
{
	struct reply r;

	one_reply(&r,
	    "*14\r\n+OK\r\n-ERR x\r\n:1\r\n$1\r\na\r\n*0\r\n_\r\n#t\r\n"
	    ",1.5\r\n(12345678901234567890\r\n!5\r\nERR y\r\n"
	    "=5\r\ntxt:z\r\n%1\r\n+k\r\n+v\r\n~1\r\n:1\r\n>1\r\n+p\r\n");
	ck_assert_uint_eq(r.elements_done, 14);
	reply_fini(&r);
}
END_TEST

START_TEST(fault_a13_reply_counts_and_depth)
{
	struct reply r;
	size_t used, i;

	reply_init(&r);
	ck_assert_int_eq(
	    reply_feed(&r, (const uint8_t *)"*2147483647\r\n$2147483647\r\na",
		27, &used),
	    PARSE_MORE);
	ck_assert_uint_lt(reply_memory(&r), 4096);
	reply_reset(&r);
	for (i = 0; i < 2000; i++) {
		enum parse_status status = reply_feed(
		    &r, (const uint8_t *)"*1\r\n", 4, &used);

		ck_assert_int_eq(
		    status, i < REPLY_DEPTH_MAX ? PARSE_MORE : PARSE_BAD);
	}
	ck_assert_uint_le(reply_memory(&r), REPLY_DEPTH_MAX * sizeof(uint64_t));
	reply_fini(&r);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("resp_faults");
	TCase *t = tcase_create("resp_faults");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, fault_a1_inline_hex_escape);
	tcase_add_test(t, fault_a2_inline_escape_split);
	tcase_add_test(t, fault_a3_empty_and_null_arrays);
	tcase_add_test(t, fault_a4_empty_arguments);
	tcase_add_test(t, fault_a6_null_bulk_in_request);
	tcase_add_test(t, fault_a9_command_alone);
	tcase_add_test(t, fault_a11_pipeline_split_anywhere);
	tcase_add_test(t, fault_a13_no_allocation_by_count);
	tcase_add_test(t, fault_a14_unauthenticated_limits);
	tcase_add_test(t, fault_a17_unchecked_ends);
	tcase_add_test(t, fault_a5_empty_bulk_reply);
	tcase_add_test(t, fault_a6_null_bulk_reply);
	tcase_add_test(t, fault_a7_nested_arrays);
	tcase_add_test(t, fault_a8_any_type_is_an_element);
	tcase_add_test(t, fault_a13_reply_counts_and_depth);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
