/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of src/filter: views and the verdict. Law 1 is here: from a
 * baseline that is absent, each single doubt makes it maybe.
 */
#include "config.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "filter/filter.h"

#define NOW   UINT64_C(1000000000)
#define LEASE UINT64_C(2000000000)
#define K     7

static const char run_id[] = "0123456789abcdef0123456789abcdef01234567";
static const char other_run[] = "0123456789abcdef0123456789abcdef01234568";
static const uint8_t tag[TAG_BYTES] = {
    0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10};
#define TAG_VALUE ((int64_t)UINT64_C(0xfedcba9876543210))

static const struct scheme_key key = {{1, 2, 3, 4}};
static const struct scheme_key other_key = {{1, 2, 3, 5}};

static void
describe(struct generation *g, const char *name)
{
	*g = (struct generation){
	    .state = GENERATION_SEALED,
	    .usable = true,
	    .geometry = {SCHEME_GUAVA, false, 10, 958528, K},
	    .capacity = 1000000,
	    .error_rate = 0.01,
	    .sealed = 10,
	};
	snprintf(g->name, sizeof(g->name), "%s", name);
	memcpy(g->tag, tag, sizeof(tag));
}

/* A meta whose generation 0 serves. */
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

	memcpy(m.run_id, run_id, sizeof(run_id));
	describe(&m.generations[0], "202512");
	return m;
}

/* All that goes into one verdict. */
struct question {
	struct filter *f;
	struct view *view;
	uint64_t version;
	const char *link_run_id;
	int64_t values[HASHES_MAX + 1];
	size_t count;
	uint64_t now_ns;
};

static void
publish(struct question *q, const struct meta *m)
{
	if (q->view != NULL)
		view_unref(q->view);
	q->view = view_new(q->f, m, run_id);
	atomic_store(&q->view->lease_until_ns, LEASE);
	filter_publish(q->f, q->view);
	q->version = filter_version(q->f);
}

static struct question
absent_question(void)
{
	struct question q = {
	    .f = filter_new(0, "user", "bloom:{user}", 0, NULL),
	    .link_run_id = run_id,
	    .values = {1, 1, 1, 0, 1, 1, 1, TAG_VALUE},
	    .count = K + 1,
	    .now_ns = NOW,
	};
	struct meta m = good_meta();

	publish(&q, &m);
	return q;
}

static enum verdict
judge(const struct question *q, bool *wrong_tag)
{
	return filter_judge(q->f, q->view, q->version, q->link_run_id,
	    q->values, q->count, q->now_ns, wrong_tag);
}

/* Judges twice, with and without a place for wrong_tag; frees. */
static void
expect(struct question *q, enum verdict verdict, bool wrong)
{
	bool wrong_tag = !wrong;

	ck_assert_int_eq(judge(q, NULL), verdict);
	ck_assert_int_eq(judge(q, &wrong_tag), verdict);
	ck_assert_int_eq(wrong_tag, wrong);
	view_unref(q->view);
	filter_free(q->f);
}

START_TEST(absent)
{
	struct question q = absent_question();

	ck_assert_int_eq(q.view->state, FILTER_SERVING);
	ck_assert(filter_ready(q.f, q.view, q.version, q.now_ns));
	expect(&q, VERDICT_ABSENT, false);
}
END_TEST

/* Any one bit at 0 proves it, also all of them. */
START_TEST(absent_bits)
{
	for (int mask = 0; mask < 1 << K; mask++) {
		struct question q = absent_question();

		for (int i = 0; i < K; i++)
			q.values[i] = mask >> i & 1;
		expect(&q,
		    mask == (1 << K) - 1 ? VERDICT_MAYBE : VERDICT_ABSENT,
		    false);
	}
}
END_TEST

START_TEST(bits_that_are_none)
{
	static const int64_t odd[] = {2, -1, INT64_MIN, INT64_MAX};

	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		for (int j = 0; j < K; j++) {
			struct question q = absent_question();

			q.values[j] = odd[i];
			if (j == 3)
				q.values[0] = 0;
			expect(&q, VERDICT_MAYBE, false);
		}
}
END_TEST

START_TEST(wrong_tags)
{
	static const int64_t tags[] = {0, 1, TAG_VALUE + 1, -TAG_VALUE,
	    (int64_t)UINT64_C(0x1032547698badcfe)};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		struct question q = absent_question();

		q.values[K] = tags[i];
		expect(&q, VERDICT_MAYBE, true);
	}
}
END_TEST

/* What Redis answers for a missing or an empty shard: zeros only. */
START_TEST(missing_shard)
{
	struct question q = absent_question();

	memset(q.values, 0, sizeof(q.values));
	expect(&q, VERDICT_MAYBE, true);
}
END_TEST

START_TEST(wrong_count)
{
	for (size_t count = 0; count <= HASHES_MAX + 1; count++) {
		struct question q = absent_question();

		if (count == K + 1) {
			expect(&q, VERDICT_ABSENT, false);
			continue;
		}
		q.count = count;
		if (count > 0)
			q.values[count - 1] = TAG_VALUE;
		expect(&q, VERDICT_MAYBE, false);
	}
}
END_TEST

START_TEST(lease)
{
	struct question q;

	q = absent_question();
	q.now_ns = LEASE - 1;
	expect(&q, VERDICT_ABSENT, false);

	q = absent_question();
	q.now_ns = LEASE;
	ck_assert(!filter_ready(q.f, q.view, q.version, q.now_ns));
	expect(&q, VERDICT_MAYBE, false);

	q = absent_question();
	q.now_ns = UINT64_MAX;
	expect(&q, VERDICT_MAYBE, false);

	q = absent_question();
	atomic_store(&q.view->lease_until_ns, 0);
	ck_assert(!filter_ready(q.f, q.view, q.version, q.now_ns));
	q.now_ns = 0;
	expect(&q, VERDICT_MAYBE, false);
}
END_TEST

START_TEST(link_run)
{
	static const char *const runs[] = {
	    NULL, "", other_run, "0123456789abcdef0123456789abcdef0123456"};

	for (size_t i = 0; i < sizeof(runs) / sizeof(runs[0]); i++) {
		struct question q = absent_question();

		q.link_run_id = runs[i];
		expect(&q, VERDICT_MAYBE, false);
	}
}
END_TEST

START_TEST(empty_runs)
{
	struct question q = absent_question();

	/* Even where both sides know nothing. */
	q.view->meta.run_id[0] = '\0';
	q.link_run_id = "";
	expect(&q, VERDICT_MAYBE, false);
}
END_TEST

/* Model rule 1: the view at the answer is the view at the question. */
START_TEST(view_replaced)
{
	struct question q = absent_question();
	struct meta m = good_meta();
	struct view *held = view_ref(q.view);
	uint64_t version = q.version;

	publish(&q, &m); /* an equal one: still another */
	ck_assert_int_eq(judge(&q, NULL), VERDICT_ABSENT);
	ck_assert_int_eq(filter_judge(q.f, held, version, run_id, q.values,
			     q.count, NOW, NULL),
	    VERDICT_MAYBE);
	ck_assert(!filter_ready(q.f, held, version, NOW));
	/* The old view under the new number, the new one under the old. */
	ck_assert_int_eq(filter_judge(q.f, held, q.version, run_id, q.values,
			     q.count, NOW, NULL),
	    VERDICT_MAYBE);
	ck_assert(!filter_ready(q.f, held, q.version, NOW));
	ck_assert_int_eq(filter_judge(q.f, q.view, version, run_id, q.values,
			     q.count, NOW, NULL),
	    VERDICT_MAYBE);
	ck_assert(!filter_ready(q.f, q.view, version, NOW));

	/* Published again, it is a new publication: old numbers stay dead. */
	filter_publish(q.f, held);
	ck_assert_int_eq(filter_judge(q.f, held, version, run_id, q.values,
			     q.count, NOW, NULL),
	    VERDICT_MAYBE);
	ck_assert_int_eq(filter_judge(q.f, held, filter_version(q.f), run_id,
			     q.values, q.count, NOW, NULL),
	    VERDICT_ABSENT);
	expect(&q, VERDICT_MAYBE, false);
	view_unref(held);
}
END_TEST

START_TEST(view_never_published)
{
	struct question q = absent_question();
	struct meta m = good_meta();
	struct view *v = view_new(q.f, &m, run_id);

	atomic_store(&v->lease_until_ns, LEASE);
	for (uint64_t version = 0; version < 4; version++)
		ck_assert_int_eq(filter_judge(q.f, v, version, run_id, q.values,
				     q.count, NOW, NULL),
		    VERDICT_MAYBE);
	view_unref(v);
	view_unref(q.view);
	filter_free(q.f);
}
END_TEST

/* Two filters count alike: a view of the one says nothing of the other. */
START_TEST(view_of_another)
{
	struct question q = absent_question(), other = absent_question();

	ck_assert_uint_eq(q.version, other.version);
	ck_assert_int_eq(filter_judge(other.f, q.view, q.version, run_id,
			     q.values, q.count, NOW, NULL),
	    VERDICT_MAYBE);
	ck_assert(!filter_ready(other.f, q.view, q.version, NOW));
	expect(&q, VERDICT_ABSENT, false);
	expect(&other, VERDICT_ABSENT, false);
}
END_TEST

/* Every state but serving, whatever else holds. */
START_TEST(states_maybe)
{
	for (int s = FILTER_UNKNOWN; s < FILTER_SERVING; s++) {
		struct question q = absent_question();

		q.view->state = (enum filter_state)s;
		ck_assert(!filter_ready(q.f, q.view, q.version, NOW));
		expect(&q, VERDICT_MAYBE, false);
	}
}
END_TEST

/* A view that calls itself serving is not believed against its meta. */
START_TEST(active_maybe)
{
	for (int i = 0; i < 7; i++) {
		struct question q = absent_question();
		struct generation *g = &q.view->meta.generations[0];

		switch (i) {
		case 0:
			q.view->meta.active = -1;
			break;
		case 1:
			q.view->meta.active = 1;
			break;
		case 2:
			g->retiring = true;
			break;
		case 3:
			g->usable = false;
			break;
		default:
			g->state = (enum generation_state[]){GENERATION_MAKING,
			    GENERATION_BUILDING, GENERATION_LOST}[i - 4];
		}
		ck_assert(!filter_ready(q.f, q.view, q.version, NOW));
		expect(&q, VERDICT_MAYBE, false);
	}
}
END_TEST

static enum filter_state
state_of(const struct filter *f, const struct meta *m, const char *run)
{
	struct view *v = view_new(f, m, run);
	enum filter_state s = v->state;

	ck_assert_uint_eq(atomic_load(&v->lease_until_ns), 0);
	view_unref(v);
	return s;
}

START_TEST(view_states)
{
	struct filter *f = filter_new(0, "user", "bloom:{user}", 0, NULL);
	struct meta m = good_meta(), none = {.active = -1};

	ck_assert_int_eq(state_of(f, NULL, run_id), FILTER_UNKNOWN);
	ck_assert_int_eq(state_of(f, &none, run_id), FILTER_MISSING);
	ck_assert_int_eq(state_of(f, &m, run_id), FILTER_SERVING);
	ck_assert_int_eq(state_of(f, &m, other_run), FILTER_SUSPECT);
	ck_assert_int_eq(state_of(f, &m, ""), FILTER_SUSPECT);
	ck_assert_int_eq(state_of(f, &m, NULL), FILTER_SUSPECT);
	m.run_id[0] = '\0';
	ck_assert_int_eq(state_of(f, &m, ""), FILTER_SUSPECT);
	ck_assert_int_eq(state_of(f, &m, run_id), FILTER_SUSPECT);

	m = good_meta();
	m.layout = META_LAYOUT + 1;
	ck_assert_int_eq(state_of(f, &m, run_id), FILTER_FOREIGN);
	m = good_meta();
	m.generations[0].usable = false;
	ck_assert_int_eq(state_of(f, &m, run_id), FILTER_FOREIGN);
	m = good_meta();
	m.generations[0].state = GENERATION_LOST;
	ck_assert_int_eq(state_of(f, &m, run_id), FILTER_LOST);
	ck_assert_int_eq(state_of(f, &m, other_run), FILTER_SUSPECT);
	m = good_meta();
	m.generations[0].state = GENERATION_BUILDING;
	ck_assert_int_eq(state_of(f, &m, run_id), FILTER_MISSING);
	m = good_meta();
	m.generations[0].retiring = true;
	ck_assert_int_eq(state_of(f, &m, run_id), FILTER_MISSING);
	m = good_meta();
	m.active = -1;
	ck_assert_int_eq(state_of(f, &m, run_id), FILTER_MISSING);
	ck_assert_int_eq(state_of(f, &m, other_run), FILTER_MISSING);
	filter_free(f);
}
END_TEST

/* Beside a good active. */
START_TEST(other_generations)
{
	struct filter *f = filter_new(0, "user", "bloom:{user}", 0, NULL);
	struct meta m = good_meta();

	m.generation_count = 2;
	describe(&m.generations[1], "202512.2");
	m.building = 1;
	m.generations[1].state = GENERATION_BUILDING;
	ck_assert_int_eq(state_of(f, &m, run_id), FILTER_SERVING);
	/* Others build what we cannot fill: they may not fill ours. */
	m.generations[1].usable = false;
	ck_assert_int_eq(state_of(f, &m, run_id), FILTER_FOREIGN);
	m.building = -1;
	ck_assert_int_eq(state_of(f, &m, run_id), FILTER_SERVING);
	m.previous = 1;
	m.generations[1].state = GENERATION_LOST;
	ck_assert_int_eq(state_of(f, &m, run_id), FILTER_SERVING);
	filter_free(f);
}
END_TEST

START_TEST(key_states)
{
	struct filter *without = filter_new(0, "u", "b:{u}", 0, NULL);
	struct filter *with = filter_new(0, "u", "b:{u}", 0, &key);
	struct filter *with_other = filter_new(0, "u", "b:{u}", 0, &other_key);
	struct meta m = good_meta();
	struct generation *g = &m.generations[0];

	ck_assert_int_eq(state_of(with, &m, run_id), FILTER_SERVING);
	g->geometry.scheme = SCHEME_KEYED;
	scheme_key_fingerprint(&key, slice_str(g->name), g->key_fingerprint);
	ck_assert_int_eq(state_of(with, &m, run_id), FILTER_SERVING);
	ck_assert_int_eq(state_of(with_other, &m, run_id), FILTER_FOREIGN);
	ck_assert_int_eq(state_of(without, &m, run_id), FILTER_FOREIGN);
	ck_assert(filter_fits(with, g));
	ck_assert(!filter_fits(with_other, g));
	ck_assert(!filter_fits(without, g));

	/* The same key, but taken from another generation. */
	scheme_key_fingerprint(&key, slice_str("202511"), g->key_fingerprint);
	ck_assert_int_eq(state_of(with, &m, run_id), FILTER_FOREIGN);
	g->key_fingerprint[0] = '\0';
	ck_assert_int_eq(state_of(with, &m, run_id), FILTER_FOREIGN);
	filter_free(without);
	filter_free(with);
	filter_free(with_other);
}
END_TEST

START_TEST(new_filter)
{
	struct filter *f = filter_new(3, "user", "bloom:{user}", 5, &key);
	struct view *v = filter_view(f);

	ck_assert_uint_eq(f->index, 3);
	ck_assert_str_eq(f->name, "user");
	ck_assert_str_eq(f->redis_key, "bloom:{user}");
	ck_assert_uint_eq(f->db, 5);
	ck_assert(f->has_key);
	ck_assert_mem_eq(&f->key, &key, sizeof(key));
	ck_assert_int_eq(atomic_load(&f->mode), FILTER_ENFORCE);
	ck_assert_int_eq(atomic_load(&f->progress.phase), PHASE_IDLE);
	ck_assert_int_eq(v->state, FILTER_UNKNOWN);
	ck_assert_int_eq(v->meta.active, -1);
	ck_assert(!filter_ready(f, v, filter_version(f), 0));
	filter_free(f); /* a held view outlives it */
	ck_assert_int_eq(v->state, FILTER_UNKNOWN);
	view_unref(v);
	filter_free(NULL);
}
END_TEST

START_TEST(words)
{
	ck_assert_str_eq(filter_state_name(FILTER_UNKNOWN), "unknown");
	ck_assert_str_eq(filter_state_name(FILTER_MISSING), "missing");
	ck_assert_str_eq(filter_state_name(FILTER_SUSPECT), "suspect");
	ck_assert_str_eq(filter_state_name(FILTER_LOST), "lost");
	ck_assert_str_eq(filter_state_name(FILTER_FOREIGN), "foreign");
	ck_assert_str_eq(filter_state_name(FILTER_SERVING), "serving");
	ck_assert_str_eq(filter_mode_name(FILTER_ENFORCE), "enforce");
	ck_assert_str_eq(filter_mode_name(FILTER_OBSERVE), "observe");
	ck_assert_str_eq(filter_mode_name(FILTER_OFF), "off");
	ck_assert_str_eq(rebuild_phase_name(PHASE_IDLE), "idle");
	ck_assert_str_eq(rebuild_phase_name(PHASE_RETIRE), "retire");
	ck_assert_str_eq(rebuild_phase_name((enum rebuild_phase)99), "unknown");
}
END_TEST

START_TEST(results)
{
	struct filter *f = filter_new(0, "user", "bloom:{user}", 0, NULL);
	char text[600];

	ck_assert_str_eq(f->last_result, "");
	filter_set_result(f, "refused", "too few elements", 17);
	ck_assert_str_eq(f->last_result, "refused");
	ck_assert_str_eq(f->last_error, "too few elements");
	ck_assert_int_eq(f->last_ended_us, 17);
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	filter_set_result(f, text, text, 18);
	ck_assert_uint_eq(strlen(f->last_result), sizeof(f->last_result) - 1);
	ck_assert_uint_eq(strlen(f->last_error), sizeof(f->last_error) - 1);
	filter_set_result(f, "ok", NULL, 19);
	ck_assert_str_eq(f->last_error, "");
	filter_free(f);
}
END_TEST

#define PUBLICATIONS 20000
#define READERS      3

/* ck_assert notes each success in a file: too slow for millions of them. */
#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition))                                              \
			ck_abort_msg("%s", #condition);                        \
	} while (0)

struct race {
	struct filter *f;
	_Atomic bool done;
	_Atomic uint64_t verdicts;
};

/*
 * Reads what control publishes: odd seq's never get a lease. An absent verdict
 * belongs to a view with one, whole in itself.
 */
static void *
reader(void *arg)
{
	struct race *race = arg;
	int64_t values[K + 1] = {0};
	uint64_t last = 0;

	while (!atomic_load(&race->done)) {
		uint64_t version = filter_version(race->f);
		struct view *v = filter_view(race->f);
		const struct generation *g = &v->meta.generations[0];
		uint64_t number = 0;

		MUST(version >= last);
		last = version;
		for (int i = 0; i < TAG_BYTES; i++)
			number = number << 8 | g->tag[i];
		MUST(number == v->meta.seq);
		values[K] = (int64_t)number;
		if (filter_judge(race->f, v, version, run_id, values, K + 1,
			NOW, NULL) == VERDICT_ABSENT) {
			MUST(v->meta.seq % 2 == 0);
			atomic_fetch_add(&race->verdicts, 1);
		}
		view_unref(v);
	}
	return NULL;
}

static struct view *
numbered_view(const struct filter *f, uint64_t number)
{
	struct meta m = good_meta();

	m.seq = number;
	for (int i = 0; i < TAG_BYTES; i++)
		m.generations[0].tag[i] = (uint8_t)(number >>
		    8 * (TAG_BYTES - 1 - i));
	return view_new(f, &m, run_id);
}

START_TEST(threads)
{
	struct race race = {
	    .f = filter_new(0, "user", "bloom:{user}", 0, NULL)};
	pthread_t readers[READERS];
	struct view *v;
	uint64_t i;

	for (i = 0; i < READERS; i++)
		ck_assert_int_eq(
		    pthread_create(&readers[i], NULL, reader, &race), 0);
	/* Until the readers had something to say, however slow they are. */
	for (i = 1; i <= PUBLICATIONS || atomic_load(&race.verdicts) == 0;
	     i++) {
		v = numbered_view(race.f, i);
		filter_publish(race.f, v);
		if (i % 2 == 0)
			atomic_store_explicit(
			    &v->lease_until_ns, LEASE, memory_order_release);
		view_unref(v);
	}
	atomic_store(&race.done, true);
	for (int j = 0; j < READERS; j++)
		pthread_join(readers[j], NULL);
	ck_assert_uint_eq(filter_version(race.f), i);
	v = filter_view(race.f);
	ck_assert_uint_eq(v->meta.seq, i - 1);
	ck_assert_uint_eq(atomic_load(&v->references), 2);
	view_unref(v);
	filter_free(race.f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("filter view");
	TCase *t = tcase_create("verdict");
	SRunner *r;
	int failed;

	tcase_add_test(t, absent);
	tcase_add_test(t, absent_bits);
	tcase_add_test(t, bits_that_are_none);
	tcase_add_test(t, wrong_tags);
	tcase_add_test(t, missing_shard);
	tcase_add_test(t, wrong_count);
	tcase_add_test(t, lease);
	tcase_add_test(t, link_run);
	tcase_add_test(t, empty_runs);
	tcase_add_test(t, view_replaced);
	tcase_add_test(t, view_never_published);
	tcase_add_test(t, view_of_another);
	tcase_add_test(t, states_maybe);
	tcase_add_test(t, active_maybe);
	suite_add_tcase(s, t);

	t = tcase_create("views");
	tcase_add_test(t, view_states);
	tcase_add_test(t, other_generations);
	tcase_add_test(t, key_states);
	tcase_add_test(t, new_filter);
	tcase_add_test(t, words);
	tcase_add_test(t, results);
	tcase_add_test(t, threads);
	tcase_set_timeout(t, 120);
	suite_add_tcase(s, t);

	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
