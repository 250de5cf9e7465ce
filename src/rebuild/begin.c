/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Step 1 of a build, begin, and what may have to go first: what a dead builder
 * left, and generations listed as retiring. Also the way out of every build that
 * fails. Rebuild thread.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/random.h"
#include "rebuild/calls.h"

#define BEGIN_TRIES 6 /* stale and full: try again */

/* Shards of a generation that meta lists; 0 where it does not. */
static uint32_t
shards_of(const struct meta *m, const char *name)
{
	int i = meta_find(m, slice_str(name));

	return i < 0 ? 0 : m->generations[i].geometry.shards;
}

int
begin_retire(
    struct build *b, const char *name, const char *token, uint32_t shards)
{
	bool gone = false;

	for (uint32_t at = 0; !gone; at += 4) {
		uint32_t count = at < shards ? shards - at : 0;

		if (at > 0 && count == 0)
			return build_fail(b, "retire: %s stays listed", name);
		if (count > 4)
			count = 4;
		if (calls_retire(b, name, token, at, count, shards, &gone) != 0)
			return -1;
	}
	return 0;
}

int
begin_retire_listed(struct build *b)
{
	bool any = false;

	if (calls_meta(b, b->meta) != 0)
		return -1;
	for (size_t i = 0; i < b->meta->generation_count; i++) {
		const struct generation *g = &b->meta->generations[i];

		if (!g->retiring)
			continue;
		any = true;
		if (begin_retire(b, g->name, "", g->geometry.shards) != 0)
			return -1;
	}
	if (any)
		build_changed(b);
	return 0;
}

/*
 * The fingerprints of all names that begin may come to, one after another: it
 * takes that of the name it chooses. Returned; free().
 */
static char *
fingerprints(const struct build *b, const char *base)
{
	const size_t each = 32, names = META_GENERATIONS_MAX + 1;
	char *out = mem_zalloc(names * each + 1, 1);
	char name[GENERATION_NAME_MAX + 24];

	if (b->geometry.scheme != SCHEME_KEYED)
		return out;
	snprintf(name, sizeof(name), "%s", base);
	for (size_t i = 0; i < names; i++) {
		if (i > 0)
			snprintf(name, sizeof(name), "%s.%zu", base, i + 1);
		scheme_key_fingerprint(
		    &b->filter->key, slice_str(name), out + i * each);
	}
	return out;
}

static int
retire_named(struct build *b, const char *name)
{
	if (calls_meta(b, b->meta) != 0 ||
	    begin_retire(b, name, b->token, shards_of(b->meta, name)) != 0)
		return -1;
	build_changed(b);
	return calls_meta(b, b->meta);
}

/* One try: 0 begun, 1 try again, -1. */
static int
try_begin(struct build *b, const char *base)
{
	char *key = fingerprints(b, base);
	enum calls_begun rc = calls_begin(b, base, key, b->name);

	free(key);
	switch (rc) {
	case CALLS_BEGUN:
		b->begun = true;
		return 0;
	case CALLS_STALE:
		log_info("rebuild_stale", LOG_STR("filter", b->filter->name),
		    LOG_STR("generation", b->name));
		return retire_named(b, b->name) == 0 ? 1 : -1;
	case CALLS_FULL:
		return begin_retire_listed(b) == 0 ? 1 : -1;
	case CALLS_LOCKED:
		return build_refuse(b, BUILD_ELSEWHERE);
	case CALLS_FAILED:
		break;
	}
	return -1;
}

int
begin_all(struct build *b)
{
	char base[GENERATION_NAME_MAX];
	struct err err;

	progress_phase(b, PHASE_BEGIN);
	if (name_of_time(base, b->settings->suffix, clock_wall_us(), &err) != 0)
		return build_refuse(b, "%s", err.text);
	do
		random_bytes(b->tag, sizeof(b->tag));
	while (memcmp(b->tag, "\0\0\0\0\0\0\0\0", TAG_BYTES) == 0);
	for (int i = 0; i < BEGIN_TRIES; i++) {
		int rc = try_begin(b, base);

		/* Another may have committed since the meta was read: what
		 * serves, and is compared with and carried from, is what does
		 * now that we hold the lock. */
		if (rc == 0)
			return calls_meta(b, b->meta);
		if (rc < 0)
			return rc;
	}
	return build_fail(b, "begin: meta lists too many generations");
}
