/* SPDX-License-Identifier: BSD-2-Clause */
/* Covered reads: plain forms, arities, the replies for a missing key. That these
 * are Redis's is for tests/integration/test_covered.py to ask. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "policy/covered.h"

/* Words of a request, split at spaces. */
static size_t
words(const char *text, struct slice argv[16])
{
	size_t n = 0;

	while (*text != '\0') {
		size_t len = strcspn(text, " ");

		argv[n++] = slice_of(text, len);
		text += len + (text[len] == ' ');
	}
	return n;
}

static bool
is_plain(const char *text)
{
	struct slice argv[16];
	size_t argc = words(text, argv);
	char name[32] = {0};
	const struct covered_read *r;

	memcpy(name, argv[0].data, argv[0].len);
	r = covered_find(name);
	ck_assert_msg(r != NULL, "%s", name);
	return covered_is_plain(r, argv, argc);
}

START_TEST(plain)
{
	static const char *const yes[] = {"get k", "mget k", "mget k l m",
	    "exists k", "exists k k", "getrange k 0 -1", "substr k -5 9",
	    "hget k f", "hmget k f", "hmget k f g h", "smismember k a b",
	    "lindex k -1", "lrange k 0 9223372036854775807",
	    "zrange k 0 -9223372036854775808", "getbit k 0", "getbit k 8388607",
	    "bitcount k", "object encoding k", "object ENCODING k", "zrank k m",
	    "type k", "ttl k", "dump k"};
	static const char *const no[] = {"get", "get k l", "mget", "exists",
	    "getrange k 0", "getrange k 0 1 2", "getrange k a 1",
	    "getrange k 0 +1", "getrange k 0 01", "getrange k 0 1.0",
	    "getrange k 0 9223372036854775808", "getrange k  1", "hget k",
	    "hget k f g", "hmget k", "lindex k x", "lindex k", "lindex k 0 1",
	    "zrange k 0 1 REV", "zrange k (0 1", "zrange k - +",
	    "zrank k m WITHSCORE", "getbit k -1", "getbit k 8388608",
	    "getbit k x", "getbit k", "bitcount k 0", "bitcount k 0 1",
	    "bitcount k 0 1 BIT", "object encoding", "object freq k",
	    "object help", "object encoding k l", "ttl k l", "dump"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		ck_assert_msg(is_plain(yes[i]), "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		ck_assert_msg(!is_plain(no[i]), "%s", no[i]);
}
END_TEST

/* Whatever the words are: nothing else is looked at where it is true. */
START_TEST(only_key)
{
	struct slice argv[3] = {
	    slice_str("x"), slice_str(""), slice_str("nonsense")};
	size_t i, ones = 0;

	for (i = 0; i < covered_count(); i++) {
		const struct covered_read *r = covered_at(i);

		if (!covered_is_only_key(r))
			continue;
		ones++;
		ck_assert(covered_is_plain(r, argv, 2));
		ck_assert(!covered_is_plain(r, argv, 1));
		ck_assert(!covered_is_plain(r, argv, 3));
		ck_assert_uint_eq(covered_first_key(r), 1);
		ck_assert_uint_eq(covered_key_count(r, 2), 1);
	}
	ck_assert(covered_is_only_key(covered_find("get")));
	ck_assert(!covered_is_only_key(covered_find("mget")));
	ck_assert(!covered_is_only_key(covered_find("hget")));
	ck_assert_uint_gt(ones, 8);
}
END_TEST

START_TEST(rows)
{
	for (size_t i = 0; i < covered_count(); i++) {
		const struct covered_read *r = covered_at(i);
		struct slice argv[COVERED_SAMPLE_MAX];
		size_t argc = covered_sample(r, slice_str("user:1"), argv);
		size_t first = covered_first_key(r);

		ck_assert_ptr_eq(covered_find(r->name), r);
		ck_assert_uint_eq(covered_index(r), i);
		ck_assert(slice_is(argv[0], r->name));
		ck_assert_msg(covered_is_plain(r, argv, argc), "%s", r->name);
		ck_assert(slice_is(argv[first], "user:1"));
		ck_assert_uint_eq(covered_key_count(r, argc), 1);
		ck_assert_uint_eq(covered_element_count(r, argc), 1);
	}
	ck_assert_ptr_null(covered_find("set"));
	ck_assert_ptr_null(covered_find(""));
	ck_assert_ptr_null(covered_find("getex"));
}
END_TEST

START_TEST(counts)
{
	const struct covered_read *mget = covered_find("mget");
	const struct covered_read *hmget = covered_find("hmget");

	ck_assert_uint_eq(covered_key_count(mget, 5), 4);
	ck_assert_uint_eq(covered_element_count(mget, 5), 4);
	ck_assert_uint_eq(covered_key_count(hmget, 5), 1);
	ck_assert_uint_eq(covered_element_count(hmget, 5), 3);
	ck_assert_uint_eq(covered_first_key(covered_find("object")), 2);
}
END_TEST

START_TEST(arities)
{
	static const struct {
		const char *name;
		int arity;
		bool fits;
	} table[] = {{"get", 2, true}, {"get", -2, true}, {"get", 3, false},
	    {"get", -3, false}, {"get", 0, false}, {"get", 1, false},
	    {"mget", -2, true}, {"mget", 2, false}, {"hmget", -3, true},
	    {"hmget", 3, false}, {"zrank", 3, true}, {"zrank", -3, true},
	    {"getrange", 4, true}, {"getrange", -4, true},
	    {"getrange", -5, false}, {"object", -2, true},
	    {"bitcount", -2, true}};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		ck_assert_msg(covered_fits(covered_find(table[i].name),
				  table[i].arity) == table[i].fits,
		    "%s %d", table[i].name, table[i].arity);
}
END_TEST

START_TEST(replies)
{
	static const struct {
		const char *name;
		size_t count;
		const char *resp2, *resp3;
	} table[] = {{"get", 1, "$-1\r\n", "_\r\n"},
	    {"mget", 2, "*2\r\n$-1\r\n$-1\r\n", "*2\r\n_\r\n_\r\n"},
	    {"exists", 3, ":0\r\n", ":0\r\n"},
	    {"smismember", 2, "*2\r\n:0\r\n:0\r\n", "*2\r\n:0\r\n:0\r\n"},
	    {"pttl", 1, ":-2\r\n", ":-2\r\n"},
	    {"type", 1, "+none\r\n", "+none\r\n"},
	    {"getrange", 1, "$0\r\n\r\n", "$0\r\n\r\n"},
	    {"lrange", 1, "*0\r\n", "*0\r\n"},
	    {"hgetall", 1, "*0\r\n", "%0\r\n"},
	    {"smembers", 1, "*0\r\n", "~0\r\n"},
	    {"hmget", 1, "*1\r\n$-1\r\n", "*1\r\n_\r\n"}};

	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		for (int proto = 2; proto <= 3; proto++) {
			const char *right = proto == 2 ? table[i].resp2
						       : table[i].resp3;
			struct buf b;

			buf_init(&b, 4096);
			ck_assert_int_eq(
			    covered_put_missing(covered_find(table[i].name),
				proto, table[i].count, &b),
			    0);
			ck_assert(slice_is(
			    slice_of(buf_head(&b), buf_len(&b)), right));
			buf_fini(&b);
		}
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("policy_covered");
	TCase *c = tcase_create("covered");
	SRunner *r;
	int failed;

	tcase_add_test(c, plain);
	tcase_add_test(c, only_key);
	tcase_add_test(c, rows);
	tcase_add_test(c, counts);
	tcase_add_test(c, arities);
	tcase_add_test(c, replies);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
