/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sizing: how many bits, hashes and shards a capacity and an error rate need, and
 * how long a shard's string is. Formulas: DESIGN.md, "Shards" and "Sizing". Pure.
 * Any thread.
 */
#ifndef FILTER_GEOMETRY_H
#define FILTER_GEOMETRY_H

#include <stdint.h>

#include "core/err.h"
#include "filter/scheme.h"

/* The largest shard's string, tag included; tests set it at configure time. */
#ifndef SHARD_BYTES_MAX
#define SHARD_BYTES_MAX 131000
#endif
#define SHARD_BITS_MAX  (((uint64_t)SHARD_BYTES_MAX - 8) / 8 * 64)
#define SINGLE_BITS_MAX ((UINT64_C(1) << 32) - 64)
#define TAG_BYTES       8

/*
 * capacity 1 to 10^10, error_rate 1e-9 to 0.25. 0, or -1 with the reason (single
 * layout above SINGLE_BITS_MAX, poly without single).
 */
int geometry_plan(struct geometry *out, uint64_t capacity, double error_rate,
    enum scheme scheme, bool single, struct err *err)
    __attribute__((warn_unused_result));

/* Bytes of one shard before the tag: bits padded to a multiple of 64. */
static inline uint64_t
geometry_tag_offset(const struct geometry *g)
{
	return (g->bits + 63) / 64 * 8;
}
static inline uint64_t
geometry_shard_bytes(const struct geometry *g)
{
	return geometry_tag_offset(g) + TAG_BYTES;
}
/* All bits together, and all bytes in Redis. */
uint64_t geometry_total_bits(const struct geometry *g);
uint64_t geometry_total_bytes(const struct geometry *g);

/*
 * The false-positive rate to expect from a share of bits set (0 to 1): fill^k,
 * more under redisson, whose positions hang together (geometry.c).
 */
double geometry_rate_of_fill(const struct geometry *g, double fill);
/* The rate to expect once n elements are in. */
double geometry_rate_of_count(const struct geometry *g, double n);

/* True when what this program finds in meta can be used at all. */
bool geometry_valid(const struct geometry *g);

#endif
