/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A generation's bits in memory, in Redis's bit order. It knows nothing of tags,
 * elements or Redis. One owner, one thread.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "filter/bits.h"

int
bits_init(struct bits *b, const struct geometry *g)
{
	uint64_t stride = geometry_tag_offset(g);

	check(g->shards > 0 && g->bits > 0);
	b->geometry = *g;
	b->stride = 0;
	b->data = NULL;
	if (stride > SIZE_MAX / g->shards)
		return -1;
	b->stride = (size_t)stride;
	/* Not core/mem's, which aborts; zero pages come from the kernel. */
	b->data = calloc(g->shards, b->stride);
	return b->data == NULL ? -1 : 0;
}

void
bits_fini(struct bits *b)
{
	free(b->data);
	b->data = NULL;
}

bool
bits_add(struct bits *b, const struct positions *p)
{
	uint8_t *shard;
	bool new = false;

	check(p->shard < b->geometry.shards && p->count <= HASHES_MAX);
	shard = b->data + (size_t)p->shard * b->stride;
	for (uint32_t i = 0; i < p->count; i++) {
		uint64_t bit = p->bit[i];
		uint8_t mask = (uint8_t)(0x80 >> (bit & 7));

		check(bit < b->geometry.bits);
		new |= (shard[bit >> 3] & mask) == 0;
		shard[bit >> 3] |= mask;
	}
	return new;
}

bool
bits_has(const struct bits *b, const struct positions *p)
{
	const uint8_t *shard;

	check(p->shard < b->geometry.shards && p->count <= HASHES_MAX);
	shard = bits_shard(b, p->shard);
	for (uint32_t i = 0; i < p->count; i++) {
		uint64_t bit = p->bit[i];

		check(bit < b->geometry.bits);
		if ((shard[bit >> 3] & (0x80 >> (bit & 7))) == 0)
			return false;
	}
	return true;
}

/* A word's bits counted within each of its bytes. */
static inline uint64_t
count_bytewise(uint64_t x)
{
	x -= x >> 1 & UINT64_C(0x5555555555555555);
	x = (x & UINT64_C(0x3333333333333333)) +
	    (x >> 2 & UINT64_C(0x3333333333333333));
	return (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
}

/* The sum of a word's bytes. */
static inline uint64_t
sum_bytes(uint64_t x)
{
	x = (x & UINT64_C(0x00ff00ff00ff00ff)) +
	    (x >> 8 & UINT64_C(0x00ff00ff00ff00ff));
	return x * UINT64_C(0x0001000100010001) >> 48;
}

static uint64_t
count(const uint8_t *p, size_t len)
{
	uint64_t total = 0, word, sums;

	while (len >= sizeof(word)) {
		/* 31 words: a byte's sum stays at or below 248. */
		size_t words = len / sizeof(word);

		if (words > 31)
			words = 31;
		len -= words * sizeof(word);
		for (sums = 0; words > 0; words--, p += sizeof(word)) {
			memcpy(&word, p, sizeof(word));
			sums += count_bytewise(word);
		}
		total += sum_bytes(sums);
	}
	if (len > 0) {
		word = 0;
		memcpy(&word, p, len);
		total += sum_bytes(count_bytewise(word));
	}
	return total;
}

uint64_t
bits_count(const struct bits *b, uint32_t shard, size_t offset, size_t len)
{
	check(shard < b->geometry.shards);
	check(offset <= b->stride && len <= b->stride - offset);
	return count(bits_shard(b, shard) + offset, len);
}

uint64_t
bits_count_all(const struct bits *b)
{
	return count(b->data, b->stride * b->geometry.shards);
}
