/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HighwayHash-128, written from its description in words (WIRE.md, Redisson):
 * four lanes of four 64-bit words, a packet of 32 bytes at a time. Pure. Any
 * thread.
 */
#include "config.h"

#include <endian.h>
#include <string.h>

#include "filter/scheme.h"

#define LANES        4
#define PACKET_BYTES 32

struct highway {
	uint64_t v0[LANES], v1[LANES];
	uint64_t mul0[LANES], mul1[LANES];
};

static const uint64_t init0[LANES] = {
    UINT64_C(0xdbe6d5d5fe4cce2f),
    UINT64_C(0xa4093822299f31d0),
    UINT64_C(0x13198a2e03707344),
    UINT64_C(0x243f6a8885a308d3),
};
static const uint64_t init1[LANES] = {
    UINT64_C(0x3bd39e10cb0ef593),
    UINT64_C(0xc0acf169b5f18a8c),
    UINT64_C(0xbe5466cf34e90c6c),
    UINT64_C(0x452821e638d01377),
};

static inline uint64_t
swap_halves(uint64_t x)
{
	return x << 32 | x >> 32;
}

/* Byte n (0 the lowest) of x, moved to place to. */
#define MOVE(x, n, to)                                                         \
	((to) >= (n) ? ((x)&UINT64_C(0xff) << 8 * (n))                         \
		    << 8 * ((to) >= (n) ? (to) - (n) : 0)                      \
		     : ((x)&UINT64_C(0xff) << 8 * (n)) >>                      \
		    8 * ((to) >= (n) ? 0 : (n) - (to)))

/*
 * Adds the zip of a pair of lanes a, b to another pair: of their 16 bytes
 * (0 to 7 in a, 8 to 15 in b) those numbered 3 12 2 5 14 1 15 0 make the first
 * word and 11 4 10 13 9 6 8 7 the second.
 */
static inline void
add_zip(uint64_t *to, uint64_t a, uint64_t b)
{
	to[0] += MOVE(a, 3, 0) | MOVE(b, 4, 1) | MOVE(a, 2, 2) | MOVE(a, 5, 3) |
	    MOVE(b, 6, 4) | MOVE(a, 1, 5) | MOVE(b, 7, 6) | MOVE(a, 0, 7);
	to[1] += MOVE(b, 3, 0) | MOVE(a, 4, 1) | MOVE(b, 2, 2) | MOVE(b, 5, 3) |
	    MOVE(b, 1, 4) | MOVE(a, 6, 5) | MOVE(b, 0, 6) | MOVE(a, 7, 7);
}

static inline void
update(struct highway *h, const uint64_t packet[LANES])
{
	for (int i = 0; i < LANES; i++) {
		h->v1[i] += h->mul0[i] + packet[i];
		h->mul0[i] ^= (h->v1[i] & UINT32_MAX) * (h->v0[i] >> 32);
		h->v0[i] += h->mul1[i];
		h->mul1[i] ^= (h->v0[i] & UINT32_MAX) * (h->v1[i] >> 32);
	}
	for (int i = 0; i < LANES; i += 2) {
		add_zip(h->v0 + i, h->v1[i], h->v1[i + 1]);
		add_zip(h->v1 + i, h->v0[i], h->v0[i + 1]);
	}
}

static inline void
update_bytes(struct highway *h, const uint8_t *p)
{
	uint64_t packet[LANES];

	memcpy(packet, p, sizeof(packet));
	for (int i = 0; i < LANES; i++)
		packet[i] = le64toh(packet[i]);
	update(h, packet);
}

static inline uint32_t
rotate32(uint32_t x, unsigned n)
{
	return x << n | x >> (32 - n);
}

/* The last r bytes, 1 to 31. */
static void
update_tail(struct highway *h, const uint8_t *p, unsigned r)
{
	uint8_t packet[PACKET_BYTES] = {0};
	unsigned whole = r & ~3U, rest = r & 3;

	for (int i = 0; i < LANES; i++) {
		h->v0[i] += ((uint64_t)r << 32) + r;
		h->v1[i] = (uint64_t)rotate32(h->v1[i] >> 32, r) << 32 |
		    rotate32((uint32_t)h->v1[i], r);
	}
	memcpy(packet, p, whole);
	if (r >= 16)
		memcpy(packet + 28, p + r - 4, 4);
	else if (rest > 0) {
		packet[16] = p[whole];
		packet[17] = p[whole + (rest >> 1)];
		packet[18] = p[r - 1];
	}
	update_bytes(h, packet);
}

void
highway_128(
    const uint64_t key[4], const void *data, size_t len, uint64_t out[2])
{
	const uint8_t *p = data;
	struct highway h;

	for (int i = 0; i < LANES; i++) {
		h.mul0[i] = init0[i];
		h.mul1[i] = init1[i];
		h.v0[i] = init0[i] ^ key[i];
		h.v1[i] = init1[i] ^ swap_halves(key[i]);
	}
	for (; len >= PACKET_BYTES; len -= PACKET_BYTES, p += PACKET_BYTES)
		update_bytes(&h, p);
	if (len > 0)
		update_tail(&h, p, (unsigned)len);
	for (int i = 0; i < 6; i++) {
		uint64_t packet[LANES] = {
		    swap_halves(h.v0[2]),
		    swap_halves(h.v0[3]),
		    swap_halves(h.v0[0]),
		    swap_halves(h.v0[1]),
		};

		update(&h, packet);
	}
	out[0] = h.v0[0] + h.mul0[0] + h.v1[2] + h.mul1[2];
	out[1] = h.v0[1] + h.mul0[1] + h.v1[3] + h.mul1[3];
}
