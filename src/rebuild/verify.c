/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Step 5: does Redis really hold what was sent? The whole generation is read back,
 * chunk by chunk and paced, and held against three things: every local bit is set;
 * the sampled source elements are all present; of random others no more are
 * present than the measured fill predicts. Asking Redis about each sample instead
 * (30,000 BITFIELD_RO) would cost it many times what reading 1.2 MB a million
 * elements does, and prove less.
 *
 * The samples' bits are sorted into buckets of BUCKET_BITS, so that a chunk needs
 * only those that lie in it and memory stays at one chunk. Rebuild thread.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/check.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/random.h"
#include "rebuild/calls.h"

#define VERIFY_OTHERS 20000
#define BUCKET_BYTES  PACE_CHUNK_MIN /* chunks are multiples of it */
#define BUCKET_BITS   (BUCKET_BYTES * UINT64_C(8))

struct probe_bit {
	uint32_t probe; /* index of the sample, then of the random others */
	uint32_t bit;   /* in its shard */
};

struct verify {
	struct build *build; /* borrowed */
	size_t probes;
	bool *clear;            /* probe: one of its bits is not set; owned */
	struct probe_bit *bits; /* sorted by bucket, owned */
	size_t *start;          /* of each bucket in bits, one more; owned */
	uint32_t shard_buckets; /* buckets of a shard */
	struct sample others;   /* owned */
};

/*
 * 128 random bits and a text that no source has: none of them is an element but
 * with a probability that can be neglected.
 */
static void
draw_others(struct verify *v)
{
	struct build *b = v->build;
	struct positions p;
	char text[64];

	sample_init(&v->others, VERIFY_OTHERS, b->geometry.hashes);
	for (size_t i = 0; i < VERIFY_OTHERS; i++) {
		int n = snprintf(text, sizeof(text),
		    "bloomgate-verify:%016" PRIx64 "%016" PRIx64, random_u64(),
		    random_u64());

		check(scheme_positions(&b->geometry, &b->filter->key,
			  slice_of(text, (size_t)n), &p) == 0);
		sample_offer(&v->others, &p);
	}
}

static size_t
bucket_of(const struct verify *v, uint32_t shard, uint32_t bit)
{
	return (size_t)shard * v->shard_buckets + bit / BUCKET_BITS;
}

/* Counting sort: first the sizes, one place on, then the bits. */
static void
count_bits(struct verify *v, const struct sample *s)
{
	for (size_t i = 0; i < s->count * s->hashes; i++)
		v->start[bucket_of(v, s->shard[i / s->hashes], s->bit[i]) +
		    1]++;
}

static void
place_bits(struct verify *v, const struct sample *s, size_t first, size_t *next)
{
	for (size_t i = 0; i < s->count * s->hashes; i++) {
		size_t probe = i / s->hashes;
		size_t at = next[bucket_of(v, s->shard[probe], s->bit[i])]++;

		v->bits[at] = (struct probe_bit){
		    .probe = (uint32_t)(first + probe), .bit = s->bit[i]};
	}
}

static void
sort_bits(struct verify *v)
{
	const struct sample *source = &v->build->sample;
	size_t buckets = (size_t)v->build->geometry.shards * v->shard_buckets;
	size_t *next;

	v->start = mem_zalloc(buckets + 1, sizeof(*v->start));
	v->bits = mem_zalloc(
	    v->probes * v->build->geometry.hashes + 1, sizeof(*v->bits));
	v->clear = mem_zalloc(v->probes, sizeof(*v->clear));
	count_bits(v, source);
	count_bits(v, &v->others);
	for (size_t i = 0; i < buckets; i++)
		v->start[i + 1] += v->start[i];
	next = mem_dup(v->start, (buckets + 1) * sizeof(*next));
	place_bits(v, source, 0, next);
	place_bits(v, &v->others, source->count, next);
	free(next);
}

static void
look_at_probes(struct verify *v, uint32_t shard, uint64_t offset,
    const uint8_t *bytes, size_t len)
{
	size_t first = bucket_of(v, shard, 0) + offset / BUCKET_BYTES;
	size_t last = first + (len + BUCKET_BYTES - 1) / BUCKET_BYTES;

	for (size_t i = v->start[first]; i < v->start[last]; i++) {
		uint64_t bit = v->bits[i].bit - offset * 8;

		if (!(bytes[bit / 8] & 0x80 >> bit % 8))
			v->clear[v->bits[i].probe] = true;
	}
}

static uint64_t
word_at(const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, sizeof(w)); /* any byte order: only bits are compared */
	return w;
}

/* Every local bit is there; counts what is. len is a multiple of 8. */
static int
look_at_bits(struct verify *v, uint32_t shard, uint64_t offset,
    const uint8_t *bytes, size_t len)
{
	struct build *b = v->build;
	const uint8_t *local = bits_shard(&b->bits, shard) + offset;
	uint64_t missing = 0;

	for (size_t i = 0; i < len; i += 8) {
		uint64_t there = word_at(bytes + i);

		missing |= word_at(local + i) & ~there;
		b->bits_set += (uint64_t)__builtin_popcountll(there);
	}
	if (missing == 0)
		return 0;
	return build_fail(b,
	    "verification: bits that were sent are not set in shard %" PRIu32
	    " at %" PRIu64,
	    shard, offset);
}

static int
look_at_shard(struct verify *v, uint32_t shard)
{
	struct build *b = v->build;
	struct rebuild_progress *p = &b->filter->progress;

	for (uint64_t at = 0; at < b->bits.stride;) {
		uint64_t left = b->bits.stride - at, round_trip;
		size_t len = left < b->pace.chunk ? (size_t)left
						  : b->pace.chunk;
		struct redisReply *reply;
		struct slice bytes;
		int rc;

		if (calls_read(b, b->name, shard, at, len, &reply, &bytes,
			&round_trip) != 0)
			return -1;
		look_at_probes(v, shard, at, bytes.data, len);
		rc = look_at_bits(v, shard, at, bytes.data, len);
		link_reply_free(reply);
		if (rc != 0 || build_tick(b) != 0 ||
		    build_sleep(b, pace_after(&b->pace, round_trip)) != 0)
			return -1;
		at += len;
		atomic_fetch_add_explicit(
		    &p->chunks_done, len, memory_order_relaxed);
	}
	return 0;
}

/*
 * The rate to expect. guava-hashcode makes 32 bits of an element: below that no
 * fill tells the rate.
 */
static double
expected_rate(const struct build *b)
{
	double all = (double)geometry_total_bits(&b->geometry);
	double f = geometry_rate_of_fill(
	    &b->geometry, (double)b->bits_set / all);

	if (b->geometry.scheme == SCHEME_GUAVA_HASHCODE)
		f += (double)b->elements / 4294967296.0;
	return f < 1 ? f : 1;
}

static int
judge_others(struct verify *v, size_t present)
{
	struct build *b = v->build;
	double f = expected_rate(b), mean = VERIFY_OTHERS * f;
	double limit = mean + 4 * sqrt(mean) + 5;

	if (f > 2 * b->settings->error_rate)
		log_warn("rebuild_rate_high",
		    LOG_STR("filter", b->filter->name),
		    LOG_DOUBLE("expected", f),
		    LOG_DOUBLE("configured", b->settings->error_rate));
	if ((double)present <= limit)
		return 0;
	/* The six hashes of poly depend on each other: no rate is promised. */
	if (b->geometry.scheme == SCHEME_POLY) {
		log_warn("rebuild_rate_high",
		    LOG_STR("filter", b->filter->name),
		    LOG_INT("present", present), LOG_INT("of", VERIFY_OTHERS));
		return 0;
	}
	return build_fail(b,
	    "verification: %zu of %d random elements are present, at most %.0f "
	    "may be",
	    present, VERIFY_OTHERS, limit);
}

static int
judge(struct verify *v)
{
	struct build *b = v->build;
	size_t missing = 0, present = 0;

	for (size_t i = 0; i < v->probes; i++) {
		if (i < b->sample.count)
			missing += v->clear[i];
		else
			present += !v->clear[i];
	}
	if (missing > 0)
		return build_fail(b,
		    "verification: %zu of %zu sampled elements are missing",
		    missing, b->sample.count);
	return judge_others(v, present);
}

int
verify_all(struct build *b)
{
	struct verify v = {.build = b};
	int rc = 0;

	b->bits_set = 0;
	v.probes = b->sample.count + VERIFY_OTHERS;
	v.shard_buckets = (uint32_t)((b->bits.stride + BUCKET_BYTES - 1) /
	    BUCKET_BYTES);
	draw_others(&v);
	sort_bits(&v);
	atomic_store_explicit(&b->filter->progress.chunks_total,
	    (uint64_t)b->bits.stride * b->geometry.shards,
	    memory_order_relaxed);
	for (uint32_t s = 0; s < b->geometry.shards && rc == 0; s++)
		rc = look_at_shard(&v, s);
	if (rc == 0)
		rc = judge(&v);
	sample_fini(&v.others);
	free(v.start);
	free(v.bits);
	free(v.clear);
	return rc;
}
