/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a person wants to know of a running rebuild, worked out from the raw
 * counts that the rebuild thread leaves in the filter: share done, rate, time
 * left. Pure. Any thread.
 */
#ifndef FILTER_PROGRESS_H
#define FILTER_PROGRESS_H

#include <stdint.h>

#include "filter/filter.h"

struct progress {
	enum rebuild_phase phase;
	uint64_t elements;   /* of the source, read so far */
	double rate;         /* elements a second; 0 before the first second */
	double share;        /* 0 to 1; -1 unknown */
	double seconds_left; /* -1 unknown */
};

/* now_ns: clock_boot_ns(). */
void progress_read(
    struct progress *p, const struct rebuild_progress *raw, uint64_t now_ns);

#endif
