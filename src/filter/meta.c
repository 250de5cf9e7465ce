/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the meta hash and naming a filter's keys. What is read here may have
 * been written by another version, by hand or by an enemy: what does not fit
 * makes the generation unusable, or the whole meta an error, and either means
 * maybe. Nothing here writes a meta. Pure. Any thread.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/check.h"
#include "filter/meta_field.h"

enum top_field {
	TOP_LAYOUT,
	TOP_EPOCH,
	TOP_SEQ,
	TOP_RUN_ID,
	TOP_LOCK,
	TOP_LOCK_UNTIL,
	TOP_ACTIVE,
	TOP_PREVIOUS,
	TOP_BUILDING,
	TOP_RETIRING,
	TOP_COUNT,
};

static const char *const top_names[TOP_COUNT] = {
    [TOP_LAYOUT] = "layout",
    [TOP_EPOCH] = "epoch",
    [TOP_SEQ] = "seq",
    [TOP_RUN_ID] = "run-id",
    [TOP_LOCK] = "lock",
    [TOP_LOCK_UNTIL] = "lock-until",
    [TOP_ACTIVE] = "active",
    [TOP_PREVIOUS] = "previous",
    [TOP_BUILDING] = "building",
    [TOP_RETIRING] = "retiring",
};

/* Without these a generation cannot be used. */
#define FIELDS_NEEDED                                                          \
	(1U << FIELD_STATE | 1U << FIELD_SHARDS | 1U << FIELD_BITS |           \
	    1U << FIELD_K | 1U << FIELD_SCHEME | 1U << FIELD_TAG)

static int
top_lookup(struct slice name)
{
	for (int i = 0; i < TOP_COUNT; i++)
		if (slice_is(name, top_names[i]))
			return i;
	return -1;
}

struct parser {
	struct meta *m;
	struct err *err;
	struct slice top[TOP_COUNT]; /* values as they came */
	uint32_t top_seen;           /* bit per enum top_field */
	/* per generation: bit per enum generation_field seen, and read well */
	uint32_t seen[META_GENERATIONS_MAX];
	uint32_t good[META_GENERATIONS_MAX];
};

/* A name as it can stand in a list separated by spaces, and in a key. */
static bool
name_ok(struct slice name)
{
	if (name.len == 0 || name.len >= GENERATION_NAME_MAX)
		return false;
	for (size_t i = 0; i < name.len; i++)
		if (name.data[i] <= ' ' || name.data[i] == 0x7f)
			return false;
	return true;
}

static int
find_or_add(struct parser *p, struct slice name)
{
	struct meta *m = p->m;
	struct generation *g;
	int i = meta_find(m, name);

	if (i != -1)
		return i;
	if (!name_ok(name))
		return err_set(
		    p->err, "meta: a generation's name is not valid");
	if (m->generation_count == META_GENERATIONS_MAX)
		return err_set(p->err, "meta: more than %d generations",
		    META_GENERATIONS_MAX);
	g = &m->generations[m->generation_count];
	g->state = GENERATION_UNKNOWN;
	memcpy(g->name, name.data, name.len); /* the rest is zero */
	return (int)m->generation_count++;
}

/* "g:NAME:FIELD"; NAME may hold colons, FIELD has none. */
static int
parse_generation_field(struct parser *p, struct slice name, struct slice value)
{
	const uint8_t *colon;
	struct slice field;
	int i, f;

	if (name.len < 2 || memcmp(name.data, "g:", 2) != 0)
		return 0;
	name = slice_of(name.data + 2, name.len - 2);
	colon = memrchr(name.data, ':', name.len);
	if (colon == NULL)
		return 0;
	field = slice_of(colon + 1, name.len - (size_t)(colon + 1 - name.data));
	f = meta_field_lookup(field);
	if (f == -1)
		return 0;
	i = find_or_add(p, slice_of(name.data, (size_t)(colon - name.data)));
	if (i == -1)
		return -1;
	if (p->seen[i] & 1U << f)
		return err_set(p->err, "meta: field %s of generation %s twice",
		    meta_field_name((enum generation_field)f),
		    p->m->generations[i].name);
	p->seen[i] |= 1U << f;
	if (meta_field_read(
		&p->m->generations[i], (enum generation_field)f, value) == 0)
		p->good[i] |= 1U << f;
	return 0;
}

static int
collect_top(struct parser *p, const struct slice *fields, size_t n)
{
	for (size_t i = 0; i < n; i += 2) {
		int f = top_lookup(fields[i]);

		if (f == -1)
			continue;
		if (p->top_seen & 1U << f)
			return err_set(
			    p->err, "meta: field %s twice", top_names[f]);
		p->top_seen |= 1U << f;
		p->top[f] = fields[i + 1];
	}
	return 0;
}

/* The value of a field that is optional: absent reads as text. */
static struct slice
top_or(const struct parser *p, enum top_field f, const char *text)
{
	return p->top_seen & 1U << f ? p->top[f] : slice_str(text);
}

static int
bad_top(struct parser *p, enum top_field f)
{
	return err_set(p->err, "meta: field %s is not valid", top_names[f]);
}

static int
parse_layout(struct parser *p)
{
	uint64_t v;

	/* None at all: somebody else's hash, of no layout that we know. */
	if (meta_field_unsigned(top_or(p, TOP_LAYOUT, "0"), INT32_MAX, &v) ==
	    -1)
		return bad_top(p, TOP_LAYOUT);
	p->m->layout = (int)v;
	return 0;
}

static int
parse_top(struct parser *p)
{
	struct meta *m = p->m;
	uint64_t number;

	/* A hash that begin has just made has no epoch yet. */
	if (p->top_seen & 1U << TOP_EPOCH) {
		if (meta_field_unsigned(
			p->top[TOP_EPOCH], INT64_MAX, &number) == -1 ||
		    meta_field_text(
			p->top[TOP_EPOCH], m->epoch, sizeof(m->epoch)) == -1)
			return bad_top(p, TOP_EPOCH);
	}
	if (meta_field_unsigned(top_or(p, TOP_SEQ, "0"), INT64_MAX, &m->seq) ==
	    -1)
		return bad_top(p, TOP_SEQ);
	if (meta_field_text(
		top_or(p, TOP_RUN_ID, ""), m->run_id, sizeof(m->run_id)) == -1)
		return bad_top(p, TOP_RUN_ID);
	if (meta_field_text(
		top_or(p, TOP_LOCK, ""), m->lock, sizeof(m->lock)) == -1)
		return bad_top(p, TOP_LOCK);
	if (meta_field_time(
		top_or(p, TOP_LOCK_UNTIL, "0"), &m->lock_until_us) == -1)
		return bad_top(p, TOP_LOCK_UNTIL);
	return 0;
}

static int
parse_pointer(struct parser *p, enum top_field f, int *out)
{
	struct slice name = top_or(p, f, "");

	if (name.len == 0)
		return 0;
	*out = meta_find(p->m, name);
	if (*out == -1)
		return err_set(p->err,
		    "meta: %s names a generation that is not described",
		    top_names[f]);
	if (p->m->epoch[0] == '\0')
		return err_set(
		    p->err, "meta: %s without an epoch", top_names[f]);
	return 0;
}

/*
 * Names without a description are passed over: such a generation has nothing
 * left that could be read or written.
 */
static void
parse_retiring(struct parser *p)
{
	struct slice rest = top_or(p, TOP_RETIRING, "");

	while (rest.len > 0) {
		const uint8_t *space = memchr(rest.data, ' ', rest.len);
		size_t len = space == NULL ? rest.len
					   : (size_t)(space - rest.data);
		int i = meta_find(p->m, slice_of(rest.data, len));

		if (i != -1)
			p->m->generations[i].retiring = true;
		if (space == NULL)
			break;
		rest = slice_of(space + 1, rest.len - len - 1);
	}
}

static bool
fingerprint_ok(const char *s)
{
	return strlen(s) == 32 && strspn(s, "0123456789abcdef") == 32;
}

/* What is known of a generation only once all its fields are in. */
static void
finish_generation(struct parser *p, size_t i)
{
	struct generation *g = &p->m->generations[i];
	bool keyed = g->geometry.scheme == SCHEME_KEYED;

	g->usable = p->good[i] == p->seen[i] &&
	    (p->good[i] & FIELDS_NEEDED) == FIELDS_NEEDED &&
	    geometry_valid(&g->geometry) &&
	    (!keyed || fingerprint_ok(g->key_fingerprint));
	if (!keyed)
		g->key_fingerprint[0] = '\0';
}

static int
parse_all(struct parser *p, const struct slice *fields, size_t n)
{
	struct meta *m = p->m;

	if (n % 2 != 0)
		return err_set(p->err, "meta: a field without a value");
	if (collect_top(p, fields, n) == -1 || parse_layout(p) == -1)
		return -1;
	/* In another layout the same words may mean something else. */
	if (m->layout != META_LAYOUT)
		return 0;
	if (parse_top(p) == -1)
		return -1;
	for (size_t i = 0; i < n; i += 2)
		if (parse_generation_field(p, fields[i], fields[i + 1]) == -1)
			return -1;
	if (parse_pointer(p, TOP_ACTIVE, &m->active) == -1 ||
	    parse_pointer(p, TOP_PREVIOUS, &m->previous) == -1 ||
	    parse_pointer(p, TOP_BUILDING, &m->building) == -1)
		return -1;
	parse_retiring(p);
	for (size_t i = 0; i < m->generation_count; i++)
		finish_generation(p, i);
	return 0;
}

static void
clear(struct meta *m, bool exists)
{
	*m = (struct meta){
	    .exists = exists, .active = -1, .previous = -1, .building = -1};
}

int
meta_parse(
    struct meta *m, const struct slice *fields, size_t n, struct err *err)
{
	struct parser p = {.m = m, .err = err};

	clear(m, n > 0);
	if (n == 0 || parse_all(&p, fields, n) == 0)
		return 0;
	/* Half a meta is none; of layout 0 nobody believes a word. */
	clear(m, true);
	return -1;
}

int
meta_find(const struct meta *m, struct slice name)
{
	for (size_t i = 0; i < m->generation_count; i++)
		if (slice_is(name, m->generations[i].name))
			return (int)i;
	return -1;
}

size_t
name_shard(char *out, size_t size, const char *redis_key,
    const char *generation, uint32_t shard)
{
	int n = snprintf(
	    out, size, "%s:%s/%" PRIu32, redis_key, generation, shard);

	/* A name cut short would be another key: never go on with one. */
	check(n > 0 && (size_t)n < size);
	return (size_t)n;
}

size_t
name_other(char *out, size_t size, const char *redis_key, const char *suffix)
{
	int n = snprintf(out, size, "%s:%s", redis_key, suffix);

	check(n > 0 && (size_t)n < size);
	return (size_t)n;
}
