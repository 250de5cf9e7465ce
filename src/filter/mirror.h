/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bloomgate's own copy of a generation's bits. Control loads it and puts into it
 * what events tell; workers put in their own acknowledged adds and read it without
 * locks. Bits only go 0 to 1, as in Redis, so the order in which they arrive does
 * not matter, and an element whose bits are all set is "maybe" at any time, of a
 * half-loaded mirror too. Absent may be said only while until_ns is ahead
 * (filter_judge_mirror is who says it).
 */
#ifndef FILTER_MIRROR_H
#define FILTER_MIRROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filter/geometry.h"

struct mirror {
	_Atomic unsigned references; /* partner: mirror_ref/unref, acq_rel */
	struct geometry geometry;
	uint8_t tag[TAG_BYTES]; /* of the generation that it copies */
	size_t shard_words;     /* 64-bit words of a shard */
	/*
	 * CLOCK_BOOTTIME ns until which it is close enough to Redis for an
	 * absent; 0 it is not. Stored by control (release), loaded by workers
	 * (acquire).
	 */
	_Atomic uint64_t until_ns;
	/* Read from Redis so far; control's, relaxed, to be shown. */
	_Atomic uint64_t loaded_bytes;
	/* private: bit i of a shard is bit 63 - i % 64 of its word i / 64. Set
	 * with release, read with acquire. */
	_Atomic uint64_t *words;
};

/* All zero, with one reference; NULL when the memory is not to be had (a big
 * filter is no reason to abort). */
struct mirror *mirror_new(
    const struct geometry *g, const uint8_t tag[TAG_BYTES]);
struct mirror *mirror_ref(struct mirror *m);
void mirror_unref(struct mirror *m); /* may be NULL */

/* True when it copies the generation with this tag and geometry. */
bool mirror_is_of(const struct mirror *m, const struct geometry *g,
    const uint8_t tag[TAG_BYTES]);

/*
 * ORs len bytes of a shard's string into it; offset is a multiple of 8, len too,
 * and both end before the tag.
 */
void mirror_load(struct mirror *m, uint32_t shard, size_t offset,
    const uint8_t *bytes, size_t len);
/* Sets an element's bits; has: true when all of them are set. */
void mirror_add(struct mirror *m, const struct positions *p);
bool mirror_has(const struct mirror *m, const struct positions *p);

/* Bytes of its bits: what a whole load reads, without tags. */
uint64_t mirror_bytes(const struct mirror *m);

#endif
