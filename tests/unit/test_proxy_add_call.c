/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of calls of add.lua: their keys and arguments, word for word as
 * redis/script.h says; how much one takes; what it refuses. What the script then
 * does: test_proxy_add_live.c.
 */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/mem.h"
#include "proxy/add_call.h"
#include "tests/unit/add_limits.h"

#define META "bloom:{user}:meta"
#define BITS 640 /* per shard: a tag behind 80 bytes */

static struct meta meta;

/* A meta without Redis, of the fields given as text: "name", "value", ..., NULL;
 * "+g" stands for a whole generation: NAME STATE SCHEME K TAG. */
struct fields {
	struct slice at[512];
	size_t n;
	char *owned[512];
	size_t owned_count;
};

static void
put(struct fields *fs, char *name, const char *value)
{
	fs->owned[fs->owned_count++] = name;
	fs->owned[fs->owned_count++] = mem_strdup(value);
	fs->at[fs->n++] = slice_str(name);
	fs->at[fs->n++] = slice_str(fs->owned[fs->owned_count - 1]);
}

static void
put_generation(struct fields *fs, const char *words)
{
	char name[16], state[16], scheme[16], tag[16], bits[16];
	unsigned k;

	ck_assert_int_eq(sscanf(words, "%15s %15s %15s %u %15s", name, state,
			     scheme, &k, tag),
	    5);
	snprintf(bits, sizeof(bits), "%d", BITS);
	put(fs, mem_printf("g:%s:state", name), state);
	put(fs, mem_printf("g:%s:scheme", name), scheme);
	put(fs, mem_printf("g:%s:tag", name), tag);
	put(fs, mem_printf("g:%s:shards", name), "3");
	put(fs, mem_printf("g:%s:bits", name), bits);
	put(fs, mem_printf("g:%s:single", name), "0");
	snprintf(bits, sizeof(bits), "%u", k);
	put(fs, mem_printf("g:%s:k", name), bits);
}

static void
make_meta(const char *first, ...)
{
	struct fields fs = {.n = 0};
	struct err err = {""};
	const char *name, *value;
	va_list ap;

	va_start(ap, first);
	for (name = first; name != NULL; name = va_arg(ap, const char *)) {
		value = va_arg(ap, const char *);
		if (strcmp(name, "+g") == 0)
			put_generation(&fs, value);
		else
			put(&fs, mem_strdup(name), value);
	}
	va_end(ap);
	ck_assert_msg(
	    meta_parse(&meta, fs.at, fs.n, &err) == 0, "%s", err.text);
	for (size_t i = 0; i < fs.owned_count; i++)
		free(fs.owned[i]);
}

/* Keys and arguments as text, one a line; "--" between them. */
static char *
call_text(struct add_call *c)
{
	size_t argc, nkeys;
	const struct slice *argv = add_call_argv(c, &argc, &nkeys);
	char *text = mem_strdup(""), *longer;

	for (size_t i = 0; i < argc; i++) {
		longer = mem_printf("%s%s%.*s\n", text,
		    i == nkeys ? "--\n" : "", (int)argv[i].len,
		    argv[i].len != 0 ? (const char *)argv[i].data : "");
		free(text);
		text = longer;
	}
	return text;
}

static void
want_call(struct add_call *c, const char *want)
{
	char *text = call_text(c);

	ck_assert_str_eq(text, want);
	free(text);
	add_call_free(c);
}

static void
take(struct add_call *c, const char *element)
{
	const char *error = NULL;

	ck_assert_int_eq(
	    add_call_take(c, slice_str(element), false, &error), ADD_TAKEN);
	ck_assert_ptr_null(error);
}

static struct filter *
plain_filter(void)
{
	return filter_new(0, "user", "bloom:{user}", 0, NULL);
}

/* Appends what an element's reference must be; the shard's place is given. */
static char *
reference(
    char *text, const struct generation *g, const char *element, unsigned place)
{
	struct positions p;
	char *longer;

	ck_assert_int_eq(
	    scheme_positions(&g->geometry, NULL, slice_str(element), &p), 0);
	longer = mem_printf("%s%u\n%" PRIu32 "\n", text, place, p.count);
	free(text);
	for (uint32_t i = 0; i < p.count; i++) {
		text = longer;
		longer = mem_printf("%s%" PRIu64 "\n", text, p.bit[i]);
		free(text);
	}
	return longer;
}

static uint32_t
shard_of(const struct generation *g, const char *element)
{
	struct positions p;

	ck_assert_int_eq(
	    scheme_positions(&g->geometry, NULL, slice_str(element), &p), 0);
	return p.shard;
}

/* The first of "0", "1", ... in a shard of g, from *from on. */
static char *
element_in(const struct generation *g, uint32_t shard, unsigned *from)
{
	char text[16];

	do
		snprintf(text, sizeof(text), "%u", (*from)++);
	while (shard_of(g, text) != shard);
	return mem_strdup(text);
}

START_TEST(test_arguments_without_meta)
{
	struct filter *filter = plain_filter();
	struct add_call *c;

	meta = (struct meta){.active = -1, .previous = -1, .building = -1};
	c = add_call_new(filter, &meta);
	take(c, "42");
	take(c, "");
	want_call(c, META "\n--\n\nbloom:{user}:events\n0\n2\n42\n0\n\n0\n");
	/* A meta in which nothing lives. */
	make_meta("layout", "1", "epoch", "77", "+g",
	    "new making guava 3 TAGTAGAA", NULL);
	c = add_call_new(filter, &meta);
	take(c, "42");
	want_call(c, META "\n--\n77\nbloom:{user}:events\n0\n1\n42\n0\n");
	filter_free(filter);
}
END_TEST

/* Two elements of one shard and one of another; shards are named once, in the
 * order in which they are met. */
START_TEST(test_arguments)
{
	struct filter *filter = plain_filter();
	const struct generation *g = meta.generations;
	char *a, *b, *other, *want;
	struct add_call *c;
	unsigned from = 0;

	make_meta("layout", "1", "epoch", "77", "active", "old", "+g",
	    "old sealed guava 3 TAGTAGAA", NULL);
	a = element_in(g, 2, &from);
	b = element_in(g, 2, &from);
	other = element_in(g, 0, &from);
	c = add_call_new(filter, &meta);
	take(c, a);
	take(c, other);
	take(c, b);
	want = mem_printf(META "\nbloom:{user}:old/2\nbloom:{user}:old/0\n--\n"
			       "77\nbloom:{user}:events\n2\n"
			       "old\nTAGTAGAA\n80\nold\nTAGTAGAA\n80\n"
			       "3\n%s\n1\n",
	    a);
	want = reference(want, g, a, 1);
	for (int i = 0; i < 2; i++) {
		char *longer = mem_printf("%s%s\n1\n", want, i ? b : other);

		free(want);
		want = reference(longer, g, i ? b : other, i ? 1 : 2);
	}
	want_call(c, want);
	free(want);
	free(a);
	free(b);
	free(other);
	filter_free(filter);
}
END_TEST

/* Every generation that takes adds, each by its own scheme and k; not the one
 * whose shards are being made. */
START_TEST(test_arguments_generations)
{
	struct filter *filter = plain_filter();
	char *want, *longer;
	struct add_call *c;
	unsigned place = 1;

	make_meta("layout", "1", "epoch", "9", "active", "a", "previous", "p",
	    "retiring", "r x", "+g", "a sealed guava 3 TAGTAGAA", "+g",
	    "m making guava 3 TAGTAGMM", "+g",
	    "p sealed guava-seeded 2 TAGTAGPP", "+g",
	    "r sealed redisson 1 TAGTAGRR", "+g",
	    "l lost guava-hashcode 4 TAGTAGLL", "+g",
	    "b building guava 5 TAGTAGBB", NULL);
	ck_assert_uint_eq(meta.generation_count, 6);
	c = add_call_new(filter, &meta);
	take(c, "id");
	want = mem_strdup(META "\n");
	for (size_t i = 0; i < 6; i++) {
		const struct generation *g = &meta.generations[i];

		if (g->name[0] == 'm')
			continue;
		longer = mem_printf("%sbloom:{user}:%s/%" PRIu32 "\n", want,
		    g->name, shard_of(g, "id"));
		free(want);
		want = longer;
	}
	longer = mem_printf("%s--\n9\nbloom:{user}:events\n5\n", want);
	for (size_t i = 0; i < 6; i++) {
		const struct generation *g = &meta.generations[i];

		free(want);
		want = longer;
		longer = g->name[0] == 'm' ? mem_strdup(want)
					   : mem_printf("%s%s\n%.8s\n80\n",
						 want, g->name, (char *)g->tag);
	}
	free(want);
	want = mem_printf("%s1\nid\n5\n", longer);
	free(longer);
	for (size_t i = 0; i < 6; i++)
		if (meta.generations[i].name[0] != 'm')
			want = reference(
			    want, &meta.generations[i], "id", place++);
	want_call(c, want);
	free(want);
	filter_free(filter);
}
END_TEST

static void
make_limit_meta(int i)
{
	char words[3][64];

	for (int g = 0; g < 3; g++)
		snprintf(words[g], sizeof(words[g]),
		    "g%d %s guava %u TAGTAG0%d", g,
		    limits[i].k[g] != 0 ? "sealed" : "making",
		    limits[i].k[g] != 0 ? limits[i].k[g] : 1, g);
	make_meta("layout", "1", "epoch", "9", "active", "g0", "+g", words[0],
	    "+g", words[1], "+g", words[2], NULL);
}

START_TEST(test_limits)
{
	struct filter *filter = plain_filter();
	char elements[256][8];
	const char *error = NULL;
	struct add_call *c, *same;
	char *text, *again;
	size_t n;

	make_limit_meta(_i);
	c = add_call_new(filter, &meta);
	same = add_call_new(filter, &meta);
	for (n = 0; n < 256; n++) {
		snprintf(elements[n], sizeof(elements[n]), "e%zu", n);
		if (add_call_take(c, slice_str(elements[n]), false, &error) !=
		    ADD_TAKEN)
			break;
		take(same, elements[n]);
	}
	ck_assert_uint_eq(n, limits[_i].elements);
	ck_assert_int_eq(
	    add_call_take(c, slice_str("other"), false, &error), ADD_FULL);
	ck_assert_ptr_null(error);
	/* What did not fit left nothing behind. */
	text = call_text(c);
	again = call_text(same);
	ck_assert_str_eq(text, again);
	free(text);
	free(again);
	add_call_free(c);
	add_call_free(same);
	filter_free(filter);
}
END_TEST

/* The call was refused this element, says why, and goes on without it. */
static void
want_never(struct filter *filter, struct slice element, const char *why)
{
	struct add_call *c = add_call_new(filter, &meta);
	size_t argc, nkeys;
	const struct slice *argv;
	const char *error = NULL;

	ck_assert_int_eq(add_call_take(c, element, false, &error), ADD_NEVER);
	ck_assert_ptr_nonnull(error);
	ck_assert_msg(strstr(error, why) != NULL, "%s: not %s", error, why);
	argv = add_call_argv(c, &argc, &nkeys);
	ck_assert_uint_eq(nkeys, 1);
	ck_assert_uint_eq(argc, 5); /* META, EPOCH, CHANNEL, 0, 0 */
	ck_assert(slice_is(argv[3], "0") && slice_is(argv[4], "0"));
	add_call_free(c);
}

START_TEST(test_never)
{
	static const char long_element[ELEMENT_MAX + 1];
	struct filter *filter = plain_filter(), *keyed;
	struct scheme_key key = {{1, 2, 3, 4}};
	char fingerprint[33];
	struct add_call *c;
	const char *error = NULL;

	make_meta("layout", "1", "epoch", "9", "active", "a", "+g",
	    "a sealed guava 3 TAGTAGAA", "+g",
	    "h sealed guava-hashcode 3 TAGTAGHH", NULL);
	want_never(filter, slice_of("\xff\xfe", 2), "UTF-8");
	want_never(filter, slice_of("a\xc3", 2), "UTF-8");
	want_never(filter, slice_of(long_element, sizeof(long_element)), "");
	/* The next is taken all the same. */
	c = add_call_new(filter, &meta);
	ck_assert_int_eq(
	    add_call_take(c, slice_of("\xff", 1), false, &error), ADD_NEVER);
	error = NULL;
	/* A write goes on all the same: the id is never absent. */
	ck_assert_int_eq(
	    add_call_take(c, slice_of("\xff", 1), true, &error), ADD_TAKEN);
	ck_assert_ptr_null(error);
	take(c, "\xc3\xa9");
	ck_assert_int_eq(add_call_take(c, slice_of(long_element, ELEMENT_MAX),
			     false, &error),
	    ADD_TAKEN);
	add_call_free(c);

	make_meta("layout", "2", "epoch", "9", NULL);
	want_never(filter, slice_str("id"), "layout");
	make_meta("layout", "1", "epoch", "9", "active", "a", "+g",
	    "a sealed guava 3 TAGTAGAA", "+g", "n building newhash 3 TAGTAGNN",
	    NULL);
	want_never(filter, slice_str("id"), "a kind or key");
	make_meta("layout", "1", "epoch", "9", "active", "a", "+g",
	    "a frozen guava 3 TAGTAGAA", NULL);
	want_never(filter, slice_str("id"), "a kind or key");
	make_meta(
	    "layout", "1", "epoch", "9", "+g", "a sealed guava 3 SHORT", NULL);
	want_never(filter, slice_str("id"), "a kind or key");

	/* Another key than ours, no key at all, ours. */
	keyed = filter_new(0, "user", "bloom:{user}", 0, &key);
	scheme_key_fingerprint(&key, slice_str("a"), fingerprint);
	make_meta("layout", "1", "epoch", "9", "active", "a", "+g",
	    "a sealed keyed 3 TAGTAGAA", "g:a:key",
	    "00000000000000000000000000000000", NULL);
	want_never(keyed, slice_str("id"), "a kind or key");
	make_meta("layout", "1", "epoch", "9", "active", "a", "+g",
	    "a sealed keyed 3 TAGTAGAA", "g:a:key", fingerprint, NULL);
	want_never(filter, slice_str("id"), "a kind or key");
	c = add_call_new(keyed, &meta);
	take(c, "id");
	add_call_free(c);
	filter_free(keyed);
	filter_free(filter);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("proxy_add_call");
	TCase *t = tcase_create("add_call");
	SRunner *r;
	int failed;

	tcase_add_test(t, test_arguments_without_meta);
	tcase_add_test(t, test_arguments);
	tcase_add_test(t, test_arguments_generations);
	tcase_add_loop_test(t, test_limits, 0, (int)LIMITS);
	tcase_add_test(t, test_never);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
