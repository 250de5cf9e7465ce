/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random key patterns and keys: pattern_match and keypattern_collide against
 * naive ones. The seed is printed; PATTERN_SEED=N repeats a run.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "config/keypattern.h"
#include "core/random.h"
#include "policy/pattern.h"

#define FILTERS_MAX 512
#define KEYS_MAX    4

/* Settings made by hand; texts are borrowed. */
struct fixture {
	struct settings settings;
	struct filter_settings filters[FILTERS_MAX];
	char *keys[FILTERS_MAX][KEYS_MAX];
};

static void
fixture_init(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->settings.filters = f->filters;
}

static struct filter_settings *
fixture_filter(struct fixture *f, const char *name, unsigned db)
{
	size_t i = f->settings.filter_count++;

	ck_assert_uint_lt(i, FILTERS_MAX);
	f->filters[i].name = (char *)(uintptr_t)name;
	f->filters[i].db = db;
	f->filters[i].keys.items = f->keys[i];
	return &f->filters[i];
}

static void
fixture_key(struct filter_settings *s, const char *pattern)
{
	ck_assert_uint_lt(s->keys.count, KEYS_MAX);
	s->keys.items[s->keys.count++] = (char *)(uintptr_t)pattern;
}

static uint64_t state;

static unsigned
next_below(unsigned bound)
{
	/* splitmix64 */
	uint64_t z = state += 0x9e3779b97f4a7c15U;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
	return (unsigned)((z ^ (z >> 31)) % bound);
}

static void
seed_random(void)
{
	const char *given = getenv("PATTERN_SEED");

	state = given != NULL ? strtoull(given, NULL, 10) : random_u64();
	printf("PATTERN_SEED=%llu\n", (unsigned long long)state);
	fflush(stdout);
}

struct model {
	char prefix[8], suffix[8]; /* NUL-terminated */
	bool star;
	size_t filter;
	char text[48];
};

static const char alphabet[] = "ab:{}";

static void
random_text(char *out, unsigned max)
{
	unsigned len = next_below(max + 1);

	for (unsigned i = 0; i < len; i++)
		out[i] = alphabet[next_below(sizeof(alphabet) - 1)];
	out[len] = '\0';
}

static size_t
escape(char *out, const char *text)
{
	size_t n = 0;

	for (; *text != '\0'; text++) {
		out[n++] = *text;
		if (*text == '{' || *text == '}')
			out[n++] = *text;
	}
	return n;
}

static void
random_model(struct model *m, unsigned prefix_max, unsigned suffix_max)
{
	const char *name;
	size_t n;

	random_text(m->prefix, prefix_max);
	random_text(m->suffix, suffix_max);
	m->star = next_below(3) == 0;
	name = m->star ? "{id*}" : "{id}";
	n = escape(m->text, m->prefix);
	memcpy(m->text + n, name, strlen(name));
	n += strlen(name);
	n += escape(m->text + n, m->suffix);
	m->text[n] = '\0';
}

/* Straight from the design's words, byte by byte. */
static bool
naive_fits(const struct model *m, const char *key, size_t len, size_t *start,
    size_t *capture_len)
{
	size_t p = strlen(m->prefix), s = strlen(m->suffix);
	char before = p > 0 ? m->prefix[p - 1] : 'a';
	bool word = before == 'a' || before == 'b';

	if (len < p + s + 1)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (i < p && key[i] != m->prefix[i])
			return false;
		if (i >= len - s && key[i] != m->suffix[i - (len - s)])
			return false;
		if (i >= p && i < len - s && !m->star && !word &&
		    key[i] == before)
			return false;
	}
	*start = p;
	*capture_len = len - p - s;
	return true;
}

static size_t
random_key(char *key, const struct model *m)
{
	size_t n = 0, len;

	if (next_below(4) > 0) {
		len = strlen(m->prefix);
		memcpy(key, m->prefix, len);
		n += len;
	}
	random_text(key + n, 4);
	n += strlen(key + n);
	if (next_below(4) > 0) {
		len = strlen(m->suffix);
		memcpy(key + n, m->suffix, len);
		n += len;
	}
	/* Sometimes a byte that no pattern has. */
	if (n > 0 && next_below(16) == 0)
		key[next_below((unsigned)n)] = next_below(2) ? '\0' : '\xff';
	return n;
}

/* Returns how many keys matched. */
static int
compare_round(struct fixture *f, struct model *models, size_t count)
{
	struct pattern_set *set;
	int matched = 0;

	fixture_init(f);
	for (size_t i = 0; i < count; i++) {
		struct filter_settings *s;

		random_model(&models[i], 5, 3);
		if (i == 0 || next_below(3) == 0) {
			s = fixture_filter(f, "f", 0);
		} else {
			s = &f->filters[f->settings.filter_count - 1];
			if (s->keys.count == KEYS_MAX)
				s = fixture_filter(f, "f", 0);
		}
		fixture_key(s, models[i].text);
		models[i].filter = f->settings.filter_count - 1;
	}
	set = pattern_set_new(&f->settings);
	for (int n = 0; n < 200; n++) {
		char key[32];
		size_t len = random_key(
		    key, &models[next_below((unsigned)count)]);
		size_t start = 0, got = 0, most = 0, filter = 0, at, size;
		bool fits = false, found;
		struct pattern_match m;

		for (size_t i = 0; i < count; i++) {
			size_t literals = strlen(models[i].prefix) +
			    strlen(models[i].suffix);

			/* A tie goes to the first. */
			if (!naive_fits(&models[i], key, len, &at, &size) ||
			    (fits && literals <= most))
				continue;
			fits = true;
			most = literals;
			filter = models[i].filter;
			start = at;
			got = size;
		}
		found = pattern_match(set, 0, slice_of(key, len), &m);
		ck_assert_msg(
		    found == fits, "key \"%.*s\": %d", (int)len, key, found);
		if (!found)
			continue;
		matched++;
		ck_assert_uint_eq(m.filter, filter);
		ck_assert_ptr_eq(m.capture.data, (uint8_t *)key + start);
		ck_assert_uint_eq(m.capture.len, got);
	}
	pattern_set_free(set);
	return matched;
}

START_TEST(property_match)
{
	static struct fixture f;
	static struct model models[FILTERS_MAX];
	int matched = 0, rounds = 400;

	seed_random();
	for (int i = 0; i < rounds; i++)
		matched += compare_round(
		    &f, models, 1 + next_below(i % 8 == 0 ? 300 : 12));
	/* Neither side of the comparison was starved. */
	ck_assert_int_gt(matched, rounds * 200 / 10);
	ck_assert_int_lt(matched, rounds * 200 * 99 / 100);
}
END_TEST

/* Whether some key up to eight bytes fits both, by trying all of them. */
static bool
naive_overlap(const struct model *a, const struct model *b)
{
	const size_t symbols = sizeof(alphabet); /* "x" as the last one */
	size_t at, size;
	char key[8];

	for (size_t len = 1; len <= 6; len++) {
		size_t total = 1;

		for (size_t i = 0; i < len; i++)
			total *= symbols;
		for (size_t n = 0; n < total; n++) {
			size_t rest = n;

			for (size_t i = 0; i < len; i++) {
				size_t d = rest % symbols;

				key[i] = d == symbols - 1 ? 'x' : alphabet[d];
				rest /= symbols;
			}
			if (naive_fits(a, key, len, &at, &size) &&
			    naive_fits(b, key, len, &at, &size))
				return true;
		}
	}
	return false;
}

START_TEST(property_collide)
{
	int yes = 0, rounds = 600;

	seed_random();
	for (int i = 0; i < rounds;) {
		struct model m[2];
		struct keypattern p[2];
		size_t literals[2];
		struct err err;
		bool collide;

		for (size_t j = 0; j < 2; j++) {
			random_model(&m[j], 3, 2);
			literals[j] = strlen(m[j].prefix) + strlen(m[j].suffix);
			ck_assert_int_eq(
			    keypattern_parse(&p[j], m[j].text, &err), 0);
		}
		collide = keypattern_collide(&p[0], &p[1]);
		/* Keys of six bytes are long enough to tell. */
		ck_assert_msg(collide ==
			(literals[0] == literals[1] &&
			    naive_overlap(&m[0], &m[1])),
		    "%s %s: %d", m[0].text, m[1].text, collide);
		if (literals[0] == literals[1]) {
			yes += collide;
			i++;
		}
		keypattern_fini(&p[0]);
		keypattern_fini(&p[1]);
	}
	ck_assert_int_gt(yes, rounds / 20);
	ck_assert_int_lt(yes, rounds * 19 / 20);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("policy: random patterns");
	TCase *c = tcase_create("random");
	SRunner *r;
	int failed;

	tcase_set_timeout(c, 60);
	tcase_add_test(c, property_match);
	tcase_add_test(c, property_collide);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
