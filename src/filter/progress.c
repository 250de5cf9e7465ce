/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The phases differ in length by orders of magnitude: reading the source takes
 * nearly all of the time, so it gets nearly all of the bar.
 */
#include "config.h"

#include <stdatomic.h>

#include "filter/progress.h"

/* Where each phase begins on the bar, and where it ends. */
static const struct {
	double from;
	double to;
} spans[] = {
    [PHASE_IDLE] = {0, 0},
    [PHASE_QUEUED] = {0, 0},
    [PHASE_BEGIN] = {0, 0.01},
    [PHASE_MAKE] = {0.01, 0.04},
    [PHASE_PEERS] = {0.04, 0.05},
    [PHASE_READ] = {0.05, 0.85},
    [PHASE_MERGE] = {0.85, 0.95},
    [PHASE_VERIFY] = {0.95, 0.97},
    [PHASE_SEAL] = {0.97, 0.98},
    [PHASE_COMMIT] = {0.98, 0.99},
    [PHASE_RETIRE] = {0.99, 1},
};

static uint64_t
load(const _Atomic uint64_t *from)
{
	return atomic_load_explicit(from, memory_order_relaxed);
}

static double
ratio(uint64_t part, uint64_t whole)
{
	if (whole == 0)
		return -1;
	return part >= whole ? 1 : (double)part / (double)whole;
}

/* How far the present phase is, or -1. */
static double
phase_share(enum rebuild_phase phase, const struct rebuild_progress *raw)
{
	double bytes;

	switch (phase) {
	case PHASE_READ:
		bytes = ratio(load(&raw->bytes_read), load(&raw->bytes_total));
		return bytes >= 0
		    ? bytes
		    : ratio(load(&raw->elements), load(&raw->expected));
	case PHASE_MAKE:
	case PHASE_MERGE:
		return ratio(load(&raw->chunks_done), load(&raw->chunks_total));
	default:
		return 0;
	}
}

void
progress_read(
    struct progress *p, const struct rebuild_progress *raw, uint64_t now_ns)
{
	uint64_t began_ns = load(&raw->began_ns);
	double seconds = 0, part;
	int phase;

	phase = atomic_load_explicit(&raw->phase, memory_order_relaxed);
	*p = (struct progress){
	    .phase = PHASE_IDLE, .share = -1, .seconds_left = -1};
	if (phase <= PHASE_IDLE || phase > PHASE_RETIRE)
		return;
	p->phase = (enum rebuild_phase)phase;
	/* The counts are still those of the build before. */
	if (phase == PHASE_QUEUED)
		return;
	p->elements = load(&raw->elements);
	if (began_ns != 0 && now_ns > began_ns)
		seconds = (double)(now_ns - began_ns) / 1e9;
	if (seconds > 0 && p->elements > 0)
		p->rate = (double)p->elements / seconds;
	part = phase_share(p->phase, raw);
	/* A source of unknown length has no share until it is read. */
	if (part < 0)
		return;
	p->share = spans[phase].from +
	    part * (spans[phase].to - spans[phase].from);
	if (p->share > 0.05 && seconds > 1)
		p->seconds_left = seconds * (1 - p->share) / p->share;
}
