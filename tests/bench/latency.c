/* SPDX-License-Identifier: BSD-2-Clause */
/* A histogram of latencies; see latency.h. */
#include "config.h"

#include <stddef.h>

#include "latency.h"

/* Values below 2 x LATENCY_SUB have a bucket each, above it 64 an octave. */
static size_t
bucket_of(uint64_t ns)
{
	unsigned shift;

	if (ns < 2 * LATENCY_SUB)
		return ns;
	shift = 63U - (unsigned)__builtin_clzll(ns) - 6;
	return (size_t)shift * LATENCY_SUB + (size_t)(ns >> shift);
}

/* The largest value of a bucket. */
static uint64_t
bucket_top(size_t i)
{
	unsigned shift;

	if (i < 2 * LATENCY_SUB)
		return i;
	shift = (unsigned)(i / LATENCY_SUB) - 1;
	return ((i - (size_t)shift * LATENCY_SUB + 1) << shift) - 1;
}

void
latency_add(struct latency *l, uint64_t ns, uint64_t count)
{
	l->buckets[bucket_of(ns)] += count;
	l->count += count;
	if (ns > l->max_ns)
		l->max_ns = ns;
}

uint64_t
latency_quantile(const struct latency *l, double q)
{
	uint64_t seen = 0;

	for (size_t i = 0; i < sizeof(l->buckets) / sizeof(*l->buckets); i++) {
		seen += l->buckets[i];
		if (seen > 0 && (double)seen >= q * (double)l->count)
			return bucket_top(i) < l->max_ns ? bucket_top(i)
							 : l->max_ns;
	}
	return l->max_ns;
}
