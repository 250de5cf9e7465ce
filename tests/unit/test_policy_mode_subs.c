/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the session mode's subscriptions: how many replies each request
 * gets, and what is no reply at all. The bytes are those of redis-server 7.0.15.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "mode_fixture.h"

#define NIL "$-1"
/* A confirmation under RESP2 and RESP3; channel with its length, or nil. */
#define CONFIRM(type, len, word, channel, count)                               \
	type "3\r\n$" len "\r\n" word "\r\n" channel "\r\n:" count "\r\n"
#define SUB(t, c, n)    CONFIRM(t, "9", "subscribe", "$1\r\n" c, n)
#define PSUB(t, c, n)   CONFIRM(t, "10", "psubscribe", "$1\r\n" c, n)
#define SSUB(t, c, n)   CONFIRM(t, "10", "ssubscribe", "$1\r\n" c, n)
#define UNSUB(t, c, n)  CONFIRM(t, "11", "unsubscribe", "$1\r\n" c, n)
#define PUNSUB(t, c, n) CONFIRM(t, "12", "punsubscribe", "$1\r\n" c, n)
#define SUNSUB(t, c, n) CONFIRM(t, "12", "sunsubscribe", "$1\r\n" c, n)
#define MESSAGE(t)      t "3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nm\r\n"
#define SMESSAGE(t)     t "3\r\n$8\r\nsmessage\r\n$1\r\ns\r\n$1\r\nm\r\n"
#define PMESSAGE(t)     t "4\r\n$8\r\npmessage\r\n$1\r\np\r\n$1\r\na\r\n$1\r\nm\r\n"
#define INVALIDATE      ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n"

struct step {
	const char *request, *reply;
	const char *want; /* fixture_text after it, without the front */
	unsigned outside; /* frames of reply that are no replies */
};

static void
run(const struct step *steps, const char *front, const char *plain,
    const char *hello)
{
	char want[256];
	struct mode m;

	mode_init(&m);
	if (hello != NULL)
		fixture_do(&m, "hello 3", hello);
	for (; steps->request != NULL; steps++) {
		unsigned outside = fixture_answer(&m,
		    fixture_ask(&m, steps->request, MODE_SEND), steps->reply);

		ck_assert_msg(outside == steps->outside, "%s: %u outside",
		    steps->request, outside);
		if (steps->want[0] == '\0')
			snprintf(want, sizeof(want), "%s", plain);
		else
			snprintf(want, sizeof(want), "%s%s; stateful", front,
			    steps->want);
		ck_assert_msg(strcmp(fixture_text(&m), want) == 0,
		    "%s: %s, not %s", steps->request, fixture_text(&m), want);
	}
	ck_assert_uint_eq(m.outstanding, 0);
	mode_fini(&m);
}

/* clang-format off */
START_TEST(test_resp2)
{
	static const struct step steps[] = {
	    {"unsubscribe", CONFIRM("*", "11", "unsubscribe", NIL, "0"), "", 0},
	    {"punsubscribe", CONFIRM("*", "12", "punsubscribe", NIL, "0"), "",
		0},
	    {"sunsubscribe", CONFIRM("*", "12", "sunsubscribe", NIL, "0"), "",
		0},
	    {"subscribe", "-ERR wrong number of arguments for 'subscribe' "
		"command\r\n", "", 0},
	    {"unsubscribe a b", UNSUB("*", "a", "0") UNSUB("*", "b", "0"), "",
		0},
	    {"subscribe a b", "-NOPERM this user has no permissions to run the "
		"'subscribe' command\r\n", "", 0},
	    {"subscribe a b a", SUB("*", "a", "1") SUB("*", "b", "2")
		SUB("*", "a", "2"), "subs=2,0,0", 0},
	    {"psubscribe p", PSUB("*", "p", "3"), "subs=2,1,0", 0},
	    {"psubscribe p", PSUB("*", "p", "3"), "subs=2,1,0", 0},
	    {"ssubscribe s t", SSUB("*", "s", "1") SSUB("*", "t", "2"),
		"subs=2,1,2", 0},
	    {"ping", "*2\r\n$4\r\npong\r\n$0\r\n\r\n", "subs=2,1,2", 0},
	    {"get k", "-ERR Can't execute 'get'\r\n", "subs=2,1,2", 0},
	    {"unsubscribe", "-NOSUB no\r\n", "subs=2,1,2", 0},
	    {"unsubscribe a x", UNSUB("*", "a", "2") UNSUB("*", "x", "2"),
		"subs=1,1,2", 0},
	    {"subscribe a", SUB("*", "a", "3"), "subs=2,1,2", 0},
	    {"unsubscribe", PMESSAGE("*") MESSAGE("*") SMESSAGE("*")
		UNSUB("*", "b", "2") MESSAGE("*") UNSUB("*", "a", "1"),
		"subs=0,1,2", 4},
	    {"punsubscribe", PUNSUB("*", "p", "0"), "subs=0,0,2", 0},
	    {"sunsubscribe", SUNSUB("*", "t", "1") SUNSUB("*", "s", "0"), "",
		0},
	    {"sunsubscribe", CONFIRM("*", "12", "sunsubscribe", NIL, "0"), "",
		0},
	    {NULL, NULL, NULL, 0}};

	run(steps, "forward; ", "", NULL);
}
END_TEST

START_TEST(test_resp3)
{
	static const struct step steps[] = {
	    {"unsubscribe", CONFIRM(">", "11", "unsubscribe", "_", "0"), "", 0},
	    {"subscribe a b", SUB(">", "a", "1") SUB(">", "b", "2"),
		"subs=2,0,0", 0},
	    {"psubscribe p q", PMESSAGE(">") PSUB(">", "p", "3") MESSAGE(">")
		PSUB(">", "q", "4"), "subs=2,2,0", 2},
	    {"ssubscribe s", SSUB(">", "s", "1"), "subs=2,2,1", 0},
	    /* Any command runs; pushes come in between. */
	    {"get k", MESSAGE(">") SMESSAGE(">") INVALIDATE "$1\r\nv\r\n",
		"subs=2,2,1", 3},
	    {"ping", "+PONG\r\n", "subs=2,2,1", 0},
	    /* An array is a reply here, whatever it holds. */
	    {"get k", MESSAGE("*"), "subs=2,2,1", 0},
	    {"unsubscribe", INVALIDATE UNSUB(">", "a", "3") PMESSAGE(">")
		UNSUB(">", "b", "2"), "subs=0,2,1", 2},
	    {"punsubscribe p", "-NOPERM no\r\n", "subs=0,2,1", 0},
	    {"punsubscribe", PUNSUB(">", "q", "1") PUNSUB(">", "p", "0"),
		"subs=0,0,1", 0},
	    {"sunsubscribe s", SUNSUB(">", "s", "0"), "", 0},
	    {NULL, NULL, NULL, 0}};

	/* Redis executes every command: the level stays. */
	run(steps, "proto=3; hello=3; ", "proto=3; hello=3",
	    "%1\r\n+proto\r\n:3\r\n");
}
END_TEST
/* clang-format on */

/* A frame of bytes, for mode_out_of_band. */
static bool
outside(const struct mode *m, const struct change *c, const char *bytes)
{
	struct reply r;
	size_t used;
	bool is;

	reply_init(&r);
	ck_assert_int_eq(
	    reply_feed(&r, (const uint8_t *)bytes, strlen(bytes), &used),
	    PARSE_READY);
	is = mode_out_of_band(m, &r, c);
	reply_fini(&r);
	return is;
}

START_TEST(test_out_of_band)
{
	struct change *c;
	struct mode m;

	mode_init(&m);
	/* Without subscriptions an array of that shape is a value. */
	ck_assert(!outside(&m, NULL, MESSAGE("*")));
	ck_assert(!outside(&m, NULL, "+message\r\n"));
	ck_assert(outside(&m, NULL, MESSAGE(">")));
	ck_assert(outside(&m, NULL, SUB(">", "a", "1")));
	for (unsigned kind = 0; kind < SUBS_KINDS; kind++) {
		m.subs[kind] = 1;
		ck_assert(mode_subscribed2(&m));
		ck_assert(outside(&m, NULL, MESSAGE("*")));
		ck_assert(outside(&m, NULL, PMESSAGE("*")));
		ck_assert(outside(&m, NULL, SMESSAGE("*")));
		ck_assert(!outside(&m, NULL, "*1\r\n$6\r\nmessag\r\n"));
		ck_assert(!outside(&m, NULL, "*1\r\n$8\r\nmessages\r\n"));
		ck_assert(!outside(&m, NULL, "*0\r\n"));
		ck_assert(!outside(&m, NULL, "*-1\r\n"));
		ck_assert(!outside(&m, NULL, "$7\r\nmessage\r\n"));
		ck_assert(!outside(&m, NULL, SUB("*", "a", "1")));
		m.proto = 3;
		ck_assert(!mode_subscribed2(&m));
		ck_assert(!outside(&m, NULL, MESSAGE("*")));
		m.proto = 2;
		m.subs[kind] = 0;
		ck_assert(!mode_subscribed2(&m));
	}
	/* A push is a reply only to the request that it confirms. */
	m.proto = 3;
	c = fixture_ask(&m, "psubscribe p", MODE_SEND);
	ck_assert(!outside(&m, c, PSUB(">", "p", "1")));
	ck_assert(outside(&m, c, SUB(">", "a", "1")));
	ck_assert(outside(&m, c, SSUB(">", "a", "1")));
	ck_assert(outside(&m, c, PUNSUB(">", "p", "1")));
	ck_assert(outside(&m, c, PMESSAGE(">")));
	ck_assert(!outside(&m, c, "-ERR no\r\n"));
	mode_abandon(&m, c);
	c = fixture_ask(&m, "sunsubscribe", MODE_SEND);
	ck_assert(!outside(&m, c, SUNSUB(">", "p", "1")));
	ck_assert(outside(&m, c, UNSUB(">", "p", "1")));
	ck_assert(outside(&m, c, SSUB(">", "p", "1")));
	mode_abandon(&m, c);
	c = fixture_ask(&m, "watch k", MODE_SEND);
	ck_assert(outside(&m, c, SUB(">", "a", "1")));
	mode_abandon(&m, c);
	mode_fini(&m);
}
END_TEST

/* Of the longest channel that is counted the confirmation shows its count; one
 * byte more makes the session opaque. */
START_TEST(test_long_channels)
{
	static const char *const names[] = {"subscribe", "psubscribe",
	    "ssubscribe", "unsubscribe", "punsubscribe", "sunsubscribe"};
	char channel[REPLY_HEAD_MAX], bytes[REPLY_HEAD_MAX + 100];
	struct slice argv[3];
	struct change *c;
	struct mode m;
	size_t len;

	memset(channel, 'c', sizeof(channel));
	for (size_t i = 0; i < 6; i++) {
		argv[0] = slice_str(names[i]);
		argv[1] = slice_str("a");
		mode_init(&m);
		for (len = 0; len < sizeof(channel); len++) {
			argv[2] = slice_of(channel, len);
			if (mode_request(&m, fixture_command(argv[0]), argv, 3,
				true, &c) == MODE_OPAQUE_WISH)
				break;
			snprintf(bytes, sizeof(bytes),
			    "*3\r\n$%zu\r\n%s\r\n$1\r\na\r\n:1\r\n*3\r\n$%zu"
			    "\r\n%s\r\n$%zu\r\n%.*s\r\n:9223372036854775807"
			    "\r\n",
			    strlen(names[i]), names[i], strlen(names[i]),
			    names[i], len, (int)len, channel);
			fixture_answer(&m, c, bytes);
			ck_assert_uint_eq(m.subs[i % 3], INT64_MAX);
		}
		ck_assert_uint_eq(len, 201);
		ck_assert_uint_eq(m.outstanding, 0);
		mode_fini(&m);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("policy_mode_subs");
	TCase *t = tcase_create("subs");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_resp2);
	tcase_add_test(t, test_resp3);
	tcase_add_test(t, test_out_of_band);
	tcase_add_test(t, test_long_channels);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
