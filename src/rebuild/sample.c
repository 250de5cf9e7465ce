/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reservoir sampling of elements' positions: see sample.h.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/mem.h"
#include "core/random.h"
#include "rebuild/sample.h"

/* splitmix64: statistics need no more, and the kernel is not asked each time. */
static uint64_t
draw(struct sample *s)
{
	uint64_t z = s->random += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Above 0, below 1. */
static double
draw_unit(struct sample *s)
{
	return ((double)(draw(s) >> 11) + 0.5) * 0x1p-53;
}

static void
skip(struct sample *s)
{
	double gap;

	s->weight *= exp(log(draw_unit(s)) / (double)s->max);
	gap = floor(log(draw_unit(s)) / log1p(-s->weight));
	/* Past any stream that ends: 2^62 elements. */
	s->next = s->seen + 1 +
	    (gap < 0x1p62 ? (uint64_t)gap : UINT64_C(1) << 62);
}

void
sample_init(struct sample *s, size_t max, uint32_t hashes)
{
	*s = (struct sample){
	    .max = max, .hashes = hashes, .weight = 1, .random = random_u64()};
	s->shard = mem_zalloc(max, sizeof(*s->shard));
	s->bit = mem_zalloc(max * hashes, sizeof(*s->bit));
}

void
sample_fini(struct sample *s)
{
	free(s->shard);
	free(s->bit);
	*s = (struct sample){0};
}

void
sample_take(struct sample *s, const struct positions *p)
{
	size_t at = s->count < s->max ? s->count++ : draw(s) % s->max;

	check(p->count == s->hashes);
	s->shard[at] = p->shard;
	for (uint32_t i = 0; i < s->hashes; i++)
		s->bit[at * s->hashes + i] = (uint32_t)p->bit[i];
	if (s->count == s->max)
		skip(s);
}
