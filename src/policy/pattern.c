/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Matching of one key against all patterns of a database. It decides nothing
 * about the key: that is the filter's verdict. Immutable once made; any thread.
 *
 * Patterns with the same prefix form a group; the groups of a database lie in
 * the order of their prefixes, so that the prefixes of one key are found by one
 * binary search: let g be the last group that is not greater than the key. A
 * prefix q of the key is not greater than the key either, and whatever lies
 * between q and the key begins with q. So all groups whose prefix the key has
 * are g itself or prefixes of g, and each group knows the longest other group
 * that is a prefix of it (its parent). Within a group the longest suffix comes
 * first. A first byte that no prefix has is turned away by a table.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "config/keypattern.h"
#include "config/keytemplate.h"
#include "core/check.h"
#include "core/mem.h"
#include "policy/pattern.h"

struct pattern {
	struct keypattern text;
	size_t literals; /* literal bytes: most of them wins */
	size_t filter;   /* index in the settings */
	size_t order;    /* place in the configuration: decides a tie */
};

#define NO_GROUP SIZE_MAX

struct group {
	const char *prefix; /* borrowed from its first pattern */
	size_t prefix_len;
	size_t parent;       /* index of a group of the db, or NO_GROUP */
	size_t max_literals; /* the most that it or a parent offers */
	size_t first, end;   /* its patterns */
};

struct db_index {
	unsigned db;
	struct pattern *patterns; /* owned, by prefix, then longest suffix */
	size_t pattern_count;
	struct group *groups; /* owned, by prefix */
	size_t group_count;
	/* groups whose prefix begins with byte b: [start[b], start[b + 1]) */
	size_t start[257];
	size_t empty; /* the group without a prefix, or NO_GROUP */
};

struct filter_texts {
	char *name; /* owned */
	size_t name_len;
	struct keytemplate element;
	struct keypattern first;   /* the first pattern, for pattern_key */
	struct bytes *null_values; /* owned copies */
	size_t null_value_count;
};

struct pattern_set {
	struct db_index *dbs; /* owned */
	size_t db_count;
	struct filter_texts *filters; /* owned, by index in the settings */
	size_t filter_count;
};

static int
compare_bytes(const void *a, size_t a_len, const void *b, size_t b_len)
{
	size_t len = a_len < b_len ? a_len : b_len;
	int r = len == 0 ? 0 : memcmp(a, b, len);

	if (r != 0)
		return r;
	return (a_len > b_len) - (a_len < b_len);
}

static int
compare_patterns(const void *va, const void *vb)
{
	const struct pattern *a = va, *b = vb;
	int r = compare_bytes(a->text.prefix, a->text.prefix_len,
	    b->text.prefix, b->text.prefix_len);

	if (r != 0)
		return r;
	if (a->text.suffix_len != b->text.suffix_len)
		return a->text.suffix_len > b->text.suffix_len ? -1 : 1;
	return (a->order > b->order) - (a->order < b->order);
}

static bool
same_prefix(const struct keypattern *a, const struct keypattern *b)
{
	return a->prefix_len == b->prefix_len &&
	    memcmp(a->prefix, b->prefix, a->prefix_len) == 0;
}

static bool
group_extends(const struct group *g, const struct group *prefix)
{
	return g->prefix_len >= prefix->prefix_len &&
	    memcmp(g->prefix, prefix->prefix, prefix->prefix_len) == 0;
}

/* Starts the group of pattern i, whose prefix no earlier group has. */
static void
group_add(struct db_index *x, size_t i)
{
	const struct keypattern *p = &x->patterns[i].text;
	size_t n = x->group_count++;
	struct group *g = &x->groups[n];

	*g = (struct group){.prefix = p->prefix,
	    .prefix_len = p->prefix_len,
	    .max_literals = x->patterns[i].literals,
	    .first = i};
	/* The one before, or one that it extends, is the longest prefix. */
	g->parent = n == 0 ? NO_GROUP : n - 1;
	while (
	    g->parent != NO_GROUP && !group_extends(g, &x->groups[g->parent]))
		g->parent = x->groups[g->parent].parent;
	if (g->parent != NO_GROUP &&
	    x->groups[g->parent].max_literals > g->max_literals)
		g->max_literals = x->groups[g->parent].max_literals;
}

static void
index_build(struct db_index *x)
{
	size_t n = 0;

	qsort(x->patterns, x->pattern_count, sizeof(*x->patterns),
	    compare_patterns);
	x->groups = mem_zalloc(x->pattern_count, sizeof(*x->groups));
	for (size_t i = 0; i < x->pattern_count; i++) {
		const struct keypattern *p = &x->patterns[i].text;

		if (i == 0 || !same_prefix(p, &x->patterns[i - 1].text))
			group_add(x, i);
		x->groups[x->group_count - 1].end = i + 1;
	}
	x->empty = x->groups[0].prefix_len == 0 ? 0 : NO_GROUP;
	if (x->empty == 0)
		n = 1;
	for (size_t b = 0; b < 256; b++) {
		x->start[b] = n;
		while (
		    n < x->group_count && (uint8_t)x->groups[n].prefix[0] == b)
			n++;
	}
	x->start[256] = n;
	check(n == x->group_count);
}

static struct db_index *
index_of(struct pattern_set *set, unsigned db)
{
	struct db_index *x;

	for (size_t i = 0; i < set->db_count; i++) {
		if (set->dbs[i].db == db)
			return &set->dbs[i];
	}
	set->dbs = mem_realloc(
	    set->dbs, (set->db_count + 1) * sizeof(*set->dbs));
	x = &set->dbs[set->db_count++];
	*x = (struct db_index){.db = db};
	return x;
}

static void
parse_pattern(struct keypattern *out, const char *text)
{
	struct err err;

	/* The settings were checked with the same parser. */
	check(keypattern_parse(out, text, &err) == 0);
}

static void
add_filter(struct pattern_set *set, size_t index,
    const struct filter_settings *s, size_t *order)
{
	struct filter_texts *f = &set->filters[index];
	struct db_index *x = index_of(set, s->db);
	check(s->keys.count > 0);
	f->name = mem_strdup(s->name);
	f->name_len = strlen(s->name);
	parse_pattern(&f->first, s->keys.items[0]);
	keytemplate_init(&f->element, s->element, s->name);
	f->null_value_count = s->null_value_count;
	f->null_values = mem_zalloc(
	    s->null_value_count + 1, sizeof(*f->null_values));
	for (size_t i = 0; i < s->null_value_count; i++) {
		const struct bytes *v = &s->null_values[i];

		f->null_values[i].len = v->len;
		if (v->len > 0)
			f->null_values[i].data = mem_dup(v->data, v->len);
	}
	x->patterns = mem_realloc(x->patterns,
	    (x->pattern_count + s->keys.count) * sizeof(*x->patterns));
	for (size_t i = 0; i < s->keys.count; i++) {
		struct pattern *p = &x->patterns[x->pattern_count++];

		parse_pattern(&p->text, s->keys.items[i]);
		p->literals = p->text.prefix_len + p->text.suffix_len;
		p->filter = index;
		p->order = (*order)++;
	}
}

struct pattern_set *
pattern_set_new(const struct settings *s)
{
	struct pattern_set *set = mem_zalloc(1, sizeof(*set));
	size_t order = 0;

	set->filter_count = s->filter_count;
	set->filters = mem_zalloc(s->filter_count + 1, sizeof(*set->filters));
	for (size_t i = 0; i < s->filter_count; i++)
		add_filter(set, i, &s->filters[i], &order);
	for (size_t i = 0; i < set->db_count; i++)
		index_build(&set->dbs[i]);
	return set;
}

void
pattern_set_free(struct pattern_set *set)
{
	if (set == NULL)
		return;
	for (size_t i = 0; i < set->db_count; i++) {
		struct db_index *x = &set->dbs[i];

		for (size_t j = 0; j < x->pattern_count; j++)
			keypattern_fini(&x->patterns[j].text);
		free(x->patterns);
		free(x->groups);
	}
	for (size_t i = 0; i < set->filter_count; i++) {
		struct filter_texts *f = &set->filters[i];

		for (size_t j = 0; j < f->null_value_count; j++)
			free(f->null_values[j].data);
		free(f->null_values);
		free(f->name);
		keytemplate_fini(&f->element);
		keypattern_fini(&f->first);
	}
	free(set->dbs);
	free(set->filters);
	free(set);
}

/* The last group not greater than key; NO_GROUP when there is none. */
static size_t
group_before(const struct db_index *x, struct slice key)
{
	size_t low = x->start[key.data[0]], high = x->start[key.data[0] + 1];
	size_t start = low;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct group *g = &x->groups[mid];

		if (compare_bytes(
			g->prefix, g->prefix_len, key.data, key.len) <= 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low > start ? low - 1 : x->empty;
}

/*
 * True and *out when the rest of the key, after the prefix of p's group, fits
 * p; rest has more bytes than the suffix.
 */
static bool
rest_fits(const struct pattern *p, struct slice rest, struct pattern_match *out)
{
	const struct keypattern *t = &p->text;
	size_t len = rest.len - t->suffix_len;

	if (t->suffix_len > 0 &&
	    memcmp(rest.data + len, t->suffix, t->suffix_len) != 0)
		return false;
	if (t->excluded >= 0 && memchr(rest.data, t->excluded, len) != NULL)
		return false;
	out->filter = p->filter;
	out->capture = slice_of(rest.data, len);
	return true;
}

bool
pattern_match(const struct pattern_set *set, unsigned db, struct slice key,
    struct pattern_match *out)
{
	const struct db_index *x = NULL;
	const struct pattern *best = NULL;
	size_t literals = 0;

	for (size_t i = 0; i < set->db_count; i++) {
		if (set->dbs[i].db == db)
			x = &set->dbs[i];
	}
	if (x == NULL || key.len == 0)
		return false;
	for (size_t n = group_before(x, key); n != NO_GROUP;
	     n = x->groups[n].parent) {
		const struct group *g = &x->groups[n];
		struct slice rest;

		if (best != NULL && g->max_literals < literals)
			break;
		if (g->prefix_len >= key.len ||
		    memcmp(g->prefix, key.data, g->prefix_len) != 0)
			continue;
		rest = slice_of(
		    key.data + g->prefix_len, key.len - g->prefix_len);
		for (size_t i = g->first; i < g->end; i++) {
			const struct pattern *p = &x->patterns[i];

			if (best != NULL &&
			    (p->literals < literals ||
				(p->literals == literals &&
				    p->order > best->order)))
				continue;
			if (rest.len > p->text.suffix_len &&
			    rest_fits(p, rest, out)) {
				best = p;
				literals = p->literals;
			}
		}
	}
	return best != NULL;
}

struct slice
pattern_element(const struct pattern_set *set, size_t filter,
    struct slice capture, uint8_t scratch[ELEMENT_MAX])
{
	check(filter < set->filter_count);
	return keytemplate_apply(
	    &set->filters[filter].element, capture, scratch, ELEMENT_MAX);
}

char *
pattern_key(const struct pattern_set *set, size_t filter, struct slice capture,
    size_t *len_out)
{
	const struct keypattern *p;
	char *key;

	check(filter < set->filter_count);
	p = &set->filters[filter].first;
	*len_out = p->prefix_len + p->suffix_len + capture.len;
	key = mem_alloc(*len_out + 1);
	memcpy(key, p->prefix, p->prefix_len);
	if (capture.len > 0)
		memcpy(key + p->prefix_len, capture.data, capture.len);
	memcpy(key + p->prefix_len + capture.len, p->suffix, p->suffix_len);
	key[*len_out] = '\0';
	return key;
}

int
pattern_filter_named(const struct pattern_set *set, struct slice name)
{
	for (size_t i = 0; i < set->filter_count; i++) {
		const struct filter_texts *f = &set->filters[i];

		if (slice_eq(slice_of(f->name, f->name_len), name))
			return (int)i;
	}
	return -1;
}

bool
pattern_is_null_value(
    const struct pattern_set *set, size_t filter, struct slice v)
{
	const struct filter_texts *f;

	check(filter < set->filter_count);
	f = &set->filters[filter];
	for (size_t i = 0; i < f->null_value_count; i++) {
		if (slice_eq(
			slice_of(f->null_values[i].data, f->null_values[i].len),
			v))
			return true;
	}
	return false;
}
