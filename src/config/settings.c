/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Life of a settings object: counted references, and one free that follows the
 * option table.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "config/assign.h"
#include "config/options.h"
#include "config/settings.h"
#include "core/check.h"

static void
free_scope(enum option_scope scope, void *base)
{
	size_t i;

	for (i = 0; i < option_count; i++)
		if (option_table[i].scope == scope)
			option_free(&option_table[i], base);
}

struct settings *
settings_ref(struct settings *s)
{
	/* Relaxed: whoever takes one has one already. */
	unsigned before = atomic_fetch_add_explicit(
	    &s->references, 1, memory_order_relaxed);

	check(before > 0);
	return s;
}

void
settings_unref(struct settings *s)
{
	unsigned before;
	size_t i;

	if (s == NULL)
		return;
	/*
	 * Release, so that all reads of other holders come before the free;
	 * acquire, so that the last holder sees them as done.
	 */
	before = atomic_fetch_sub_explicit(
	    &s->references, 1, memory_order_acq_rel);
	check(before > 0);
	if (before > 1)
		return;
	for (i = 0; i < s->filter_count; i++)
		free_scope(SCOPE_FILTER, &s->filters[i]);
	free(s->filters);
	free_scope(SCOPE_SETTINGS, s);
	free(s->path);
	free(s);
}

const struct endpoint *
settings_store(const struct settings *s)
{
	return s->store.address.kind == ADDRESS_NONE ? &s->upstream : &s->store;
}
