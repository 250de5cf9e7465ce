/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unit tests of the command table. The descriptions are those of COMMAND INFO,
 * the expected keys those of COMMAND GETKEYS, of redis-server 7.0.15, but where a
 * comment says otherwise.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "core/mem.h"
#include "core/slice.h"
#include "policy/command.h"

#define R  COMMAND_READONLY
#define W  COMMAND_WRITE
#define M  COMMAND_MOVABLE_KEYS
#define B  COMMAND_BLOCKING
#define PS COMMAND_PUBSUB

/* clang-format off */
#define RANGE(i, l, s) {.index = (i), .last = (l), .step = (s)}
#define KEYNUM(i) {.index = (i), .keynum = true, .first_key = 1, .step = 1}
#define WORD(w, from, l, lim) {.keyword = true, .word = w, .index = (from), \
	.last = (l), .step = 1, .limit = (lim)}
#define UNKNOWN {.incomplete = true}
static const struct command described[] = {
    {"get", 2, R, 0, 0, 1, {RANGE(1, 0, 1)}, false},
    {"set", -3, W, 0, 0, 1, {RANGE(1, 0, 1)}, false},
    {"mget", -2, R, 0, 0, 1, {RANGE(1, -1, 1)}, false},
    {"exists", -2, R, 0, 0, 1, {RANGE(1, -1, 1)}, false},
    {"del", -2, W, 0, 0, 1, {RANGE(1, -1, 1)}, false},
    {"mset", -3, W, 0, 0, 1, {RANGE(1, -1, 2)}, false},
    {"msetnx", -3, W, 0, 0, 1, {RANGE(1, -1, 2)}, false},
    {"bitop", -4, W, 0, 0, 2, {RANGE(2, 0, 1), RANGE(3, -1, 1)}, false},
    {"eval", -3, M, 0, 0, 1, {KEYNUM(2)}, false},
    {"evalsha", -3, M, 0, 0, 1, {KEYNUM(2)}, false},
    {"eval_ro", -3, R | M, 0, 0, 1, {KEYNUM(2)}, false},
    {"fcall", -3, M, 0, 0, 1, {KEYNUM(2)}, false},
    {"sort", -2, W | M, 0, 0, 3, {RANGE(1, 0, 1), UNKNOWN, UNKNOWN}, false},
    {"sort_ro", -2, R | M, 0, 0, 2, {RANGE(1, 0, 1), UNKNOWN}, false},
    {"georadius", -6, W | M, 0, 0, 3, {RANGE(1, 0, 1),
	WORD("STORE", 6, 0, 0), WORD("STOREDIST", 6, 0, 0)}, false},
    {"xread", -4, R | B | M, 0, 0, 1, {WORD("STREAMS", 1, -1, 2)}, false},
    {"xreadgroup", -7, W | B | M, 0, 0, 1, {WORD("STREAMS", 4, -1, 2)},
	false},
    {"migrate", -6, W | M, 0, 0, 2, {RANGE(3, 0, 1), {.keyword = true,
	.word = "KEYS", .index = -2, .last = -1, .step = 1,
	.incomplete = true}}, false},
    {"copy", -3, W, 0, 0, 2, {RANGE(1, 0, 1), RANGE(2, 0, 1)}, false},
    {"rename", 3, W, 0, 0, 2, {RANGE(1, 0, 1), RANGE(2, 0, 1)}, false},
    {"lmpop", -4, W | M, 0, 0, 1, {KEYNUM(1)}, false},
    {"blmpop", -5, W | B | M, 0, 0, 1, {KEYNUM(2)}, false},
    {"zunionstore", -4, W | M, 0, 0, 2, {RANGE(1, 0, 1), KEYNUM(2)}, false},
    {"zunion", -3, R | M, 0, 0, 1, {KEYNUM(1)}, false},
    {"sintercard", -3, R | M, 0, 0, 1, {KEYNUM(1)}, false},
    {"object", -2, 0, 0, 0, 0, {{0}}, false},
    {"object|encoding", 3, R, 0, 0, 1, {RANGE(2, 0, 1)}, false},
    {"object|freq", 3, R, 0, 0, 1, {RANGE(2, 0, 1)}, false},
    {"memory", -2, 0, 0, 0, 0, {{0}}, false},
    {"memory|usage", -3, R, 0, 0, 1, {RANGE(2, 0, 1)}, false},
    {"xgroup", -2, 0, 0, 0, 0, {{0}}, false},
    {"xgroup|create", -5, W, 0, 0, 1, {RANGE(2, 0, 1)}, false},
    {"xadd", -5, W, 0, 0, 1, {RANGE(1, 0, 1)}, false},
    {"blpop", -3, W | B, 0, 0, 1, {RANGE(1, -2, 1)}, false},
    {"lcs", -3, R, 0, 0, 1, {RANGE(1, 1, 1)}, false},
    {"pfmerge", -2, W, 0, 0, 2, {RANGE(1, 0, 1), RANGE(2, -1, 1)}, false},
    {"incr", 2, W, 0, 0, 1, {RANGE(1, 0, 1)}, false},
    {"ping", -1, 0, 0, 0, 0, {{0}}, false},
    {"subscribe", -2, PS, 0, 0, 0, {{0}}, false},
    {"publish", 3, PS, 0, 0, 0, {{0}}, false},
    {"select", 2, 0, 0, 0, 0, {{0}}, false},
};
/* clang-format on */
#define DESCRIBED (sizeof(described) / sizeof(*described))

static struct command_table *
table_filled(void)
{
	struct command_table *t = command_table_new();

	for (size_t i = 0; i < DESCRIBED; i++)
		command_table_add(t, &described[i]);
	return t;
}

#define ARGS_MAX 32

struct keys_seen {
	size_t argc;
	size_t index[256];
	size_t count;
};

static void
on_key(size_t index, void *arg)
{
	struct keys_seen *k = arg;

	/* An assertion costs a system call even where it holds. */
	if (index < 1 || index >= k->argc || k->count == 256)
		ck_abort_msg("key %zu of %zu", index, k->argc);
	k->index[k->count++] = index;
}

/* Splits at single spaces, so that two in a row make an empty argument. */
static size_t
split(const char *line, struct slice argv[ARGS_MAX])
{
	size_t argc = 0;

	for (;;) {
		size_t len = strcspn(line, " ");

		ck_assert_uint_lt(argc, ARGS_MAX);
		argv[argc++] = slice_of(line, len);
		if (line[len] == '\0')
			return argc;
		line += len + 1;
	}
}

/* The keys of line separated by spaces, or "-1"; freed with free(). */
static char *
keys_of(const struct command_table *t, const char *line)
{
	struct slice argv[ARGS_MAX];
	struct keys_seen seen = {.argc = split(line, argv)};
	char *text = mem_zalloc(strlen(line) + 64, 1);
	size_t len = 0;
	int n = command_keys(
	    command_find(t, argv[0]), argv, seen.argc, on_key, &seen);

	if (n < 0) {
		memcpy(text, "-1", 2);
		return text;
	}
	ck_assert_int_eq(n, (int)seen.count);
	for (size_t i = 0; i < seen.count; i++) {
		struct slice a = argv[seen.index[i]];

		if (i > 0)
			text[len++] = ' ';
		memcpy(text + len, a.data, a.len);
		len += a.len;
	}
	return text;
}

static void
expect_keys(const struct command_table *t, const char *line, const char *keys)
{
	char *got = keys_of(t, line);

	ck_assert_msg(strcmp(got, keys) == 0, "%s: keys \"%s\", not \"%s\"",
	    line, got, keys);
	free(got);
}

START_TEST(keys_as_redis)
{
	static const char *const cases[][2] = {
	    {"GET k", "k"},
	    {"SET k v EX 10", "k"},
	    {"MGET a b c", "a b c"},
	    {"MSET a 1 b 2", "a b"},
	    {"MSET a 1 b", "a b"},
	    {"MSETNX a 1 b 2 c 3", "a b c"},
	    {"EXISTS a a b", "a a b"},
	    {"BITOP AND d a b", "d a b"},
	    {"BITOP NOT d a", "d a"},
	    {"EVAL s 2 a b x y", "a b"},
	    {"EVAL s 0 x y", ""},
	    {"EVAL s -1 a b", ""},
	    {"EVALSHA s 1 a", "a"},
	    {"FCALL f 2 a b c", "a b"},
	    {"SORT k", "k"},
	    {"SORT k BY w GET # LIMIT 0 1 STORE d", "k d"},
	    {"SORT_RO k BY w", "k"},
	    {"GEORADIUS k 0 0 1 m", "k"},
	    {"GEORADIUS k 0 0 1 m STORE d", "k d"},
	    {"GEORADIUS k 0 0 1 m COUNT 1 STOREDIST d", "k d"},
	    {"GEORADIUS k 0 0 1 m count 1 storedist d", "k d"},
	    {"XREAD COUNT 1 STREAMS a b 0 0", "a b"},
	    {"XREADGROUP GROUP g c COUNT 1 BLOCK 0 NOACK STREAMS a b > >",
		"a b"},
	    {"XREADGROUP GROUP STREAMS c STREAMS a 0", "a"},
	    {"MIGRATE h 1 k 0 1000", "k"},
	    {"COPY a b", "a b"},
	    {"COPY a b DB 1 REPLACE", "a b"},
	    {"RENAME a b", "a b"},
	    {"LMPOP 2 a b LEFT COUNT 1", "a b"},
	    {"BLMPOP 0 2 a b LEFT", "a b"},
	    {"ZUNIONSTORE d 2 a b WEIGHTS 1 2", "d a b"},
	    {"ZUNION 2 a b", "a b"},
	    {"SINTERCARD 2 a b LIMIT 1", "a b"},
	    {"OBJECT ENCODING k", "k"},
	    {"MEMORY USAGE k SAMPLES 5", "k"},
	    {"MEMORY DOCTOR", ""},
	    {"XADD s * f v", "s"},
	    {"XGROUP CREATE s g $ MKSTREAM", "s"},
	    {"BLPOP a b 0", "a b"},
	    {"LCS a b LEN", "a b"},
	    {"DEL a b", "a b"},
	    {"PFMERGE d a b", "d a b"},
	    {"INCR k", "k"},
	    {"PING", ""},
	};
	struct command_table *t = table_filled();

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		expect_keys(t, cases[i][0], cases[i][1]);
	command_table_free(t);
}
END_TEST

/*
 * More than COMMAND GETKEYS names: what Redis would refuse, or every value of an
 * option of which it obeys the last (it names "k b" for SORT and "k a" for
 * GEORADIUS here, and GEORADIUS stores to b).
 */
START_TEST(keys_beyond_redis)
{
	struct command_table *t = table_filled();

	expect_keys(t, "EVAL s 5 a b", "a b");
	expect_keys(t, "EVAL s 9223372036854775807 a b", "a b");
	expect_keys(t, "EVAL s 9223372036854775808 a b", "");
	expect_keys(t, "LMPOP 2 a", "a");
	expect_keys(t, "PFMERGE d", "d");
	expect_keys(t, "SORT k STORE a STORE b", "k a b");
	expect_keys(t, "SORT k BY STORE STORE d", "k STORE d");
	expect_keys(t, "GEORADIUS k 0 0 1 m STORE a STORE b", "k a b");
	expect_keys(t, "MIGRATE h 1  0 1000 COPY KEYS a b", " a b");
	expect_keys(t, "MIGRATE h 1  0 1000 KEYS a KEYS b", " a KEYS b");
	command_table_free(t);
}
END_TEST

START_TEST(keys_cut_short)
{
	struct command_table *t = table_filled();

	expect_keys(t, "GET", "");
	expect_keys(t, "MSET", "");
	expect_keys(t, "COPY a", "a");
	expect_keys(t, "BITOP AND", "");
	expect_keys(t, "BLPOP a", "");
	expect_keys(t, "BLPOP", "");
	expect_keys(t, "EVAL s", "");
	expect_keys(t, "EVAL s 2", "");
	expect_keys(t, "EVAL s x a", "");
	expect_keys(t, "EVAL s  a", "");
	expect_keys(t, "XREADGROUP GROUP g c STREAMS", "");
	expect_keys(t, "XREADGROUP GROUP g c STREAMS a", "");
	expect_keys(t, "XREAD STREAMS a b 0", "a");
	expect_keys(t, "GEORADIUS k 0 0 1 m STORE", "k");
	expect_keys(t, "MIGRATE h", "");
	expect_keys(t, "MIGRATE h 1 k 0 1 KEYS", "k");
	expect_keys(t, "OBJECT", "");
	command_table_free(t);
}
END_TEST

/* What a Redis before 7 says: first, last, step and movable keys. */
START_TEST(keys_before_seven)
{
	/* clang-format off */
	static const struct command old[] = {
	    {"zunionstore", -4, W | M, 0, 0, 1, {RANGE(1, 0, 1)}, false},
	    {"eval", -3, M, 0, 0, 0, {{0}}, false},
	    {"sort", -2, W | M, 0, 0, 1, {RANGE(1, 0, 1)}, false},
	    {"georadiusbymember", -5, W | M, 0, 0, 1, {RANGE(1, 0, 1)}, false},
	    {"xreadgroup", -7, W | M, 0, 0, 0, {{0}}, false},
	    {"memory", -2, R | M, 0, 0, 0, {{0}}, false},
	    {"mset", -3, W, 0, 0, 1, {RANGE(1, -1, 2)}, false},
	    {"mod.keys", -2, W | M, 0, 0, 1, {RANGE(1, 0, 1)}, false},
	    {"mod.none", -2, W | M, 0, 0, 0, {{0}}, false},
	};
	/* clang-format on */
	struct command_table *t = command_table_new();

	for (size_t i = 0; i < sizeof(old) / sizeof(*old); i++)
		command_table_add(t, &old[i]);
	expect_keys(t, "ZUNIONSTORE d 2 a b WEIGHTS 1 2", "d a b");
	expect_keys(t, "EVAL s 2 a b x y", "a b");
	expect_keys(t, "SORT k STORE d", "k d");
	expect_keys(t, "GEORADIUSBYMEMBER k m 1 m STORE d", "k d");
	expect_keys(t, "XREADGROUP GROUP g c STREAMS a b > >", "a b");
	expect_keys(t, "MEMORY USAGE k", "k");
	expect_keys(t, "MSET a 1 b 2", "a b");
	expect_keys(t, "MOD.KEYS a", "-1");
	expect_keys(t, "MOD.NONE a", "-1");
	expect_keys(t, "NOSUCH a", "-1");
	command_table_free(t);
}
END_TEST

/* A spec that the upstream made up: no index may leave argv. */
START_TEST(keys_hostile_specs)
{
	static const int values[] = {
	    INT32_MIN, -1000, -3, -2, -1, 0, 1, 2, 3, 1000, INT32_MAX};
	const size_t n = sizeof(values) / sizeof(*values);
	struct slice argv[ARGS_MAX];
	size_t argc = split("X 3 a WORD 2 b 9223372036854775807 c", argv);
	struct command c = {
	    .arity = -1, .flags = M, .spec_count = 1, .keys_told = true};

	for (size_t i = 0; i < n * n * n * n * 4; i++) {
		struct key_spec *s = &c.specs[0];
		struct keys_seen seen = {0};
		size_t x = i / 4;

		*s = (struct key_spec){
		    .keyword = i & 1, .keynum = (i & 2) != 0, .word = "word"};
		s->index = values[x % n];
		s->last = s->keynum_index = values[x / n % n];
		s->step = values[x / n / n % n];
		s->limit = s->first_key = values[x / n / n / n];
		for (size_t len = 0; len <= argc; len++) {
			seen = (struct keys_seen){.argc = len};
			if (command_keys(&c, argv, len, on_key, &seen) !=
			    (int)seen.count)
				ck_abort_msg("combination %zu", i);
		}
	}
}
END_TEST

START_TEST(find_any_case)
{
	struct command_table *t = table_filled();
	const struct command *get = command_find(t, slice_str("get"));

	ck_assert_str_eq(get->name, "get");
	ck_assert_ptr_eq(get, command_find(t, slice_str("GET")));
	ck_assert_ptr_eq(get, command_find(t, slice_str("gEt")));
	ck_assert_int_eq(get->arity, 2);
	ck_assert_int_eq(get->effect, EFFECT_ORDINARY);
	ck_assert_ptr_eq(get->covered, covered_find("get"));
	static const struct {
		const char *name;
		size_t len;
	} none[] = {{"", 0}, {"get\0", 4}, {"\0get", 4}, {"ge", 2}, {"gett", 4},
	    {"g\xe5t", 3}, {" get", 4}, {"xgroup|create", 13},
	    {"getgetgetgetgetgetgetgetgetgetge", 32},
	    {"getgetgetgetgetgetgetgetgetgetgetgetgetgetgetgetget", 51}};
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++) {
		const struct command *c = command_find(
		    t, slice_of(none[i].name, none[i].len));

		ck_assert_ptr_nonnull(c);
		ck_assert_int_eq(c->effect, EFFECT_UNKNOWN);
		ck_assert_ptr_null(c->covered);
		ck_assert(!command_may_create(c));
	}
	command_table_free(t);
}
END_TEST

START_TEST(effects)
{
	static const struct {
		const char *name;
		enum effect effect;
	} cases[] = {
	    {"SELECT", EFFECT_SELECT},
	    {"AUTH", EFFECT_AUTH},
	    {"HELLO", EFFECT_HELLO},
	    {"CLIENT", EFFECT_CLIENT},
	    {"QUIT", EFFECT_QUIT},
	    {"RESET", EFFECT_RESET},
	    {"MULTI", EFFECT_MULTI},
	    {"EXEC", EFFECT_EXEC},
	    {"DISCARD", EFFECT_DISCARD},
	    {"WATCH", EFFECT_WATCH},
	    {"UNWATCH", EFFECT_UNWATCH},
	    {"SUBSCRIBE", EFFECT_SUBSCRIBE},
	    {"PSUBSCRIBE", EFFECT_SUBSCRIBE},
	    {"SSUBSCRIBE", EFFECT_SUBSCRIBE},
	    {"UNSUBSCRIBE", EFFECT_UNSUBSCRIBE},
	    {"PUNSUBSCRIBE", EFFECT_UNSUBSCRIBE},
	    {"SUNSUBSCRIBE", EFFECT_UNSUBSCRIBE},
	    {"MONITOR", EFFECT_MONITOR},
	    {"SYNC", EFFECT_MONITOR},
	    {"PSYNC", EFFECT_MONITOR},
	    {"BF.ADD", EFFECT_BF},
	    {"bf.mexists", EFFECT_BF},
	    {"bf.whatever", EFFECT_BF},
	    {"bf", EFFECT_UNKNOWN},
	    {"bfx", EFFECT_UNKNOWN},
	};
	static const struct command bf_add = {.name = "BF.ADD",
	    .arity = 3,
	    .flags = W,
	    .spec_count = 1,
	    .specs = {RANGE(1, 0, 1)}};
	struct command_table *t = command_table_new();

	ck_assert_uint_eq(command_table_size(t), 0);
	for (int filled = 0; filled < 2; filled++) {
		for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
			const struct command *c = command_find(
			    t, slice_str(cases[i].name));

			ck_assert_msg(c->effect == cases[i].effect, "%s: %d",
			    cases[i].name, c->effect);
		}
		for (size_t i = 0; i < DESCRIBED; i++)
			command_table_add(t, &described[i]);
		command_table_add(t, &bf_add);
	}
	ck_assert_int_eq(command_find(t, slice_str("select"))->arity, 2);
	ck_assert_int_eq(command_find(t, slice_str("bf.add"))->arity, 3);
	expect_keys(t, "BF.ADD f x", "f");
	expect_keys(t, "BF.OTHER f x", "");
	expect_keys(t, "MULTI", "");
	/* Four of the descriptions are subcommands; BF.ADD came besides. */
	ck_assert_uint_eq(command_table_size(t), DESCRIBED - 4 + 1);
	command_table_free(t);
}
END_TEST

START_TEST(covered_needs_upstream)
{
	struct command_table *t = command_table_new();
	struct command get = described[0];

	ck_assert_str_eq(get.name, "get");
	ck_assert_int_eq(
	    command_find(t, slice_str("get"))->effect, EFFECT_UNKNOWN);
	ck_assert_ptr_null(command_find(t, slice_str("get"))->covered);
	/* Not the GET that we know. */
	get.arity = 3;
	command_table_add(t, &get);
	ck_assert_ptr_null(command_find(t, slice_str("get"))->covered);
	ck_assert_int_eq(
	    command_find(t, slice_str("get"))->effect, EFFECT_ORDINARY);
	/* Said again, it replaces what was said. What the caller writes into
	 * effect and covered does not count. */
	get.arity = 2;
	get.effect = EFFECT_MONITOR;
	get.covered = covered_find("mget");
	command_table_add(t, &get);
	ck_assert_ptr_eq(
	    command_find(t, slice_str("get"))->covered, covered_find("get"));
	ck_assert_int_eq(
	    command_find(t, slice_str("get"))->effect, EFFECT_ORDINARY);
	ck_assert_uint_eq(command_table_size(t), 1);
	get.flags = W;
	command_table_add(t, &get);
	ck_assert_ptr_null(command_find(t, slice_str("get"))->covered);
	command_table_free(t);
}
END_TEST

START_TEST(may_create)
{
	static const char *const yes[] = {"set", "mset", "eval", "evalsha",
	    "fcall", "rename", "sort", "xgroup", "del"};
	static const char *const no[] = {"get", "mget", "exists", "ping",
	    "publish", "eval_ro", "sort_ro", "object", "memory", "nosuch"};
	struct command_table *t = table_filled();

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		ck_assert_msg(
		    command_may_create(command_find(t, slice_str(yes[i]))),
		    "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		ck_assert_msg(
		    !command_may_create(command_find(t, slice_str(no[i]))),
		    "%s", no[i]);
	command_table_free(t);
}
END_TEST

/* More subcommands with other places than there is room for. */
START_TEST(container_overflow)
{
	struct command_table *t = command_table_new();
	struct command c = {.arity = -2, .spec_count = 1, .flags = R};

	for (int i = 0; i < KEY_SPECS_MAX; i++) {
		char *name = mem_printf("Box|s%d", i);

		memcpy(c.name, name, strlen(name) + 1);
		free(name);
		c.specs[0] = (struct key_spec)RANGE(i + 1, 0, 1);
		command_table_add(t, &c);
		command_table_add(t, &c);
	}
	ck_assert_uint_eq(command_table_size(t), 1);
	expect_keys(t, "BOX a b c", "a b c");
	c.specs[0].index = KEY_SPECS_MAX + 1;
	command_table_add(t, &c);
	expect_keys(t, "BOX a b c", "-1");
	ck_assert(command_find(t, slice_str("box"))->flags & R);
	memcpy(c.name, "|x", 3);
	command_table_add(t, &c);
	c.name[0] = '\0';
	command_table_add(t, &c);
	ck_assert_uint_eq(command_table_size(t), 1);
	command_table_free(t);
}
END_TEST

/* Pointers hold while the table grows. */
START_TEST(many_commands)
{
	struct command_table *t = table_filled();
	const struct command *get = command_find(t, slice_str("GET"));
	struct command c = {.arity = -1};
	const int count = 2000;

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < count; i++) {
			char *name = mem_printf("Mod.command-%d", i);

			memcpy(c.name, name, strlen(name) + 1);
			c.arity = i + 1;
			if (round == 0)
				command_table_add(t, &c);
			else
				ck_assert_int_eq(
				    command_find(t, slice_str(name))->arity,
				    i + 1);
			free(name);
		}
	}
	/* The NULs that end a name in the table are no part of it. */
	for (int i = 0; i < count; i++) {
		char name[32] = {0};
		size_t len;

		snprintf(name, sizeof(name), "mod.command-%d", i);
		for (len = strlen(name) + 1; len < sizeof(name); len++) {
			if (command_find(t, slice_of(name, len))->effect !=
			    EFFECT_UNKNOWN)
				ck_abort_msg("%s and NULs", name);
		}
	}
	ck_assert_ptr_eq(get, command_find(t, slice_str("get")));
	ck_assert_uint_eq(command_table_size(t), DESCRIBED - 4 + (size_t)count);
	command_table_free(t);
	command_table_free(NULL);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("policy: commands");
	TCase *c = tcase_create("command");
	SRunner *r;
	int failed;

	tcase_add_test(c, keys_as_redis);
	tcase_add_test(c, keys_beyond_redis);
	tcase_add_test(c, keys_cut_short);
	tcase_add_test(c, keys_before_seven);
	tcase_add_test(c, keys_hostile_specs);
	tcase_add_test(c, find_any_case);
	tcase_add_test(c, effects);
	tcase_add_test(c, covered_needs_upstream);
	tcase_add_test(c, may_create);
	tcase_add_test(c, container_overflow);
	tcase_add_test(c, many_commands);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
