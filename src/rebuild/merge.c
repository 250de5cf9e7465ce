/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Step 4: the local bits go into the building generation, chunk by chunk, in
 * order and paced. Adds that arrive meanwhile are in it already or come in
 * between; merge ORs, so nothing is taken away. Where the source is not fresh, the
 * bits of active are read into the local ones first. Rebuild thread.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "core/broken.h"
#include "core/check.h"
#include "rebuild/calls.h"

static void
show_chunks(struct build *b, uint64_t done, uint64_t all)
{
	struct rebuild_progress *p = &b->filter->progress;

	atomic_store_explicit(&p->chunks_done, done, memory_order_relaxed);
	atomic_store_explicit(&p->chunks_total, all, memory_order_relaxed);
}

static size_t
chunk_at(const struct build *b, uint64_t offset)
{
	uint64_t left = b->bits.stride - offset;

	return left < b->pace.chunk ? (size_t)left : b->pace.chunk;
}

static int
carry_chunk(struct build *b, uint32_t shard, uint64_t offset, size_t len)
{
	uint8_t *to = b->bits.data + (size_t)shard * b->bits.stride + offset;
	struct redisReply *reply;
	struct slice bytes;
	uint64_t round_trip;

	if (calls_read(b, b->carry->name, shard, offset, len, &reply, &bytes,
		&round_trip) != 0)
		return -1;
	for (size_t i = 0; i < len; i++)
		to[i] |= bytes.data[i];
	link_reply_free(reply);
	return build_sleep(b, pace_after(&b->pace, round_trip));
}

int
merge_carried(struct build *b)
{
	if (b->carry == NULL)
		return 0;
	/* fresh.c chose it for having the same bits. */
	check(b->carry->geometry.bits == b->geometry.bits &&
	    b->carry->geometry.shards == b->geometry.shards);
	for (uint32_t s = 0; s < b->geometry.shards; s++) {
		for (uint64_t at = 0; at < b->bits.stride;) {
			size_t len = chunk_at(b, at);

			if (carry_chunk(b, s, at, len) != 0 ||
			    build_tick(b) != 0)
				return -1;
			at += len;
		}
	}
	return 0;
}

static int
merge_chunk(struct build *b, uint32_t shard, uint64_t offset, size_t len)
{
	uint64_t local = bits_count(&b->bits, shard, offset, len);
	uint64_t set, round_trip;

	if (BROKEN_LAW(11) && shard == 0 && offset == 0) {
		memset(b->bits.data, 0, len);
		local = 0;
	}
	if (calls_merge(b, shard, offset, len, &set, &round_trip) != 0)
		return -1;
	if (set < local)
		return build_fail(b,
		    "merge of shard %" PRIu32 " at %" PRIu64 " left %" PRIu64
		    " bits set where %" PRIu64 " were sent",
		    shard, offset, set, local);
	return build_sleep(b, pace_after(&b->pace, round_trip));
}

int
merge_all(struct build *b)
{
	uint64_t all = (uint64_t)b->bits.stride * b->geometry.shards;

	show_chunks(b, 0, all);
	for (uint32_t s = 0; s < b->geometry.shards; s++) {
		for (uint64_t at = 0; at < b->bits.stride;) {
			size_t len = chunk_at(b, at);

			if (merge_chunk(b, s, at, len) != 0 ||
			    build_tick(b) != 0)
				return -1;
			at += len;
			show_chunks(b, s * (uint64_t)b->bits.stride + at, all);
		}
	}
	return 0;
}
