/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pacing of commands to Redis: see pace.h.
 */
#include "config.h"

#include "rebuild/pace.h"

#define PACE_WAIT_MAX_NS UINT64_C(1000000000)
#define PACE_SHARE_MIN   0.001 /* below it a build would not end */

void
pace_init(struct pace *p, double share, uint64_t chunk_bytes)
{
	p->share = share < 1 ? share : 1;
	if (!(p->share > PACE_SHARE_MIN))
		p->share = PACE_SHARE_MIN;
	p->chunk_max = (size_t)chunk_bytes / PACE_CHUNK_MIN * PACE_CHUNK_MIN;
	if (p->chunk_max < PACE_CHUNK_MIN)
		p->chunk_max = PACE_CHUNK_MIN;
	p->chunk = p->chunk_max;
	p->good = 0;
}

uint64_t
pace_after(struct pace *p, uint64_t round_trip_ns)
{
	double wait = (double)round_trip_ns * (1 / p->share - 1);

	if (round_trip_ns > PACE_SLOW_NS) {
		p->good = 0;
		p->chunk = p->chunk / 2 / PACE_CHUNK_MIN * PACE_CHUNK_MIN;
		if (p->chunk < PACE_CHUNK_MIN)
			p->chunk = PACE_CHUNK_MIN;
	} else if (p->chunk < p->chunk_max && ++p->good >= PACE_GROW) {
		p->good = 0;
		p->chunk *= 2;
		if (p->chunk > p->chunk_max)
			p->chunk = p->chunk_max;
	}
	/* A Redis that hung for seconds is no reason to stand still for more. */
	return wait < (double)PACE_WAIT_MAX_NS ? (uint64_t)wait
					       : PACE_WAIT_MAX_NS;
}
