/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * settings_load: the file, its tree, the option table, the checks. The tree is
 * walked by the table, so the depth of what is followed is the table's, not the
 * file's. Each error is reported once, at the place to mend, and what follows
 * from it is kept quiet.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/assign.h"
#include "config/load.h"
#include "core/check.h"
#include "core/mem.h"

#define FILTERS_MAX 256

const struct given *
load_given(const struct scope *sc, enum option_scope scope, const char *path)
{
	const struct option *o = option_find(scope, path, strlen(path));

	check(o != NULL);
	return &sc->given[o - option_table];
}

const struct node *
load_place(const struct scope *sc, enum option_scope scope, const char *path)
{
	const struct given *g = load_given(sc, scope, path);

	return g->value != NULL ? g->value : sc->at;
}

void
load_error(struct load *load, const struct scope *sc, enum option_scope scope,
    const char *path, const char *fmt, ...)
{
	const struct node *at = load_place(sc, scope, path);
	char text[900];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	issues_error(load->issues, at != NULL ? at->line : 0,
	    at != NULL ? at->column : 0, "%s: %s", path, text);
}

static bool
is_empty(const struct node *n)
{
	return n->kind == NODE_SCALAR && n->plain && n->len == 0;
}

static const struct option *
find_in(enum option_scope scope, const struct option *section, const char *key)
{
	char *path = section != NULL ? mem_printf("%s.%s", section->path, key)
				     : mem_strdup(key);
	const struct option *o = option_find(scope, path, strlen(path));

	free(path);
	/* A dot in the key itself reaches nothing. */
	return o != NULL && option_is_in(o, scope, section) ? o : NULL;
}

static void
unknown_key(struct load *load, struct scope *sc, enum option_scope scope,
    const struct option *section, const struct node *key)
{
	char *near = option_suggest(scope, section, key->text);
	char *shown = issues_quote(key->text, key->len);
	const struct option *meant = NULL;

	issues_error(load->issues, key->line, key->column,
	    "unknown option '%s'%s%s%s%s%s", shown,
	    section != NULL ? " in " : "", section != NULL ? section->path : "",
	    near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
	    near != NULL ? "'?" : "");
	if (near != NULL)
		meant = find_in(scope, section, near);
	if (meant != NULL) /* not missing, only misspelt */
		sc->given[meant - option_table].bad = true;
	free(near);
	free(shown);
}

static void load_filters(struct load *load, const struct node *list);

static void
load_value(struct load *load, struct scope *sc, const struct option *o,
    struct given *g)
{
	const struct node *v = g->value;

	if (o->type == OPTION_FILTERS)
		load_filters(load, v);
	else if (option_assign(o, sc->base, v, load->issues) != 0)
		g->bad = true;
}

/*
 * One mapping: the top of a scope, or a section in it. Sections to follow are
 * put on next, which has room for all that the table has.
 */
static void
load_mapping(struct load *load, struct scope *sc, enum option_scope scope,
    const struct option *section, const struct node *map, size_t *next,
    size_t *next_count)
{
	size_t i;

	for (i = 0; i + 1 < map->count; i += 2) {
		const struct node *key = map->items[i];
		const struct option *o;
		struct given *g;

		if (key->kind == NODE_BROKEN)
			continue;
		if (key->kind != NODE_SCALAR) {
			issues_error(load->issues, key->line, key->column,
			    "an option's name must be a plain word");
			continue;
		}
		o = find_in(scope, section, key->text);
		if (o == NULL) {
			unknown_key(load, sc, scope, section, key);
			continue;
		}
		g = &sc->given[o - option_table];
		if (g->key != NULL) {
			issues_error(load->issues, key->line, key->column,
			    "duplicate option '%s' (first in line %u)", o->path,
			    g->key->line);
			continue;
		}
		g->key = key;
		g->value = map->items[i + 1];
		if (o->type == OPTION_SECTION)
			next[(*next_count)++] = (size_t)(o - option_table);
		else
			load_value(load, sc, o, g);
	}
}

/* All of a scope; the sections inside are a queue, not a recursion. */
static void
load_scope(struct load *load, struct scope *sc, enum option_scope scope)
{
	size_t *next = mem_zalloc(option_count, sizeof(*next));
	size_t count = 0, done;

	load_mapping(load, sc, scope, NULL, sc->at, next, &count);
	for (done = 0; done < count; done++) {
		const struct option *o = &option_table[next[done]];
		struct given *g = &sc->given[next[done]];
		const struct node *v = g->value;

		if (v->kind == NODE_MAPPING)
			load_mapping(load, sc, scope, o, v, next, &count);
		else if (v->kind == NODE_BROKEN)
			g->bad = true;
		else if (!is_empty(v)) {
			issues_error(load->issues, v->line, v->column,
			    "%s: must hold options (key: value)", o->path);
			g->bad = true;
		}
	}
	free(next);
}

static void
scope_start(struct scope *sc, enum option_scope scope, void *base,
    const struct node *at)
{
	size_t i;

	*sc = (struct scope){.base = base,
	    .given = mem_zalloc(option_count, sizeof(struct given)),
	    .at = at};
	for (i = 0; i < option_count; i++)
		if (option_table[i].scope == scope)
			option_set_default(&option_table[i], base);
}

static void
check_required(struct load *load, const struct scope *sc)
{
	size_t i;

	if (sc->at->cut)
		return;
	for (i = 0; i < option_count; i++) {
		const struct option *o = &option_table[i];

		if (o->scope == SCOPE_FILTER && (o->flags & OPTION_REQUIRED) &&
		    sc->given[i].key == NULL && !sc->given[i].bad)
			issues_error(load->issues, sc->at->line, sc->at->column,
			    "a filter needs '%s'", o->path);
	}
}

static void
load_filters(struct load *load, const struct node *list)
{
	struct settings *s = load->settings;
	size_t i, n;

	if (list->kind == NODE_BROKEN || is_empty(list))
		return;
	if (list->kind != NODE_SEQUENCE) {
		issues_error(load->issues, list->line, list->column,
		    "filters: must be a list");
		return;
	}
	if (list->count > FILTERS_MAX) {
		issues_error(load->issues, list->line, list->column,
		    "filters: more than %d", FILTERS_MAX);
		return;
	}
	s->filters = mem_zalloc(list->count + 1, sizeof(*s->filters));
	load->filters = mem_zalloc(list->count + 1, sizeof(*load->filters));
	for (i = 0; i < list->count; i++) {
		const struct node *item = list->items[i];

		if (item->kind == NODE_BROKEN)
			continue;
		if (item->kind != NODE_MAPPING) {
			issues_error(load->issues, item->line, item->column,
			    "a filter must hold options (key: value)");
			continue;
		}
		n = s->filter_count++;
		scope_start(
		    &load->filters[n], SCOPE_FILTER, &s->filters[n], item);
		load_scope(load, &load->filters[n], SCOPE_FILTER);
		check_required(load, &load->filters[n]);
	}
}

/* The whole file; NULL with the issue reported. Freed with free(). */
static char *
read_file(const char *path, size_t *len, struct issues *issues)
{
	char *data = mem_alloc(DOCUMENT_BYTES_MAX + 1);
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : 0;

	*len = 0;
	while (fd >= 0 && *len <= DOCUMENT_BYTES_MAX) {
		n = read(fd, data + *len, DOCUMENT_BYTES_MAX + 1 - *len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		*len += (size_t)n;
	}
	if (n < 0)
		issues_error(issues, 0, 0, "%s", strerror(errno));
	else if (*len > DOCUMENT_BYTES_MAX)
		issues_error(
		    issues, 0, 0, "larger than %d bytes", DOCUMENT_BYTES_MAX);
	if (fd >= 0)
		close(fd);
	if (issues->fatal) {
		free(data);
		return NULL;
	}
	return data;
}

static void
load_root(struct load *load, const struct document *doc)
{
	const struct node *root = doc->root;

	if (root != NULL && root->kind == NODE_MAPPING) {
		load->top.at = root;
		load_scope(load, &load->top, SCOPE_SETTINGS);
	} else if (root != NULL && root->kind != NODE_BROKEN &&
	    !is_empty(root)) {
		issues_error(load->issues, root->line, root->column,
		    "the file must hold options (key: value)");
		return;
	}
	checks_run(load);
	if (load->settings->filter_count == 0 && !load->issues->fatal)
		issues_remark(
		    load->issues, 0, 0, "no filters: everything is forwarded");
}

struct settings *
settings_load(const char *path, struct settings_report *report)
{
	struct settings *s = mem_zalloc(1, sizeof(*s));
	struct load load = {.settings = s};
	struct document doc = {0};
	struct issues issues;
	size_t len, i;
	char *data;
	bool fatal;

	issues_init(&issues, report);
	load.issues = &issues;
	atomic_init(&s->references, 1);
	s->path = mem_strdup(path);
	scope_start(&load.top, SCOPE_SETTINGS, s, NULL);
	data = read_file(path, &len, &issues);
	if (data != NULL) {
		document_clean(data, len, &issues);
		document_parse(&doc, data, len, &issues);
		load_root(&load, &doc);
	}
	for (i = 0; i < s->filter_count; i++)
		free(load.filters[i].given);
	free(load.filters);
	free(load.top.given);
	document_fini(&doc);
	free(data);
	fatal = issues.fatal;
	issues_finish(&issues);
	if (fatal) {
		settings_unref(s);
		return NULL;
	}
	return s;
}
