/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rebuild thread and its queue. One build at a time, oldest request first;
 * the removal of retiring generations comes after builds. What a build does is in
 * build.c.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "rebuild/build.h"

#define REBUILD_MAGIC 0x7265626cU

/* One filter; everything but cancel is under the mutex. */
struct slot {
	bool queued, running, retire, force;
	uint64_t order; /* of the request: the lowest goes first */
	char reason[64];
	/* Partner: the build's looks at it; relaxed, it only says "stop". */
	_Atomic bool cancel;
};

struct rebuild {
	uint32_t magic;
	struct rebuild_options options;
	pthread_t thread;
	bool started;
	/* Ms of CLOCK_BOOTTIME by which an abort must end; 0 none. Set before
	 * cancel by rebuild_stop; relaxed. */
	_Atomic uint64_t stop_ms;
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	bool stopping;      /* under the mutex, like the rest */
	uint64_t requests;  /* so far */
	struct slot *slots; /* one a filter */
	size_t count;
};

struct rebuild *
rebuild_new(const struct rebuild_options *o)
{
	struct rebuild *r = mem_zalloc(1, sizeof(*r));

	r->magic = REBUILD_MAGIC;
	r->options = *o;
	settings_ref(o->settings);
	r->count = o->settings->filter_count;
	r->slots = mem_zalloc(r->count + 1, sizeof(*r->slots));
	check(pthread_mutex_init(&r->mutex, NULL) == 0);
	check(pthread_cond_init(&r->wake, NULL) == 0);
	return r;
}

void
rebuild_free(struct rebuild *r)
{
	if (r == NULL)
		return;
	check(r->magic == REBUILD_MAGIC);
	check(!r->started);
	pthread_cond_destroy(&r->wake);
	pthread_mutex_destroy(&r->mutex);
	settings_unref(r->options.settings);
	free(r->slots);
	r->magic = 0;
	free(r);
}

static void
log_result(const char *filter, enum metric_rebuild result, const char *why)
{
	switch (result) {
	case REBUILD_OK:
		break; /* rebuild_done was logged with its figures */
	case REBUILD_REFUSED:
		if (strcmp(why, BUILD_ELSEWHERE) == 0)
			log_info(
			    "rebuild_elsewhere", LOG_STR("filter", filter));
		else
			log_error("rebuild_refused", LOG_STR("filter", filter),
			    LOG_STR("error", why));
		break;
	case REBUILD_FAILED:
		log_error("rebuild_failed", LOG_STR("filter", filter),
		    LOG_STR("error", why));
		break;
	case REBUILD_ABORTED:
		log_info("rebuild_aborted", LOG_STR("filter", filter));
		break;
	}
}

static const char *
result_word(enum metric_rebuild result)
{
	static const char *const words[] = {
	    [REBUILD_OK] = "ok",
	    [REBUILD_REFUSED] = "refused",
	    [REBUILD_FAILED] = "failed",
	    [REBUILD_ABORTED] = "aborted",
	};

	return words[result];
}

static enum metric_rebuild
build(struct rebuild *r, const struct build_job *job)
{
	struct metrics *m = r->options.metrics;
	struct filter *f = r->options.filters[job->index];
	enum metric_rebuild result;
	struct err err;

	metric_set(m, METRIC_FILTER_REBUILD_IN_PROGRESS, job->index, 0, 1);
	result = build_run(job, &err);
	metric_set(m, METRIC_FILTER_REBUILD_IN_PROGRESS, job->index, 0, 0);
	/* Another's build is neither refused nor failed here. */
	if (strcmp(err.text, BUILD_ELSEWHERE) != 0)
		metric_add(
		    m, METRIC_FILTER_REBUILDS_TOTAL, job->index, result, 1);
	log_result(f->name, result, err.text);
	filter_set_result(f, result_word(result), err.text, clock_wall_us());
	return result;
}

/* The next thing to do, or -1. With the mutex held. */
static long
next_slot(const struct rebuild *r)
{
	long build_at = -1, retire_at = -1;

	for (size_t i = 0; i < r->count; i++) {
		const struct slot *s = &r->slots[i];

		if (s->queued &&
		    (build_at < 0 || s->order < r->slots[build_at].order))
			build_at = (long)i;
		if (s->retire && retire_at < 0)
			retire_at = (long)i;
	}
	return build_at >= 0 ? build_at : retire_at;
}

/* With the mutex held, which it lets go of meanwhile. */
static void
work(struct rebuild *r, size_t index)
{
	struct slot *s = &r->slots[index];
	bool is_build = s->queued;
	struct build_job job = {.options = &r->options,
	    .index = index,
	    .force = s->force,
	    .reason = s->reason,
	    .cancel = &s->cancel,
	    .stop_ms = &r->stop_ms};
	enum metric_rebuild result = REBUILD_OK;

	s->retire = false; /* a build ends with it */
	s->queued = false;
	s->running = is_build;
	pthread_mutex_unlock(&r->mutex);
	if (is_build)
		result = build(r, &job);
	else
		(void)build_retire_only(&job);
	pthread_mutex_lock(&r->mutex);
	s->running = false;
	if (!r->stopping)
		atomic_store_explicit(&s->cancel, false, memory_order_relaxed);
	if (!is_build)
		return;
	pthread_mutex_unlock(&r->mutex);
	if (r->options.ended != NULL)
		r->options.ended(index, result, r->options.arg);
	pthread_mutex_lock(&r->mutex);
}

static void *
thread_main(void *arg)
{
	struct rebuild *r = arg;

	pthread_mutex_lock(&r->mutex);
	while (!r->stopping) {
		long next = next_slot(r);

		if (next >= 0)
			work(r, (size_t)next);
		else
			pthread_cond_wait(&r->wake, &r->mutex);
	}
	pthread_mutex_unlock(&r->mutex);
	return NULL;
}

void
rebuild_start(struct rebuild *r)
{
	sigset_t all, before;

	check(r->magic == REBUILD_MAGIC && !r->started);
	/* Signals are for main's loop. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	check(pthread_create(&r->thread, NULL, thread_main, r) == 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	r->started = true;
}

void
rebuild_stop(struct rebuild *r, uint64_t timeout_ms)
{
	check(r->magic == REBUILD_MAGIC);
	if (!r->started)
		return;
	atomic_store_explicit(
	    &r->stop_ms, clock_boot_ms() + timeout_ms, memory_order_relaxed);
	pthread_mutex_lock(&r->mutex);
	r->stopping = true;
	for (size_t i = 0; i < r->count; i++) {
		r->slots[i].queued = r->slots[i].retire = false;
		atomic_store_explicit(
		    &r->slots[i].cancel, true, memory_order_relaxed);
	}
	pthread_cond_broadcast(&r->wake);
	pthread_mutex_unlock(&r->mutex);
	pthread_join(r->thread, NULL);
	r->started = false;
}

int
rebuild_request(struct rebuild *r, size_t index, bool force, const char *reason)
{
	struct slot *s;
	int rc = -1;

	check(r->magic == REBUILD_MAGIC && index < r->count);
	s = &r->slots[index];
	pthread_mutex_lock(&r->mutex);
	if (!s->queued && !s->running && !r->stopping) {
		s->queued = true;
		s->force = force;
		s->order = r->requests++;
		snprintf(s->reason, sizeof(s->reason), "%s", reason);
		atomic_store_explicit(
		    &r->options.filters[index]->progress.phase, PHASE_QUEUED,
		    memory_order_relaxed);
		pthread_cond_signal(&r->wake);
		rc = 0;
	}
	pthread_mutex_unlock(&r->mutex);
	return rc;
}

/* A queued build is run all the same: it finds itself cancelled at once and ends
 * like any other, with its result told. */
int
rebuild_abort(struct rebuild *r, size_t index)
{
	struct slot *s;
	int rc = -1;

	check(r->magic == REBUILD_MAGIC && index < r->count);
	s = &r->slots[index];
	pthread_mutex_lock(&r->mutex);
	if (s->queued || s->running) {
		atomic_store_explicit(&s->cancel, true, memory_order_relaxed);
		rc = 0;
	}
	pthread_mutex_unlock(&r->mutex);
	return rc;
}

void
rebuild_retire(struct rebuild *r, size_t index)
{
	check(r->magic == REBUILD_MAGIC && index < r->count);
	pthread_mutex_lock(&r->mutex);
	if (!r->stopping) {
		r->slots[index].retire = true;
		pthread_cond_signal(&r->wake);
	}
	pthread_mutex_unlock(&r->mutex);
}
