/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mirror's bits: atomic words, nothing else. It knows nothing of Redis, events
 * or time. Which thread may call what: mirror.h.
 */
#include "config.h"

#include <endian.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/mem.h"
#include "filter/mirror.h"

#define WORD_BYTES 8

struct mirror *
mirror_new(const struct geometry *g, const uint8_t tag[TAG_BYTES])
{
	uint64_t words = geometry_tag_offset(g) / WORD_BYTES;
	struct mirror *m;

	check(g->shards > 0 && words > 0);
	if (words > SIZE_MAX / WORD_BYTES / g->shards)
		return NULL;
	m = mem_zalloc(1, sizeof(*m));
	atomic_init(&m->references, 1);
	m->geometry = *g;
	memcpy(m->tag, tag, TAG_BYTES);
	m->shard_words = (size_t)words;
	/* Not core/mem's, which aborts; zero pages come from the kernel. */
	m->words = calloc((size_t)words * g->shards, WORD_BYTES);
	if (m->words == NULL) {
		free(m);
		return NULL;
	}
	return m;
}

struct mirror *
mirror_ref(struct mirror *m)
{
	unsigned before = atomic_fetch_add_explicit(
	    &m->references, 1, memory_order_acq_rel);

	check(before > 0);
	return m;
}

void
mirror_unref(struct mirror *m)
{
	unsigned before;

	if (m == NULL)
		return;
	before = atomic_fetch_sub_explicit(
	    &m->references, 1, memory_order_acq_rel);
	check(before > 0);
	if (before == 1) {
		free(m->words);
		free(m);
	}
}

bool
mirror_is_of(const struct mirror *m, const struct geometry *g,
    const uint8_t tag[TAG_BYTES])
{
	const struct geometry *own = &m->geometry;

	return memcmp(m->tag, tag, TAG_BYTES) == 0 &&
	    own->scheme == g->scheme && own->single == g->single &&
	    own->shards == g->shards && own->bits == g->bits &&
	    own->hashes == g->hashes;
}

static void
set(_Atomic uint64_t *word, uint64_t bits)
{
	/* Most bits of an add are set already, and reading is cheaper. */
	if ((atomic_load_explicit(word, memory_order_relaxed) & bits) != bits)
		atomic_fetch_or_explicit(word, bits, memory_order_release);
}

void
mirror_load(struct mirror *m, uint32_t shard, size_t offset,
    const uint8_t *bytes, size_t len)
{
	_Atomic uint64_t *word;

	check(shard < m->geometry.shards);
	check(offset % WORD_BYTES == 0 && len % WORD_BYTES == 0);
	check(offset / WORD_BYTES <= m->shard_words &&
	    len / WORD_BYTES <= m->shard_words - offset / WORD_BYTES);
	word = m->words + (size_t)shard * m->shard_words + offset / WORD_BYTES;
	for (size_t i = 0; i < len; i += WORD_BYTES, word++) {
		uint64_t bits;

		memcpy(&bits, bytes + i, WORD_BYTES);
		if (bits != 0)
			set(word, be64toh(bits));
	}
}

static _Atomic uint64_t *
word_of(const struct mirror *m, const struct positions *p, uint32_t i,
    uint64_t *mask)
{
	uint64_t bit = p->bit[i];

	check(p->shard < m->geometry.shards && bit < m->geometry.bits);
	*mask = UINT64_C(1) << (63 - bit % 64);
	return m->words + (size_t)p->shard * m->shard_words + bit / 64;
}

void
mirror_add(struct mirror *m, const struct positions *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		uint64_t mask;
		_Atomic uint64_t *word = word_of(m, p, i, &mask);

		set(word, mask);
	}
}

bool
mirror_has(const struct mirror *m, const struct positions *p)
{
	for (uint32_t i = 0; i < p->count; i++) {
		uint64_t mask;
		_Atomic uint64_t *word = word_of(m, p, i, &mask);

		if ((atomic_load_explicit(word, memory_order_acquire) & mask) ==
		    0)
			return false;
	}
	return true;
}

uint64_t
mirror_bytes(const struct mirror *m)
{
	return (uint64_t)m->shard_words * WORD_BYTES * m->geometry.shards;
}
