/* SPDX-License-Identifier: BSD-2-Clause */
/* What answers to ACL GETUSER prove about a filter's keys. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <hiredis/hiredis.h>

#include "core/buf.h"
#include "core/mem.h"
#include "proxy/permission_rule.h"
#include "resp/encode.h"

#define R  RULE_READ
#define W  RULE_WRITE
#define RA RULE_READ_ALL
#define WA RULE_WRITE_ALL

/* A user in the shape of Redis 7: keys a text; sets[0] is the root. */
struct set {
	const char *commands;
	const char *keys;
};
#define SETS 4

static void
put(struct buf *b, const char *text)
{
	ck_assert_int_eq(encode_bulk(b, slice_str(text)), 0);
}

static void
put_array(struct buf *b, size_t count)
{
	ck_assert_int_eq(encode_array(b, count), 0);
}

static redisReply *
parse(struct buf *b)
{
	redisReader *reader = redisReaderCreate();
	void *reply = NULL;

	ck_assert_int_eq(
	    redisReaderFeed(reader, (const char *)buf_head(b), buf_len(b)),
	    REDIS_OK);
	ck_assert_int_eq(redisReaderGetReply(reader, &reply), REDIS_OK);
	ck_assert_ptr_nonnull(reply);
	redisReaderFree(reader);
	buf_fini(b);
	return reply;
}

static void
put_set(struct buf *b, const struct set *s)
{
	put(b, "commands");
	put(b, s->commands);
	put(b, "keys");
	put(b, s->keys);
	put(b, "channels");
	put(b, "");
}

static void
put_flags(struct buf *b)
{
	put(b, "flags");
	put_array(b, 1);
	put(b, "on");
	put(b, "passwords");
	put_array(b, 0);
}

static redisReply *
user7(const struct set sets[SETS])
{
	size_t i, n = 0;
	struct buf b;

	buf_init(&b, 65536);
	while (n < SETS && sets[n].commands != NULL)
		n++;
	put_array(&b, 12);
	put_flags(&b);
	put_set(&b, &sets[0]);
	put(&b, "selectors");
	put_array(&b, n - 1);
	for (i = 1; i < n; i++) {
		put_array(&b, 6);
		put_set(&b, &sets[i]);
	}
	return parse(&b);
}

/* A user in the shape of Redis 6: keys a list of patterns. */
static redisReply *
user6(const char *commands, const char *const *keys, size_t count)
{
	struct buf b;

	buf_init(&b, 65536);
	put_array(&b, 8);
	put_flags(&b);
	put(&b, "commands");
	put(&b, commands);
	put(&b, "keys");
	put_array(&b, count);
	for (size_t i = 0; i < count; i++)
		put(&b, keys[i]);
	return parse(&b);
}

static unsigned
rule_of(redisReply *user, const char *first, const char *second)
{
	struct slice texts[2] = {slice_str(first), slice_str(second)};
	unsigned rule = permission_rule(user, texts, *second != '\0' ? 2 : 1);

	freeReplyObject(user);
	return rule;
}

static const struct {
	const char *keys;
	unsigned gives; /* R and W, on keys that begin with user: */
} patterns[] = {
    {"", 0},
    {"~*", R | W},
    {"~user:*", R | W},
    {"~us*", R | W},
    {"~u*", R | W},
    {"~user:1*", 0}, /* less than the filter's keys */
    {"~user:", 0},   /* one key */
    {"~user", 0},
    {"~users:*", 0},
    {"~User:*", 0},
    {"~other:*", 0},
    {"~u?er:*", 0}, /* globs are not read, even where they would do */
    {"~[u]ser:*", 0},
    {"~us\\er:*", 0},
    {"~\\*", 0},
    {"~*:*", 0},
    {"~u*r:*", 0},
    {"~**", 0},
    {"~?*", 0},
    {"~*x", 0},
    {"~", 0},
    {"%R~user:*", R},
    {"%R~*", R},
    {"%W~user:*", W},
    {"%W~*", W},
    {"%RW~user:*", R | W},
    {"%WR~*", R | W},
    {"%~user:*", 0},
    {"%X~user:*", 0},
    {"%RX~user:*", 0},
    {"%R", 0},
    {"%R~", 0},
    {"%R~user:1*", 0},
    {"*", 0}, /* no prefix: not of this Redis */
    {"user:*", 0},
    {"&*", 0},
    {"%R~user:* %W~us*", R | W},
    {"~a:* ~b:* ~user:*", R | W},
    {"~a:*  %R~u*", R},
    {"~a:* ~u?er:* %W~user:*", W},
    {"~user:1* ~user:2*", 0},
    {" ", 0},
};

START_TEST(test_patterns)
{
	const char *keys = patterns[_i].keys;
	unsigned gives = patterns[_i].gives, all = 0;

	if (gives & R)
		all |= RA;
	if (gives & W)
		all |= WA;
	ck_assert_msg(rule_of(user7((struct set[SETS]){{"-@all +get", keys}}),
			  "user:", "") == gives,
	    "%s", keys);
	ck_assert_msg(rule_of(user7((struct set[SETS]){{"+@all", keys}}),
			  "user:", "") == (gives | all),
	    "%s", keys);
}
END_TEST

static const struct {
	struct set sets[SETS];
	unsigned rule;
} users[] = {
    /* commands */
    {{{"+@all", "~*"}}, R | W | RA | WA},
    {{{"+@all -get", "~*"}}, R | W},
    {{{"-@all +@all", "~*"}}, R | W},
    {{{"+@ALL", "~*"}}, R | W},
    {{{"+@all ", "~*"}}, R | W},
    {{{"-@all", "~*"}}, R | W}, /* DRYRUN will not have it */
    {{{"-@all +@read", "~user:*"}}, R | W},
    {{{"", "~*"}}, R | W},
    /* selectors: every one that allows anything must cover */
    {{{"-@all", ""}, {"-@all +get", "~user:*"}}, R | W},
    {{{"-@all", ""}, {"-@all +get", "%R~us*"}}, R},
    {{{"-@all +@read", "~user:*"}, {"-@all +set", "~s:*"}}, 0},
    {{{"-@all +@read", "~user:*"}, {"-@all +set", "%W~user:*"}}, W},
    {{{"-@all +@read", "%R~user:*"}, {"-@all +set", "~u*"}}, R},
    {{{"-@all +@connection", ""}, {"-@all +get", "~user:*"}}, 0},
    {{{"-@all +get", "~*"}, {"-@all", "~other:*"}}, R | W},
    {{{"-@all +get", "~*"}, {"-@all +get|user:7", "~user:7"}}, 0},
    /* ... or one that allows everything */
    {{{"+@all", "~user:*"}, {"-@all +set", "~s:*"}}, RA | WA},
    {{{"-@all +set", "~s:*"}, {"+@all", "%R~*"}}, RA},
    {{{"-@all", ""}, {"+@all", "%R~*"}}, R | RA},
    {{{"+@all", "~other:*"}, {"-@all +get", "~user:*"}}, 0},
    {{{"-@all", ""}, {"-@all +get", "~*"}, {"-@all +set", "~*"},
	 {"-@all +mget", "~x*"}},
	0},
    {{{"-@all", ""}, {"-@all +get", "~*"}, {"-@all +set", "~*"},
	 {"-@all +mget", "~*"}},
	R | W},
};

START_TEST(test_sets)
{
	ck_assert_uint_eq(
	    rule_of(user7(users[_i].sets), "user:", ""), users[_i].rule);
}
END_TEST

/* Every pattern of the filter must be covered, by whichever keys. */
START_TEST(test_several_texts)
{
	static const struct {
		const char *first, *second, *keys;
		unsigned rule;
	} rows[] = {
	    {"user:", "profile:", "~user:*", 0},
	    {"user:", "profile:", "~profile:*", 0},
	    {"user:", "profile:", "~profile:* ~us*", R | W},
	    {"user:", "profile:", "%R~profile:* %W~user:*", 0},
	    {"user:", "profile:", "%R~profile:* ~user:*", R},
	    {"user:", "profile:", "~*", R | W},
	    {"user:", "user:x:", "~user:*", R | W},
	    {"user:", "user:x:", "~user:x:*", 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		ck_assert_msg(
		    rule_of(
			user7((struct set[SETS]){{"-@all +get", rows[i].keys}}),
			rows[i].first, rows[i].second) == rows[i].rule,
		    "row %zu", i);
}
END_TEST

/* A pattern that begins with its placeholder: only all keys will do. A literal
 * glob character is no glob, and its rule is not read. */
START_TEST(test_odd_texts)
{
	struct slice none = slice_of(NULL, 0);
	redisReply *user = user7(
	    (struct set[SETS]){{"-@all +get", "~u* ~?* %R~*"}});

	ck_assert_uint_eq(permission_rule(user, &none, 1), R);
	ck_assert_uint_eq(permission_rule(user, &none, 0), 0);
	freeReplyObject(user);
	user = user7((struct set[SETS]){{"-@all +get", "~u* ~a\\*b*"}});
	ck_assert_uint_eq(permission_rule(user, &none, 1), 0);
	ck_assert_uint_eq(rule_of(user, "a*b:", ""), 0);
	user = user7((struct set[SETS]){{"-@all +get", "~a*b* ~a*"}});
	ck_assert_uint_eq(rule_of(user, "a*b:", ""), R | W);
}
END_TEST

START_TEST(test_redis_6)
{
	static const char *const lists[][2] = {
	    {"*"}, {"user:*"}, {"a", "us*"}, {"a*", "user:1*"}, {"~user:*"}};
	static const bool covers[] = {true, true, true, false, false};

	for (size_t i = 0; i < 5; i++) {
		size_t count = lists[i][1] != NULL ? 2 : 1;

		ck_assert_msg(
		    rule_of(user6("+@all", lists[i], count), "user:", "") ==
			(covers[i] ? R | W | RA | WA : 0),
		    "%s", lists[i][0]);
		ck_assert_msg(rule_of(user6("-@all +get", lists[i], count),
				  "user:", "") == (covers[i] ? R | W : 0),
		    "%s", lists[i][0]);
	}
	ck_assert_uint_eq(rule_of(user6("+@all", lists[0], 0), "user:", ""), 0);
}
END_TEST

static redisReply *
raw(const char *text)
{
	struct buf b;

	buf_init(&b, 65536);
	ck_assert_int_eq(buf_append(&b, text, strlen(text)), 0);
	return parse(&b);
}

/* What is no user, or holds something unheard of, proves nothing. */
START_TEST(test_unreadable)
{
	static const char *const texts[] = {"$-1\r\n", "*-1\r\n", "*0\r\n",
	    "-NOPERM no\r\n", ":1\r\n", "+OK\r\n", "*1\r\n+commands\r\n",
	    "*2\r\n+commands\r\n+-@all +get\r\n",
	    /* keys neither a text nor a list */
	    "*4\r\n+commands\r\n+-@all +get\r\n+keys\r\n:1\r\n",
	    /* selectors that are no list, and one that is no set */
	    "*6\r\n+commands\r\n+-@all +get\r\n+keys\r\n+~*\r\n+selectors\r\n"
	    "+none\r\n",
	    "*6\r\n+commands\r\n+-@all +get\r\n+keys\r\n+~*\r\n+selectors\r\n"
	    "*1\r\n+(+get ~a)\r\n",
	    "*6\r\n+commands\r\n+-@all +get\r\n+keys\r\n+~*\r\n+selectors\r\n"
	    "*1\r\n*2\r\n+rules\r\n+all\r\n"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		unsigned rule = rule_of(raw(texts[i]), "user:", "");

		ck_assert_msg(rule == 0, "%s", texts[i]);
	}
	ck_assert_uint_eq(permission_rule(NULL, &(struct slice){0}, 1), 0);
	ck_assert(!permission_rule_flag(NULL, "on"));
}
END_TEST

START_TEST(test_flags)
{
	redisReply *user = raw("*2\r\n+flags\r\n*2\r\n+on\r\n+nopassword\r\n");

	ck_assert(permission_rule_flag(user, "on"));
	ck_assert(!permission_rule_flag(user, "nopass"));
	ck_assert(!permission_rule_flag(user, "off"));
	freeReplyObject(user);
	user = raw("*2\r\n+flags\r\n+on\r\n");
	ck_assert(!permission_rule_flag(user, "on"));
	freeReplyObject(user);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("permission");
	TCase *t = tcase_create("rule");
	SRunner *r = srunner_create(s);
	int failed;

	suite_add_tcase(s, t);
	tcase_add_loop_test(
	    t, test_patterns, 0, sizeof(patterns) / sizeof(*patterns));
	tcase_add_loop_test(t, test_sets, 0, sizeof(users) / sizeof(*users));
	tcase_add_test(t, test_several_texts);
	tcase_add_test(t, test_odd_texts);
	tcase_add_test(t, test_redis_6);
	tcase_add_test(t, test_unreadable);
	tcase_add_test(t, test_flags);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
