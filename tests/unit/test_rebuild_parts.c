/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of rebuild that need no Redis: names, pacing, sampling, lines,
 * templates.
 */
#include "config.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/mem.h"
#include "core/random.h"
#include "rebuild/lines.h"

/* --- names -----------------------------------------------------------------*/

static void
name_is(const char *zone, const char *suffix, int64_t wall_s, const char *want)
{
	char name[GENERATION_NAME_MAX];
	struct err err = {""};

	setenv("TZ", zone, 1);
	tzset();
	if (name_of_time(name, suffix, wall_s * 1000000 + 999999, &err) != 0)
		ck_abort_msg("%s: %s", suffix, err.text);
	ck_assert_str_eq(name, want);
}

static void
name_bad(const char *suffix)
{
	char name[GENERATION_NAME_MAX];
	struct err err = {""};

	ck_assert_int_eq(name_of_time(name, suffix, 0, &err), -1);
	ck_assert_str_ne(err.text, "");
}

START_TEST(test_names)
{
	/* date -u -d ... +%s */
	name_is("UTC", "%Y%m", 1767225599, "202512"); /* 2025-12-31 23:59:59 */
	name_is("UTC", "%Y%m", 1767225600, "202601");
	name_is("Asia/Shanghai", "%Y%m", 1767196799, "202512");
	name_is("Asia/Shanghai", "%Y%m", 1767196800, "202601");
	name_is("America/New_York", "%Y%m", 1767225600, "202512");
	name_is("UTC", "%Y%m%d", 1709164800, "20240229"); /* leap day */
	name_is("UTC", "%Y%m%d", 1709251200, "20240301");
	name_is("UTC", "%Y%m%d", 4107542399, "21000228"); /* no leap year */
	name_is("UTC", "%Y%m%d", 4107542400, "21000301");
	name_is("UTC", "v1", 0, "v1");
	/* summer time: the clock goes back, the name with it */
	name_is("Europe/Berlin", "%Y%m%d%H%M", 1761440399, "202510260259");
	name_is("Europe/Berlin", "%Y%m%d%H%M", 1761440400, "202510260200");
}
END_TEST

START_TEST(test_bad_names)
{
	name_bad("");
	name_bad("%Y %m");
	name_bad("%H:%M");
	name_bad("%Y/%m");
	name_bad("{x}");
	name_bad("0123456789012345678901234567890123456789012345678901234567");
}
END_TEST

/* --- pacing ----------------------------------------------------------------*/

START_TEST(test_pace_share)
{
	struct pace p;

	pace_init(&p, 0.25, 32768);
	ck_assert_uint_eq(pace_after(&p, 100000), 300000);
	pace_init(&p, 1, 32768);
	ck_assert_uint_eq(pace_after(&p, 100000), 0);
	/* a hang of Redis makes no pause of hours */
	pace_init(&p, 0.01, 32768);
	ck_assert_uint_le(pace_after(&p, UINT64_C(5000000000)), 1000000000);
	pace_init(&p, 0, 32768);
	ck_assert_uint_le(pace_after(&p, 1000), 1000000);
}
END_TEST

START_TEST(test_pace_chunk)
{
	struct pace p;

	pace_init(&p, 1, 32768);
	for (int i = 0; i < 10; i++)
		pace_after(&p, PACE_SLOW_NS + 1);
	ck_assert_uint_eq(p.chunk, PACE_CHUNK_MIN);
	for (int i = 0; i < PACE_GROW - 1; i++)
		pace_after(&p, PACE_SLOW_NS);
	ck_assert_uint_eq(p.chunk, PACE_CHUNK_MIN);
	pace_after(&p, 1);
	ck_assert_uint_eq(p.chunk, 2 * PACE_CHUNK_MIN);
	for (int i = 0; i < 1000; i++)
		pace_after(&p, 1);
	ck_assert_uint_eq(p.chunk, 32768);
	pace_init(&p, 1, 10000); /* rounded down to whole buckets */
	ck_assert_uint_eq(p.chunk, 8192);
	pace_init(&p, 1, 1);
	ck_assert_uint_eq(p.chunk, PACE_CHUNK_MIN);
}
END_TEST

/* --- sampling --------------------------------------------------------------*/

/* Each tenth of the stream gives about a tenth of the sample. */
START_TEST(test_sample_uniform)
{
	const size_t max = 1000, stream = 100000;
	struct positions p = {.count = 2};
	unsigned tenth[10] = {0};
	struct sample s;

	sample_init(&s, max, 2);
	for (size_t i = 0; i < stream; i++) {
		p.shard = (uint32_t)i;
		p.bit[0] = i;
		p.bit[1] = UINT32_MAX - i;
		sample_offer(&s, &p);
	}
	ck_assert_uint_eq(s.count, max);
	ck_assert_uint_eq(s.seen, stream);
	for (size_t i = 0; i < max; i++) {
		ck_assert_uint_eq(s.bit[2 * i], s.shard[i]);
		ck_assert_uint_eq(s.bit[2 * i + 1], UINT32_MAX - s.shard[i]);
		tenth[s.shard[i] / (stream / 10)]++;
	}
	/* mean 100, standard deviation below 9.5: six of them */
	for (int i = 0; i < 10; i++) {
		ck_assert_uint_gt(tenth[i], 43);
		ck_assert_uint_lt(tenth[i], 157);
	}
	sample_fini(&s);
}
END_TEST

START_TEST(test_sample_short)
{
	struct positions p = {.count = 1};
	struct sample s;

	sample_init(&s, 100, 1);
	for (uint32_t i = 0; i < 40; i++) {
		p.shard = i;
		sample_offer(&s, &p);
	}
	ck_assert_uint_eq(s.count, 40);
	for (uint32_t i = 0; i < 40; i++)
		ck_assert_uint_eq(s.shard[i], i);
	sample_fini(&s);
}
END_TEST

/* --- templates -------------------------------------------------------------*/

static void
element_is(const char *template, const char *want)
{
	uint8_t scratch[16];
	struct keytemplate t;
	struct slice s;

	keytemplate_init(&t, template, "user");
	s = keytemplate_apply(&t, slice_str("42"), scratch, sizeof(scratch));
	ck_assert_uint_eq(s.len, strlen(want));
	ck_assert_int_eq(memcmp(s.data, want, s.len), 0);
	keytemplate_fini(&t);
}

START_TEST(test_templates)
{
	uint8_t scratch[16];
	struct keytemplate t;

	element_is(NULL, "42");
	element_is("", "42");
	element_is("{id}", "42");
	element_is("{filter}:{id}", "user:42");
	element_is("{id}.{filter}", "42.user");
	element_is("{{{id}}}x", "{42}x");
	element_is("{filter}{id}{filter}", "user42user");
	keytemplate_init(&t, "{filter}:{id}", "user");
	ck_assert_ptr_nonnull(keytemplate_apply(
	    &t, slice_str("12345678901"), scratch, sizeof(scratch))
				  .data);
	ck_assert_ptr_null(keytemplate_apply(
	    &t, slice_str("123456789012"), scratch, sizeof(scratch))
			       .data);
	keytemplate_fini(&t);
}
END_TEST

/* --- lines -----------------------------------------------------------------*/

static struct filter_settings settings;
static struct filter filter;
static const _Atomic bool never;

static void
build_init(struct build *b)
{
	struct err err;

	memset(b, 0, sizeof(*b));
	b->settings = &settings;
	b->filter = &filter;
	b->cancel = &never;
	b->capacity = 1000000;
	ck_assert_int_eq(
	    geometry_plan(&b->geometry, 10000, 0.01, SCHEME_GUAVA, false, &err),
	    0);
	ck_assert_int_eq(bits_init(&b->bits, &b->geometry), 0);
	sample_init(&b->sample, 10000, b->geometry.hashes);
	keytemplate_init(&b->template, "x{id}", "f");
}

static void
build_fini(struct build *b)
{
	bits_fini(&b->bits);
	sample_fini(&b->sample);
	keytemplate_fini(&b->template);
}

/* The same bytes in pieces of any size give the same bits. */
START_TEST(test_lines_split)
{
	uint64_t seed = random_u64();
	struct lines *l = mem_alloc(sizeof(*l));
	struct build *whole = mem_alloc(sizeof(*whole));
	struct build *parts = mem_alloc(sizeof(*parts));
	char text[20000];
	size_t len = 0;

	printf("seed %llu\n", (unsigned long long)seed);
	srand((unsigned)seed);
	while (len < sizeof(text) - 5000) {
		size_t n = rand() % 20 == 0 ? (size_t)rand() % 4097
					    : (size_t)rand() % 12;

		for (size_t i = 0; i < n; i++)
			text[len++] = (char)('a' + rand() % 26);
		if (n < 4096 && rand() % 2)
			text[len++] = '\r';
		text[len++] = '\n';
	}
	build_init(whole);
	keytemplate_fini(&whole->template);
	lines_init(l, whole);
	ck_assert_int_eq(lines_feed(l, (uint8_t *)text, len), 0);
	ck_assert_int_eq(lines_end(l), 0);
	build_init(parts);
	keytemplate_fini(&parts->template);
	lines_init(l, parts);
	for (size_t at = 0; at < len;) {
		size_t n = 1 + (size_t)rand() % 7;

		if (n > len - at)
			n = len - at;
		ck_assert_int_eq(lines_feed(l, (uint8_t *)text + at, n), 0);
		at += n;
	}
	ck_assert_int_eq(lines_end(l), 0);
	ck_assert_uint_eq(whole->elements, parts->elements);
	ck_assert_uint_eq(whole->empty_lines, parts->empty_lines);
	ck_assert_int_eq(memcmp(whole->bits.data, parts->bits.data,
			     whole->bits.stride * whole->geometry.shards),
	    0);
	build_fini(whole);
	build_fini(parts);
	free(whole);
	free(parts);
	free(l);
}
END_TEST

START_TEST(test_lines_template)
{
	struct lines *l = mem_alloc(sizeof(*l));
	struct build *b = mem_alloc(sizeof(*b));
	struct positions p;

	build_init(b);
	lines_init(l, b);
	ck_assert_int_eq(
	    lines_feed(l, (const uint8_t *)"1\r\n\r\n2\n\n3", 9), 0);
	ck_assert_int_eq(lines_end(l), 0);
	ck_assert_uint_eq(b->elements, 3);
	ck_assert_uint_eq(b->empty_lines, 2);
	for (int i = 1; i <= 3; i++) {
		char text[16];

		snprintf(text, sizeof(text), "x%d", i);
		ck_assert_int_eq(
		    scheme_positions(&b->geometry, NULL, slice_str(text), &p),
		    0);
		ck_assert(bits_has(&b->bits, &p));
	}
	build_fini(b);
	free(b);
	free(l);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("rebuild_parts");
	TCase *t = tcase_create("parts");
	SRunner *r;
	int failed;

	tcase_add_test(t, test_names);
	tcase_add_test(t, test_bad_names);
	tcase_add_test(t, test_pace_share);
	tcase_add_test(t, test_pace_chunk);
	tcase_add_test(t, test_sample_uniform);
	tcase_add_test(t, test_sample_short);
	tcase_add_test(t, test_templates);
	tcase_add_test(t, test_lines_split);
	tcase_add_test(t, test_lines_template);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
