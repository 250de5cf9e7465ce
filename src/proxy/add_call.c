/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One call of add.lua: see add_call.h. Arguments are slices; those that are text
 * of the call's own have no data until the end, for their buffer moves as it grows.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/broken.h"
#include "core/buf.h"
#include "core/check.h"
#include "core/mem.h"
#include "proxy/add_call.h"

/* Arguments in a row. */
struct list {
	struct slice *argv; /* owned */
	size_t argc, cap;
	struct buf text; /* of the slices without data, in their order */
};

/* A shard that the call touches. */
struct touched {
	size_t generation; /* index in meta */
	uint32_t shard;
};

struct add_call {
	const struct filter *filter;
	const struct meta *meta;
	struct list head;     /* keys, then what comes before the elements */
	struct list elements; /* their part of the arguments */
	size_t element_count;
	size_t positions;
	struct touched touched[ADD_POSITIONS_MAX];
	size_t touched_count;
};

static void
put(struct list *l, struct slice s)
{
	if (l->argc == l->cap) {
		l->cap = l->cap != 0 ? l->cap * 2 : 256;
		l->argv = mem_realloc(l->argv, l->cap * sizeof(*l->argv));
	}
	l->argv[l->argc++] = s;
}

/* Text that the list keeps; data follows with resolve. */
static void
put_text(struct list *l, const char *s, size_t len)
{
	check(buf_append(&l->text, s, len) == 0);
	put(l, slice_of(NULL, len));
}

static void
put_number(struct list *l, uint64_t v)
{
	char text[24];

	put_text(l, text, (size_t)snprintf(text, sizeof(text), "%" PRIu64, v));
}

static void
resolve(struct list *l)
{
	const uint8_t *at = buf_head(&l->text);

	for (size_t i = 0; i < l->argc; i++) {
		if (l->argv[i].data == NULL && l->argv[i].len != 0) {
			l->argv[i].data = at;
			at += l->argv[i].len;
		}
	}
}

struct add_call *
add_call_new(const struct filter *f, const struct meta *m)
{
	struct add_call *c = mem_zalloc(1, sizeof(*c));

	c->filter = f;
	c->meta = m;
	buf_init(&c->head.text, SIZE_MAX / 4);
	buf_init(&c->elements.text, SIZE_MAX / 4);
	return c;
}

void
add_call_free(struct add_call *c)
{
	free(c->head.argv);
	free(c->elements.argv);
	buf_fini(&c->head.text);
	buf_fini(&c->elements.text);
	free(c);
}

/* 1-based index of the shard among the touched, added when new. */
static size_t
touch(struct add_call *c, size_t generation, uint32_t shard)
{
	size_t i;

	for (i = 0; i < c->touched_count; i++)
		if (c->touched[i].generation == generation &&
		    c->touched[i].shard == shard)
			return i + 1;
	check(c->touched_count < ADD_POSITIONS_MAX);
	c->touched[c->touched_count++] = (struct touched){
	    .generation = generation, .shard = shard};
	return c->touched_count;
}

/*
 * The positions of one element in every generation that takes adds: retiring and
 * lost ones too. Returns how many they are, or -1 when some cannot be computed.
 */
static int
locate(const struct add_call *c, struct slice element, bool learned,
    struct positions *out, const char **error)
{
	const struct filter *f = c->filter;
	const struct meta *m = c->meta;
	int total = 0;

	if (m->exists && m->layout != META_LAYOUT) {
		*error = "the filter's data are of a layout that this version "
			 "does not know";
		return -1;
	}
	for (size_t g = 0; g < m->generation_count; g++) {
		const struct generation *gen = &m->generations[g];

		out[g].count = 0;
		if (gen->state == GENERATION_MAKING ||
		    (BROKEN_LAW(2) && gen->state == GENERATION_BUILDING))
			continue;
		if (!filter_fits(f, gen)) {
			*error = "a generation of the filter is of a kind or "
				 "key that this bloomgate does not have";
			return -1;
		}
		if (scheme_positions(&gen->geometry,
			f->has_key ? &f->key : NULL, element, &out[g]) != 0) {
			out[g].count = 0;
			if (learned)
				continue;
			*error = "the id is not UTF-8, which the filter's "
				 "scheme needs";
			return -1;
		}
		total += (int)out[g].count;
	}
	return total;
}

enum add_fit
add_call_take(
    struct add_call *c, struct slice element, bool learned, const char **error)
{
	struct positions at[META_GENERATIONS_MAX];
	int need = locate(c, element, learned, at, error);
	size_t generations = c->meta->generation_count, refs = 0;

	if (need < 0)
		return ADD_NEVER;
	if (c->element_count != 0 &&
	    (c->positions + (size_t)need > ADD_POSITIONS_MAX ||
		c->element_count >= ADD_ELEMENTS_MAX))
		return ADD_FULL;
	c->positions += (size_t)need;
	c->element_count++;
	put(&c->elements, element);
	for (size_t g = 0; g < generations; g++)
		refs += at[g].count != 0;
	put_number(&c->elements, refs);
	for (size_t g = 0; g < generations; g++) {
		if (at[g].count == 0)
			continue;
		put_number(&c->elements, touch(c, g, at[g].shard));
		put_number(&c->elements, at[g].count);
		for (uint32_t i = 0; i < at[g].count; i++)
			put_number(&c->elements, at[g].bit[i]);
	}
	return ADD_TAKEN;
}

static void
put_keys(struct add_call *c)
{
	const char *key = c->filter->redis_key;
	char name[NAME_MAX_BYTES];

	put_text(&c->head, name, name_other(name, sizeof(name), key, "meta"));
	for (size_t i = 0; i < c->touched_count; i++)
		put_text(&c->head, name,
		    name_shard(name, sizeof(name), key,
			c->meta->generations[c->touched[i].generation].name,
			c->touched[i].shard));
}

static void
put_shards(struct add_call *c)
{
	const struct meta *m = c->meta;
	char name[NAME_MAX_BYTES];

	put(&c->head, slice_str(m->exists ? m->epoch : ""));
	put_text(&c->head, name,
	    name_other(name, sizeof(name), c->filter->redis_key, "events"));
	put_number(&c->head, c->touched_count);
	for (size_t i = 0; i < c->touched_count; i++) {
		const struct generation *g =
		    &m->generations[c->touched[i].generation];

		put(&c->head, slice_str(g->name));
		put(&c->head, slice_of(g->tag, TAG_BYTES));
		put_number(&c->head, geometry_tag_offset(&g->geometry));
	}
}

const struct slice *
add_call_argv(struct add_call *c, size_t *argc, size_t *nkeys)
{
	put_keys(c);
	*nkeys = c->head.argc;
	put_shards(c);
	put_number(&c->head, c->element_count);
	resolve(&c->head);
	resolve(&c->elements);
	for (size_t i = 0; i < c->elements.argc; i++)
		put(&c->head, c->elements.argv[i]);
	*argc = c->head.argc;
	return c->head.argv;
}
