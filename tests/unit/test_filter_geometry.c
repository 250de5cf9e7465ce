/* SPDX-License-Identifier: BSD-2-Clause */
/* Unit tests of src/filter: sizing and the bit array. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <check.h>

#include "core/random.h"
#include "filter/bits.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

/* ck_assert notes each success in a file: too slow for millions of them. */
#define MUST(condition)                                                        \
	do {                                                                   \
		if (!(condition))                                              \
			ck_abort_msg("%s", #condition);                        \
	} while (0)

static struct geometry
plan(uint64_t n, double p, enum scheme scheme, bool single)
{
	struct geometry g;
	struct err err;

	if (geometry_plan(&g, n, p, scheme, single, &err) == -1)
		ck_abort_msg("n %" PRIu64 " p %g: %s", n, p, err.text);
	MUST(geometry_valid(&g));
	return g;
}

/* m and k as Redisson and Guava have them (WIRE.md). */
START_TEST(single_sizes)
{
	static const struct {
		uint64_t n;
		double p;
		uint64_t m, guava;
		uint32_t k;
	} cases[] = {
	    {10000, 0.01, 95850, 95872, 7},
	    {1000000, 0.01, 9585058, 9585088, 7},
	    {55000000, 0.03, 401414246, 401414272, 5},
	    {350000000, 0.01, 3354770432, 3354770432, 7},
	    {1, 0.25, 2, 64, 1},
	    {1, 1e-9, 43, 64, 30},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct geometry g;

		for (unsigned s = 0; s < SCHEME_COUNT; s++) {
			if (s == SCHEME_POLY)
				continue;
			g = plan(cases[i].n, cases[i].p, (enum scheme)s, true);
			ck_assert_uint_eq(g.bits,
			    s == SCHEME_GUAVA ? cases[i].guava : cases[i].m);
			ck_assert_uint_eq(g.hashes, cases[i].k);
			ck_assert_uint_eq(g.shards, 1);
			ck_assert(g.single);
			ck_assert_uint_eq(geometry_tag_offset(&g) % 8, 0);
			ck_assert_uint_ge(geometry_tag_offset(&g) * 8, g.bits);
			ck_assert_uint_lt(
			    geometry_tag_offset(&g) * 8, g.bits + 64);
		}
	}
}
END_TEST

START_TEST(poly_size)
{
	struct geometry g = plan(5, 0.01, SCHEME_POLY, true);
	struct err err;

	ck_assert_uint_eq(g.bits, UINT64_C(1) << 28);
	ck_assert_uint_eq(g.hashes, 6);
	ck_assert_uint_eq(g.shards, 1);
	ck_assert_int_eq(
	    geometry_plan(&g, 5, 0.01, SCHEME_POLY, false, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.text, "single"));
}
END_TEST

START_TEST(refused)
{
	static const struct {
		uint64_t n;
		double p;
		bool single;
	} cases[] = {
	    {0, 0.01, false},
	    {UINT64_C(10000000001), 0.01, false},
	    {UINT64_MAX, 0.01, false},
	    {1000, 0, false},
	    {1000, -0.01, false},
	    {1000, 0.9e-9, false},
	    {1000, 0.2500001, false},
	    {1000, 1, false},
	    {1000, INFINITY, false},
	    {1000, NAN, false},
	    {1000000000, 0.01, true}, /* above 2^32 bits */
	    {UINT64_C(10000000000), 1e-9, true},
	};
	struct geometry g;
	struct err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		err.text[0] = '\0';
		ck_assert_msg(geometry_plan(&g, cases[i].n, cases[i].p,
				  SCHEME_GUAVA, cases[i].single, &err) == -1,
		    "case %zu", i);
		ck_assert_str_ne(err.text, "");
	}
	ck_assert_int_eq(
	    geometry_plan(&g, 1, 0.01, SCHEME_COUNT, false, &err), -1);
}
END_TEST

/* The largest n whose m fits: one string up to its last bit, tag included. */
START_TEST(single_limit)
{
	uint64_t low = 1, high = UINT64_C(10000000000);
	struct geometry g;
	struct err err;

	while (high - low > 1) {
		uint64_t mid = (low + high) / 2;

		if (geometry_plan(&g, mid, 0.01, SCHEME_KEYED, true, &err) == 0)
			low = mid;
		else
			high = mid;
	}
	g = plan(low, 0.01, SCHEME_KEYED, true);
	ck_assert_uint_le(g.bits, SINGLE_BITS_MAX);
	ck_assert_uint_ge(g.bits, SINGLE_BITS_MAX - 10);
	ck_assert_uint_le(geometry_shard_bytes(&g) * 8, UINT64_C(1) << 32);
}
END_TEST

static void
check_sharded(uint64_t n, double p)
{
	double exact = -(double)n * log(p) / (M_LN2 * M_LN2);
	uint64_t m = (uint64_t)exact;
	struct geometry g = plan(n, p, SCHEME_GUAVA, false);

	MUST(!g.single);
	MUST(g.shards == (m + SHARD_BITS_MAX - 1) / SHARD_BITS_MAX);
	MUST(g.bits % 64 == 0);
	MUST(g.bits <= SHARD_BITS_MAX);
	MUST(geometry_total_bits(&g) >= m);
	MUST(geometry_total_bits(&g) < (m + (uint64_t)g.shards * 65));
	MUST(geometry_shard_bytes(&g) <= SHARD_BYTES_MAX);
	MUST(geometry_shard_bytes(&g) == g.bits / 8 + TAG_BYTES);
	MUST(geometry_total_bytes(&g) == ((g.bits / 8 + TAG_BYTES) * g.shards));
	MUST(g.hashes == fmax(1, round((double)m / (double)n * M_LN2)));
	/* k is a whole number, hence a little above the rate asked for. */
	if (n >= 1000)
		MUST(geometry_rate_of_count(&g, (double)n) < p * 1.15);
}

START_TEST(sharded_sizes)
{
	uint64_t seed = random_u64(), state = seed;

	printf("sharded_sizes: seed %" PRIu64 "\n", seed);
	check_sharded(1, 0.25);
	check_sharded(1, 1e-9);
	check_sharded(UINT64_C(10000000000), 1e-9);
	check_sharded(UINT64_C(10000000000), 0.25);
	check_sharded(UINT64_C(1) << 32, 0.01);
	for (int i = 0; i < 20000; i++) {
		uint64_t n;
		double p;

		state = state * UINT64_C(6364136223846793005) +
		    UINT64_C(1442695040888963407);
		n = (state >> (30 + state % 34)) % UINT64_C(10000000000) + 1;
		p = pow(10, -0.7 - 8.2 * (double)(state >> 40) / (1 << 24));
		check_sharded(n, p);
	}
#if SHARD_BYTES_MAX == 131000
	struct geometry g = plan(1000000, 0.01, SCHEME_GUAVA, false);

	ck_assert_uint_eq(SHARD_BITS_MAX, 1047936);
	ck_assert_uint_eq(g.shards, 10);
	ck_assert_uint_eq(g.bits, 958528);
	ck_assert_uint_eq(g.hashes, 7);
	ck_assert_uint_eq(geometry_tag_offset(&g), 119816);
#endif
}
END_TEST

START_TEST(valid)
{
	static const struct {
		bool valid;
		struct geometry g;
	} cases[] = {
	    {true, {SCHEME_GUAVA, false, 1, 64, 1}},
	    {true, {SCHEME_GUAVA, false, 1000, 1047936, HASHES_MAX}},
	    {true, {SCHEME_REDISSON, true, 1, 95850, 7}},
	    {true, {SCHEME_KEYED, true, 1, SINGLE_BITS_MAX, 7}},
	    {true, {SCHEME_POLY, true, 1, POLY_BITS, 6}},
	    {false, {SCHEME_COUNT, false, 1, 64, 1}},
	    {false, {(enum scheme)77, false, 1, 64, 1}},
	    {false, {SCHEME_GUAVA, false, 0, 64, 1}},
	    {false, {SCHEME_GUAVA, false, 1, 0, 1}},
	    {false, {SCHEME_GUAVA, false, 1, 64, 0}},
	    {false, {SCHEME_GUAVA, false, 1, 64, HASHES_MAX + 1}},
	    {false, {SCHEME_GUAVA, false, 1, 65, 1}},
	    {false, {SCHEME_GUAVA, true, 2, 64, 1}},
	    {false, {SCHEME_GUAVA, true, 1, SINGLE_BITS_MAX + 1, 1}},
	    {false, {SCHEME_GUAVA, false, 1, SINGLE_BITS_MAX + 64, 1}},
	    {false, {SCHEME_GUAVA, false, 1, UINT64_MAX, 1}},
	    {false, {SCHEME_GUAVA, false, UINT32_MAX, 1047936, 7}},
	    {false, {SCHEME_POLY, false, 1, POLY_BITS, 6}},
	    {false, {SCHEME_POLY, true, 1, POLY_BITS, 7}},
	    {false, {SCHEME_POLY, true, 1, POLY_BITS - 64, 6}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(geometry_valid(&cases[i].g) == cases[i].valid,
		    "case %zu", i);
}
END_TEST

START_TEST(rates)
{
	struct geometry g = plan(1000000, 0.01, SCHEME_GUAVA, false);

	ck_assert_double_eq(geometry_rate_of_fill(&g, 0), 0);
	ck_assert_double_eq(geometry_rate_of_fill(&g, 1), 1);
	ck_assert_double_eq_tol(
	    geometry_rate_of_fill(&g, 0.5), 1 / 128.0, 1e-12);
	ck_assert_double_eq(geometry_rate_of_count(&g, 0), 0);
	ck_assert_double_eq_tol(geometry_rate_of_count(&g, 1e6), 0.01, 1e-4);
	ck_assert(geometry_rate_of_count(&g, 2e6) > 0.1);
	ck_assert_double_eq_tol(geometry_rate_of_count(&g, 1e12), 1, 1e-9);
	g = (struct geometry){SCHEME_GUAVA, true, 1, 1, 1};
	ck_assert_double_eq(geometry_rate_of_count(&g, 0), 0);
	ck_assert_double_eq(geometry_rate_of_count(&g, 3), 1);
}
END_TEST

/* Never below fill^k, rising with the fill, up to 1. */
START_TEST(redisson_rates)
{
	struct geometry g = {SCHEME_REDISSON, false, 10, 958528, 1};

	for (g.hashes = 1; g.hashes <= HASHES_MAX; g.hashes++) {
		double last = 0;

		for (int i = 0; i <= 1000; i++) {
			double fill = i / 1000.0;
			double rate = geometry_rate_of_fill(&g, fill);

			MUST(rate >= pow(fill, g.hashes) * (1 - 1e-12));
			MUST(rate >= last && rate <= 1);
			last = rate;
		}
		MUST(last == 1);
	}
	g.hashes = 7;
	ck_assert_double_eq_tol(
	    geometry_rate_of_fill(&g, 0.5), 1.329 / 128, 1e-9);
}
END_TEST

/* SETBIT b 0 and SETBIT b 9 give the bytes 0x80 0x40 (WIRE.md). */
START_TEST(bit_order)
{
	struct geometry g = {SCHEME_GUAVA, false, 2, 128, 2};
	struct positions p = {.shard = 1, .count = 2, .bit = {0, 9}};
	struct bits b;
	const uint8_t *shard;

	ck_assert_int_eq(bits_init(&b, &g), 0);
	ck_assert_uint_eq(b.stride, 16);
	ck_assert(!bits_has(&b, &p));
	ck_assert(bits_add(&b, &p));
	ck_assert(bits_has(&b, &p));
	ck_assert(!bits_add(&b, &p));
	shard = bits_shard(&b, 1);
	ck_assert_uint_eq(shard[0], 0x80);
	ck_assert_uint_eq(shard[1], 0x40);
	ck_assert_uint_eq(bits_count_all(&b), 2);
	ck_assert_uint_eq(bits_count(&b, 0, 0, 16), 0);
	ck_assert_uint_eq(bits_count(&b, 1, 0, 16), 2);
	ck_assert_uint_eq(bits_count(&b, 1, 1, 1), 1);
	ck_assert_uint_eq(bits_count(&b, 1, 16, 0), 0);

	/* One bit new, the same bit twice, the last bit of the shard. */
	p.bit[1] = 10;
	ck_assert(!bits_has(&b, &p));
	ck_assert(bits_add(&b, &p));
	p.bit[0] = p.bit[1] = 127;
	ck_assert(bits_add(&b, &p));
	ck_assert_uint_eq(shard[15], 1);
	ck_assert_uint_eq(bits_count(&b, 1, 0, 16), 4);
	bits_fini(&b);
	ck_assert_ptr_null(b.data);
}
END_TEST

static unsigned
naive_count(const uint8_t *p, size_t len)
{
	unsigned n = 0;

	for (size_t i = 0; i < len; i++)
		for (int j = 0; j < 8; j++)
			n += p[i] >> j & 1;
	return n;
}

START_TEST(counting)
{
	struct geometry g = {SCHEME_GUAVA, false, 3, 8192, 1};
	uint64_t seed = random_u64(), state = seed, all = 0;
	struct bits b;

	printf("counting: seed %" PRIu64 "\n", seed);
	ck_assert_int_eq(bits_init(&b, &g), 0);
	ck_assert_uint_eq(bits_count_all(&b), 0);
	memset(b.data, 0xff, b.stride * 3);
	ck_assert_uint_eq(bits_count_all(&b), 3 * 8192);
	for (size_t i = 0; i < b.stride * 3; i++) {
		state = state * UINT64_C(6364136223846793005) +
		    UINT64_C(1442695040888963407);
		b.data[i] = (uint8_t)(state >> 56);
	}
	for (uint32_t shard = 0; shard < 3; shard++) {
		all += naive_count(bits_shard(&b, shard), b.stride);
		for (size_t from = 0; from < 40; from++)
			for (size_t len = 0; from + len <= b.stride; len += 7)
				MUST(bits_count(&b, shard, from, len) ==
				    naive_count(
					bits_shard(&b, shard) + from, len));
	}
	ck_assert_uint_eq(bits_count_all(&b), all);
	bits_fini(&b);
}
END_TEST

/* A position must not reach the padding that another m would have. */
START_TEST(foreign_position)
{
	struct geometry g = {SCHEME_REDISSON, true, 1, 100, 1};
	struct positions p = {.shard = 0, .count = 1, .bit = {100}};
	struct bits b;

	ck_assert_int_eq(bits_init(&b, &g), 0);
	bits_add(&b, &p);
}
END_TEST

START_TEST(no_memory)
{
	struct geometry g = {
	    SCHEME_GUAVA, false, UINT32_MAX, UINT64_C(1) << 61, 1};
	struct rlimit limit = {256 << 20, 256 << 20};
	struct bits b;

	ck_assert_int_eq(bits_init(&b, &g), -1); /* more than can be said */
	bits_fini(&b);
	if (SANITIZED) /* whose own memory is above any limit */
		return;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
	g = plan(UINT64_C(10000000000), 0.01, SCHEME_GUAVA, false);
	ck_assert_int_eq(bits_init(&b, &g), -1);
	bits_fini(&b);
	g = plan(1000, 0.01, SCHEME_GUAVA, false);
	ck_assert_int_eq(bits_init(&b, &g), 0);
	bits_fini(&b);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("filter geometry");
	TCase *t = tcase_create("sizes");
	SRunner *r;
	int failed;

	tcase_add_test(t, single_sizes);
	tcase_add_test(t, poly_size);
	tcase_add_test(t, refused);
	tcase_add_test(t, single_limit);
	tcase_add_test(t, sharded_sizes);
	tcase_add_test(t, valid);
	tcase_add_test(t, rates);
	tcase_add_test(t, redisson_rates);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);

	t = tcase_create("bits");
	tcase_add_test(t, bit_order);
	tcase_add_test(t, counting);
	tcase_add_test_raise_signal(t, foreign_position, SIGABRT);
	tcase_add_test(t, no_memory);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);

	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
