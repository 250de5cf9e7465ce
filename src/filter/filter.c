/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Views of a filter and the verdict: filter_judge and filter_judge_mirror are all
 * that may say "absent", and what they are not sure of is "maybe". No clock, no
 * I/O: the caller brings times and answers. Which thread may call what: filter.h.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/broken.h"
#include "core/check.h"
#include "core/mem.h"
#include "filter/filter.h"

static const char *const state_names[] = {
    [FILTER_UNKNOWN] = "unknown",
    [FILTER_MISSING] = "missing",
    [FILTER_SUSPECT] = "suspect",
    [FILTER_LOST] = "lost",
    [FILTER_FOREIGN] = "foreign",
    [FILTER_SERVING] = "serving",
};

static const char *const mode_names[] = {
    [FILTER_ENFORCE] = "enforce",
    [FILTER_OBSERVE] = "observe",
    [FILTER_OFF] = "off",
};

static const char *const phase_names[] = {
    [PHASE_IDLE] = "idle",
    [PHASE_QUEUED] = "queued",
    [PHASE_BEGIN] = "begin",
    [PHASE_MAKE] = "make",
    [PHASE_PEERS] = "peers",
    [PHASE_READ] = "read",
    [PHASE_MERGE] = "merge",
    [PHASE_VERIFY] = "verify",
    [PHASE_SEAL] = "seal",
    [PHASE_COMMIT] = "commit",
    [PHASE_RETIRE] = "retire",
};

#define NAME_OF(names, i)                                                      \
	((size_t)(i) < sizeof(names) / sizeof((names)[0]) ? (names)[i]         \
							  : "unknown")

const char *
filter_state_name(enum filter_state s)
{
	return NAME_OF(state_names, s);
}

const char *
filter_mode_name(enum filter_mode m)
{
	return NAME_OF(mode_names, m);
}

const char *
rebuild_phase_name(enum rebuild_phase p)
{
	return NAME_OF(phase_names, p);
}

struct filter *
filter_new(size_t index, const char *name, const char *redis_key, unsigned db,
    const struct scheme_key *key)
{
	struct filter *f = mem_zalloc(1, sizeof(*f));
	struct view *v;

	f->index = index;
	f->name = mem_strdup(name);
	f->redis_key = mem_strdup(redis_key);
	f->db = db;
	f->has_key = key != NULL;
	if (key != NULL)
		f->key = *key;
	check(pthread_mutex_init(&f->mutex, NULL) == 0);
	v = view_new(f, NULL, NULL);
	filter_publish(f, v);
	view_unref(v);
	return f;
}

void
filter_free(struct filter *f)
{
	if (f == NULL)
		return;
	view_unref(f->view);
	check(pthread_mutex_destroy(&f->mutex) == 0);
	mem_wipe(&f->key, sizeof(f->key));
	free(f->name);
	free(f->redis_key);
	free(f);
}

bool
filter_fits(const struct filter *f, const struct generation *g)
{
	char fingerprint[33];

	if (!g->usable)
		return false;
	if (g->geometry.scheme != SCHEME_KEYED)
		return true;
	if (!f->has_key)
		return false;
	scheme_key_fingerprint(&f->key, slice_str(g->name), fingerprint);
	return strcmp(fingerprint, g->key_fingerprint) == 0;
}

/*
 * Can this program read and write what it has to? A building generation counts
 * as well: who makes one that we cannot write to may not be able to write to
 * ours, so that active need no longer hold every add.
 */
static bool
meta_fits(const struct filter *f, const struct meta *m)
{
	if (m->layout != META_LAYOUT)
		return false;
	if (m->active != -1 && !filter_fits(f, &m->generations[m->active]))
		return false;
	return m->building == -1 ||
	    filter_fits(f, &m->generations[m->building]);
}

static bool
run_fits(const struct meta *m, const char *run_id)
{
	return run_id != NULL && m->run_id[0] != '\0' &&
	    (strcmp(m->run_id, run_id) == 0 || BROKEN_LAW(4));
}

/* The generation that serves, or NULL. */
static const struct generation *
serving(const struct meta *m)
{
	const struct generation *g;

	if (m->active < 0 || (size_t)m->active >= m->generation_count)
		return NULL;
	g = &m->generations[m->active];
	return g->usable && !g->retiring && g->state == GENERATION_SEALED
	    ? g
	    : NULL;
}

static enum filter_state
decide(const struct filter *f, const struct meta *m, const char *run_id)
{
	if (!m->exists)
		return FILTER_MISSING;
	if (!meta_fits(f, m))
		return FILTER_FOREIGN;
	/* Nothing that could be suspect: a first build has no run id yet. */
	if (m->active == -1)
		return FILTER_MISSING;
	if (!run_fits(m, run_id))
		return FILTER_SUSPECT;
	if (m->generations[m->active].state == GENERATION_LOST)
		return FILTER_LOST;
	return serving(m) != NULL ? FILTER_SERVING : FILTER_MISSING;
}

struct view *
view_new(const struct filter *f, const struct meta *m, const char *run_id)
{
	struct view *v = mem_zalloc(1, sizeof(*v));

	atomic_init(&v->references, 1);
	atomic_init(&v->lease_until_ns, 0);
	atomic_init(&v->published, 0);
	v->filter = f;
	if (m != NULL) {
		v->meta = *m;
		v->state = decide(f, m, run_id);
	} else {
		v->meta.active = v->meta.previous = v->meta.building = -1;
		v->state = FILTER_UNKNOWN;
	}
	return v;
}

struct view *
view_ref(struct view *v)
{
	unsigned before = atomic_fetch_add_explicit(
	    &v->references, 1, memory_order_acq_rel);

	check(before > 0);
	return v;
}

void
view_unref(struct view *v)
{
	unsigned before = atomic_fetch_sub_explicit(
	    &v->references, 1, memory_order_acq_rel);

	check(before > 0);
	if (before == 1) {
		mirror_unref(v->mirror);
		free(v);
	}
}

static void
lock(struct filter *f)
{
	check(pthread_mutex_lock(&f->mutex) == 0);
}

static void
unlock(struct filter *f)
{
	check(pthread_mutex_unlock(&f->mutex) == 0);
}

void
filter_publish(struct filter *f, struct view *v)
{
	struct view *old;
	uint64_t version;

	check(v->filter == f);
	view_ref(v);
	lock(f);
	old = f->view;
	version = atomic_load_explicit(&f->version, memory_order_relaxed) + 1;
	/* Before f->version: who sees the new version sees this too. */
	atomic_store_explicit(&v->published, version, memory_order_release);
	f->view = v;
	atomic_store_explicit(&f->version, version, memory_order_release);
	unlock(f);
	if (old != NULL)
		view_unref(old);
}

struct view *
filter_view(struct filter *f)
{
	struct view *v;

	lock(f);
	v = view_ref(f->view);
	unlock(f);
	return v;
}

uint64_t
filter_version(const struct filter *f)
{
	return atomic_load_explicit(&f->version, memory_order_acquire);
}

/*
 * Is v the view that f shows now, and was it when version was read? Each
 * publication has a number of its own, so that equal numbers mean the same view
 * without a look at f->view.
 */
static bool
current(const struct filter *f, const struct view *v, uint64_t version)
{
	return v->filter == f && version != 0 && version == filter_version(f) &&
	    version ==
	    atomic_load_explicit(&v->published, memory_order_acquire);
}

static bool
leased(const struct view *v, uint64_t now_ns)
{
	return atomic_load_explicit(&v->lease_until_ns, memory_order_acquire) >
	    now_ns;
}

bool
filter_ready(const struct filter *f, const struct view *v, uint64_t version,
    uint64_t now_ns)
{
	return v->state == FILTER_SERVING && serving(&v->meta) != NULL &&
	    leased(v, now_ns) && current(f, v, version);
}

/* The tag as BITFIELD reads it: big-endian, signed. */
static int64_t
tag_value(const uint8_t tag[TAG_BYTES])
{
	uint64_t v = 0;

	for (int i = 0; i < TAG_BYTES; i++)
		v = v << 8 | tag[i];
	return (int64_t)v;
}

/* True when the bits are bits and one of them is 0. */
static bool
one_is_clear(const int64_t *bits, size_t count)
{
	bool clear = false;

	for (size_t i = 0; i < count; i++) {
		if (bits[i] != 0 && bits[i] != 1)
			return false;
		clear |= bits[i] == 0;
	}
	return clear;
}

enum verdict
filter_judge(const struct filter *f, const struct view *view, uint64_t version,
    const char *link_run_id, const int64_t *values, size_t count,
    uint64_t now_ns, bool *wrong_tag)
{
	const struct generation *g;
	size_t k;

	if (wrong_tag != NULL)
		*wrong_tag = false;
	if (view->state != FILTER_SERVING || !current(f, view, version))
		return VERDICT_MAYBE;
	g = serving(&view->meta);
	if (g == NULL)
		return VERDICT_MAYBE;
	k = g->geometry.hashes;
	if (count != k + 1)
		return VERDICT_MAYBE;
	if (values[k] != tag_value(g->tag) && !BROKEN_LAW(1)) {
		if (wrong_tag != NULL)
			*wrong_tag = true;
		return VERDICT_MAYBE;
	}
	if (!run_fits(&view->meta, link_run_id) || !leased(view, now_ns))
		return VERDICT_MAYBE;
	return one_is_clear(values, k) ? VERDICT_ABSENT : VERDICT_MAYBE;
}

const struct generation *
filter_serving(const struct view *v)
{
	return v->state == FILTER_SERVING ? serving(&v->meta) : NULL;
}

enum mirror_verdict
filter_judge_mirror(const struct filter *f, const struct view *view,
    uint64_t version, const struct positions *p, uint64_t now_ns)
{
	const struct mirror *m = view->mirror;

	if (m == NULL || p->count != m->geometry.hashes)
		return MIRROR_UNKNOWN;
	/* Read before the bits: what an absent needs is then no older. */
	if (atomic_load_explicit(&m->until_ns, memory_order_acquire) > now_ns &&
	    filter_ready(f, view, version, now_ns))
		return mirror_has(m, p) ? MIRROR_MAYBE : MIRROR_ABSENT;
	/* Bits that are set stay so. */
	return mirror_has(m, p) ? MIRROR_MAYBE : MIRROR_UNKNOWN;
}

void
filter_mirror_add(struct filter *f, struct slice element)
{
	struct view *v = filter_view(f);
	struct positions p;

	if (v->mirror != NULL && !BROKEN_LAW(12) &&
	    scheme_positions(&v->mirror->geometry, f->has_key ? &f->key : NULL,
		element, &p) == 0)
		mirror_add(v->mirror, &p);
	view_unref(v);
}

void
filter_set_result(
    struct filter *f, const char *result, const char *error, int64_t ended_us)
{
	lock(f);
	snprintf(f->last_result, sizeof(f->last_result), "%s", result);
	snprintf(f->last_error, sizeof(f->last_error), "%s",
	    error == NULL ? "" : error);
	f->last_ended_us = ended_us;
	unlock(f);
}
