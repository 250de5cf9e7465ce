/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A uniform random sample of a stream of elements, kept as the positions of their
 * bits (reservoir sampling, algorithm L of Li 1994: most elements cost one
 * comparison). Pure. One owner.
 */
#ifndef REBUILD_SAMPLE_H
#define REBUILD_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "filter/scheme.h"

struct sample {
	size_t max, count;
	uint32_t hashes;
	uint32_t *shard; /* one each, owned */
	uint32_t *bit;   /* hashes each, owned; below 2^32 in any layout */
	uint64_t seen;   /* elements offered */
	uint64_t next;   /* the one to take once max are held */
	double weight;   /* algorithm L's W */
	uint64_t random; /* state of its generator */
};

void sample_init(struct sample *s, size_t max, uint32_t hashes);
void sample_fini(struct sample *s);
void sample_take(struct sample *s, const struct positions *p);

static inline void
sample_offer(struct sample *s, const struct positions *p)
{
	if (s->count < s->max || s->seen == s->next)
		sample_take(s, p);
	s->seen++;
}

#endif
