/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks: see check.h. The verdicts themselves are filter.c's. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/broken.h"
#include "core/clock.h"
#include "core/mem.h"
#include "proxy/check.h"

struct lookup {
	struct worker *worker;
	size_t index;      /* of the filter */
	struct view *view; /* at sending; referenced */
	uint64_t version;  /* of view */
	uint32_t shard;
	uint32_t hashes;
	check_fn done;
	void *owner, *what;
	size_t n;
};

static void
on_bits(struct link *link, const struct redisReply *reply, void *arg)
{
	struct lookup *l = arg;
	struct filter *f = l->worker->filters[l->index];
	int64_t values[HASHES_MAX + 1];
	size_t count = link_reply_count(reply), i;
	enum verdict verdict = VERDICT_MAYBE;
	bool wrong_tag = false, answered = reply != NULL;

	if (link_reply_type(reply) == LINK_ARRAY && count == l->hashes + 1) {
		for (i = 0; i < count; i++)
			values[i] = link_reply_integer(link_reply_at(reply, i));
		verdict = filter_judge(f, l->view, l->version,
		    link_run_id(link), values, count, clock_boot_ns(),
		    &wrong_tag);
		if (wrong_tag)
			worker_refresh(l->worker, l->index, l->shard);
	} else if (reply != NULL) {
		/* An error is never an answer; control finds out what it is. */
		worker_refresh(l->worker, l->index, l->shard);
	}
	if (BROKEN_LAW(7) && reply == NULL)
		verdict = VERDICT_ABSENT;
	l->worker->checks--;
	l->done(verdict, answered, l->owner, l->what, l->n);
	view_unref(l->view);
	free(l);
}

/* BITFIELD_RO shard GET u1 p ... GET i64 tag; the texts live in text. */
static size_t
build(struct slice *argv, char text[][24], const char *key,
    const struct geometry *g, const struct positions *p)
{
	size_t n = 0;
	uint32_t i;

	argv[n++] = slice_str("BITFIELD_RO");
	argv[n++] = slice_str(key);
	for (i = 0; i <= p->count; i++) {
		bool tag = i == p->count;
		uint64_t bit = tag ? geometry_tag_offset(g) * 8 : p->bit[i];
		int len = snprintf(text[i], 24, "%" PRIu64, bit);

		argv[n++] = slice_str("GET");
		argv[n++] = slice_str(tag ? "i64" : "u1");
		argv[n++] = slice_of(text[i], (size_t)len);
	}
	return n;
}

enum check_start
check_start(struct worker *w, size_t index, struct slice element, check_fn done,
    void *owner, void *what, size_t n)
{
	struct filter *f = w->filters[index];
	struct link *link = worker_store(w, index);
	uint64_t version = filter_version(f);
	struct view *view = filter_view(f);
	struct slice argv[2 + 3 * (HASHES_MAX + 1)];
	char text[HASHES_MAX + 1][24], key[NAME_MAX_BYTES];
	const struct generation *g;
	struct positions p;
	struct lookup *l;
	uint64_t now_ns = clock_boot_ns();
	enum check_start result = CHECK_NOT_READY;

	if (!filter_ready(f, view, version, now_ns))
		goto out;
	g = &view->meta.generations[view->meta.active];
	if (scheme_positions(
		&g->geometry, f->has_key ? &f->key : NULL, element, &p) != 0)
		goto out;
	switch (filter_judge_mirror(f, view, version, &p, now_ns)) {
	case MIRROR_ABSENT:
		result = CHECK_ABSENT;
		goto out;
	case MIRROR_MAYBE:
		result = CHECK_MAYBE;
		goto out;
	case MIRROR_UNKNOWN:
		break;
	}
	result = CHECK_NO_STORE;
	if (!link_is_up(link) || w->checks >= CHECKS_MAX)
		goto out;
	if (strcmp(link_run_id(link), view->meta.run_id) != 0 &&
	    !BROKEN_LAW(4)) {
		worker_store_doubt(w, index);
		goto out;
	}
	name_shard(key, sizeof(key), f->redis_key, g->name, p.shard);
	l = mem_alloc(sizeof(*l));
	*l = (struct lookup){.worker = w,
	    .index = index,
	    .view = view_ref(view),
	    .version = version,
	    .shard = p.shard,
	    .hashes = p.count,
	    .done = done,
	    .owner = owner,
	    .what = what,
	    .n = n};
	if (link_command(link, CHECK_TIMEOUT_MS, on_bits, l, argv,
		build(argv, text, key, &g->geometry, &p)) == 0) {
		result = CHECK_STARTED;
		w->checks++;
	} else {
		view_unref(l->view);
		free(l);
	}
out:
	view_unref(view);
	return result;
}
