/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How far a build is: the filter's progress struct, the metrics and a log line
 * every few seconds. Rebuild thread; others read the atomics.
 */
#include "config.h"

#include <math.h>

#include "core/clock.h"
#include "core/log.h"
#include "rebuild/build.h"

#define PROGRESS_LOG_NS  UINT64_C(5000000000)
#define PROGRESS_READING 0.8 /* of a build is reading the source */

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

static double
part(uint64_t done, uint64_t all)
{
	if (all == 0)
		return 0;
	return done < all ? (double)done / (double)all : 1;
}

static double
ratio(struct build *b)
{
	struct rebuild_progress *p = &b->filter->progress;
	int phase = atomic_load_explicit(&p->phase, memory_order_relaxed);
	double chunks = part(get(&p->chunks_done), get(&p->chunks_total));
	double read = get(&p->bytes_total) > 0
	    ? part(get(&p->bytes_read), get(&p->bytes_total))
	    : part(b->elements, get(&p->expected));

	switch (phase) {
	case PHASE_READ:
		return PROGRESS_READING * read;
	case PHASE_MERGE:
		return PROGRESS_READING + 0.1 * chunks;
	case PHASE_VERIFY:
		return PROGRESS_READING + 0.1 + 0.1 * chunks;
	case PHASE_SEAL:
	case PHASE_COMMIT:
	case PHASE_RETIRE:
		return 1;
	default:
		return 0;
	}
}

static void
log_progress(struct build *b, double done)
{
	uint64_t now = clock_boot_ns();
	double seconds = (double)(now - b->began_ns) / 1e9;
	struct rebuild_progress *p = &b->filter->progress;

	if (now - b->logged_ns < PROGRESS_LOG_NS)
		return;
	b->logged_ns = now;
	log_info("rebuild_progress", LOG_STR("filter", b->filter->name),
	    LOG_STR("phase",
		rebuild_phase_name((enum rebuild_phase)atomic_load_explicit(
		    &p->phase, memory_order_relaxed))),
	    LOG_INT("elements", b->elements),
	    LOG_INT("rate", seconds > 0 ? (double)b->elements / seconds : 0),
	    LOG_INT("percent", done * 100),
	    LOG_INT("eta_seconds",
		done > 0 ? ceil(seconds * (1 - done) / done) : -1));
}

void
progress_show(struct build *b)
{
	struct rebuild_progress *p = &b->filter->progress;
	struct metrics *m = b->options->metrics;
	size_t i = b->filter->index;
	uint64_t read = get(&p->bytes_read), total = get(&p->bytes_total);
	double done = ratio(b);

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
	metric_set(m, METRIC_FILTER_REBUILD_PROGRESS, i, 0, done);
	log_progress(b, done);
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
	metric_set(b->options->metrics, METRIC_FILTER_REBUILD_PROGRESS,
	    b->filter->index, 0, 0);
}
