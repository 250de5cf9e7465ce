/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks between the options of a filter and between filters, and the defaults
 * that follow from other options (element, redis-key, null-values, grow). An
 * option that is wrong in itself takes no part.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "config/load.h"
#include "core/mem.h"

#define NAME_MAX_LEN      64
#define PATTERNS_MAX      64
#define REDIS_KEY_MAX     384 /* leaves room for ":GENERATION/SHARD" */
#define SINGLE_BITS_LIMIT ((UINT64_C(1) << 32) - 64)

/* One filter while it is checked. */
struct subject {
	struct load *load;
	struct scope *scope;
	struct filter_settings *f;
};

static const struct given *
given(const struct subject *x, const char *path)
{
	return load_given(x->scope, SCOPE_FILTER, path);
}

static bool
is_good(const struct subject *x, const char *path)
{
	return !given(x, path)->bad;
}

/* Given and right in itself. */
static bool
is_usable(const struct subject *x, const char *path)
{
	return given(x, path)->key != NULL && is_good(x, path);
}

static void
complain(const struct subject *x, const char *path, const char *why)
{
	load_error(x->load, x->scope, SCOPE_FILTER, path, "%s", why);
}

static void
mark_bad(const struct subject *x, const char *path)
{
	const struct option *o = option_find(SCOPE_FILTER, path, strlen(path));

	x->scope->given[o - option_table].bad = true;
}

static void
check_filter_name(const struct subject *x)
{
	const char *p;

	if (!is_usable(x, "name"))
		return;
	for (p = x->f->name; *p != '\0'; p++)
		if (*p == ' ' || *p == '{' || *p == '}')
			break;
	if (*p == '\0' && strlen(x->f->name) <= NAME_MAX_LEN)
		return;
	complain(x, "name", "must be 1 to 64 bytes without spaces and braces");
	mark_bad(x, "name");
}

/* The pattern at index i; its element stays empty when it is malformed. */
static void
check_pattern(const struct subject *x, const struct node *at, size_t i)
{
	struct keypattern *all = x->scope->patterns;
	const struct keypattern *first = NULL;
	struct err err;
	size_t j;

	if (keypattern_parse(&all[i], x->f->keys.items[i], &err) != 0) {
		issues_error(x->load->issues, at->line, at->column, "keys: %s",
		    err.text);
		mark_bad(x, "keys");
		return;
	}
	for (j = 0; j < i; j++) {
		if (all[j].prefix == NULL)
			continue;
		if (first == NULL)
			first = &all[j];
		if (strcmp(x->f->keys.items[i], x->f->keys.items[j]) == 0) {
			issues_error(x->load->issues, at->line, at->column,
			    "keys: the pattern is given twice");
			return;
		}
	}
	if (first == NULL || !strcmp(first->placeholder, all[i].placeholder))
		return;
	issues_error(x->load->issues, at->line, at->column,
	    "keys: the placeholder is {%.64s} here and {%.64s} in the pattern "
	    "before: a filter has one",
	    all[i].placeholder, first->placeholder);
	mark_bad(x, "keys");
}

static void
check_patterns(const struct subject *x)
{
	const struct node *list = given(x, "keys")->value;
	size_t i, count = x->f->keys.count;

	if (!is_usable(x, "keys"))
		return;
	if (count > PATTERNS_MAX) {
		complain(x, "keys", "has more than 64 patterns");
		mark_bad(x, "keys");
		return;
	}
	x->scope->patterns = mem_zalloc(count, sizeof(struct keypattern));
	x->scope->pattern_count = count;
	for (i = 0; i < count; i++)
		check_pattern(x, list->items[i], i);
}

static void
check_element(const struct subject *x)
{
	const char *placeholder;
	struct err err;

	if (!is_usable(x, "keys"))
		return;
	placeholder = x->scope->patterns[0].placeholder;
	if (given(x, "element")->key == NULL) {
		free(x->f->element);
		x->f->element = mem_printf("{%s}", placeholder);
	} else if (is_good(x, "element") &&
	    keypattern_check_element(x->f->element, placeholder, &err) != 0)
		complain(x, "element", err.text);
}

/* Redis takes what stands between the first '{' and the '}' after it. */
static bool
has_one_tag(const char *key)
{
	const char *open = strchr(key, '{'), *close = strchr(key, '}');

	return open != NULL && close != NULL && close > open + 1 &&
	    strchr(open + 1, '{') == NULL && strchr(close + 1, '}') == NULL;
}

static void
check_redis_key(const struct subject *x)
{
	char *key = x->f->redis_key;

	if (given(x, "redis-key")->key == NULL) {
		if (is_usable(x, "name")) {
			free(key);
			x->f->redis_key = mem_printf("bloom:{%s}", x->f->name);
		}
		return;
	}
	if (!is_good(x, "redis-key"))
		return;
	if (!has_one_tag(key)) {
		complain(
		    x, "redis-key", "must hold exactly one hash tag: {text}");
		mark_bad(x, "redis-key");
	} else if (strlen(key) > REDIS_KEY_MAX || strchr(key, ' ') != NULL) {
		complain(
		    x, "redis-key", "must be at most 384 bytes without spaces");
		mark_bad(x, "redis-key");
	}
}

static void
check_suffix(const struct subject *x)
{
	struct err err;

	if (is_good(x, "suffix") && suffix_check(x->f->suffix, &err) != 0)
		complain(x, "suffix", err.text);
}

static void
check_poly(const struct subject *x)
{
	struct filter_rebuild_settings *r = &x->f->rebuild;

	if (is_good(x, "layout") && x->f->layout != SETTING_SINGLE)
		complain(x,
		    given(x, "layout")->key != NULL ? "layout" : "scheme",
		    "scheme poly needs layout single");
	if (given(x, "rebuild.grow")->key == NULL)
		r->grow = false;
	else if (is_good(x, "rebuild.grow") && r->grow)
		complain(x, "rebuild.grow",
		    "scheme poly has a fixed size and cannot grow");
}

static void
check_scheme(const struct subject *x)
{
	const struct node *at;

	if (!is_good(x, "scheme"))
		return;
	if (x->f->scheme == SETTING_POLY)
		check_poly(x);
	if (!is_good(x, "key-file"))
		return;
	if (x->f->scheme == SETTING_KEYED && x->f->key_file[0] == '\0')
		complain(x, "scheme", "keyed needs key-file");
	if (x->f->scheme != SETTING_KEYED && x->f->key_file[0] != '\0') {
		at = given(x, "key-file")->key;
		issues_remark(x->load->issues, at->line, at->column,
		    "key-file: only scheme keyed uses it");
	}
}

/* One string of Redis ends at 2^32 bits. m as in DESIGN.md, "Sizing". */
static void
check_size(const struct subject *x)
{
	double m;

	if (!is_usable(x, "capacity") || !is_good(x, "error-rate") ||
	    !is_good(x, "layout") || !is_good(x, "scheme") ||
	    x->f->layout != SETTING_SINGLE || x->f->scheme == SETTING_POLY)
		return;
	m = trunc(
	    -(double)x->f->capacity * log(x->f->error_rate) / (M_LN2 * M_LN2));
	if (m > (double)SINGLE_BITS_LIMIT)
		load_error(x->load, x->scope, SCOPE_FILTER, "capacity",
		    "needs %.0f bits at this error-rate, and layout single has "
		    "at most %llu",
		    m, (unsigned long long)SINGLE_BITS_LIMIT);
}

static void
check_null_values(const struct subject *x)
{
	struct filter_settings *f = x->f;

	if (!is_good(x, "absent-reply") || !is_good(x, "null-values"))
		return;
	if (f->absent != SETTING_ABSENT_VALUE) {
		if (f->null_value_count > 0)
			complain(
			    x, "null-values", "needs absent-reply {value: V}");
		return;
	}
	if (given(x, "null-values")->key != NULL)
		return;
	f->null_values = mem_zalloc(1, sizeof(*f->null_values));
	f->null_value_count = 1;
	f->null_values[0] = (struct bytes){
	    .data = mem_dup(f->absent_text.data, f->absent_text.len + 1),
	    .len = f->absent_text.len};
}

/* True when the file has a mapping at path with nothing in it. */
static bool
is_hollow(const struct subject *x, const char *path)
{
	const struct given *g = given(x, path);

	return g->key != NULL && !g->bad && g->value->kind == NODE_MAPPING &&
	    g->value->count == 0 && !g->value->cut;
}

static void
check_source(const struct subject *x)
{
	struct filter_rebuild_settings *r = &x->f->rebuild;
	const struct given *section = given(x, "rebuild.source");
	unsigned kinds = 0;

	if (is_hollow(x, "rebuild.source"))
		complain(x, "rebuild.source",
		    "must hold command, file or set (leave it out for none)");
	if (r->set[0] != '\0') {
		r->source = SOURCE_SET;
		kinds++;
	}
	if (r->file[0] != '\0') {
		r->source = SOURCE_FILE;
		kinds++;
	}
	if (r->command.count > 0) {
		r->source = SOURCE_COMMAND;
		kinds++;
		if (r->command.items[0][0] == '\0')
			complain(x, "rebuild.source.command",
			    "the program's name is empty");
	}
	if (kinds > 1)
		issues_error(x->load->issues, section->value->line,
		    section->value->column,
		    "rebuild.source: must be one of command, file and set");
	else if (r->trust && is_good(x, "rebuild.source.file") &&
	    r->source != SOURCE_FILE)
		complain(x, "rebuild.source.trust", "belongs to a file");
}

static void
check_feed(const struct subject *x)
{
	const struct given *g = given(x, "feed");

	x->f->has_feed = x->f->feed_stream[0] != '\0';
	if (is_hollow(x, "feed") ||
	    (g->key != NULL && given(x, "feed.stream")->key == NULL &&
		is_good(x, "feed.stream") &&
		(given(x, "feed.group")->key != NULL ||
		    given(x, "feed.field")->key != NULL)))
		complain(x, "feed", "needs stream");
}

void
checks_filter(struct load *load, size_t index)
{
	struct subject x = {.load = load,
	    .scope = &load->filters[index],
	    .f = &load->settings->filters[index]};

	check_filter_name(&x);
	check_patterns(&x);
	check_element(&x);
	check_redis_key(&x);
	check_suffix(&x);
	check_scheme(&x);
	check_size(&x);
	check_null_values(&x);
	check_source(&x);
	check_feed(&x);
}

static void
compare_names(const struct subject *a, const struct subject *b)
{
	if (is_usable(a, "name") && is_usable(b, "name") &&
	    strcmp(a->f->name, b->f->name) == 0)
		load_error(b->load, b->scope, SCOPE_FILTER, "name",
		    "is the name of the filter in line %u already",
		    a->scope->at->line);
	else if (is_good(a, "redis-key") && is_good(b, "redis-key") &&
	    a->f->redis_key[0] != '\0' &&
	    strcmp(a->f->redis_key, b->f->redis_key) == 0)
		load_error(b->load, b->scope, SCOPE_FILTER, "redis-key",
		    "is that of the filter in line %u already",
		    a->scope->at->line);
}

/* The first pattern of a that pattern p may share a key with, or NULL. */
static const char *
find_collision(const struct subject *a, const struct keypattern *p)
{
	size_t i;

	for (i = 0; i < a->scope->pattern_count; i++)
		if (a->scope->patterns[i].prefix != NULL &&
		    keypattern_collide(&a->scope->patterns[i], p))
			return a->f->keys.items[i];
	return NULL;
}

static void
compare_patterns(const struct subject *a, const struct subject *b)
{
	const struct node *list = given(b, "keys")->value;
	const char *other;
	char *shown;
	size_t i;

	if (!is_good(a, "db") || !is_good(b, "db") || a->f->db != b->f->db)
		return;
	for (i = 0; i < b->scope->pattern_count; i++) {
		if (b->scope->patterns[i].prefix == NULL)
			continue;
		other = find_collision(a, &b->scope->patterns[i]);
		if (other == NULL)
			continue;
		shown = issues_quote(other, strlen(other));
		issues_error(b->load->issues, list->items[i]->line,
		    list->items[i]->column,
		    "keys: one key can match this and '%s' of the filter in "
		    "line %u with equally many literal bytes",
		    shown, a->scope->at->line);
		free(shown);
	}
}

void
checks_filter_pairs(struct load *load)
{
	size_t i, j, k, count = load->settings->filter_count;

	for (j = 0; j < count; j++)
		for (i = 0; i < j; i++) {
			struct subject a = {.load = load,
			    .scope = &load->filters[i],
			    .f = &load->settings->filters[i]};
			struct subject b = {.load = load,
			    .scope = &load->filters[j],
			    .f = &load->settings->filters[j]};

			compare_names(&a, &b);
			compare_patterns(&a, &b);
		}
	for (i = 0; i < count; i++) {
		for (k = 0; k < load->filters[i].pattern_count; k++)
			keypattern_fini(&load->filters[i].patterns[k]);
		free(load->filters[i].patterns);
	}
}
