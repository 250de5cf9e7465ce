/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of key patterns and element templates. Random patterns are in
 * test_policy_pattern_random.c.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "policy/pattern.h"

#define FILTERS_MAX 8
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

static struct pattern_set *
set_of(const char *pattern)
{
	static struct fixture f;

	fixture_init(&f);
	fixture_key(fixture_filter(&f, "one", 0), pattern);
	return pattern_set_new(&f.settings);
}

#define NONE -1

static void
expect(const struct pattern_set *set, unsigned db, struct slice key, int filter,
    const char *capture)
{
	struct pattern_match m = {.filter = 99};
	bool found = pattern_match(set, db, key, &m);

	ck_assert_msg(found == (filter != NONE), "key \"%.*s\" of db %u: %d",
	    (int)key.len, (const char *)key.data, db, found);
	if (!found)
		return;
	ck_assert_msg((int)m.filter == filter && slice_is(m.capture, capture),
	    "key \"%.*s\": filter %zu captures \"%.*s\"", (int)key.len,
	    (const char *)key.data, m.filter, (int)m.capture.len,
	    (const char *)m.capture.data);
	ck_assert(m.capture.data >= key.data);
	ck_assert(m.capture.data + m.capture.len <= key.data + key.len);
}

START_TEST(match_one)
{
	static const struct {
		const char *pattern, *key, *capture; /* NULL: no match */
	} cases[] = {
	    {"user:{id}", "user:42", "42"},
	    {"user:{id}", "user:4", "4"},
	    {"user:{id}", "user:", NULL},
	    {"user:{id}", "user", NULL},
	    {"user:{id}", "", NULL},
	    {"user:{id}", "use", NULL},
	    {"user:{id}", "User:42", NULL},
	    {"user:{id}", "zuser:42", NULL},
	    {"user:{id}", "user:42:orders", NULL},
	    {"user:{id}", "user::", NULL},
	    {"user:{id}", "user:42/orders", "42/orders"},
	    {"user:{id*}", "user:42:orders", "42:orders"},
	    {"user:{id*}", "user::", ":"},
	    {"user{id}", "useruser", "user"},
	    {"user{id}", "user:42", ":42"},
	    {"user:{id}:profile", "user:42:profile", "42"},
	    {"user:{id}:profile", "user::profile", NULL},
	    {"user:{id}:profile", "user:profile", NULL},
	    {"user:{id}:profile", "user:42", NULL},
	    {"user:{id}:profile", "user:4:2:profile", NULL},
	    {"user:{id}:profile", "user:42:profile:profile", NULL},
	    {"user:{id*}:profile", "user:42:profile:profile", "42:profile"},
	    {"aa{id}aa", "aaaa", NULL},
	    {"aa{id}aa", "aaaaa", "a"},
	    {"{id}", "x", "x"},
	    {"{id}", "any:thing", "any:thing"},
	    {"{id}", "", NULL},
	    {"{id}:x", "a:x", "a"},
	    {"{id}:x", "a:b:x", "a:b"},
	    {"{id}:x", ":x", NULL},
	    {"{{{id}}}", "{7}", "7"},
	    {"{{{id}}}", "{{7}", NULL},
	    {"{{{id}}}", "{}}", "}"},
	    {"{{id}}{n}", "{id}5", "5"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct pattern_set *set = set_of(cases[i].pattern);

		expect(set, 0, slice_str(cases[i].key),
		    cases[i].capture == NULL ? NONE : 0, cases[i].capture);
		expect(set, 1, slice_str(cases[i].key), NONE, NULL);
		pattern_set_free(set);
	}
}
END_TEST

START_TEST(match_binary)
{
	static const char key[] = "user:\0\xff\0:x";
	struct pattern_set *set = set_of("user:{id}:x");
	struct pattern_match m;

	ck_assert(pattern_match(set, 0, slice_of(key, sizeof(key) - 1), &m));
	ck_assert(slice_eq(m.capture, slice_of("\0\xff\0", 3)));
	expect(set, 0, slice_of("user:1:x\0", 9), NONE, NULL);
	expect(set, 0, slice_of("user\0001:x", 8), NONE, NULL);
	expect(set, 0, slice_of("\0", 1), NONE, NULL);
	expect(set, 0, slice_of("\xff\xff", 2), NONE, NULL);
	expect(set, 0, slice_of(NULL, 0), NONE, NULL);
	pattern_set_free(set);
}
END_TEST

START_TEST(match_best)
{
	struct fixture f;
	struct filter_settings *s;
	struct pattern_set *set;

	fixture_init(&f);
	s = fixture_filter(&f, "user", 0);
	fixture_key(s, "user:{id*}");
	fixture_key(s, "user:{id}:profile");
	s = fixture_filter(&f, "any", 0);
	fixture_key(s, "{id}");
	s = fixture_filter(&f, "tail", 0);
	fixture_key(s, "{id}:orders-of-the-day");
	s = fixture_filter(&f, "eu", 0);
	fixture_key(s, "user:eu:{id}");
	s = fixture_filter(&f, "other", 7);
	fixture_key(s, "user:{id}");
	/* Equally many literals in one filter: the first one counts. */
	s = fixture_filter(&f, "tie", 0);
	fixture_key(s, "{id}-zz");
	fixture_key(s, "zz-{id*}");
	set = pattern_set_new(&f.settings);
	expect(set, 0, slice_str("user:42"), 0, "42");
	expect(set, 0, slice_str("user:42:profile"), 0, "42");
	expect(set, 0, slice_str("user:4:2:profile"), 0, "4:2:profile");
	expect(set, 0, slice_str("user:eu:42"), 3, "42");
	expect(set, 0, slice_str("user:eu:4:2"), 0, "eu:4:2");
	expect(set, 0, slice_str("user:eu:profile"), 0, "eu");
	expect(set, 0, slice_str("user:7:orders-of-the-day"), 2, "user:7");
	expect(set, 0, slice_str("user:"), 1, "user:");
	expect(set, 0, slice_str("a"), 1, "a");
	expect(set, 0, slice_str("~"), 1, "~");
	expect(set, 7, slice_str("user:42"), 4, "42");
	expect(set, 7, slice_str("user:4:2"), NONE, NULL);
	expect(set, 7, slice_str("a"), NONE, NULL);
	expect(set, 1, slice_str("user:42"), NONE, NULL);
	expect(set, 0, slice_str("zz-a-zz"), 5, "zz-a");
	expect(set, 0, slice_str("zz-a-z"), 5, "a-z");
	pattern_set_free(set);
	/* The same the other way round. */
	f.keys[5][0] = f.keys[5][1];
	f.keys[5][1] = (char[]){"{id}-zz"};
	set = pattern_set_new(&f.settings);
	expect(set, 0, slice_str("zz-a-zz"), 5, "a-zz");
	pattern_set_free(set);
}
END_TEST

START_TEST(no_filters)
{
	struct settings s = {0};
	struct pattern_set *set = pattern_set_new(&s);

	expect(set, 0, slice_str("a"), NONE, NULL);
	ck_assert_int_eq(pattern_filter_named(set, slice_str("a")), -1);
	pattern_set_free(set);
	pattern_set_free(NULL);
}
END_TEST

START_TEST(elements)
{
	static uint8_t scratch[ELEMENT_MAX], big[ELEMENT_MAX + 1];
	struct fixture f;
	struct filter_settings *s;
	struct pattern_set *set;
	struct slice e, full = slice_of(big, ELEMENT_MAX);

	memset(big, 'b', sizeof(big));
	fixture_init(&f);
	s = fixture_filter(&f, "plain", 0);
	fixture_key(s, "p:{id}");
	s = fixture_filter(&f, "alone", 0);
	fixture_key(s, "a:{uid}");
	s->element = (char[]){"{uid}"};
	s = fixture_filter(&f, "user", 0);
	fixture_key(s, "u:{id}");
	s->element = (char[]){"{filter}:{{{id}}}"};
	set = pattern_set_new(&f.settings);
	for (size_t i = 0; i < 2; i++) {
		e = pattern_element(set, i, slice_str("42"), scratch);
		ck_assert(slice_is(e, "42"));
		e = pattern_element(set, i, full, scratch);
		ck_assert(slice_eq(e, full));
		e = pattern_element(
		    set, i, slice_of(big, ELEMENT_MAX + 1), scratch);
		ck_assert_ptr_null(e.data);
	}
	e = pattern_element(set, 2, slice_str("42"), scratch);
	ck_assert(slice_is(e, "user:{42}"));
	/* "user:{" and "}" are seven bytes. */
	e = pattern_element(set, 2, slice_of(big, ELEMENT_MAX - 7), scratch);
	ck_assert_uint_eq(e.len, ELEMENT_MAX);
	ck_assert_int_eq(e.data[ELEMENT_MAX - 1], '}');
	e = pattern_element(set, 2, slice_of(big, ELEMENT_MAX - 6), scratch);
	ck_assert_ptr_null(e.data);
	e = pattern_element(set, 2, slice_of(big, SIZE_MAX), scratch);
	ck_assert_ptr_null(e.data);
	pattern_set_free(set);
}
END_TEST

START_TEST(element_templates)
{
	static const struct {
		const char *text, *element;
	} cases[] = {
	    {"{id}", "42"},
	    {"{filter}:{id}", "user:42"},
	    {"{id}@{filter}", "42@user"},
	    {"{filter}{filter}{id}{filter}", "useruser42user"},
	    {"x{id}y", "x42y"},
	    {"{{{id}}}", "{42}"},
	    {"{{id}}{id}{{filter}}", "{id}42{filter}"},
	    {"}}{{{filter}}}{id}", "}{user}42"},
	};
	static uint8_t scratch[ELEMENT_MAX];

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct fixture f;
		struct filter_settings *s;
		struct pattern_set *set;
		struct slice e;

		fixture_init(&f);
		s = fixture_filter(&f, "user", 0);
		fixture_key(s, "user:{id}");
		s->element = (char *)(uintptr_t)cases[i].text;
		set = pattern_set_new(&f.settings);
		e = pattern_element(set, 0, slice_str("42"), scratch);
		ck_assert_msg(slice_is(e, cases[i].element), "%s: %.*s",
		    cases[i].text, (int)e.len, (const char *)e.data);
		pattern_set_free(set);
	}
}
END_TEST

/* The template around the capture alone passes ELEMENT_MAX. */
START_TEST(element_template_long)
{
	static uint8_t scratch[ELEMENT_MAX];
	static char element[ELEMENT_MAX + 16];
	struct fixture f;
	struct filter_settings *s;
	struct pattern_set *set;

	memset(element, 'x', ELEMENT_MAX + 1);
	memcpy(element + ELEMENT_MAX + 1, "{id}", 5);
	fixture_init(&f);
	s = fixture_filter(&f, "long", 0);
	fixture_key(s, "{id}");
	s->element = element;
	set = pattern_set_new(&f.settings);
	ck_assert_ptr_null(
	    pattern_element(set, 0, slice_str("1"), scratch).data);
	pattern_set_free(set);
}
END_TEST

START_TEST(keys_made)
{
	struct fixture f;
	struct filter_settings *s;
	struct pattern_set *set;
	size_t len;
	char *key;

	fixture_init(&f);
	s = fixture_filter(&f, "user", 0);
	fixture_key(s, "{{u}}:{id}:profile");
	fixture_key(s, "user:{id}");
	s = fixture_filter(&f, "bare", 0);
	fixture_key(s, "{id}");
	set = pattern_set_new(&f.settings);
	key = pattern_key(set, 0, slice_str("42"), &len);
	ck_assert(slice_is(slice_of(key, len), "{u}:42:profile"));
	expect(set, 0, slice_of(key, len), 0, "42");
	free(key);
	key = pattern_key(set, 1, slice_of("\0x", 2), &len);
	ck_assert(slice_eq(slice_of(key, len), slice_of("\0x", 2)));
	free(key);
	pattern_set_free(set);
}
END_TEST

START_TEST(names_and_nulls)
{
	uint8_t null_text[] = {'_', '\0', '_'};
	struct bytes nulls[] = {{null_text, 3}, {NULL, 0}};
	struct fixture f;
	struct filter_settings *s;
	struct pattern_set *set;

	fixture_init(&f);
	s = fixture_filter(&f, "user", 0);
	fixture_key(s, "u:{id}");
	s->null_values = nulls;
	s->null_value_count = 2;
	s = fixture_filter(&f, "item", 1);
	fixture_key(s, "i:{id}");
	set = pattern_set_new(&f.settings);
	/* The set keeps nothing of the settings. */
	null_text[0] = '?';
	ck_assert_int_eq(pattern_filter_named(set, slice_str("user")), 0);
	ck_assert_int_eq(pattern_filter_named(set, slice_str("item")), 1);
	ck_assert_int_eq(pattern_filter_named(set, slice_str("User")), -1);
	ck_assert_int_eq(pattern_filter_named(set, slice_str("ite")), -1);
	ck_assert_int_eq(pattern_filter_named(set, slice_of("item\0", 5)), -1);
	ck_assert_int_eq(pattern_filter_named(set, slice_of(NULL, 0)), -1);
	ck_assert(pattern_is_null_value(set, 0, slice_of("_\0_", 3)));
	ck_assert(pattern_is_null_value(set, 0, slice_of(NULL, 0)));
	ck_assert(!pattern_is_null_value(set, 0, slice_of("_\0", 2)));
	ck_assert(!pattern_is_null_value(set, 0, slice_str("_")));
	ck_assert(!pattern_is_null_value(set, 1, slice_of("_\0_", 3)));
	ck_assert(!pattern_is_null_value(set, 1, slice_of(NULL, 0)));
	pattern_set_free(set);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("policy: patterns");
	TCase *c = tcase_create("pattern");
	SRunner *r;
	int failed;

	tcase_add_test(c, match_one);
	tcase_add_test(c, match_binary);
	tcase_add_test(c, match_best);
	tcase_add_test(c, no_filters);
	tcase_add_test(c, elements);
	tcase_add_test(c, element_templates);
	tcase_add_test(c, element_template_long);
	tcase_add_test(c, keys_made);
	tcase_add_test(c, names_and_nulls);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
