/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Latencies counted in buckets that are 1/64 wide of their value, so that a
 * percentile is off by less than two per cent. One thread.
 */
#ifndef BENCH_LATENCY_H
#define BENCH_LATENCY_H

#include <stdint.h>

#define LATENCY_SUB 64 /* buckets an octave */

struct latency {
	uint64_t count;
	uint64_t max_ns;
	uint64_t buckets[64 * LATENCY_SUB];
};

/* Adds count observations of ns. */
void latency_add(struct latency *l, uint64_t ns, uint64_t count);
/* The value that the share q (0 to 1) of all does not pass, in ns; 0 if none. */
uint64_t latency_quantile(const struct latency *l, double q);

#endif
