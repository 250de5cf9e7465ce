/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One build, step by step (DESIGN.md, Rebuild):
 *
 *	BEGIN	begin: lock, token, parameters
 *	MAKE	make every shard; open: from now adds go there too
 *	PEERS	wait until live peers go by that epoch
 *	READ	source, hashed into a local array; guards
 *	MERGE	active's bits where the source is not fresh; then all to Redis
 *	VERIFY	read it back
 *	SEAL	tags
 *	COMMIT	the swap
 *	RETIRE	what is not needed any more
 *
 * Whatever goes wrong before the commit: abort, and what serves goes on serving.
 * A source with more elements than fit: abort and begin again, larger. The guards
 * come before the merge, since they need only the count. Rebuild thread.
 */
#include "config.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/broken.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/random.h"
#include "rebuild/calls.h"

#define BUILD_SAMPLE       10000
#define BUILD_SEAL_SHARDS  64
#define BUILD_ABORT_MS     5000
#define BUILD_BEGINS       6 /* stale, full, another name: try again */
#define BUILD_GROW_BY      1.2
#define BUILD_CAPACITY_MAX UINT64_C(10000000000)
#define BUILD_SLEEP_NS     UINT64_C(20000000) /* between looks at cancel */

static int
note(struct build *b, enum metric_rebuild result, const char *fmt, va_list ap)
{
	if (b->err.text[0] != '\0')
		return -1;
	b->result = build_cancelled(b) ? REBUILD_ABORTED : result;
	/* clang-format off */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	vsnprintf(b->err.text, sizeof(b->err.text), fmt, ap);
#pragma GCC diagnostic pop
	/* clang-format on */
	return -1;
}

int
build_fail(struct build *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(b, REBUILD_FAILED, fmt, ap);
	va_end(ap);
	return -1;
}

int
build_refuse(struct build *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	note(b, REBUILD_REFUSED, fmt, ap);
	va_end(ap);
	return -1;
}

bool
build_cancelled(const struct build *b)
{
	return atomic_load_explicit(b->cancel, memory_order_relaxed);
}

int
build_sleep(struct build *b, uint64_t ns)
{
	while (ns > 0) {
		uint64_t part = ns < BUILD_SLEEP_NS ? ns : BUILD_SLEEP_NS;
		struct timespec ts = {.tv_nsec = (long)part};

		if (build_cancelled(b))
			return build_fail(b, "cancelled");
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
		ns -= part;
	}
	return 0;
}

int
build_tick(struct build *b)
{
	uint64_t lease_ns = b->options->settings->lease_ms * UINT64_C(1000000);

	if (build_cancelled(b))
		return build_fail(b, "cancelled");
	if (b->begun && clock_boot_ns() - b->renewed_ns > lease_ns / 3 &&
	    calls_renew(b) != 0)
		return -1;
	progress_show(b);
	return 0;
}

void
build_changed(struct build *b)
{
	if (b->options->changed != NULL)
		b->options->changed(b->filter->index, b->options->arg);
}

static const struct generation *
active_of(const struct build *b)
{
	const struct meta *m = b->meta;

	return m->exists && m->active >= 0 ? &m->generations[m->active] : NULL;
}

static int
plan(struct build *b, uint64_t at_least)
{
	const struct filter_settings *s = b->settings;
	const struct generation *g = active_of(b);
	struct err err;

	b->capacity = s->capacity > at_least ? s->capacity : at_least;
	if (g != NULL && g->capacity > b->capacity &&
	    g->capacity <= BUILD_CAPACITY_MAX)
		b->capacity = g->capacity;
	if (geometry_plan(&b->geometry, b->capacity, s->error_rate,
		(enum scheme)s->scheme, s->layout == SETTING_SINGLE, &err) != 0)
		return build_refuse(b, "%s", err.text);
	return 0;
}

static int
make_and_open(struct build *b)
{
	progress_phase(b, PHASE_MAKE);
	atomic_store_explicit(&b->filter->progress.chunks_total,
	    b->geometry.shards, memory_order_relaxed);
	for (uint32_t s = 0; s < b->geometry.shards; s++) {
		if (calls_make(b, s) != 0 || build_tick(b) != 0)
			return -1;
		atomic_store_explicit(&b->filter->progress.chunks_done, s + 1,
		    memory_order_relaxed);
	}
	if (calls_open(b) != 0)
		return -1;
	build_changed(b);
	progress_phase(b, PHASE_PEERS);
	return peers_wait(b);
}

static int
read_source(struct build *b)
{
	const struct generation *g = active_of(b);

	progress_phase(b, PHASE_READ);
	if (g != NULL)
		atomic_store_explicit(&b->filter->progress.expected,
		    g->elements, memory_order_relaxed);
	switch (b->settings->rebuild.source) {
	case SOURCE_FILE:
		return source_file(b);
	case SOURCE_COMMAND:
		return source_command(b);
	default:
		return build_refuse(
		    b, "this kind of source cannot be built from");
	}
}

static int
guard(struct build *b)
{
	const struct filter_rebuild_settings *r = &b->settings->rebuild;
	const struct generation *g = active_of(b);
	double least;

	if (b->elements < r->min_elements)
		return build_refuse(b,
		    "the source has %" PRIu64 " elements, min-elements is "
		    "%" PRIu64,
		    b->elements, r->min_elements);
	least = g != NULL ? (1 - r->max_shrink) * (double)g->elements : 0;
	if (!b->force && (double)b->elements < least)
		return build_refuse(b,
		    "the source has %" PRIu64 " elements, the serving "
		    "generation %" PRIu64 ": max-shrink %g allows no fewer "
		    "than %.0f (--force does)",
		    b->elements, g->elements, r->max_shrink, least);
	if (b->elements > b->capacity)
		log_warn("rebuild_over_capacity",
		    LOG_STR("filter", b->filter->name),
		    LOG_INT("elements", b->elements),
		    LOG_INT("capacity", b->capacity));
	return 0;
}

static int
seal_and_commit(struct build *b)
{
	uint32_t shards = b->geometry.shards;

	progress_phase(b, PHASE_SEAL);
	for (uint32_t s = 0; s < shards; s += BUILD_SEAL_SHARDS) {
		uint32_t count = shards - s < BUILD_SEAL_SHARDS
		    ? shards - s
		    : BUILD_SEAL_SHARDS;

		if (build_tick(b) != 0 || calls_seal(b, s, count) != 0)
			return -1;
	}
	progress_phase(b, PHASE_COMMIT);
	if (build_tick(b) != 0 || calls_commit(b) != 0)
		return -1;
	b->begun = false;
	build_changed(b);
	return 0;
}

/*
 * Takes back what was begun, whatever has happened; what cannot be reached is
 * taken over by the next builder once the lock has run out.
 */
static void
abort_in_redis(struct build *b, const _Atomic uint64_t *stop_ms)
{
	static const _Atomic bool never = false;
	const _Atomic bool *cancel = b->cancel;
	uint64_t stop = atomic_load_explicit(stop_ms, memory_order_relaxed);
	struct meta *m = b->meta;
	bool failed = b->err.text[0] != '\0';

	b->begun = false;
	b->cancel = &never;
	b->retry_until_ms = clock_boot_ms() + BUILD_ABORT_MS;
	if (stop != 0 && stop < b->retry_until_ms)
		b->retry_until_ms = stop;
	if (calls_meta(b, m) == 0 && strcmp(m->lock, b->token) == 0) {
		int rc = 0;

		if (m->building >= 0) {
			const struct generation *g =
			    &m->generations[m->building];

			rc = begin_retire(
			    b, g->name, b->token, g->geometry.shards);
			build_changed(b);
		}
		if (rc == 0 && calls_release(b) == 0 && !failed)
			b->err.text[0] = '\0';
	}
	b->cancel = cancel;
	b->retry_until_ms = 0;
}

static void
log_begun(struct build *b)
{
	log_info("rebuild_started", LOG_STR("filter", b->filter->name),
	    LOG_STR("reason", b->reason), LOG_STR("generation", b->name),
	    LOG_INT("capacity", b->capacity),
	    LOG_INT("bits", geometry_total_bits(&b->geometry)),
	    LOG_INT("shards", b->geometry.shards));
}

/* From begin to commit with at least that capacity. 1: too many elements. */
static int
build_once(struct build *b, uint64_t at_least)
{
	b->elements = b->counted = b->empty_lines = 0;
	b->counting = b->carried = false;
	b->carry = NULL;
	if (plan(b, at_least) != 0 || fresh_foresee(b) != 0)
		return -1;
	if (bits_init(&b->bits, &b->geometry) != 0)
		return build_fail(b, "no memory for %" PRIu64 " bytes",
		    geometry_total_bytes(&b->geometry));
	sample_init(&b->sample, BUILD_SAMPLE, b->geometry.hashes);
	if (begin_all(b) != 0)
		return -1;
	log_begun(b);
	if (make_and_open(b) != 0 || read_source(b) != 0)
		return -1;
	if (b->counting)
		return 1;
	if (!BROKEN_LAW(9) && guard(b) != 0)
		return -1;
	progress_phase(b, PHASE_MERGE);
	if (merge_carried(b) != 0 || merge_all(b) != 0)
		return -1;
	progress_phase(b, PHASE_VERIFY);
	if (!BROKEN_LAW(11) && verify_all(b) != 0)
		return -1;
	return seal_and_commit(b);
}

static void
drop_local(struct build *b)
{
	bits_fini(&b->bits);
	sample_fini(&b->sample);
	b->bits = (struct bits){0};
}

static uint64_t
grown_capacity(const struct build *b)
{
	uint64_t capacity = b->capacity;

	while ((double)capacity < BUILD_GROW_BY * (double)b->elements)
		capacity *= 2;
	return capacity;
}

static int
build_all(struct build *b, const _Atomic uint64_t *stop_ms)
{
	uint64_t at_least = 0;

	if (calls_ready(b) != 0 || calls_meta(b, b->meta) != 0)
		return -1;
	b->first = !b->meta->exists &&
	    !atomic_load_explicit(&b->filter->seen_meta, memory_order_relaxed);
	for (;;) {
		int rc = build_once(b, at_least);

		if (rc != 0)
			abort_in_redis(b, stop_ms);
		if (rc <= 0)
			return rc;
		if (b->err.text[0] != '\0')
			return -1;
		at_least = grown_capacity(b);
		log_info("rebuild_grows", LOG_STR("filter", b->filter->name),
		    LOG_INT("elements", b->elements),
		    LOG_INT("capacity", at_least));
		drop_local(b);
		if (calls_meta(b, b->meta) != 0)
			return -1;
	}
}

static void
init(struct build *b, const struct build_job *job)
{
	struct settings *s = job->options->settings;
	const char *key;

	b->options = job->options;
	b->settings = &s->filters[job->index];
	b->filter = job->options->filters[job->index];
	b->force = job->force;
	b->reason = job->reason;
	keytemplate_init(&b->template, b->settings->element, b->settings->name);
	b->cancel = job->cancel;
	b->began_ns = b->logged_ns = clock_boot_ns();
	b->meta = mem_zalloc(1, sizeof(*b->meta));
	key = b->filter->redis_key;
	name_other(b->meta_key, sizeof(b->meta_key), key, "meta");
	name_other(b->channel, sizeof(b->channel), key, "events");
	name_other(b->t0_key, sizeof(b->t0_key), key, "t0");
	name_other(b->t1_key, sizeof(b->t1_key), key, "t1");
	snprintf(b->token, sizeof(b->token), "%016" PRIx64 "%016" PRIx64,
	    random_u64(), random_u64());
	pace_init(&b->pace, b->settings->rebuild.redis_share,
	    b->settings->rebuild.chunk_bytes);
	b->base = event_base_new();
	check(b->base != NULL);
	b->link = link_new(&(struct link_options){.base = b->base,
	    .endpoint = settings_store(s),
	    .db = b->filter->db,
	    .connect_timeout_ms = s->connect_timeout_ms,
	    .purpose = "rebuild"});
	link_start(b->link);
}

static void
fini(struct build *b)
{
	link_free(b->link);
	event_base_free(b->base);
	drop_local(b);
	keytemplate_fini(&b->template);
	free(b->meta);
}

static void
log_done(struct build *b)
{
	double seconds = (double)(clock_boot_ns() - b->began_ns) / 1e9;
	double all = (double)geometry_total_bits(&b->geometry);
	struct metrics *m = b->options->metrics;
	size_t i = b->filter->index;

	metric_set(m, METRIC_FILTER_REBUILD_DURATION, i, 0, seconds);
	metric_set(
	    m, METRIC_FILTER_LAST_SUCCESS, i, 0, (double)clock_wall_us() / 1e6);
	metric_add(m, METRIC_FILTER_ADDS_TOTAL, i, ADD_REBUILD, b->elements);
	log_info("rebuild_done", LOG_STR("filter", b->filter->name),
	    LOG_STR("generation", b->name), LOG_INT("elements", b->elements),
	    LOG_INT("empty_lines", b->empty_lines),
	    LOG_DOUBLE("seconds", seconds), LOG_INT("bits", all),
	    LOG_DOUBLE("fill", (double)b->bits_set / all),
	    LOG_INT("carried", b->carried));
}

enum metric_rebuild
build_run(const struct build_job *job, struct err *err)
{
	struct build *b = mem_zalloc(1, sizeof(*b));
	enum metric_rebuild result;

	init(b, job);
	b->result = REBUILD_OK;
	if (build_all(b, job->stop_ms) == 0) {
		log_done(b);
		progress_phase(b, PHASE_RETIRE);
		if (begin_retire_listed(b) != 0)
			log_info("rebuild_retire_later",
			    LOG_STR("filter", b->filter->name),
			    LOG_STR("error", b->err.text));
		b->result = REBUILD_OK;
		b->err.text[0] = '\0';
	}
	if (b->meta->exists)
		atomic_store_explicit(
		    &b->filter->seen_meta, true, memory_order_relaxed);
	progress_end(b);
	result = b->result;
	*err = b->err;
	fini(b);
	free(b);
	return result;
}

int
build_retire_only(const struct build_job *job)
{
	struct build *b = mem_zalloc(1, sizeof(*b));
	int rc;

	init(b, job);
	rc = calls_ready(b) == 0 ? begin_retire_listed(b) : -1;
	if (rc != 0)
		log_info("rebuild_retire_later",
		    LOG_STR("filter", b->filter->name),
		    LOG_STR("error", b->err.text));
	fini(b);
	free(b);
	return rc;
}
