/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A whole generation's bits in memory, shard after shard, each as its string in
 * Redis without the tag (Redis bit order: offset 0 is the top bit of byte 0).
 * One owner, one thread.
 */
#ifndef FILTER_BITS_H
#define FILTER_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter/geometry.h"

struct bits {
	struct geometry geometry;
	size_t stride; /* bytes of a shard = geometry_tag_offset() */
	uint8_t *data; /* stride * shards bytes, owned */
};

/* 0, or -1 when the memory is not to be had (a big filter is no reason to
 * abort). Starts all zero. */
int bits_init(struct bits *b, const struct geometry *g)
    __attribute__((warn_unused_result));
void bits_fini(struct bits *b);

/* Sets an element's bits; true when at least one was new. */
bool bits_add(struct bits *b, const struct positions *p);
/* True when all of an element's bits are set. */
bool bits_has(const struct bits *b, const struct positions *p);
static inline const uint8_t *
bits_shard(const struct bits *b, uint32_t shard)
{
	return b->data + (size_t)shard * b->stride;
}
/* Bits set in len bytes from offset of a shard. */
uint64_t bits_count(
    const struct bits *b, uint32_t shard, size_t offset, size_t len);
uint64_t bits_count_all(const struct bits *b);

#endif
