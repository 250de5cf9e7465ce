/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of src/control: the messages of a filter's channel. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "control/events.h"

#define HEAD 22

/* As add.lua packs it: version, kind, epoch, seq, count. */
static const uint8_t added[] = {1, 1, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0,
    0, 7, 0, 0, 0, 3, 0, 0, 0, 2, '4', '2', 0, 0, 0, 0, 0, 0, 0, 1, 0};
static const uint8_t moved[] = {
    1, 2, 0x1f, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0};

START_TEST(test_added)
{
	struct filter_event e;

	ck_assert_int_eq(event_parse(&e, slice_of(added, sizeof(added))), 0);
	ck_assert_int_eq(e.kind, EVENT_ADDED);
	ck_assert_uint_eq(e.epoch, 0x102);
	ck_assert_uint_eq(e.seq, 7);
	ck_assert_uint_eq(e.count, 3);
	ck_assert(slice_is(event_next(&e), "42"));
	ck_assert_uint_eq(event_next(&e).len, 0);
	ck_assert(slice_eq(event_next(&e), slice_of("", 1)));
	ck_assert_uint_eq(e.count, 0);
}
END_TEST

START_TEST(test_epoch)
{
	struct filter_event e;

	ck_assert_int_eq(event_parse(&e, slice_of(moved, sizeof(moved))), 0);
	ck_assert_int_eq(e.kind, EVENT_EPOCH);
	ck_assert_uint_eq(e.epoch, UINT64_C(0x1f01020304050607));
	ck_assert_uint_eq(e.seq, 9);
	ck_assert_uint_eq(e.count, 0);
}
END_TEST

START_TEST(test_every_cut_is_refused)
{
	struct filter_event e;

	for (size_t n = 0; n < sizeof(added); n++)
		ck_assert_int_eq(event_parse(&e, slice_of(added, n)), -1);
	for (size_t n = 0; n < sizeof(moved); n++)
		ck_assert_int_eq(event_parse(&e, slice_of(moved, n)), -1);
}
END_TEST

START_TEST(test_bad)
{
	struct filter_event e;
	uint8_t copy[sizeof(added) + 1];

	memcpy(copy, added, sizeof(added));
	copy[sizeof(added)] = 0;
	ck_assert_int_eq(event_parse(&e, slice_of(copy, sizeof(copy))), -1);
	for (int version = 0; version < 256; version++) {
		copy[0] = (uint8_t)version;
		ck_assert_int_eq(event_parse(&e, slice_of(copy, sizeof(added))),
		    version == 1 ? 0 : -1);
	}
	copy[0] = 1;
	for (int kind = 0; kind < 256; kind++) {
		copy[1] = (uint8_t)kind;
		ck_assert_int_eq(event_parse(&e, slice_of(copy, sizeof(added))),
		    kind == 1 || kind == 2 ? 0 : -1);
	}
	copy[1] = 1;
	/* A count or a length that promises too much. */
	copy[18] = 0xff;
	ck_assert_int_eq(event_parse(&e, slice_of(copy, sizeof(added))), -1);
	copy[18] = 0;
	copy[HEAD] = 0xff;
	ck_assert_int_eq(event_parse(&e, slice_of(copy, sizeof(added))), -1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("control_events");
	TCase *t = tcase_create("events");
	SRunner *r;
	int failed;

	suite_add_tcase(s, t);
	tcase_add_test(t, test_added);
	tcase_add_test(t, test_epoch);
	tcase_add_test(t, test_every_cut_is_refused);
	tcase_add_test(t, test_bad);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
