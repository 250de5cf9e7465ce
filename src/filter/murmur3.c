/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MurmurHash3 x64 128, from its public description: the hash of Guava's
 * BloomFilter and of every scheme's choice of shard. Not for elements that an
 * attacker chooses (scheme keyed is). Pure. Any thread.
 */
#include "config.h"

#include <endian.h>
#include <string.h>

#include "filter/murmur3.h"
#include "filter/scheme.h"

#define C1 UINT64_C(0x87c37b91114253d5)
#define C2 UINT64_C(0x4cf5ad432745937f)

static inline uint64_t
rotate(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static inline uint64_t
load(const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return le64toh(v);
}

/* The first n (1 to 7) bytes as the low end of a number. */
static inline uint64_t
load_part(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n-- > 0)
		v = v << 8 | p[n];
	return v;
}

static inline uint64_t
mix1(uint64_t k)
{
	return rotate(k * C1, 31) * C2;
}

static inline uint64_t
mix2(uint64_t k)
{
	return rotate(k * C2, 33) * C1;
}

static inline uint64_t
final_mix(uint64_t k)
{
	k ^= k >> 33;
	k *= UINT64_C(0xff51afd7ed558ccd);
	k ^= k >> 33;
	k *= UINT64_C(0xc4ceb9fe1a85ec53);
	k ^= k >> 33;
	return k;
}

void
murmur3_x64_128_wide(
    const void *data, size_t len, uint64_t seed, uint64_t out[2])
{
	const uint8_t *p = data;
	uint64_t h1 = seed, h2 = seed;
	size_t left = len;

	for (; left >= 16; left -= 16, p += 16) {
		h1 ^= mix1(load(p));
		h1 = (rotate(h1, 27) + h2) * 5 + 0x52dce729;
		h2 ^= mix2(load(p + 8));
		h2 = (rotate(h2, 31) + h1) * 5 + 0x38495ab5;
	}
	if (left >= 8) {
		h1 ^= mix1(load(p));
		if (left > 8)
			h2 ^= mix2(load_part(p + 8, left - 8));
	} else if (left > 0)
		h1 ^= mix1(load_part(p, left));

	h1 ^= len;
	h2 ^= len;
	h1 += h2;
	h2 += h1;
	h1 = final_mix(h1);
	h2 = final_mix(h2);
	h1 += h2;
	h2 += h1;
	out[0] = h1;
	out[1] = h2;
}

void
murmur3_x64_128(const void *data, size_t len, uint32_t seed, uint64_t out[2])
{
	murmur3_x64_128_wide(data, len, seed, out);
}
