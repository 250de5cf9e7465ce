/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Property tests of the RESP parsers: random valid things, and near misses, cut
 * in every way give what they give in one piece. Each prints its seed.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/mem.h"
#include "core/random.h"
#include "resp/reply.h"
#include "resp/request.h"

#include "../fuzz/resp_compare.h"

static uint8_t *random_out;
static size_t random_len;

static void
put(const void *data, size_t len)
{
	random_out = mem_realloc(random_out, random_len + len + 1);
	if (len > 0)
		memcpy(random_out + random_len, data, len);
	random_len += len;
}

static uint64_t
below(uint64_t bound)
{
	return (uint64_t)random() % bound;
}

static void
put_bulk(size_t len)
{
	char head[32];
	size_t i;
	int n = snprintf(head, sizeof head, "$%zu\r\n", len);

	put(head, (size_t)n);
	for (i = 0; i < len; i++) {
		uint8_t byte = (uint8_t)below(256);

		put(&byte, 1);
	}
	put("\r\n", 2);
}

/* A valid request of any kind; returns how many it adds to the pipeline. */
static void
put_request(void)
{
	static const char *const others[] = {"*0\r\n", "*-1\r\n", "\r\n", "\n",
	    "PING\r\n", "SET k \"a\\x41\\n \\\" b\" 'c\\'d'\n",
	    "  ECHO \"\"  x\r\n"};
	size_t count = 1 + below(below(10) == 0 ? 60 : 5), i;
	char head[32];
	int n;

	if (below(4) == 0) {
		const char *text =
		    others[below(sizeof others / sizeof others[0])];

		put(text, strlen(text));
		return;
	}
	n = snprintf(head, sizeof head, "*%zu\r\n", count);
	put(head, (size_t)n);
	for (i = 0; i < count; i++)
		put_bulk(below(40) == 0 ? below(12000)
			: below(5) == 0 ? 0
					: below(30));
}

/* SEED in the environment repeats a run. */
static void
seed_random(void)
{
	const char *given = getenv("SEED");
	unsigned int seed = given != NULL
	    ? (unsigned int)strtoul(given, NULL, 10)
	    : (unsigned int)random_u64();

	printf("seed %u\n", seed);
	fflush(stdout);
	srandom(seed);
}

START_TEST(property_valid_requests)
{
	int round;

	seed_random();
	for (round = 0; round < 150; round++) {
		size_t count = 1 + below(5), i;

		random_len = 0;
		for (i = 0; i < count; i++)
			put_request();
		/* 2 mod 4: limits that nothing here reaches, and no AUTH. */
		ck_assert_uint_eq(request_compare(random_out, random_len,
				      below(1000) * 28 + 2),
		    count);
		/* Cut short and with small limits only sameness is known. */
		request_compare(random_out, below(random_len + 1), below(1000));
	}
	free(random_out);
	random_out = NULL;
}
END_TEST

/* Bytes that mean something to a parser come more often than by chance. */
START_TEST(property_request_garbage)
{
	static const char marks[] = "*$:\r\n\r\n0123456789-+\"'\\x \0aP";
	int round;

	seed_random();
	for (round = 0; round < 4000; round++) {
		size_t i, len = 1 + below(120);

		random_len = 0;
		if (below(3) == 0)
			put("*2\r\n$3\r\nGET\r\n", 13);
		for (i = 0; i < len; i++) {
			uint8_t byte = (uint8_t)below(256);

			put(below(4) > 0 ? &marks[below(sizeof marks - 1)]
					 : (const char *)&byte,
			    1);
		}
		request_compare(random_out, random_len, below(1000));
	}
	free(random_out);
	random_out = NULL;
}
END_TEST

/* One value of any type, with at most 40 aggregates in it; due counts the values
 * still to come. */
static void
put_reply(void)
{
	static const char *const simple[] = {"+OK\r\n", "-ERR no\r\n",
	    ":42\r\n", ":-1\r\n", "$-1\r\n", "*-1\r\n", "_\r\n", "#t\r\n",
	    "#f\r\n", ",3.14\r\n", ",-inf\r\n",
	    "(123456789012345678901234567890\r\n", "$0\r\n\r\n", "*0\r\n",
	    "%0\r\n", "~0\r\n", "+\r\n", "+a\rb\r\r\n"};
	static const char types[] = "*%~>|";
	uint64_t due = 1, budget = below(40);
	char head[64];
	int n;

	while (due > 0) {
		due--;
		if (budget > 0 && below(3) == 0) {
			uint64_t count = below(4);
			char type = types[below(5)];

			budget--;
			n = snprintf(
			    head, sizeof head, "%c%d\r\n", type, (int)count);
			put(head, (size_t)n);
			due += type == '%' || type == '|' ? count * 2 : count;
			if (type == '|')
				due++;
		} else if (below(3) == 0) {
			size_t len = below(60) == 0 ? below(3000) : below(20);
			size_t i;

			n = snprintf(head, sizeof head, "%c%zu\r\n",
			    "$!="[below(3)], len);
			put(head, (size_t)n);
			for (i = 0; i < len; i++) {
				uint8_t byte = (uint8_t)below(256);

				put(&byte, 1);
			}
			put("\r\n", 2);
		} else {
			const char *text =
			    simple[below(sizeof simple / sizeof simple[0])];

			put(text, strlen(text));
		}
	}
}

START_TEST(property_valid_replies)
{
	int round;

	seed_random();
	for (round = 0; round < 1500; round++) {
		size_t count = 1 + below(4), i, ends[4], at = 0, used;
		struct reply r;

		random_len = 0;
		for (i = 0; i < count; i++) {
			put_reply();
			ends[i] = random_len;
		}
		reply_init(&r);
		for (i = 0; i < count; i++) {
			ck_assert_int_eq(reply_feed(&r, random_out + at,
					     random_len - at, &used),
			    PARSE_READY);
			at += used;
			ck_assert_uint_eq(at, ends[i]);
			reply_reset(&r);
		}
		reply_fini(&r);
		ck_assert_uint_eq(
		    reply_compare(random_out, random_len, below(1000)), count);
		reply_compare(random_out, below(random_len + 1), below(1000));
	}
	free(random_out);
	random_out = NULL;
}
END_TEST

START_TEST(property_reply_garbage)
{
	static const char marks[] = "*$:+-_#,(!=%~>|\r\n\r\n0123456789-tf";
	int round;

	seed_random();
	for (round = 0; round < 8000; round++) {
		size_t i, changes = below(4);

		random_len = 0;
		put_reply();
		for (i = 0; i < changes; i++)
			random_out[below(random_len)] = (below(4) > 0
				? (uint8_t)marks[below(sizeof marks - 1)]
				: (uint8_t)below(256));
		reply_compare(random_out, random_len, below(1000));
	}
	free(random_out);
	random_out = NULL;
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("resp_property");
	TCase *t = tcase_create("resp_property");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 240);
	tcase_add_test(t, property_valid_requests);
	tcase_add_test(t, property_request_garbage);
	tcase_add_test(t, property_valid_replies);
	tcase_add_test(t, property_reply_garbage);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
