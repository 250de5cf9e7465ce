/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of the RESP encoder. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/mem.h"
#include "core/buf.h"
#include "core/random.h"
#include "resp/encode.h"
#include "resp/reply.h"
#include "resp/request.h"

/* Whether b holds exactly text, then empties it. */
static bool
holds(struct buf *b, const char *text)
{
	bool same = slice_eq(
	    slice_of(buf_head(b), buf_len(b)), slice_str(text));

	buf_consume(b, buf_len(b));
	return same;
}

START_TEST(lines)
{
	struct buf b;

	buf_init(&b, 1000);
	ck_assert_int_eq(encode_status(&b, "OK"), 0);
	ck_assert(holds(&b, "+OK\r\n"));
	ck_assert_int_eq(encode_error(&b, "ERR what\r\nnow\n"), 0);
	ck_assert(holds(&b, "-ERR what  now \r\n"));
	ck_assert_int_eq(encode_error_slice(&b, slice_of("a\0b", 3)), 0);
	ck_assert(slice_eq(
	    slice_of(buf_head(&b), buf_len(&b)), slice_of("-a\0b\r\n", 6)));
	buf_consume(&b, buf_len(&b));
	ck_assert_int_eq(encode_error_slice(&b, slice_of(NULL, 0)), 0);
	ck_assert(holds(&b, "-\r\n"));
	buf_fini(&b);
}
END_TEST

START_TEST(integers)
{
	static const int64_t fixed[] = {0, 1, -1, 9, 10, -10, 99, 100,
	    INT32_MAX, INT64_MAX, INT64_MIN, INT64_MIN + 1,
	    1000000000000000000};
	struct buf b;
	size_t i;

	buf_init(&b, 1000);
	for (i = 0; i < 10000; i++) {
		int64_t value = i < sizeof fixed / sizeof fixed[0]
		    ? fixed[i]
		    : (int64_t)(random_u64() >> (i % 64));
		char *expected = mem_printf(":%lld\r\n", (long long)value);

		ck_assert_int_eq(encode_integer(&b, value), 0);
		ck_assert_msg(holds(&b, expected), "%s", expected);
		free(expected);
	}
	buf_fini(&b);
}
END_TEST

START_TEST(by_protocol)
{
	struct buf b;

	buf_init(&b, 1000);
	ck_assert_int_eq(encode_nil(&b, 2), 0);
	ck_assert_int_eq(encode_bool(&b, 2, true), 0);
	ck_assert_int_eq(encode_bool(&b, 2, false), 0);
	ck_assert_int_eq(encode_map(&b, 2, 5), 0);
	ck_assert_int_eq(encode_set(&b, 2, 5), 0);
	ck_assert(holds(&b, "$-1\r\n:1\r\n:0\r\n*10\r\n*5\r\n"));
	ck_assert_int_eq(encode_nil(&b, 3), 0);
	ck_assert_int_eq(encode_bool(&b, 3, true), 0);
	ck_assert_int_eq(encode_bool(&b, 3, false), 0);
	ck_assert_int_eq(encode_map(&b, 3, 5), 0);
	ck_assert_int_eq(encode_set(&b, 3, 5), 0);
	ck_assert(holds(&b, "_\r\n#t\r\n#f\r\n%5\r\n~5\r\n"));
	ck_assert_int_eq(encode_array(&b, 0), 0);
	ck_assert_int_eq(encode_array(&b, 18446744073709551615u), 0);
	ck_assert(holds(&b, "*0\r\n*18446744073709551615\r\n"));
	ck_assert_int_eq(encode_map(&b, 2, SIZE_MAX), -1);
	ck_assert(holds(&b, ""));
	buf_fini(&b);
}
END_TEST

START_TEST(bulks)
{
	struct buf b;

	buf_init(&b, 1000);
	ck_assert_int_eq(encode_bulk(&b, slice_of(NULL, 0)), 0);
	ck_assert_int_eq(encode_bulk(&b, slice_str("he\r\no")), 0);
	ck_assert(holds(&b, "$0\r\n\r\n$5\r\nhe\r\no\r\n"));
	ck_assert_int_eq(encode_bulk(&b, slice_of("", SIZE_MAX)), -1);
	ck_assert(holds(&b, ""));
	buf_fini(&b);
}
END_TEST

START_TEST(requests)
{
	const struct slice argv[] = {
	    slice_str("SET"), slice_of(NULL, 0), slice_of("a\0b", 3)};
	static const char expected[] =
	    "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$3\r\na\0b\r\n";
	struct request_limits limits = {1000, 1000};
	struct request r;
	struct buf b;
	size_t i;

	buf_init(&b, 1000);
	ck_assert_int_eq(encode_request(&b, argv, 3), 0);
	ck_assert(slice_eq(slice_of(buf_head(&b), buf_len(&b)),
	    slice_of(expected, sizeof expected - 1)));
	request_init(&r, &limits);
	ck_assert_int_eq(
	    request_parse(&r, buf_head(&b), buf_len(&b)), PARSE_READY);
	ck_assert_uint_eq(r.argc, 3);
	for (i = 0; i < 3; i++)
		ck_assert(slice_eq(request_arg(&r, buf_head(&b), i), argv[i]));
	request_fini(&r);
	buf_fini(&b);
}
END_TEST

/* One encoder call, by number. */
static int
encode_any(struct buf *b, int which)
{
	const struct slice argv[] = {slice_str("GET"), slice_str("key")};

	switch (which) {
	case 0:
		return encode_status(b, "OK");
	case 1:
		return encode_error(b, "ERR x");
	case 2:
		return encode_integer(b, -1234567);
	case 3:
		return encode_bulk(b, slice_str("hello world"));
	case 4:
		return encode_nil(b, 2);
	case 5:
		return encode_bool(b, 3, true);
	case 6:
		return encode_array(b, 100);
	case 7:
		return encode_map(b, 2, 100);
	case 8:
		return encode_set(b, 3, 100);
	case 9:
		return encode_nil(b, 3);
	default:
		return encode_request(b, argv, 2);
	}
}

/* What just fits is written; one byte less and nothing is. */
START_TEST(cap_is_exact)
{
	int which;

	for (which = 0; which <= 10; which++) {
		struct buf b;
		size_t len;

		buf_init(&b, 1000);
		ck_assert_int_eq(encode_any(&b, which), 0);
		len = buf_len(&b);
		buf_fini(&b);
		buf_init(&b, len);
		ck_assert_int_eq(encode_any(&b, which), 0);
		ck_assert_uint_eq(buf_len(&b), len);
		buf_fini(&b);
		buf_init(&b, len + 2);
		ck_assert_int_eq(buf_append(&b, "abc", 3), 0);
		ck_assert_int_eq(encode_any(&b, which), -1);
		ck_assert(holds(&b, "abc"));
		buf_fini(&b);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("resp_encode");
	TCase *t = tcase_create("resp_encode");
	SRunner *r;
	int failed;

	tcase_add_test(t, lines);
	tcase_add_test(t, integers);
	tcase_add_test(t, by_protocol);
	tcase_add_test(t, bulks);
	tcase_add_test(t, requests);
	tcase_add_test(t, cap_is_exact);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
