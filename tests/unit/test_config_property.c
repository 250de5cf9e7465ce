/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Properties over random input: a dump loads as the same settings, two patterns
 * collide exactly when some key fits both, and no file, however broken, does
 * more than fill a report. The seed is printed; BLOOMGATE_SEED sets it.
 */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/keypattern.h"
#include "config/options.h"
#include "config/value.h"
#include "config_util.h"
#include "core/mem.h"
#include "core/random.h"

static uint64_t state; /* splitmix64 */

static uint64_t
pick(uint64_t below)
{
	uint64_t z = (state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return (z ^ z >> 31) % below;
}

static void
print_random_text(struct buf *out)
{
	static const char *const parts[] = {"a", "Z", "0", " ", "\"", "\\", "#",
	    ": ", "{", "}", "[", ",", "'", "%", "&", "*", "!", "|", ">",
	    "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xc2\x85",
	    "\xe2\x80\xa8", "\xef\xbb\xbf", "\xef\xbf\xbe", "\xc2\xa0"};
	struct buf text;
	char *s;
	size_t n = pick(12);

	value_text_start(&text);
	value_printf(&text, "x");
	while (n-- > 0)
		value_printf(
		    &text, "%s", parts[pick(sizeof(parts) / sizeof(parts[0]))]);
	s = value_text_end(&text);
	value_print_string(out, s, strlen(s));
	free(s);
}

/* Binary-looking texts, as absent replies and null values may be. */
static void
print_random_bytes(struct buf *out)
{
	char s[8];
	size_t i, n = pick(sizeof(s));

	for (i = 0; i < n; i++)
		s[i] = (char)(1 + pick(127));
	value_print_string(out, s, n);
}

static void
print_random_schedule(struct buf *out)
{
	struct schedule s = {.kind = (enum schedule_kind)pick(5)};

	s.weekday = (int)pick(7);
	s.hour = (int)pick(24);
	s.minute = (int)pick(60);
	s.every_ms = 60000 + pick(1000000);
	value_print_schedule(out, &s);
}

static void
print_random_number(struct buf *out, const struct option *o)
{
	double share = (double)pick(1001) / 1000, v;

	if ((o->flags & OPTION_OR_ZERO) && pick(3) == 0)
		v = 0;
	else if (pick(2) == 0)
		v = o->min + (o->max - o->min) * share;
	else
		v = o->min + (o->max - o->min) * share * 1e-6;
	option_print_number(out, o, v);
}

/* A value for o; false where it is left to its default. */
static bool
print_random_value(struct buf *out, const struct option *o)
{
	unsigned words = 1, n;
	const char *p;

	switch (o->type) {
	case OPTION_BOOL:
		value_printf(out, "%s", pick(2) ? "true" : "no");
		return true;
	case OPTION_UNSIGNED:
	case OPTION_WHOLE:
	case OPTION_REAL:
	case OPTION_SIZE:
	case OPTION_DURATION:
		print_random_number(out, o);
		return true;
	case OPTION_STRING:
		if ((o->flags & OPTION_COMPUTED) ||
		    strcmp(o->path, "timezone") == 0 ||
		    strcmp(o->path, "suffix") == 0)
			return false;
		print_random_text(out);
		return true;
	case OPTION_PATH:
		value_printf(out, "%s", pick(3) ? "\"\"" : "/some/file");
		return true;
	case OPTION_WORD:
		for (p = o->words; *p != '\0'; p++)
			words += *p == ' ';
		value_print_word(out, o->words, (unsigned)pick(words));
		return true;
	case OPTION_SCHEDULE:
		print_random_schedule(out);
		return true;
	case OPTION_ABSENT:
		n = (unsigned)pick(3);
		value_printf(out, "%s",
		    n == 0       ? "nil"
			: n == 1 ? "{value: "
				 : "{error: ");
		if (n == 1)
			print_random_bytes(out);
		if (n == 2)
			print_random_text(out);
		value_printf(out, "%s", n == 0 ? "" : "}");
		return true;
	default:
		return false;
	}
}

/* A file that is often, not always, a good configuration. */
static char *
random_file(void)
{
	struct buf out, v;
	char *value;
	size_t i;
	bool filter = false;

	value_text_start(&out);
	for (i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];
		const char *indent = o->scope == SCOPE_FILTER ? "    " : "";

		if (strcmp(o->path, "name") == 0) {
			value_printf(&out,
			    "  - name: n%u\n"
			    "    keys: [\"a%u:{id}\"]\n"
			    "    capacity: %u\n",
			    (unsigned)pick(9), (unsigned)pick(9),
			    1 + (unsigned)pick(1000000));
			filter = true;
		}
		if (o->flags & OPTION_REQUIRED || (filter && pick(8) == 0))
			continue;
		value_text_start(&v);
		if (o->type == OPTION_SECTION || o->type == OPTION_FILTERS ||
		    (pick(5) == 0 && print_random_value(&v, o))) {
			value = value_text_end(&v);
			value_printf(&out, "%s%*s%s: %s\n", indent,
			    (int)option_depth(o) * 2, "", option_key(o), value);
		} else
			value = value_text_end(&v);
		free(value);
	}
	return value_text_end(&out);
}

static void
expect_same(const struct settings *a, const struct settings *b)
{
	size_t i, j;

	ck_assert_uint_eq(a->filter_count, b->filter_count);
	for (i = 0; i < a->filter_count; i++) {
		const struct filter_settings *x = &a->filters[i];
		const struct filter_settings *y = &b->filters[i];

		ck_assert_int_eq(x->rebuild.source, y->rebuild.source);
		ck_assert_int_eq(x->has_feed, y->has_feed);
		ck_assert_uint_eq(x->absent_text.len, y->absent_text.len);
		if (x->absent_text.len > 0)
			ck_assert_mem_eq(x->absent_text.data,
			    y->absent_text.data, x->absent_text.len);
		ck_assert_uint_eq(x->null_value_count, y->null_value_count);
		for (j = 0; j < x->null_value_count; j++) {
			ck_assert_uint_eq(
			    x->null_values[j].len, y->null_values[j].len);
			if (x->null_values[j].len > 0)
				ck_assert_mem_eq(x->null_values[j].data,
				    y->null_values[j].data,
				    x->null_values[j].len);
		}
		ck_assert_double_eq(x->error_rate, y->error_rate);
		ck_assert_double_eq(x->verify_sample, y->verify_sample);
	}
}

START_TEST(test_dump_round_trip)
{
	unsigned good = 0, i;

	for (i = 0; i < 400; i++) {
		char *text = random_file(), *report, *first, *second;
		struct settings *s = util_load(text, strlen(text), &report);
		struct settings *again;

		if (s == NULL) {
			ck_assert_str_ne(report, "");
			free(report);
			free(text);
			continue;
		}
		free(report);
		good++;
		first = settings_dump(s);
		again = util_good(first);
		second = settings_dump(again);
		ck_assert_str_eq(first, second);
		expect_same(s, again);
		settings_unref(s);
		settings_unref(again);
		free(first);
		free(second);
		free(text);
	}
	ck_assert_msg(good >= 40, "only %u of 400 files were good", good);
}
END_TEST

/* Matching as the words of the design say it, one position after another. */
static bool
fits(const struct keypattern *p, const char *key)
{
	size_t n = strlen(key), i;

	if (n < p->prefix_len + p->suffix_len + 1)
		return false;
	for (i = 0; i < n; i++) {
		if (i < p->prefix_len) {
			if (key[i] != p->prefix[i])
				return false;
		} else if (i >= n - p->suffix_len) {
			if (key[i] != p->suffix[i - (n - p->suffix_len)])
				return false;
		} else if (p->excluded >= 0 && key[i] == (char)p->excluded)
			return false;
	}
	return true;
}

/* Counts key up in base 3; false after the last of its length. */
static bool
next_key(char *key)
{
	static const char letters[] = "a:-";
	size_t i;

	for (i = 0; key[i] != '\0'; i++) {
		const char *at = strchr(letters, key[i]);

		if (at[1] != '\0') {
			key[i] = at[1];
			return true;
		}
		key[i] = letters[0];
	}
	return false;
}

static bool
some_key_fits(const struct keypattern *a, const struct keypattern *b)
{
	char key[8];
	size_t len;

	for (len = 1; len <= 7; len++) {
		memset(key, 'a', len);
		key[len] = '\0';
		do {
			if (fits(a, key) && fits(b, key))
				return true;
		} while (next_key(key));
	}
	return false;
}

static void
random_pattern(struct keypattern *p)
{
	char text[32];
	size_t n = 0, i, len;
	struct err err;

	for (len = pick(4), i = 0; i < len; i++)
		text[n++] = "a:-"[pick(3)];
	memcpy(text + n, "{id", 3);
	n += 3;
	if (pick(4) == 0)
		text[n++] = '*';
	text[n++] = '}';
	for (len = pick(4), i = 0; i < len; i++)
		text[n++] = "a:-"[pick(3)];
	text[n] = '\0';
	ck_assert_int_eq(keypattern_parse(p, text, &err), 0);
}

START_TEST(test_collisions_exact)
{
	unsigned i, yes = 0;

	for (i = 0; i < 6000; i++) {
		struct keypattern a, b;
		bool expected;

		random_pattern(&a);
		random_pattern(&b);
		expected = a.prefix_len + a.suffix_len ==
			b.prefix_len + b.suffix_len &&
		    some_key_fits(&a, &b);
		if (keypattern_collide(&a, &b) != expected ||
		    keypattern_collide(&b, &a) != expected)
			ck_abort_msg("%.*s?%.*s (%d) and %.*s?%.*s (%d): "
				     "expected %d",
			    (int)a.prefix_len, a.prefix, (int)a.suffix_len,
			    a.suffix, a.excluded, (int)b.prefix_len, b.prefix,
			    (int)b.suffix_len, b.suffix, b.excluded, expected);
		yes += expected;
		keypattern_fini(&a);
		keypattern_fini(&b);
	}
	ck_assert_uint_gt(yes, 100);
}
END_TEST

static void
load_anything(const void *data, size_t len)
{
	char *report;
	struct settings *s = util_load(data, len, &report);

	ck_assert(s != NULL || report[0] != '\0');
	settings_unref(s);
	free(report);
}

/* A good file with bytes changed, moved and cut off. */
START_TEST(test_mutations)
{
	unsigned i;

	for (i = 0; i < 1500; i++) {
		char *text = random_file();
		size_t len = strlen(text), changes = 1 + pick(6);

		while (changes-- > 0) {
			size_t at = pick(len), from = pick(len);

			if (pick(3) == 0)
				text[at] = (char)pick(256);
			else if (pick(2) == 0)
				text[at] = ":-#{}[]&*!|>'\"%\n \t~"[pick(20)];
			else
				memmove(text + at, text + from,
				    len - (at > from ? at : from));
		}
		if (pick(4) == 0)
			len = pick(len + 1);
		load_anything(text, len);
		free(text);
	}
}
END_TEST

/* The same few bytes, to the size that is read and past it. */
START_TEST(test_floods)
{
	static const char *const units[] = {"[", "{", "- ", "a: ", "? ", "&a ",
	    "\"", "a: 1\n", "- - ", "!", "\xff", "x\0", "\n", "{a: ", "[a, ",
	    "workers: 1\n", "%", "'", "\t", "filters: [{"};
	size_t i, n, unit, len = 1024 * 1024;
	char *data = mem_alloc(len + 8);

	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		unit = strlen(units[i]) + (strcmp(units[i], "x") == 0);
		for (n = 0; n + unit <= len; n += unit)
			memcpy(data + n, units[i], unit);
		load_anything(data, n);
		load_anything(data, 1000);
	}
	memset(data, 'a', len + 1);
	load_anything(data, len);
	load_anything(data, len + 1);
	free(data);
}
END_TEST

/* A report never grows without bound. */
START_TEST(test_many_errors)
{
	struct settings_report report;
	struct buf out;
	char *text, *path;
	unsigned i;

	value_text_start(&out);
	for (i = 0; i < 5000; i++)
		value_printf(&out, "o%u: 1\n", i);
	text = value_text_end(&out);
	path = util_file(text, strlen(text));
	ck_assert_ptr_null(settings_load(path, &report));
	ck_assert_uint_eq(report.count, 201);
	ck_assert_str_eq(
	    report.items[200].text, "4800 more errors are not shown");
	settings_report_fini(&report);
	ck_assert_int_eq(remove(path), 0);
	free(path);
	free(text);
}
END_TEST

int
main(void)
{
	const char *seed = getenv("BLOOMGATE_SEED");
	Suite *s = suite_create("config properties");
	TCase *t = tcase_create("properties");
	SRunner *r;
	int failed;

	state = seed != NULL ? strtoull(seed, NULL, 10) : random_u64();
	printf("BLOOMGATE_SEED=%llu\n", (unsigned long long)state);
	fflush(stdout);
	tcase_set_timeout(t, 300);
	suite_add_tcase(s, t);
	tcase_add_test(t, test_dump_round_trip);
	tcase_add_test(t, test_collisions_exact);
	tcase_add_test(t, test_mutations);
	tcase_add_test(t, test_floods);
	tcase_add_test(t, test_many_errors);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
