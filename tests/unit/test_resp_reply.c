/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of the reply framer. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/mem.h"
#include "resp/reply.h"

#include "../fuzz/resp_compare.h"

/* Frames text, which begins with a reply of len bytes. */
static struct reply
frame(const char *text, size_t text_len, size_t len)
{
	struct reply r;
	size_t used;

	reply_init(&r);
	ck_assert_int_eq(reply_feed(&r, (const uint8_t *)text, text_len, &used),
	    PARSE_READY);
	ck_assert_uint_eq(used, len);
	ck_assert_uint_eq(r.size, len);
	ck_assert_uint_ge(reply_compare((const uint8_t *)text, text_len, 1), 1);
	return r;
}

static void
bad(const char *text)
{
	size_t used = 1;
	struct reply r;

	reply_init(&r);
	ck_assert_int_eq(
	    reply_feed(&r, (const uint8_t *)text, strlen(text), &used),
	    PARSE_BAD);
	ck_assert_uint_eq(used, 0);
	ck_assert_int_eq(
	    reply_feed(&r, (const uint8_t *)"+OK\r\n", 5, &used), PARSE_BAD);
	reply_fini(&r);
	reply_compare((const uint8_t *)text, strlen(text), 1);
}

static void
more(const char *text)
{
	size_t used;
	struct reply r;

	reply_init(&r);
	ck_assert_int_eq(
	    reply_feed(&r, (const uint8_t *)text, strlen(text), &used),
	    PARSE_MORE);
	ck_assert_uint_eq(used, strlen(text));
	reply_fini(&r);
}

START_TEST(simple_types)
{
	static const struct {
		const char *text;
		char type;
		bool nil;
		int64_t number;
		const char *payload; /* NULL: none */
	} cases[] = {
	    {"+OK\r\n", '+', false, 0, "OK"},
	    {"+\r\n", '+', false, 0, ""},
	    {"-ERR no such key\r\n", '-', false, 0, "ERR no such key"},
	    {":0\r\n", ':', false, 0, "0"},
	    {":1234\r\n", ':', false, 1234, "1234"},
	    {":+7\r\n", ':', false, 7, "+7"},
	    {":-9223372036854775808\r\n", ':', false, INT64_MIN,
		"-9223372036854775808"},
	    {":9223372036854775807\r\n", ':', false, INT64_MAX,
		"9223372036854775807"},
	    {"$-1\r\n", '$', true, -1, NULL},
	    {"$0\r\n\r\n", '$', false, 0, ""},
	    {"$5\r\nhe\r\no\r\n", '$', false, 5, "he\r\no"},
	    {"*-1\r\n", '*', true, -1, NULL},
	    {"*0\r\n", '*', false, 0, NULL},
	    {"%0\r\n", '%', false, 0, NULL},
	    {"~0\r\n", '~', false, 0, NULL},
	    {">0\r\n", '>', false, 0, NULL},
	    {"_\r\n", '_', true, 0, NULL},
	    {"#t\r\n", '#', false, 1, "t"},
	    {"#f\r\n", '#', false, 0, "f"},
	    {",-inf\r\n", ',', false, 0, "-inf"},
	    {",1e300\r\n", ',', false, 0, "1e300"},
	    {"(-12345678901234567890123\r\n", '(', false, 0,
		"-12345678901234567890123"},
	    {"!5\r\nERR x\r\n", '!', false, 5, "ERR x"},
	    {"=7\r\ntxt:abc\r\n", '=', false, 7, "txt:abc"},
	    {"+a\rb\r\r\n", '+', false, 0, "a\rb\r"},
	};
	size_t i;

	for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		size_t len = strlen(cases[i].text);
		char *followed = mem_printf("%s:1\r\n", cases[i].text);
		struct reply r = frame(followed, len + 4, len);
		struct slice got = reply_head_element(&r, 0);

		ck_assert_int_eq(r.type, cases[i].type);
		ck_assert_int_eq(r.nil, cases[i].nil);
		ck_assert_int_eq(r.number, cases[i].number);
		ck_assert_uint_eq(r.head_len, len);
		ck_assert_mem_eq(r.head, cases[i].text, len);
		ck_assert_int_eq(
		    reply_is_error(&r), r.type == '-' || r.type == '!');
		if (cases[i].payload == NULL) {
			ck_assert_ptr_null(got.data);
		} else {
			ck_assert_ptr_nonnull(got.data);
			ck_assert(slice_is(got, cases[i].payload));
		}
		ck_assert_ptr_null(reply_head_element(&r, 1).data);
		reply_fini(&r);
		free(followed);
	}
}
END_TEST

START_TEST(not_resp)
{
	bad("x\r\n");
	bad("\r\n");
	bad("?");
	bad("$?\r\n");
	bad("*?\r\n");
	bad("%?\r\n");
	bad("~?\r\n");
	bad(";4\r\nabcd\r\n");
	bad(".\r\n");
	bad("$-2\r\n");
	bad("*-2\r\n");
	bad("%-1\r\n");
	bad("~-1\r\n");
	bad(">-1\r\n");
	bad("|-1\r\n");
	bad("!-1\r\n");
	bad("=-1\r\n");
	bad("$05\r\nhello\r\n");
	bad("$+5\r\nhello\r\n");
	bad("$\r\n");
	bad("$5\rXhello\r\n");
	bad("$5\nhello\r\n");
	bad("$9223372036854775808\r\n");
	bad("*4611686018427387904\r\n");
	bad(":\r\n");
	bad(":+\r\n");
	bad(":+-1\r\n");
	bad(":1.5\r\n");
	bad(":00000000000000000000000000000000000000000000");
	bad("_x\r\n");
	bad("_1\r\n");
	bad("#\r\n");
	bad("#1\r\n");
	bad("#tt\r\n");
	bad("$2\r\nabXX");
	bad("$2\r\nab\rX");
	bad("$0\r\nXX");
	bad("*2\r\n:1\r\nx");
	more("$9223372036854775807\r\n");
	more("*4611686018427387903\r\n");
	more("+OK");
	more("+OK\r");
	more("$2\r\nab\r");
}
END_TEST

START_TEST(type_is_known_early)
{
	struct reply r;
	size_t used;

	reply_init(&r);
	ck_assert_int_eq(
	    reply_feed(&r, (const uint8_t *)"-", 1, &used), PARSE_MORE);
	ck_assert(reply_is_error(&r));
	reply_reset(&r);
	ck_assert_int_eq(
	    reply_feed(&r, (const uint8_t *)"*5\r\n:1\r\n", 8, &used),
	    PARSE_MORE);
	ck_assert_int_eq(r.type, '*');
	ck_assert_int_eq(r.number, 5);
	ck_assert_uint_eq(r.elements_done, 1);
	reply_fini(&r);
}
END_TEST

START_TEST(aggregates)
{
	static const char push[] =
	    ">3\r\n$7\r\nmessage\r\n$2\r\nch\r\n$2\r\nhi\r\n";
	static const char map[] = "%2\r\n+a\r\n*2\r\n:1\r\n:2\r\n+b\r\n_\r\n";
	struct reply r = frame(push, sizeof push - 1, sizeof push - 1);

	ck_assert_int_eq(r.type, '>');
	ck_assert_int_eq(r.number, 3);
	ck_assert_uint_eq(r.elements_done, 3);
	ck_assert(slice_is(reply_head_element(&r, 0), "message"));
	ck_assert(slice_is(reply_head_element(&r, 1), "ch"));
	ck_assert(slice_is(reply_head_element(&r, 2), "hi"));
	ck_assert_ptr_null(reply_head_element(&r, 3).data);
	reply_fini(&r);
	r = frame(map, sizeof map - 1, sizeof map - 1);
	ck_assert_int_eq(r.number, 2);
	ck_assert_uint_eq(r.elements_done, 4);
	ck_assert(slice_is(reply_head_element(&r, 0), "a"));
	ck_assert_ptr_null(reply_head_element(&r, 1).data);
	ck_assert(slice_is(reply_head_element(&r, 2), "b"));
	ck_assert_ptr_null(reply_head_element(&r, 3).data);
	reply_fini(&r);
}
END_TEST

START_TEST(attributes)
{
	static const char top[] =
	    "|1\r\n+ttl\r\n*2\r\n:5\r\n:6\r\n$2\r\nhi\r\n";
	static const char nested[] =
	    "*2\r\n|1\r\n+a\r\n|1\r\n+x\r\n+y\r\n*1\r\n:1\r\n:2\r\n"
	    "|0\r\n$1\r\nz\r\n";
	static const char before[] = "*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n";
	static const char two[] = "|1\r\n+a\r\n+b\r\n|1\r\n+c\r\n+d\r\n_\r\n";
	struct reply r = frame(top, sizeof top - 1, sizeof top - 1);

	ck_assert_int_eq(r.type, '$');
	ck_assert_int_eq(r.number, 2);
	ck_assert_uint_eq(r.elements_done, 0);
	ck_assert_uint_eq(r.head_len, 8);
	ck_assert_mem_eq(r.head, "$2\r\nhi\r\n", 8);
	ck_assert(slice_is(reply_head_element(&r, 0), "hi"));
	reply_fini(&r);
	r = frame(nested, sizeof nested - 1, sizeof nested - 1);
	ck_assert_int_eq(r.type, '*');
	ck_assert_uint_eq(r.elements_done, 2);
	ck_assert_ptr_null(reply_head_element(&r, 0).data);
	reply_fini(&r);
	/* An attribute is not counted as an element. */
	r = frame(before, sizeof before - 1, sizeof before - 1);
	ck_assert_ptr_null(reply_head_element(&r, 0).data);
	ck_assert(slice_is(reply_head_element(&r, 1), "2"));
	ck_assert_ptr_null(reply_head_element(&r, 2).data);
	reply_fini(&r);
	r = frame(two, sizeof two - 1, sizeof two - 1);
	ck_assert_int_eq(r.type, '_');
	ck_assert(r.nil);
	ck_assert_uint_eq(r.head_len, 3);
	reply_fini(&r);
}
END_TEST

/* An aggregate inside an attribute says nothing of the reply. */
START_TEST(attribute_content_is_not_the_reply)
{
	static const char text[] = "|1\r\n$-1\r\n*-1\r\n:9\r\n";
	struct reply r = frame(text, sizeof text - 1, sizeof text - 1);

	ck_assert_int_eq(r.type, ':');
	ck_assert(!r.nil);
	ck_assert_int_eq(r.number, 9);
	reply_fini(&r);
}
END_TEST

START_TEST(depth)
{
	char text[4 * (REPLY_DEPTH_MAX + 1) + 5];
	struct reply r;
	size_t i;

	for (i = 0; i <= REPLY_DEPTH_MAX; i++)
		memcpy(text + 4 * i, "*1\r\n", 4);
	memcpy(text + 4 * i, ":1\r\n", 5);
	r = frame(text + 4, sizeof text - 5, sizeof text - 5);
	ck_assert_uint_eq(r.elements_done, 1);
	reply_fini(&r);
	bad(text);
}
END_TEST

START_TEST(head_is_cut)
{
	enum {
		LEN = 1000
	};
	char *text = mem_alloc(LEN + 16);
	struct reply r;

	memcpy(text, "$1000\r\n", 7);
	memset(text + 7, 'v', LEN);
	memcpy(text + 7 + LEN, "\r\n", 2);
	r = frame(text, LEN + 9, LEN + 9);
	ck_assert_uint_eq(r.head_len, REPLY_HEAD_MAX);
	ck_assert_mem_eq(r.head, text, REPLY_HEAD_MAX);
	ck_assert_ptr_null(reply_head_element(&r, 0).data);
	reply_fini(&r);
	text[0] = '-';
	memset(text + 1, 'e', LEN);
	memcpy(text + 1 + LEN, "\r\n", 2);
	r = frame(text, LEN + 3, LEN + 3);
	ck_assert_int_eq(r.type, '-');
	ck_assert_ptr_null(reply_head_element(&r, 0).data);
	reply_fini(&r);
	free(text);
}
END_TEST

START_TEST(leading_elements)
{
	static const char text[] =
	    "*10\r\n*2\r\n:1\r\n%1\r\n+k\r\n$1\r\nv\r\n-ERR\r\n$-1\r\n"
	    ":5\r\n#t\r\n$0\r\n\r\n,1.5\r\n+7\r\n+8\r\n+9\r\n";
	static const char *const expected[] = {
	    NULL, "ERR", NULL, "5", "t", "", "1.5", "7", NULL, NULL};
	struct reply r = frame(text, sizeof text - 1, sizeof text - 1);
	size_t i;

	for (i = 0; i < sizeof expected / sizeof expected[0]; i++) {
		struct slice got = reply_head_element(&r, i);

		if (expected[i] == NULL)
			ck_assert_ptr_null(got.data);
		else
			ck_assert(
			    got.data != NULL && slice_is(got, expected[i]));
	}
	reply_fini(&r);
}
END_TEST

/* Each stop of reply_feed_element in text: where it ends. */
static void
stops(const char *text, const size_t *ends, size_t count)
{
	size_t len = strlen(text), at = 0, used, i;
	enum parse_status status = PARSE_MORE;
	struct reply r;
	bool element;

	reply_init(&r);
	for (i = 0; i < count; i++) {
		ck_assert_int_eq(status, PARSE_MORE);
		status = reply_feed_element(
		    &r, (const uint8_t *)text + at, len - at, &used, &element);
		at += used;
		ck_assert_uint_eq(at, ends[i]);
		ck_assert_int_eq(element, count > 1);
		ck_assert_uint_eq(r.elements_done, i);
	}
	ck_assert_int_eq(status, PARSE_READY);
	reply_fini(&r);
}

START_TEST(elements_one_by_one)
{
	stops("*3\r\n$1\r\na\r\n$-1\r\n*1\r\n:1\r\n+next\r\n",
	    (const size_t[]){4, 11, 16, 24}, 4);
	stops("|1\r\n+a\r\n:1\r\n*2\r\n|1\r\n+b\r\n+c\r\n:1\r\n:2\r\n",
	    (const size_t[]){16, 32, 36}, 3);
	stops("%1\r\n+a\r\n+b\r\n", (const size_t[]){4, 8, 12}, 3);
	stops("*0\r\n+next\r\n", (const size_t[]){4}, 1);
	stops("*-1\r\n+next\r\n", (const size_t[]){5}, 1);
	stops("$1\r\na\r\n+next\r\n", (const size_t[]){7}, 1);
	stops("|1\r\n+a\r\n*1\r\n:1\r\n+OK\r\n+next\r\n", (const size_t[]){21},
	    1);
}
END_TEST

/* Of len bytes of text, count plain replies are passed over, bytes in all. */
static void
skips(const char *text, size_t len, size_t max, size_t count, size_t bytes)
{
	uint8_t *exact = mem_dup(text, len);
	size_t got;

	ck_assert_uint_eq(reply_skip_plain(exact, len, max, &got), bytes);
	ck_assert_uint_eq(got, count);
	free(exact);
}

START_TEST(plain_replies_are_passed_over)
{
	static const char all[] = "$3\r\nabc\r\n$-1\r\n:7\r\n+OK\r\n"
				  "$0\r\n\r\n";
	/* Each stops it: an error, a message, an aggregate, and what is not
	 * quite plain. */
	static const char *const others[] = {"-ERR\r\n", ">1\r\n+a\r\n",
	    "*0\r\n", "_\r\n", "+OKAY\r\n", "+QUEUED\r\n", ":-1\r\n",
	    "$3\r\nabcd\r\n", "$3\r\nabc\rX", "$3\rXabc\r\n", "$-2\r\n",
	    "$03\r\nabc\r\n", ":1\rX", "|1\r\n+a\r\n+b\r\n:1\r\n", "$",
	    "$999999999999999999\r\n\r\n"};
	static const size_t ends[] = {0, 9, 14, 18, 23, 29};
	char text[100];
	size_t i, count;

	skips(all, strlen(all), 9, 5, strlen(all));
	skips(all, strlen(all), 2, 2, 14);
	skips(all, strlen(all), 0, 0, 0);
	for (i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		skips(others[i], strlen(others[i]), 9, 0, 0);
		snprintf(text, sizeof(text), "+OK\r\n%s", others[i]);
		skips(text, strlen(text), 9, 1, 5);
	}
	/* Cut anywhere it ends with the last whole one. */
	for (i = 0; i <= strlen(all); i++) {
		for (count = 0; count < 5 && ends[count + 1] <= i; count++)
			;
		skips(all, i, 9, count, ends[count]);
	}
}
END_TEST

START_TEST(reset_after_any_state)
{
	static const char *const before[] = {"", "+a", "$5\r\nhel", "*2\r\n:1",
	    "|1\r\n+a\r\n*3\r\n", "x", "$12", "$1\r\na\r", "%1\r\n|1\r\n"};
	struct reply r;
	size_t i, used;

	reply_init(&r);
	for (i = 0; i < sizeof before / sizeof before[0]; i++) {
		ck_assert_int_ne(reply_feed(&r, (const uint8_t *)before[i],
				     strlen(before[i]), &used),
		    PARSE_READY);
		reply_reset(&r);
		ck_assert_int_eq(
		    reply_feed(&r, (const uint8_t *)"$-1\r\n", 5, &used),
		    PARSE_READY);
		ck_assert(r.nil && r.size == 5 && r.head_len == 5);
		ck_assert_uint_eq(r.elements_done, 0);
		reply_reset(&r);
	}
	reply_fini(&r);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("resp_reply");
	TCase *t = tcase_create("resp_reply");
	SRunner *r;
	int failed;

	tcase_add_test(t, simple_types);
	tcase_add_test(t, not_resp);
	tcase_add_test(t, type_is_known_early);
	tcase_add_test(t, aggregates);
	tcase_add_test(t, attributes);
	tcase_add_test(t, attribute_content_is_not_the_reply);
	tcase_add_test(t, depth);
	tcase_add_test(t, head_is_cut);
	tcase_add_test(t, leading_elements);
	tcase_add_test(t, elements_one_by_one);
	tcase_add_test(t, plain_replies_are_passed_over);
	tcase_add_test(t, reset_after_any_state);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
