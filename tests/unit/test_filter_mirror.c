/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of src/filter: the mirror's bits, and what it may say. From a baseline
 * that is absent, each single doubt makes the mirror know nothing.
 */
#include "config.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/random.h"
#include "filter/bits.h"
#include "filter/filter.h"

#define NOW   UINT64_C(1000000000)
#define UNTIL UINT64_C(2000000000)

static const char run_id[] = "0123456789abcdef0123456789abcdef01234567";
static const uint8_t tag[TAG_BYTES] = {1, 2, 3, 4, 5, 6, 7, 8};
static const uint8_t other_tag[TAG_BYTES] = {1, 2, 3, 4, 5, 6, 7, 9};
static const struct geometry shape = {SCHEME_GUAVA, false, 3, 1000, 5};

static struct positions
positions_of(const struct geometry *g, const char *element)
{
	struct positions p;

	ck_assert_int_eq(scheme_positions(g, NULL, slice_str(element), &p), 0);
	return p;
}

/* An element added here is at the very bits of the string in Redis: those of
 * filter/bits.h, which the rebuild merges. */
START_TEST(test_bits_are_those_of_redis)
{
	struct mirror *added = mirror_new(&shape, tag);
	struct mirror *loaded = mirror_new(&shape, tag);
	struct bits bits;

	ck_assert_ptr_nonnull(added);
	ck_assert_ptr_nonnull(loaded);
	ck_assert_int_eq(bits_init(&bits, &shape), 0);
	ck_assert_uint_eq(mirror_bytes(added), bits.stride * shape.shards);
	for (int i = 0; i < 200; i++) {
		char text[24];
		struct positions p;

		snprintf(text, sizeof(text), "%d", i);
		p = positions_of(&shape, text);
		ck_assert_int_eq(mirror_has(added, &p), bits_has(&bits, &p));
		bits_add(&bits, &p);
		ck_assert(!mirror_has(loaded, &p) || i > 0);
		mirror_add(added, &p);
		ck_assert(mirror_has(added, &p));
	}
	for (uint32_t s = 0; s < shape.shards; s++) {
		/* In two pieces, the second one twice. */
		mirror_load(loaded, s, 0, bits_shard(&bits, s), 64);
		for (int twice = 0; twice < 2; twice++)
			mirror_load(loaded, s, 64, bits_shard(&bits, s) + 64,
			    bits.stride - 64);
	}
	for (uint32_t s = 0; s < shape.shards; s++)
		for (uint64_t b = 0; b < shape.bits; b++) {
			struct positions p = {
			    .shard = s, .count = 1, .bit = {b}};

			ck_assert_int_eq(
			    mirror_has(loaded, &p), bits_has(&bits, &p));
			ck_assert_int_eq(
			    mirror_has(added, &p), bits_has(&bits, &p));
		}
	bits_fini(&bits);
	mirror_unref(added);
	mirror_unref(loaded);
	mirror_unref(NULL);
}
END_TEST

START_TEST(test_loading_takes_nothing_away)
{
	static const uint8_t zeros[128];
	struct mirror *m = mirror_new(&shape, tag);
	struct positions p = positions_of(&shape, "42");

	mirror_add(m, &p);
	mirror_load(m, p.shard, 0, zeros, sizeof(zeros));
	ck_assert(mirror_has(m, &p));
	mirror_unref(m);
}
END_TEST

START_TEST(test_is_of)
{
	struct mirror *m = mirror_new(&shape, tag);
	struct geometry g = shape;

	ck_assert(mirror_is_of(m, &g, tag));
	ck_assert(!mirror_is_of(m, &g, other_tag));
	g.bits++;
	ck_assert(!mirror_is_of(m, &g, tag));
	g = shape;
	g.shards++;
	ck_assert(!mirror_is_of(m, &g, tag));
	g = shape;
	g.hashes++;
	ck_assert(!mirror_is_of(m, &g, tag));
	g = shape;
	g.scheme = SCHEME_GUAVA_SEEDED;
	ck_assert(!mirror_is_of(m, &g, tag));
	g = shape;
	g.single = true;
	ck_assert(!mirror_is_of(m, &g, tag));
	mirror_unref(m);
}
END_TEST

START_TEST(test_too_large)
{
	struct geometry g = shape;

	g.shards = UINT32_MAX;
	g.bits = UINT64_C(1) << 50;
	ck_assert_ptr_null(mirror_new(&g, tag));
}
END_TEST

/* --- verdicts --------------------------------------------------------------*/

struct question {
	struct filter *f;
	struct view *view;
	uint64_t version;
	struct positions p;
	uint64_t now_ns;
};

static struct meta
good_meta(void)
{
	struct meta m = {
	    .exists = true,
	    .layout = META_LAYOUT,
	    .epoch = "1765432100000000",
	    .generation_count = 1,
	    .active = 0,
	    .previous = -1,
	    .building = -1,
	};
	struct generation *g = &m.generations[0];

	memcpy(m.run_id, run_id, sizeof(run_id));
	g->state = GENERATION_SEALED;
	g->usable = true;
	g->geometry = shape;
	snprintf(g->name, sizeof(g->name), "202512");
	memcpy(g->tag, tag, sizeof(tag));
	return m;
}

static void
publish(struct question *q, bool mirror)
{
	struct meta m = good_meta();

	if (q->view != NULL)
		view_unref(q->view);
	q->view = view_new(q->f, &m, run_id);
	atomic_store(&q->view->lease_until_ns, UNTIL);
	if (mirror) {
		q->view->mirror = mirror_new(&shape, tag);
		atomic_store(&q->view->mirror->until_ns, UNTIL);
	}
	filter_publish(q->f, q->view);
	q->version = filter_version(q->f);
}

/* The mirror is empty and in step. */
static struct question
absent_question(void)
{
	struct question q = {
	    .f = filter_new(0, "user", "bloom:{user}", 0, NULL),
	    .p = positions_of(&shape, "42"),
	    .now_ns = NOW,
	};

	publish(&q, true);
	return q;
}

static enum mirror_verdict
judge(const struct question *q)
{
	return filter_judge_mirror(q->f, q->view, q->version, &q->p, q->now_ns);
}

static void
end(struct question *q)
{
	view_unref(q->view);
	filter_free(q->f);
}

START_TEST(test_absent_and_maybe)
{
	struct question q = absent_question();
	struct positions other = positions_of(&shape, "43");

	ck_assert_int_eq(judge(&q), MIRROR_ABSENT);
	mirror_add(q.view->mirror, &other);
	ck_assert_int_eq(judge(&q), MIRROR_ABSENT);
	mirror_add(q.view->mirror, &q.p);
	ck_assert_int_eq(judge(&q), MIRROR_MAYBE);
	end(&q);
}
END_TEST

START_TEST(test_each_bit_counts)
{
	for (uint32_t clear = 0; clear < shape.hashes; clear++) {
		struct question q = absent_question();

		for (uint32_t i = 0; i < shape.hashes; i++) {
			struct positions one = {.shard = q.p.shard,
			    .count = 1,
			    .bit = {q.p.bit[i]}};

			if (i != clear)
				mirror_add(q.view->mirror, &one);
		}
		ck_assert_int_eq(judge(&q), MIRROR_ABSENT);
		end(&q);
	}
}
END_TEST

static void
out_of_step(struct question *q)
{
	q->now_ns = UNTIL;
}
static void
never_in_step(struct question *q)
{
	atomic_store(&q->view->mirror->until_ns, 0);
}
static void
no_lease(struct question *q)
{
	atomic_store(&q->view->lease_until_ns, NOW);
}
static void
not_serving(struct question *q)
{
	q->view->state = FILTER_SUSPECT;
}
static void
replaced(struct question *q)
{
	struct meta m = good_meta();
	struct view *v = view_new(q->f, &m, run_id);

	filter_publish(q->f, v);
	view_unref(v);
}
static void
other_hashes(struct question *q)
{
	q->p.count--;
}

static const struct {
	void (*doubt)(struct question *q);
	bool maybe; /* bits that are set are believed all the same */
} doubts[] = {
    {out_of_step, true},
    {never_in_step, true},
    {no_lease, true},
    {not_serving, true},
    {replaced, true},
    {other_hashes, false},
};

START_TEST(test_each_doubt)
{
	struct question q = absent_question();

	doubts[_i].doubt(&q);
	ck_assert_int_eq(judge(&q), MIRROR_UNKNOWN);
	mirror_add(q.view->mirror, &q.p);
	ck_assert_int_eq(
	    judge(&q), doubts[_i].maybe ? MIRROR_MAYBE : MIRROR_UNKNOWN);
	end(&q);
}
END_TEST

START_TEST(test_no_mirror)
{
	struct question q = absent_question();

	publish(&q, false);
	ck_assert_int_eq(judge(&q), MIRROR_UNKNOWN);
	filter_mirror_add(q.f, slice_str("42"));
	end(&q);
}
END_TEST

/* Model rule 4: also while it is still loading. */
START_TEST(test_own_adds)
{
	struct question q = absent_question();

	atomic_store(&q.view->mirror->until_ns, 0);
	filter_mirror_add(q.f, slice_str("42"));
	atomic_store(&q.view->mirror->until_ns, UNTIL);
	ck_assert_int_eq(judge(&q), MIRROR_MAYBE);
	/* What has no positions is no error. */
	filter_mirror_add(q.f, slice_of((const uint8_t *)"", ELEMENT_MAX + 1));
	end(&q);
}
END_TEST

/* A view that takes the mirror over has the adds that went by the one before. */
START_TEST(test_shared_by_views)
{
	struct question q = absent_question();
	struct meta m = good_meta();
	struct view *next = view_new(q.f, &m, run_id);

	next->mirror = mirror_ref(q.view->mirror);
	mirror_add(q.view->mirror, &q.p);
	atomic_store(&next->lease_until_ns, UNTIL);
	filter_publish(q.f, next);
	view_unref(q.view);
	q.view = next;
	q.version = filter_version(q.f);
	ck_assert_int_eq(judge(&q), MIRROR_MAYBE);
	end(&q);
}
END_TEST

/* --- threads ---------------------------------------------------------------*/

static void *
adder(void *arg)
{
	struct mirror *m = arg;

	for (int i = 0; i < 20000; i++) {
		struct positions p = {
		    .shard = 0, .count = 1, .bit = {(uint64_t)i % 1000}};

		mirror_add(m, &p);
		ck_assert(mirror_has(m, &p));
	}
	return NULL;
}

START_TEST(test_threads)
{
	static const uint8_t ones[128] = {0xff, 0xff, 0xff, 0xff};
	struct mirror *m = mirror_new(&shape, tag);
	pthread_t threads[3];

	for (size_t i = 0; i < 3; i++)
		ck_assert_int_eq(
		    pthread_create(&threads[i], NULL, adder, m), 0);
	for (int i = 0; i < 2000; i++)
		mirror_load(m, 0, 0, ones, sizeof(ones));
	for (size_t i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (uint64_t b = 0; b < shape.bits; b++) {
		struct positions p = {.shard = 0, .count = 1, .bit = {b}};

		ck_assert(mirror_has(m, &p));
	}
	mirror_unref(m);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("filter_mirror");
	TCase *t = tcase_create("mirror");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	tcase_add_test(t, test_bits_are_those_of_redis);
	tcase_add_test(t, test_loading_takes_nothing_away);
	tcase_add_test(t, test_is_of);
	tcase_add_test(t, test_too_large);
	tcase_add_test(t, test_absent_and_maybe);
	tcase_add_test(t, test_each_bit_counts);
	tcase_add_loop_test(
	    t, test_each_doubt, 0, (int)(sizeof(doubts) / sizeof(doubts[0])));
	tcase_add_test(t, test_no_mirror);
	tcase_add_test(t, test_own_adds);
	tcase_add_test(t, test_shared_by_views);
	tcase_add_test(t, test_threads);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
