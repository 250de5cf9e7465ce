/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the reply slots: what a new one is, answers, the counts of absent
 * keys, and runs.
 */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/mem.h"
#include "proxy/slot.h"

START_TEST(test_new)
{
	struct slot *t = slot_new(42);

	ck_assert_int_eq(t->state, SLOT_HELD);
	ck_assert_int_eq(t->shape, SHAPE_RELAY);
	ck_assert_int_eq(t->send, SEND_RAW);
	ck_assert_int_eq(t->source, SOURCE_UPSTREAM);
	ck_assert_uint_eq(t->began_ns, 42);
	ck_assert_uint_eq(t->pending, 0);
	ck_assert_ptr_null(t->change);
	ck_assert(!t->permitted && !t->blocking && !t->quit);
	ck_assert_uint_eq(slot_absent_count(t), 0);
	slot_free(t);
}
END_TEST

START_TEST(test_answer)
{
	static const char reply[] = "$3\r\n\0\r\n\r\n";
	struct slot *t = slot_new(0);
	struct buf b;

	buf_init(&b, 64);
	/* Only what is held counts, not what was consumed before. */
	ck_assert_int_eq(buf_append(&b, "xy", 2), 0);
	buf_consume(&b, 1);
	ck_assert_int_eq(buf_append(&b, reply, sizeof(reply) - 1), 0);
	buf_consume(&b, 1);
	slot_answer(t, &b);
	ck_assert_uint_eq(buf_len(&b), 0);
	/* A copy: the buffer goes on living. */
	ck_assert_int_eq(buf_append(&b, "zzzzzzzzzzz", 11), 0);
	ck_assert_int_eq(t->state, SLOT_ANSWERED);
	ck_assert_int_eq(t->source, SOURCE_UPSTREAM);
	ck_assert_uint_eq(t->answer_len, sizeof(reply) - 1);
	ck_assert_mem_eq(t->answer, reply, sizeof(reply) - 1);
	/* The upstream went: another answer takes the place of the first. */
	slot_answer_error(t, "ERR bloomgate: gone");
	ck_assert_uint_eq(t->answer_len, 22);
	ck_assert_mem_eq(t->answer, "-ERR bloomgate: gone\r\n", 22);
	ck_assert_int_eq(t->source, SOURCE_LOCAL);
	buf_fini(&b);
	slot_free(t);
}
END_TEST

START_TEST(test_answer_error)
{
	struct slot *t = slot_new(0);
	char text[2000];

	/* No second line can be smuggled in. */
	slot_answer_error(t, "ERR a\r\n+OK");
	ck_assert_uint_eq(t->answer_len, 13);
	ck_assert_mem_eq(t->answer, "-ERR a  +OK\r\n", 13);
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	slot_answer_error(t, text);
	ck_assert_uint_eq(t->answer_len, sizeof(text) - 1 + 3);
	ck_assert_int_eq(t->state, SLOT_ANSWERED);
	slot_free(t);
}
END_TEST

START_TEST(test_absent)
{
	static const struct {
		uint8_t verdicts[4];
		size_t absent;
	} cases[] = {
	    {{KEY_MAYBE, KEY_MAYBE, KEY_MAYBE, KEY_MAYBE}, 0},
	    {{KEY_UNCOVERED, KEY_WAITING, KEY_MAYBE, KEY_WAITING}, 0},
	    {{KEY_ABSENT, KEY_MAYBE, KEY_UNCOVERED, KEY_WAITING}, 1},
	    {{KEY_MAYBE, KEY_MAYBE, KEY_MAYBE, KEY_ABSENT}, 1},
	    {{KEY_ABSENT, KEY_UNCOVERED, KEY_ABSENT, KEY_WAITING}, 2},
	    {{KEY_ABSENT, KEY_ABSENT, KEY_ABSENT, KEY_ABSENT}, 4},
	};
	struct slot *t = slot_new(0);

	t->key_count = 4;
	t->keys = mem_zalloc(4, sizeof(*t->keys));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		for (size_t k = 0; k < 4; k++)
			t->keys[k].verdict = cases[i].verdicts[k];
		ck_assert_uint_eq(slot_absent_count(t), cases[i].absent);
	}
	slot_free(t);
}
END_TEST

/* Everything that a slot owns goes with it (a sanitizer sees to it). */
static struct slot *
ready_slot(size_t raw_len)
{
	struct slot *t = slot_new(7);

	t->state = SLOT_READY;
	t->command = 3;
	t->raw_len = raw_len;
	return t;
}

START_TEST(test_run)
{
	struct slot *run = ready_slot(10);

	ck_assert(slot_is_run(run, 7));
	slot_extend(run, 5);
	ck_assert(slot_is_run(run, 7));
	slot_extend(run, 5);
	ck_assert_uint_eq(run->count, 3);
	ck_assert_uint_eq(run->raw_len, 20);
	ck_assert(!slot_is_run(run, 8));
	run->state = SLOT_SENT;
	ck_assert(!slot_is_run(run, 7));
	slot_free(run);
}
END_TEST

/* Whatever makes a request more than one that passes keeps it alone. */
START_TEST(test_run_not)
{
	struct change change = {0};
	struct slot *odd;
	int which;

	for (which = 0; which < 11; which++) {
		odd = ready_slot(10);
		switch (which) {
		case 0:
			odd->state = SLOT_SENT;
			break;
		case 1:
			odd->state = SLOT_PENDING;
			break;
		case 2:
			odd->send = SEND_DISCARD;
			break;
		case 3:
			odd->shape = SHAPE_MISSING;
			break;
		case 4:
			odd->change = &change;
			break;
		case 5:
			odd->keys = mem_zalloc(1, sizeof(*odd->keys));
			break;
		case 6:
			odd->failure = mem_strdup("no");
			break;
		case 7:
			odd->blocking = true;
			break;
		case 8:
			odd->quit = true;
			break;
		case 9:
			odd->protocol_end = true;
			break;
		default:
			odd->streaming = true;
			break;
		}
		ck_assert_msg(!slot_is_run(odd, 7), "%d", which);
		odd->change = NULL;
		slot_free(odd);
	}
}
END_TEST

START_TEST(test_free)
{
	struct slot *t = slot_new(0);

	t->keys = mem_zalloc(1, sizeof(*t->keys));
	t->values = mem_zalloc(1, sizeof(*t->values));
	t->failure = mem_strdup("why");
	slot_answer_error(t, "ERR no");
	slot_free(t);
}
END_TEST

/* A change that the mode still counts, and callbacks that still come. */
START_TEST(test_free_too_early)
{
	struct slot *t = slot_new(0);

	if (_i == 0)
		t->change = change_new(EFFECT_SELECT);
	else
		t->pending = 1;
	slot_free(t);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("proxy_slot");
	TCase *t = tcase_create("slot");
	SRunner *r;
	int failed;

	tcase_add_test(t, test_new);
	tcase_add_test(t, test_answer);
	tcase_add_test(t, test_answer_error);
	tcase_add_test(t, test_absent);
	tcase_add_test(t, test_run);
	tcase_add_test(t, test_run_not);
	tcase_add_test(t, test_free);
	tcase_add_loop_test_raise_signal(t, test_free_too_early, SIGABRT, 0, 2);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
