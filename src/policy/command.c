/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command table: a hash of names to facts. What is said here and not by the
 * upstream is data: the two tables below. It executes nothing and keeps no
 * session state. Immutable once filled; any thread.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/mem.h"
#include "policy/command.h"

#define NAME_MAX_LEN (sizeof(((struct command *)0)->name) - 1)

/* What bloomgate knows by itself of a command. */
struct fact {
	const char *name;
	enum effect effect;
};

static const struct fact facts[] = {
    {"select", EFFECT_SELECT},
    {"auth", EFFECT_AUTH},
    {"hello", EFFECT_HELLO},
    {"client", EFFECT_CLIENT},
    {"quit", EFFECT_QUIT},
    {"reset", EFFECT_RESET},
    {"multi", EFFECT_MULTI},
    {"exec", EFFECT_EXEC},
    {"discard", EFFECT_DISCARD},
    {"watch", EFFECT_WATCH},
    {"unwatch", EFFECT_UNWATCH},
    {"subscribe", EFFECT_SUBSCRIBE},
    {"psubscribe", EFFECT_SUBSCRIBE},
    {"ssubscribe", EFFECT_SUBSCRIBE},
    {"unsubscribe", EFFECT_UNSUBSCRIBE},
    {"punsubscribe", EFFECT_UNSUBSCRIBE},
    {"sunsubscribe", EFFECT_UNSUBSCRIBE},
    {"monitor", EFFECT_MONITOR},
    {"sync", EFFECT_MONITOR},
    {"psync", EFFECT_MONITOR},
    /* Its ACK has no reply. */
    {"replconf", EFFECT_MONITOR},
};

/*
 * Where the keys of movable commands are, as Redis 7 says: for upstreams that
 * give only first, last and step (before 7), or call a place unknown. SORT and
 * MIGRATE are of our own: their keywords may also be the values of other
 * options, so every place that could be one counts.
 */
#define AT(i)                                                                  \
	{                                                                      \
		.index = (i), .step = 1                                        \
	}
#define COUNTED(i)                                                             \
	{                                                                      \
		.index = (i), .keynum = true, .first_key = 1, .step = 1        \
	}
#define AFTER(w, from, l, lim)                                                 \
	{                                                                      \
		.keyword = true, .word = w, .index = (from), .last = (l),      \
		.step = 1, .limit = (lim)                                      \
	}
static const struct movable {
	const char *name;
	size_t count;
	struct key_spec specs[3];
} movables[] = {
    {"blmpop", 1, {COUNTED(2)}},
    {"bzmpop", 1, {COUNTED(2)}},
    {"eval", 1, {COUNTED(2)}},
    {"eval_ro", 1, {COUNTED(2)}},
    {"evalsha", 1, {COUNTED(2)}},
    {"evalsha_ro", 1, {COUNTED(2)}},
    {"fcall", 1, {COUNTED(2)}},
    {"fcall_ro", 1, {COUNTED(2)}},
    {"georadius", 3,
	{AT(1), AFTER("STORE", 6, 0, 0), AFTER("STOREDIST", 6, 0, 0)}},
    {"georadiusbymember", 3,
	{AT(1), AFTER("STORE", 5, 0, 0), AFTER("STOREDIST", 5, 0, 0)}},
    {"lmpop", 1, {COUNTED(1)}},
    {"memory", 1, {AT(2)}},
    {"migrate", 2, {AT(3), AFTER("KEYS", 6, -1, 0)}},
    {"sintercard", 1, {COUNTED(1)}},
    {"sort", 2, {AT(1), AFTER("STORE", 2, 0, 0)}},
    {"sort_ro", 1, {AT(1)}},
    {"stralgo", 1, {AFTER("KEYS", 2, 1, 0)}},
    {"xread", 1, {AFTER("STREAMS", 1, -1, 2)}},
    {"xreadgroup", 1, {AFTER("STREAMS", 4, -1, 2)}},
    {"zdiff", 1, {COUNTED(1)}},
    {"zdiffstore", 2, {AT(1), COUNTED(2)}},
    {"zinter", 1, {COUNTED(1)}},
    {"zintercard", 1, {COUNTED(1)}},
    {"zinterstore", 2, {AT(1), COUNTED(2)}},
    {"zmpop", 1, {COUNTED(1)}},
    {"zunion", 1, {COUNTED(1)}},
    {"zunionstore", 2, {AT(1), COUNTED(2)}},
};
#undef AT
#undef COUNTED
#undef AFTER

struct entry {
	struct command command;
	size_t name_len;
	bool added; /* the upstream said so */
};

struct command_table {
	struct entry **slots; /* owned, with the entries; size a power of two */
	size_t size;
	size_t used;
	size_t added;
};

static const struct command unknown_command = {
    .name = "", .effect = EFFECT_UNKNOWN};
/* Any other BF.*: of a configured name it is ours to answer. */
static const struct command unknown_bf = {
    .name = "bf.", .effect = EFFECT_BF, .keys_told = true};

static uint8_t
lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c + ('a' - 'A')) : c;
}

/* FNV-1a of the name in lower case, which goes to out. */
static uint32_t
hash_name(struct slice name, char *out)
{
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < name.len; i++) {
		uint8_t c = lower(name.data[i]);

		out[i] = (char)c;
		h = (h ^ c) * 16777619U;
	}
	return h;
}

/* The slot of name (in lower case): its entry's, or the free one for it. */
static size_t
find_slot(
    const struct command_table *t, const char *name, size_t len, uint32_t hash)
{
	size_t i = hash & (t->size - 1);

	while (t->slots[i] != NULL) {
		const struct entry *e = t->slots[i];

		if (e->name_len == len &&
		    memcmp(e->command.name, name, len) == 0)
			break;
		i = (i + 1) & (t->size - 1);
	}
	return i;
}

static void
grow(struct command_table *t)
{
	struct entry **old = t->slots;
	size_t old_size = t->size;

	t->size = old_size == 0 ? 64 : old_size * 2;
	t->slots = mem_zalloc(t->size, sizeof(struct entry *));
	for (size_t i = 0; i < old_size; i++) {
		char name[NAME_MAX_LEN + 1];
		uint32_t hash;
		size_t len;

		if (old[i] == NULL)
			continue;
		len = old[i]->name_len;
		hash = hash_name(slice_of(old[i]->command.name, len), name);
		t->slots[find_slot(t, name, len, hash)] = old[i];
	}
	free(old);
}

/* The entry of name, made empty when there is none. */
static struct entry *
entry_get(struct command_table *t, struct slice name)
{
	char text[NAME_MAX_LEN + 1] = {0};
	uint32_t hash = hash_name(name, text);
	size_t i;

	if (2 * (t->used + 1) > t->size)
		grow(t);
	i = find_slot(t, text, name.len, hash);
	if (t->slots[i] == NULL) {
		t->slots[i] = mem_zalloc(1, sizeof(struct entry));
		memcpy(t->slots[i]->command.name, text, sizeof(text));
		t->slots[i]->name_len = name.len;
		t->slots[i]->command.keys_told = true;
		t->used++;
	}
	return t->slots[i];
}

struct command_table *
command_table_new(void)
{
	struct command_table *t = mem_zalloc(1, sizeof(*t));

	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
		entry_get(t, slice_str(facts[i].name))->command.effect =
		    facts[i].effect;
	}
	return t;
}

void
command_table_free(struct command_table *t)
{
	if (t == NULL)
		return;
	for (size_t i = 0; i < t->size; i++)
		free(t->slots[i]);
	free(t->slots);
	free(t);
}

static bool
is_bf(const char *name, size_t len)
{
	return len >= 3 && memcmp(name, "bf.", 3) == 0;
}

/*
 * True when the specs find every key: none is incomplete, and movable keys have
 * one that looks beyond fixed places.
 */
static bool
specs_tell(const struct command *c)
{
	bool tell = !(c->flags & COMMAND_MOVABLE_KEYS);

	for (size_t i = 0; i < c->spec_count; i++) {
		if (c->specs[i].incomplete)
			return false;
		if (c->specs[i].keyword || c->specs[i].keynum)
			tell = true;
	}
	return tell;
}

/* Fills in keys_told, and the specs where the upstream's do not do. */
static void
settle_keys(struct command *c)
{
	c->keys_told = specs_tell(c);
	if (c->keys_told)
		return;
	for (size_t i = 0; i < sizeof(movables) / sizeof(*movables); i++) {
		if (strcmp(movables[i].name, c->name) != 0)
			continue;
		c->spec_count = movables[i].count;
		memcpy(c->specs, movables[i].specs, sizeof(movables[i].specs));
		c->keys_told = true;
	}
}

/* Fills in effect, covered and the flags that Redis does not tell. */
static void
settle_facts(struct command *c)
{
	c->effect = is_bf(c->name, strlen(c->name)) ? EFFECT_BF
						    : EFFECT_ORDINARY;
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++)
		if (strcmp(facts[i].name, c->name) == 0)
			c->effect = facts[i].effect;
	/* An upstream whose command is another is left to judge. */
	c->covered = covered_find(c->name);
	if (c->covered != NULL &&
	    (!covered_fits(c->covered, c->arity) || (c->flags & COMMAND_WRITE)))
		c->covered = NULL;
	/* COMMAND of Redis 7.0 does not report these flags. */
	if (strcmp(c->name, "eval") == 0 || strcmp(c->name, "evalsha") == 0 ||
	    strcmp(c->name, "fcall") == 0)
		c->flags |= COMMAND_MAY_REPLICATE;
	/* Nor of these, which wait for replicas. */
	if (strcmp(c->name, "wait") == 0 || strcmp(c->name, "waitaof") == 0)
		c->flags |= COMMAND_BLOCKING;
}

static bool
spec_eq(const struct key_spec *a, const struct key_spec *b)
{
	return a->keyword == b->keyword && strcmp(a->word, b->word) == 0 &&
	    a->index == b->index && a->keynum == b->keynum &&
	    a->last == b->last && a->step == b->step && a->limit == b->limit &&
	    a->keynum_index == b->keynum_index &&
	    a->first_key == b->first_key && a->incomplete == b->incomplete;
}

/* Adds what c says to its container: more keys than there are do no harm. */
static void
merge(struct command *container, const struct command *c)
{
	container->flags |= c->flags;
	if (container->flags & COMMAND_WRITE)
		container->flags &= ~(unsigned)COMMAND_READONLY;
	for (size_t i = 0; i < c->spec_count; i++) {
		size_t n = container->spec_count, j = 0;

		while (j < n && !spec_eq(&container->specs[j], &c->specs[i]))
			j++;
		if (j < n)
			continue;
		if (n < KEY_SPECS_MAX)
			container->specs[container->spec_count++] = c->specs[i];
		else
			container->specs[n - 1].incomplete = true;
	}
}

static void
check_terminated(const struct command *c)
{
	check(memchr(c->name, '\0', sizeof(c->name)) != NULL);
	check(c->spec_count <= KEY_SPECS_MAX);
	for (size_t i = 0; i < c->spec_count; i++)
		check(memchr(c->specs[i].word, '\0',
			  sizeof(c->specs[i].word)) != NULL);
}

void
command_table_add(struct command_table *t, const struct command *c)
{
	struct slice name;
	const char *bar;
	struct entry *e;

	check_terminated(c);
	bar = strchr(c->name, '|');
	name = bar == NULL ? slice_str(c->name)
			   : slice_of(c->name, (size_t)(bar - c->name));
	if (name.len == 0)
		return;
	e = entry_get(t, name);
	if (bar != NULL) {
		if (!e->added)
			e->command.arity = -2;
		merge(&e->command, c);
	} else {
		char lowered[sizeof(c->name)];

		memcpy(lowered, e->command.name, sizeof(lowered));
		e->command = *c;
		memcpy(e->command.name, lowered, sizeof(lowered));
	}
	t->added += !e->added;
	e->added = true;
	settle_facts(&e->command);
	settle_keys(&e->command);
}

size_t
command_table_size(const struct command_table *t)
{
	return t->added;
}

const struct command *
command_find(const struct command_table *t, struct slice name)
{
	char text[NAME_MAX_LEN + 1];
	const struct entry *e;
	uint32_t hash;

	if (name.len == 0 || name.len > NAME_MAX_LEN)
		return &unknown_command;
	hash = hash_name(name, text);
	e = t->slots[find_slot(t, text, name.len, hash)];
	if (e != NULL)
		return &e->command;
	return is_bf(text, name.len) ? &unknown_bf : &unknown_command;
}

struct key_walk {
	const struct slice *argv; /* borrowed */
	int64_t argc;
	void (*fn)(size_t index, void *arg);
	void *arg;
	int count;
};

/* The keys of a spec that begins at argument begin. */
static void
walk_find(struct key_walk *w, const struct key_spec *s, int64_t begin)
{
	int64_t first = begin, last, n;

	if (begin < 1 || begin >= w->argc || s->step < 1)
		return;
	if (s->keynum) {
		int64_t at = begin + s->keynum_index;

		if (at < 1 || at >= w->argc ||
		    slice_to_int64(w->argv[at], &n) != 0 || n < 1)
			return;
		if (n > w->argc)
			n = w->argc;
		first = begin + s->first_key;
		last = first + (n - 1) * s->step;
	} else if (s->last >= 0) {
		last = begin + s->last;
	} else if (s->limit > 1) {
		last = begin + (w->argc - begin) / s->limit + s->last;
	} else {
		last = w->argc + s->last;
	}
	if (first < 1)
		return;
	if (last >= w->argc)
		last = w->argc - 1;
	for (; first <= last; first += s->step) {
		w->fn((size_t)first, w->arg);
		w->count++;
	}
}

/*
 * A keyword is searched forwards, or backwards from the end where from is
 * negative, and the first one found counts. But where it names one key, as STORE
 * does, each counts: it may be the value of another option, and of several the
 * last is the one that Redis obeys.
 */
static void
walk_keyword(struct key_walk *w, const struct key_spec *s)
{
	int64_t i = s->index < 0 ? w->argc + s->index : s->index;
	int64_t by = s->index < 0 ? -1 : 1;
	bool every = !s->keynum && s->last == 0;

	if (i < 1 && by > 0)
		i = 1;
	for (; i >= 1 && i < w->argc; i += by) {
		if (!slice_is_nocase(w->argv[i], s->word))
			continue;
		walk_find(w, s, i + 1);
		if (!every)
			return;
	}
}

int
command_keys(const struct command *c, const struct slice *argv, size_t argc,
    void (*fn)(size_t index, void *arg), void *arg)
{
	struct key_walk w = {.argv = argv,
	    .argc = argc > INT32_MAX ? INT32_MAX : (int64_t)argc,
	    .fn = fn,
	    .arg = arg};

	if (c->effect == EFFECT_UNKNOWN)
		return -1;
	for (size_t i = 0; i < c->spec_count; i++) {
		if (c->specs[i].keyword)
			walk_keyword(&w, &c->specs[i]);
		else
			walk_find(&w, &c->specs[i], c->specs[i].index);
	}
	return c->keys_told ? w.count : -1;
}

bool
command_may_create(const struct command *c)
{
	return (c->flags & (COMMAND_WRITE | COMMAND_MAY_REPLICATE)) != 0;
}
