/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of src/filter: reading the meta hash, names of keys. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/random.h"
#include "filter/meta.h"

#define TAG        "\x01\0\x03\x04\x05\x06\xff\x08"
#define FIELDS_MAX 1024

/* ck_assert notes each success in a file: too slow for millions of them. */
#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition))                                              \
			ck_abort_msg("%s", #condition);                        \
	} while (0)

/* A flat list as HGETALL gives it, over texts that outlive it. */
struct list {
	struct slice items[FIELDS_MAX];
	size_t n;
};

static void
put(struct list *l, const char *field, const char *value)
{
	MUST(l->n + 2 <= FIELDS_MAX);
	l->items[l->n++] = slice_str(field);
	l->items[l->n++] = slice_str(value);
}

static void
put_raw(struct list *l, const char *field, const void *value, size_t len)
{
	put(l, field, "");
	l->items[l->n - 1] = slice_of(value, len);
}

/* Another value for a field that is there; NULL takes the field away. */
static void
change_raw(struct list *l, const char *field, const char *value, size_t len)
{
	for (size_t i = 0; i < l->n; i += 2) {
		if (!slice_is(l->items[i], field))
			continue;
		if (value != NULL) {
			l->items[i + 1] = slice_of(value, len);
			return;
		}
		l->items[i] = l->items[l->n - 2];
		l->items[i + 1] = l->items[l->n - 1];
		l->n -= 2;
		return;
	}
	ck_abort_msg("no field %s", field);
}

static void
change(struct list *l, const char *field, const char *value)
{
	change_raw(l, field, value, value == NULL ? 0 : strlen(value));
}

static const char run_id[] = "0123456789abcdef0123456789abcdef01234567";

static struct list
full(void)
{
	struct list l = {.n = 0};

	put(&l, "layout", "1");
	put(&l, "epoch", "1765432100000000");
	put(&l, "seq", "42");
	put(&l, "run-id", run_id);
	put(&l, "lock", "token");
	put(&l, "lock-until", "1765432101000000");
	put(&l, "active", "202512");
	put(&l, "previous", "");
	put(&l, "building", "202512.2");
	put(&l, "g:202512:state", "sealed");
	put(&l, "g:202512:shards", "10");
	put(&l, "g:202512:bits", "958528");
	put(&l, "g:202512:k", "7");
	put(&l, "g:202512:scheme", "guava");
	put(&l, "g:202512:single", "0");
	put(&l, "g:202512:key", "");
	put_raw(&l, "g:202512:tag", TAG, 8);
	put(&l, "g:202512:capacity", "1000000");
	put(&l, "g:202512:error-rate", "0.01");
	put(&l, "g:202512:elements", "999999");
	put(&l, "g:202512:began", "1765432000000000");
	put(&l, "g:202512:ended", "1765432050000000");
	put(&l, "g:202512:run-id", run_id);
	put(&l, "g:202512:next", "10:0");
	put(&l, "g:202512:last", "9:98304");
	put(&l, "g:202512:sealed", "10");
	put(&l, "g:202512:carried", "1");
	put(&l, "g:202512:set", "4800000");
	put(&l, "g:202512.2:state", "building");
	put(&l, "g:202512.2:shards", "1");
	put(&l, "g:202512.2:bits", "64");
	put(&l, "g:202512.2:k", "3");
	put(&l, "g:202512.2:scheme", "keyed");
	put(&l, "g:202512.2:key", "0123456789abcdef0123456789abcdef");
	put_raw(&l, "g:202512.2:tag", TAG, 8);
	return l;
}

static int
parse(struct meta *m, const struct list *l)
{
	struct err err = {""};
	int result = meta_parse(m, l->items, l->n, &err);

	MUST((result == -1) == (err.text[0] != '\0'));
	if (result == -1) {
		MUST(m->generation_count == 0);
		MUST(m->layout == 0);
		MUST(m->active == -1);
	}
	return result;
}

START_TEST(everything)
{
	struct list l = full();
	struct meta m;
	const struct generation *g;

	ck_assert_int_eq(parse(&m, &l), 0);
	ck_assert(m.exists);
	ck_assert_int_eq(m.layout, META_LAYOUT);
	ck_assert_str_eq(m.epoch, "1765432100000000");
	ck_assert_uint_eq(m.seq, 42);
	ck_assert_str_eq(m.run_id, run_id);
	ck_assert_str_eq(m.lock, "token");
	ck_assert_int_eq(m.lock_until_us, 1765432101000000);
	ck_assert_uint_eq(m.generation_count, 2);
	ck_assert_int_eq(m.active, 0);
	ck_assert_int_eq(m.previous, -1);
	ck_assert_int_eq(m.building, 1);
	ck_assert_int_eq(meta_find(&m, slice_str("202512.2")), 1);
	ck_assert_int_eq(meta_find(&m, slice_str("202512.")), -1);

	g = &m.generations[0];
	ck_assert_str_eq(g->name, "202512");
	ck_assert_int_eq(g->state, GENERATION_SEALED);
	ck_assert(g->usable && !g->retiring && g->carried);
	ck_assert_int_eq(g->geometry.scheme, SCHEME_GUAVA);
	ck_assert(!g->geometry.single);
	ck_assert_uint_eq(g->geometry.shards, 10);
	ck_assert_uint_eq(g->geometry.bits, 958528);
	ck_assert_uint_eq(g->geometry.hashes, 7);
	ck_assert_str_eq(g->key_fingerprint, "");
	ck_assert_mem_eq(g->tag, TAG, 8);
	ck_assert_uint_eq(g->capacity, 1000000);
	ck_assert_double_eq(g->error_rate, 0.01);
	ck_assert_uint_eq(g->elements, 999999);
	ck_assert_uint_eq(g->bits_set, 4800000);
	ck_assert_int_eq(g->began_us, 1765432000000000);
	ck_assert_int_eq(g->ended_us, 1765432050000000);
	ck_assert_uint_eq(g->sealed, 10);

	g = &m.generations[1];
	ck_assert_int_eq(g->state, GENERATION_BUILDING);
	ck_assert(g->usable && !g->carried);
	ck_assert_str_eq(
	    g->key_fingerprint, "0123456789abcdef0123456789abcdef");
	ck_assert_int_eq(g->ended_us, 0);
}
END_TEST

START_TEST(no_meta)
{
	struct meta m;
	struct err err;
	struct slice odd = slice_str("layout");

	ck_assert_int_eq(meta_parse(&m, NULL, 0, &err), 0);
	ck_assert(!m.exists);
	ck_assert_int_eq(m.active, -1);
	ck_assert_int_eq(m.previous, -1);
	ck_assert_int_eq(m.building, -1);
	ck_assert_int_eq(meta_parse(&m, &odd, 1, &err), -1);
	ck_assert(m.exists);
}
END_TEST

/* What another program may add does no harm. */
START_TEST(unknown_fields)
{
	struct list l = full();
	struct meta m;

	put(&l, "colour", "blue");
	put(&l, "", "");
	put(&l, "g", "x");
	put(&l, "g:", "x");
	put(&l, "g:x", "x");
	put(&l, "g:202512:colour", "blue");
	put(&l, "g:other:colour", "blue");
	put(&l, "g:202512:", "blue");
	ck_assert_int_eq(parse(&m, &l), 0);
	ck_assert_uint_eq(m.generation_count, 2);
	ck_assert(m.generations[0].usable);
}
END_TEST

/* In another layout nothing is read. */
START_TEST(other_layout)
{
	struct list l = full();
	struct meta m;

	change(&l, "layout", "2");
	change(&l, "epoch", "a new kind of epoch");
	ck_assert_int_eq(parse(&m, &l), 0);
	ck_assert(m.exists);
	ck_assert_int_eq(m.layout, 2);
	ck_assert_uint_eq(m.generation_count, 0);
	ck_assert_int_eq(m.active, -1);

	l = full();
	change(&l, "layout", NULL);
	ck_assert_int_eq(parse(&m, &l), 0);
	ck_assert_int_eq(m.layout, 0);
	ck_assert_int_eq(m.active, -1);

	l = full();
	change(&l, "layout", "one");
	ck_assert_int_eq(parse(&m, &l), -1);
}
END_TEST

/* Values that make the whole meta an error. */
START_TEST(bad_top)
{
	static const struct {
		const char *field, *value;
	} cases[] = {
	    {"epoch", ""},
	    {"epoch", "-1"},
	    {"epoch", "01"},
	    {"epoch", "1e15"},
	    {"epoch", " 1"},
	    {"epoch", "1 "},
	    {"epoch", "1.0"},
	    {"epoch", "nan"},
	    {"epoch", "9223372036854775808"},
	    {"epoch", "99999999999999999999999999"},
	    {"epoch", NULL}, /* with an active */
	    {"seq", "x"},
	    {"seq", "-1"},
	    {"lock-until", "soon"},
	    {"run-id",
		"0123456789abcdef0123456789abcdef01234567:"
		"0123456789abcdef0123456789abcdef012345678"},
	    {"lock", "0123456789abcdef0123456789abcdef01234567"},
	    {"active", "202511"},
	    {"active", "202512 "},
	    {"previous", "202511"},
	    {"building", "g:202512"},
	    {"layout", ""},
	    {"layout", "-1"},
	    {"layout", "4294967297"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct list l = full();
		struct meta m;

		change(&l, cases[i].field, cases[i].value);
		ck_assert_msg(parse(&m, &l) == -1, "%s: %s", cases[i].field,
		    cases[i].value);
	}
}
END_TEST

START_TEST(embedded_nul)
{
	static const char *const fields[] = {"epoch", "seq", "run-id", "lock",
	    "lock-until", "active", "building", "layout"};

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct list l = full();
		struct meta m;

		change_raw(&l, fields[i], "1\0", 2);
		ck_assert_msg(parse(&m, &l) == -1, "%s", fields[i]);
	}
}
END_TEST

START_TEST(without_epoch)
{
	struct list l = {.n = 0};
	struct meta m;

	put(&l, "layout", "1");
	put(&l, "lock", "token");
	ck_assert_int_eq(parse(&m, &l), 0);
	ck_assert(m.exists);
	ck_assert_str_eq(m.epoch, "");
}
END_TEST

START_TEST(twice)
{
	struct list l = full();
	struct meta m;

	put(&l, "seq", "42");
	ck_assert_int_eq(parse(&m, &l), -1);
	l = full();
	put(&l, "g:202512:k", "7");
	ck_assert_int_eq(parse(&m, &l), -1);
}
END_TEST

/* Values that make one generation unusable, and leave the other alone. */
START_TEST(unusable)
{
	static const struct {
		const char *field, *value;
	} cases[] = {
	    {"state", "frozen"},
	    {"state", "Sealed"},
	    {"state", ""},
	    {"state", NULL},
	    {"shards", NULL},
	    {"shards", "0"},
	    {"shards", "-1"},
	    {"shards", "4294967296"},
	    {"shards", "4294967295"},
	    {"shards", "ten"},
	    {"bits", NULL},
	    {"bits", "0"},
	    {"bits", "65"},
	    {"bits", "958528.0"},
	    {"bits", "18446744073709551616"},
	    {"bits", "4294967296"},
	    {"k", NULL},
	    {"k", "0"},
	    {"k", "33"},
	    {"k", "+7"},
	    {"scheme", NULL},
	    {"scheme", "guava2"},
	    {"scheme", "keyed"}, /* without a fingerprint */
	    {"scheme", "poly"},  /* of other sizes */
	    {"single", "1"},     /* and ten shards */
	    {"single", "yes"},
	    {"key", "0123456789abcdef0123456789abcdef0"},
	    {"tag", NULL},
	    {"tag", "1234567"},
	    {"tag", "123456789"},
	    {"tag", ""},
	    {"capacity", "-1"},
	    {"error-rate", "nan"},
	    {"elements", "many"},
	    {"began", "-1"},
	    {"ended", "x"},
	    {"sealed", "4294967296"},
	    {"carried", "2"},
	    {"set", "1e6"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct list l = full();
		struct meta m;
		char field[64];

		snprintf(field, sizeof(field), "g:202512:%s", cases[i].field);
		change(&l, field, cases[i].value);
		ck_assert_msg(
		    parse(&m, &l) == 0, "%s: %s", field, cases[i].value);
		ck_assert_msg(!m.generations[m.active].usable, "%s: %s", field,
		    cases[i].value);
		ck_assert(m.generations[m.building].usable);
		if (!strcmp(cases[i].field, "state"))
			ck_assert_int_eq(
			    m.generations[m.active].state, GENERATION_UNKNOWN);
	}
}
END_TEST

START_TEST(zero_tag)
{
	struct list l = full();
	struct meta m;

	change_raw(&l, "g:202512:tag", "\0\0\0\0\0\0\0\0", 8);
	ck_assert_int_eq(parse(&m, &l), 0);
	ck_assert(!m.generations[m.active].usable);
}
END_TEST

START_TEST(fingerprints)
{
	static const char *const bad[] = {"", "0123456789abcdef",
	    "0123456789ABCDEF0123456789ABCDEF",
	    "0123456789abcdeg0123456789abcdef"};
	struct list l;
	struct meta m;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		l = full();
		change(&l, "g:202512.2:key", bad[i]);
		ck_assert_int_eq(parse(&m, &l), 0);
		ck_assert(!m.generations[m.building].usable);
	}
	/* Of no use to the others, so not there. */
	l = full();
	change(&l, "g:202512:key", "0123456789abcdef0123456789abcdef");
	ck_assert_int_eq(parse(&m, &l), 0);
	ck_assert(m.generations[m.active].usable);
	ck_assert_str_eq(m.generations[m.active].key_fingerprint, "");
}
END_TEST

START_TEST(states)
{
	static const struct {
		const char *text;
		enum generation_state state;
	} cases[] = {
	    {"making", GENERATION_MAKING},
	    {"building", GENERATION_BUILDING},
	    {"sealed", GENERATION_SEALED},
	    {"lost", GENERATION_LOST},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct list l = full();
		struct meta m;

		change(&l, "g:202512:state", cases[i].text);
		ck_assert_int_eq(parse(&m, &l), 0);
		ck_assert_int_eq(m.generations[0].state, cases[i].state);
		ck_assert(m.generations[0].usable);
	}
}
END_TEST

START_TEST(error_rates)
{
	static const struct {
		const char *text;
		double value; /* 0: refused */
	} cases[] = {
	    {"0.01", 0.01},
	    {"0.001", 0.001},
	    {"0.25", 0.25},
	    {"1e-09", 1e-9},
	    {"1E-9", 1e-9},
	    {"2.5e-1", 0.25},
	    {"25e-2", 0.25},
	    {"0.0025e+2", 0.25},
	    {"0.010000000000000000208", 0.01},
	    {"0.01000000000000000000000000000000000001", 0.01},
	    {"0", 0},
	    {"1", 0},
	    {"0.0", 0},
	    {"1e-61", 0},
	    {"1e999999999999999999999", 0},
	    {"", 0},
	    {".", 0},
	    {".5", 0},
	    {"0.", 0},
	    {"0.e1", 0},
	    {"0.1.1", 0},
	    {"0,01", 0},
	    {" 0.01", 0},
	    {"0.01 ", 0},
	    {"-0.01", 0},
	    {"+0.01", 0},
	    {"0x1p-3", 0},
	    {"1e", 0},
	    {"1e-", 0},
	    {"1e--2", 0},
	    {"nan", 0},
	    {"inf", 0},
	    {"e-2", 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct list l = full();
		struct meta m;
		const struct generation *g = &m.generations[0];

		change(&l, "g:202512:error-rate", cases[i].text);
		ck_assert_int_eq(parse(&m, &l), 0);
		ck_assert_msg(
		    g->usable == (cases[i].value > 0), "%s", cases[i].text);
		if (g->usable)
			ck_assert_msg(fabs(g->error_rate - cases[i].value) <=
				cases[i].value * 1e-15,
			    "%s", cases[i].text);
	}
}
END_TEST

/* Names with what strftime may give, up to their limits. */
START_TEST(generation_names)
{
	static const struct {
		const char *name;
		int result;
	} cases[] = {
	    {"a", 0},
	    {"2025-12-31T23:59:59", 0},
	    {"d\xc3\xa9"
	     "c",
		0},
	    {"a:state", 0},
	    {"123456789012345678901234567890123456789012345678901234567890123",
		0},
	    {"1234567890123456789012345678901234567890123456789012345678901234",
		-1},
	    {"", -1},
	    {"two words", -1},
	    {"tab\t", -1},
	    {"\x7f", -1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct list l = {.n = 0};
		struct meta m;
		char field[128];

		put(&l, "layout", "1");
		put(&l, "epoch", "1");
		snprintf(field, sizeof(field), "g:%s:state", cases[i].name);
		put(&l, field, "sealed");
		put(&l, "active", cases[i].name);
		ck_assert_msg(
		    parse(&m, &l) == cases[i].result, "%s", cases[i].name);
		if (cases[i].result == 0) {
			ck_assert_str_eq(m.generations[0].name, cases[i].name);
			ck_assert_int_eq(m.active, 0);
		}
	}
}
END_TEST

START_TEST(generation_limit)
{
	static char fields[META_GENERATIONS_MAX + 1][32];
	struct list l = {.n = 0};
	struct meta m;

	put(&l, "layout", "1");
	put(&l, "epoch", "1");
	for (int i = 0; i < META_GENERATIONS_MAX; i++) {
		snprintf(fields[i], sizeof(fields[i]), "g:n.%d:state", i);
		put(&l, fields[i], "lost");
	}
	ck_assert_int_eq(parse(&m, &l), 0);
	ck_assert_uint_eq(m.generation_count, META_GENERATIONS_MAX);
	put(&l, "g:one more:colour", "blue"); /* describes nothing */
	ck_assert_int_eq(parse(&m, &l), 0);
	put(&l, "g:more:state", "lost");
	ck_assert_int_eq(parse(&m, &l), -1);
}
END_TEST

/* A generation may be listed as retiring and be no pointer's. */
START_TEST(retiring)
{
	struct list l = full();
	struct meta m;

	put(&l, "g:old:state", "sealed");
	put(&l, "g:older:state", "lost");
	put(&l, "retiring", "older gone  old");
	ck_assert_int_eq(parse(&m, &l), 0);
	ck_assert_uint_eq(m.generation_count, 4);
	for (size_t i = 0; i < m.generation_count; i++)
		ck_assert_int_eq(m.generations[i].retiring,
		    !strncmp(m.generations[i].name, "old", 3));

	l = full();
	put(&l, "retiring", "");
	ck_assert_int_eq(parse(&m, &l), 0);
	ck_assert(!m.generations[0].retiring && !m.generations[1].retiring);
}
END_TEST

/* Whatever stands in the hash: no crash, and nothing half believed. */
START_TEST(random_damage)
{
	uint64_t seed = random_u64();

	printf("random_damage: seed %" PRIu64 "\n", seed);
	srand((unsigned)seed);
	for (int round = 0; round < 50000; round++) {
		struct list l = full();
		uint8_t junk[4][80];
		struct meta m;

		for (int i = 0; i < 1 + rand() % 4; i++) {
			size_t len = (size_t)rand() % sizeof(junk[i]);
			size_t at = (size_t)rand() % l.n;
			struct slice old = l.items[at];

			for (size_t j = 0; j < len; j++)
				junk[i][j] = (uint8_t)rand();
			if (rand() % 2 && old.len < sizeof(junk[i]) &&
			    old.len > 0) {
				len = old.len;
				memcpy(junk[i], old.data, len);
				junk[i][(size_t)rand() % len] ^= 1
				    << rand() % 8;
			}
			l.items[at] = slice_of(junk[i], len);
		}
		if (parse(&m, &l) == -1)
			continue;
		for (size_t i = 0; i < m.generation_count; i++) {
			const struct generation *g = &m.generations[i];

			ck_assert_int_eq(
			    meta_find(&m, slice_str(g->name)), (int)i);
			MUST(!g->usable || geometry_valid(&g->geometry));
			MUST(!g->usable ||
			    memcmp(g->tag, "\0\0\0\0\0\0\0\0", 8) != 0);
		}
		MUST(m.active < (int)m.generation_count);
		MUST(m.previous < (int)m.generation_count);
		MUST(m.building < (int)m.generation_count);
	}
}
END_TEST

START_TEST(key_names)
{
	char name[NAME_MAX_BYTES];

	ck_assert_uint_eq(name_shard(name, sizeof(name), "bloom:{user}",
			      "202512.2", UINT32_MAX),
	    strlen("bloom:{user}:202512.2/4294967295"));
	ck_assert_str_eq(name, "bloom:{user}:202512.2/4294967295");
	ck_assert_uint_eq(
	    name_other(name, sizeof(name), "bloom:{user}", "meta"), 17);
	ck_assert_str_eq(name, "bloom:{user}:meta");
	ck_assert_uint_eq(name_other(name, 18, "bloom:{user}", "meta"), 17);
}
END_TEST

/* A key cut short is another key. */
START_TEST(key_name_cut)
{
	char name[17];

	name_other(name, sizeof(name), "bloom:{user}", "meta");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("filter meta");
	TCase *t = tcase_create("meta");
	SRunner *r;
	int failed;

	tcase_add_test(t, everything);
	tcase_add_test(t, no_meta);
	tcase_add_test(t, unknown_fields);
	tcase_add_test(t, other_layout);
	tcase_add_test(t, bad_top);
	tcase_add_test(t, embedded_nul);
	tcase_add_test(t, without_epoch);
	tcase_add_test(t, twice);
	tcase_add_test(t, unusable);
	tcase_add_test(t, zero_tag);
	tcase_add_test(t, fingerprints);
	tcase_add_test(t, states);
	tcase_add_test(t, error_rates);
	tcase_add_test(t, generation_names);
	tcase_add_test(t, generation_limit);
	tcase_add_test(t, retiring);
	tcase_add_test(t, random_damage);
	tcase_add_test(t, key_names);
	tcase_add_test_raise_signal(t, key_name_cut, SIGABRT);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);

	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
