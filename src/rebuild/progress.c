/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a build is: the filter's progress struct, the metrics and a log line
 * every few seconds. Rebuild thread; others read the atomics.
 */
#include "config.h"

#include <math.h>

#include "core/clock.h"
#include "core/log.h"
#include "filter/progress.h"
#include "rebuild/build.h"

#define PROGRESS_LOG_NS UINT64_C(5000000000)

static uint64_t
get(const _Atomic uint64_t *v)
{
	return atomic_load_explicit(v, memory_order_relaxed);
}

static void
put(_Atomic uint64_t *v, uint64_t value)
{
	atomic_store_explicit(v, value, memory_order_relaxed);
}

static void
log_progress(struct build *b, const struct progress *p, uint64_t now)
{
	if (now - b->logged_ns < PROGRESS_LOG_NS)
		return;
	b->logged_ns = now;
	log_info("rebuild_progress", LOG_STR("filter", b->filter->name),
	    LOG_STR("phase", rebuild_phase_name(p->phase)),
	    LOG_INT("elements", p->elements), LOG_INT("rate", p->rate),
	    LOG_INT("percent", p->share >= 0 ? p->share * 100 : -1),
	    LOG_INT("seconds_left",
		p->seconds_left >= 0 ? ceil(p->seconds_left) : -1));
}

/* What is not known is not a number. */
static void
set_metrics(struct build *b, const struct progress *p)
{
	struct metrics *m = b->options->metrics;
	size_t i = b->filter->index;

	metric_set(m, METRIC_FILTER_REBUILD_PROGRESS, i, 0,
	    p->share >= 0 ? p->share : NAN);
	metric_set(m, METRIC_FILTER_REBUILD_RATE, i, 0, p->rate);
	metric_set(m, METRIC_FILTER_REBUILD_SECONDS_LEFT, i, 0,
	    p->seconds_left >= 0 ? p->seconds_left : NAN);
}

void
progress_show(struct build *b)
{
	struct rebuild_progress *p = &b->filter->progress;
	struct metrics *m = b->options->metrics;
	size_t i = b->filter->index;
	uint64_t read = get(&p->bytes_read), total = get(&p->bytes_total);
	uint64_t now = clock_boot_ns();
	struct progress shown;

	put(&p->elements, b->elements);
	/* The size of a file tells more than the generation before. */
	if (read > 0 && total > 0)
		put(&p->expected,
		    (uint64_t)((double)b->elements * (double)total /
			(double)read));
	if (b->elements > b->counted) {
		metric_add(m, METRIC_FILTER_REBUILD_ELEMENTS_TOTAL, i, 0,
		    b->elements - b->counted);
		b->counted = b->elements;
	}
	progress_read(&shown, p, now);
	set_metrics(b, &shown);
	log_progress(b, &shown, now);
}

void
progress_phase(struct build *b, enum rebuild_phase phase)
{
	struct rebuild_progress *p = &b->filter->progress;

	atomic_store_explicit(&p->phase, phase, memory_order_relaxed);
	put(&p->chunks_done, 0);
	put(&p->chunks_total, 0);
	if (phase == PHASE_BEGIN) {
		put(&p->elements, 0);
		put(&p->bytes_read, 0);
		put(&p->bytes_total, 0);
		put(&p->expected, 0);
		put(&p->began_ns, b->began_ns);
	}
	progress_show(b);
}

void
progress_end(struct build *b)
{
	atomic_store_explicit(
	    &b->filter->progress.phase, PHASE_IDLE, memory_order_relaxed);
	set_metrics(b, &(struct progress){0});
}
