/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much of Redis's time a build takes: the size of its chunks and the pauses
 * between them. A script cannot measure itself (TIME is frozen in it), so the
 * round trip stands for the time Redis spent; that errs to the polite side.
 * Pure. One owner.
 */
#ifndef REBUILD_PACE_H
#define REBUILD_PACE_H

#include <stddef.h>
#include <stdint.h>

#define PACE_CHUNK_MIN 4096
#define PACE_SLOW_NS   1000000 /* a round trip above it halves the chunk */
#define PACE_GROW      16      /* good ones in a row that double it again */

struct pace {
	double share; /* of Redis's time, above 0 to 1 */
	size_t chunk; /* bytes, a multiple of PACE_CHUNK_MIN */
	size_t chunk_max;
	unsigned good; /* round trips in a row that were fast */
};

void pace_init(struct pace *p, double share, uint64_t chunk_bytes);
/* Takes note of a round trip; returns the ns to wait before the next. */
uint64_t pace_after(struct pace *p, uint64_t round_trip_ns);

#endif
