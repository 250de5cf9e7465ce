/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of add.lua in a redis-server of the test's own: every generation that
 * takes adds has the bits, full calls are taken, and what is lost, refused or not
 * there yet is answered as redis/script.h says.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/mem.h"
#include "proxy/add_call.h"
#include "redis/script.h"
#include "tests/unit/add_limits.h"
#include "tests/unit/rebuild_fixture.h"

#define OPTIONS                                                                \
	"    capacity: 1000\n"                                                 \
	"    rebuild: {source: {file: /nonexistent}, min-elements: 0}\n"
#define META "bloom:{user}:meta"

static const _Atomic bool never = false;
static struct fixture f;
static struct meta meta;

static void
take(struct add_call *c, const char *element)
{
	const char *error = NULL;

	ck_assert_int_eq(
	    add_call_take(c, slice_str(element), false, &error), ADD_TAKEN);
	ck_assert_ptr_null(error);
}

/* Lists a generation in Redis's meta; its shards are made unless it is making. */
static void
live_generation(
    const char *name, const char *state, const char *k, const char *tag)
{
	const char *const pairs[][2] = {{"state", state}, {"shards", "3"},
	    {"bits", "640"}, {"k", k}, {"scheme", "guava"}, {"single", "0"},
	    {"tag", tag}, {"key", ""}};

	for (size_t i = 0; i < sizeof(pairs) / sizeof(*pairs); i++) {
		char *field = mem_printf("g:%s:%s", name, pairs[i][0]);

		fixture_integer(&f, "HSET", META, field, pairs[i][1], NULL);
		free(field);
	}
	for (int s = 0; s < 3 && strcmp(state, "making") != 0; s++) {
		char *key = mem_printf("bloom:{user}:%s/%d", name, s);

		ck_assert_int_eq(
		    fixture_integer(&f, "SETRANGE", key, "80", tag, NULL), 88);
		free(key);
	}
}

static void
live_meta(void)
{
	link_reply_free(fixture_call(&f, "HSET", META, "layout", "1", "epoch",
	    "9", "active", "a", "previous", "p", "retiring", "r", NULL));
	live_generation("a", "sealed", "3", "TAGTAGAA");
	live_generation("p", "sealed", "2", "TAGTAGPP");
	live_generation("r", "sealed", "4", "TAGTAGRR");
	live_generation("l", "lost", "5", "TAGTAGLL");
	live_generation("b", "building", "6", "TAGTAGBB");
	live_generation("m", "making", "6", "TAGTAGMM");
	fixture_meta(&f, &meta);
}

static struct redisReply *
run(struct add_call *c)
{
	size_t argc, nkeys;
	const struct slice *argv = add_call_argv(c, &argc, &nkeys);
	struct redisReply *r = script_call(
	    f.link, SCRIPT_ADD, FIXTURE_WAIT_MS, nkeys, argv, argc, &never);

	add_call_free(c);
	ck_assert_ptr_nonnull(r);
	ck_assert_msg(link_reply_type(r) == LINK_ARRAY, "%.*s",
	    (int)link_reply_text(r).len, (const char *)link_reply_text(r).data);
	return r;
}

/* Runs a call of n elements "PREFIX0", ...; text of the answer, free(). */
static char *
add(const char *prefix, unsigned n)
{
	struct add_call *c = add_call_new(f.filter, &meta);
	char elements[256][16];
	struct redisReply *r;
	char *text = mem_strdup(""), *longer;

	for (unsigned i = 0; i < n; i++) {
		snprintf(elements[i], sizeof(elements[i]), "%s%u", prefix, i);
		take(c, elements[i]);
	}
	r = run(c);
	for (size_t i = 0; i < link_reply_count(r); i++) {
		const struct redisReply *e = link_reply_at(r, i);

		longer = link_reply_type(e) == LINK_INTEGER
		    ? mem_printf("%s%" PRId64 " ", text, link_reply_integer(e))
		    : mem_printf("%s%.*s ", text, (int)link_reply_text(e).len,
			  (const char *)link_reply_text(e).data);
		free(text);
		text = longer;
	}
	link_reply_free(r);
	return text;
}

static void
want_add(const char *prefix, unsigned n, const char *want)
{
	char *text = add(prefix, n);

	ck_assert_str_eq(text, want);
	free(text);
}

/* Bits that are set in all shards of a generation, tags aside. */
static int64_t
bits_set(const char *name)
{
	int64_t n = 0;

	for (int s = 0; s < 3; s++) {
		char *key = mem_printf("bloom:{user}:%s/%d", name, s);

		n += fixture_integer(&f, "BITCOUNT", key, "0", "79", NULL);
		free(key);
	}
	return n;
}

static void
want_present(const char *name, const char *element, bool want)
{
	int i = meta_find(&meta, slice_str(name));
	const struct generation *g = &meta.generations[i];
	char key[NAME_MAX_BYTES], bit[24];
	struct positions p;
	bool all = true;

	ck_assert_int_ge(i, 0);
	ck_assert_int_eq(
	    scheme_positions(&g->geometry, NULL, slice_str(element), &p), 0);
	name_shard(key, sizeof(key), "bloom:{user}", name, p.shard);
	for (uint32_t k = 0; k < p.count; k++) {
		snprintf(bit, sizeof(bit), "%" PRIu64, p.bit[k]);
		all = all && fixture_integer(&f, "GETBIT", key, bit, NULL) == 1;
	}
	ck_assert_msg(all == want, "%s in %s: %d", element, name, all);
}

START_TEST(test_live)
{
	static const char *const live[] = {"a", "p", "r", "l", "b"};
	char *text;

	fixture_init(&f, OPTIONS);
	live_meta();
	want_add("x", 2, "1 9 1 1 1 ");
	for (size_t i = 0; i < 5; i++) {
		want_present(live[i], "x0", true);
		want_present(live[i], "x1", true);
		want_present(live[i], "nobody", false);
	}
	ck_assert_int_eq(fixture_integer(&f, "EXISTS", "bloom:{user}:m/0",
			     "bloom:{user}:m/1", "bloom:{user}:m/2", NULL),
	    0);
	/* Known already: nothing is new, nothing is published. */
	want_add("x", 2, "1 9 1 0 0 ");
	text = add("x", 3);
	ck_assert_str_eq(text, "1 9 2 0 0 1 ");
	free(text);
	fixture_fini(&f);
}
END_TEST

/* As much as fits one call, each of the ways. */
START_TEST(test_live_limits)
{
	char *text;

	fixture_init(&f, OPTIONS);
	link_reply_free(fixture_call(&f, "HSET", META, "layout", "1", "epoch",
	    "9", "active", "g0", NULL));
	for (unsigned g = 0; g < 3; g++) {
		char name[8], k[8], tag[16];

		snprintf(name, sizeof(name), "g%u", g);
		snprintf(k, sizeof(k), "%u", limits[_i].k[g]);
		snprintf(tag, sizeof(tag), "TAGTAG0%u", g);
		if (limits[_i].k[g] != 0)
			live_generation(name, "sealed", k, tag);
	}
	if (limits[_i].k[0] == 0)
		link_reply_free(fixture_call(&f, "HDEL", META, "active", NULL));
	fixture_meta(&f, &meta);
	text = add("e", (unsigned)limits[_i].elements);
	ck_assert_msg(strncmp(text, "1 9 ", 4) == 0, "%s", text);
	free(text);
	for (unsigned g = 0; g < 3; g++) {
		char name[8], element[16];

		snprintf(name, sizeof(name), "g%u", g);
		if (limits[_i].k[g] == 0)
			continue;
		for (unsigned i = 0; i < limits[_i].elements; i++) {
			snprintf(element, sizeof(element), "e%u", i);
			want_present(name, element, true);
		}
	}
	fixture_fini(&f);
}
END_TEST

/* A shard that is gone or of another tag makes its generation lost, unless that
 * is retiring; the others get their bits. */
START_TEST(test_live_lost)
{
	struct meta before;
	char *text, *state;

	fixture_init(&f, OPTIONS);
	live_meta();
	before = meta;
	for (int s = 0; s < 3; s++) {
		char *key = mem_printf("bloom:{user}:p/%d", s);

		fixture_integer(&f, "DEL", key, NULL);
		key[strlen("bloom:{user}:")] = 'r';
		fixture_integer(&f, "SETRANGE", key, "80", "OTHERTAG", NULL);
		free(key);
	}
	text = add("x", 1);
	ck_assert_msg(strncmp(text, "1 9 ", 4) != 0, "%s", text);
	free(text);
	fixture_meta(&f, &meta);
	ck_assert_str_ne(meta.epoch, "9");
	state = fixture_text(&f, "HGET", META, "g:p:state", NULL);
	ck_assert_str_eq(state, "lost");
	free(state);
	state = fixture_text(&f, "HGET", META, "g:r:state", NULL);
	ck_assert_str_eq(state, "sealed");
	free(state);
	want_present("a", "x0", true);
	want_present("b", "x0", true);
	ck_assert_int_eq(bits_set("r"), 0);
	ck_assert_int_eq(bits_set("p"), 0);
	/* Under the meta from before nothing is done, and the new one is told. */
	meta = before;
	text = add("y", 1);
	ck_assert_msg(strncmp(text, "0 epoch ", 8) == 0, "%s", text);
	ck_assert_ptr_nonnull(strstr(text, " g:p:state lost "));
	free(text);
	want_present("a", "y0", false);
	/* Under the new one it is done, in the lost generation where it can be. */
	fixture_meta(&f, &meta);
	free(add("y", 1));
	want_present("a", "y0", true);
	want_present("l", "y0", true);
	fixture_fini(&f);
}
END_TEST

/* Without meta the add is acknowledged, and the next builder finds a meta. */
START_TEST(test_live_no_meta)
{
	char *text;

	fixture_init(&f, OPTIONS);
	fixture_meta(&f, &meta);
	ck_assert(!meta.exists);
	text = add("x", 2);
	fixture_meta(&f, &meta);
	ck_assert(meta.exists);
	ck_assert_int_eq(meta.layout, 1);
	ck_assert_msg(strncmp(text + 2, meta.epoch, strlen(meta.epoch)) == 0,
	    "%s, not %s", text, meta.epoch);
	ck_assert_str_eq(text + 2 + strlen(meta.epoch), " 0 1 1 ");
	free(text);
	/* Nothing is built: taken all the same, the epoch stays. */
	text = add("x", 1);
	ck_assert_msg(strncmp(text + 2, meta.epoch, strlen(meta.epoch)) == 0,
	    "%s, not %s", text, meta.epoch);
	free(text);
	/* The meta went: what knew of it is refused nothing. */
	fixture_integer(&f, "DEL", META, NULL);
	text = add("x", 1);
	ck_assert_int_eq(text[0], '1');
	free(text);
	fixture_fini(&f);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("proxy_add_live");
	TCase *t = tcase_create("add");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_test(t, test_live);
	tcase_add_loop_test(t, test_live_limits, 0, (int)LIMITS);
	tcase_add_test(t, test_live_lost);
	tcase_add_test(t, test_live_no_meta);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
