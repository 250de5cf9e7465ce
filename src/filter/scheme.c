/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The six ways from an element to its bits (DESIGN.md, table of schemes) and the
 * choice of its shard, which all of them share. It sets and reads no bit. Pure
 * but for the reading of a key file. Any thread.
 */
#include "config.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/check.h"
#include "core/mem.h"
#include "filter/murmur3.h"
#include "filter/scheme.h"
#include "filter/utf.h"

#define LOW_63 (UINT64_MAX >> 1)

/* Redisson's fixed key (WIRE.md). */
static const uint64_t redisson_key[4] = {
    UINT64_C(0x9e3779b97f4a7c15),
    UINT64_C(0xf39cc0605cedc834),
    UINT64_C(0x1082276bf3a27251),
    UINT64_C(0xf86c6a11d0c18e95),
};

static const uint32_t poly_seeds[POLY_HASHES] = {3, 7, 11, 13, 31, 37};

static const char *const names[SCHEME_COUNT] = {
    [SCHEME_GUAVA] = "guava",
    [SCHEME_GUAVA_SEEDED] = "guava-seeded",
    [SCHEME_GUAVA_HASHCODE] = "guava-hashcode",
    [SCHEME_REDISSON] = "redisson",
    [SCHEME_POLY] = "poly",
    [SCHEME_KEYED] = "keyed",
};

const char *
scheme_name(enum scheme s)
{
	return (unsigned)s < SCHEME_COUNT ? names[s] : NULL;
}

int
scheme_parse(struct slice name, enum scheme *out)
{
	for (unsigned i = 0; i < SCHEME_COUNT; i++)
		if (slice_is(name, names[i])) {
			*out = (enum scheme)i;
			return 0;
		}
	return -1;
}

/* Fills buf from fd; the bytes got (less than size only at the end), or -1. */
static ssize_t
read_full(int fd, uint8_t *buf, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = read(fd, buf + len, size - len);

		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -1;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

int
scheme_key_load(struct scheme_key *key, const char *path, struct err *err)
{
	uint8_t raw[SCHEME_KEY_LEN + 1]; /* one more: to see a longer file */
	ssize_t n;
	int fd, saved;

	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd == -1)
		return err_set(err, "key file %s: %s", path, strerror(errno));
	n = read_full(fd, raw, sizeof(raw));
	saved = errno;
	close(fd);
	if (n == SCHEME_KEY_LEN) {
		memcpy(key->lanes, raw, SCHEME_KEY_LEN);
		for (int i = 0; i < 4; i++)
			key->lanes[i] = le64toh(key->lanes[i]);
	}
	mem_wipe(raw, sizeof(raw));
	if (n == -1)
		return err_set(err, "key file %s: %s", path, strerror(saved));
	if (n > SCHEME_KEY_LEN)
		return err_set(err,
		    "key file %s: more than %d bytes (raw bytes, no newline)",
		    path, SCHEME_KEY_LEN);
	if (n < SCHEME_KEY_LEN)
		return err_set(err, "key file %s: %zd bytes, %d are needed",
		    path, n, SCHEME_KEY_LEN);
	return 0;
}

void
scheme_key_fingerprint(
    const struct scheme_key *key, struct slice text, char out[33])
{
	uint64_t h[2];
	int n;

	highway_128(key->lanes, text.data, text.len, h);
	n = snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, h[0], h[1]);
	check(n == 32);
}

/*
 * x mod m by multiplication: the division, by far the dearest part of a
 * position, is done once an element. inverse = floor((2^64 - 1) / m), hence the
 * estimated quotient is the true one or one less, for every x.
 */
struct reducer {
	uint64_t m;
	uint64_t inverse;
};

static inline uint64_t
reduce(const struct reducer *r, uint64_t x)
{
	uint64_t quotient = (uint64_t)(((unsigned __int128)x * r->inverse) >>
	    64);
	uint64_t rest = x - quotient * r->m;

	return rest >= r->m ? rest - r->m : rest;
}

/* Java's Math.floorMod(long, long), for m above 0. */
static inline uint64_t
floor_mod(const struct reducer *r, uint64_t bits)
{
	uint64_t rest;

	if (bits <= LOW_63)
		return reduce(r, bits);
	rest = reduce(r, -bits); /* of the magnitude, 1 to 2^63 */
	return rest == 0 ? 0 : r->m - rest;
}

/* Java's Math.abs(long): the least number stays as it is. */
static inline uint64_t
java_abs(uint64_t bits)
{
	return bits > LOW_63 ? -bits : bits;
}

static void
positions_double(
    const struct reducer *r, const uint64_t h[2], struct positions *out)
{
	uint64_t acc = h[0];

	for (uint32_t i = 0; i < out->count; i++) {
		out->bit[i] = reduce(r, acc & LOW_63);
		acc += h[1];
	}
}

static void
positions_redisson(
    const struct reducer *r, struct slice element, struct positions *out)
{
	uint64_t h[2], acc;

	highway_128(redisson_key, element.data, element.len, h);
	acc = h[0];
	for (uint32_t i = 0; i < out->count; i++) {
		out->bit[i] = reduce(r, acc & LOW_63);
		acc += i % 2 == 0 ? h[1] : h[0];
	}
}

static void
positions_seeded(
    const struct reducer *r, struct slice element, struct positions *out)
{
	uint64_t h[2];

	for (uint32_t i = 0; i < out->count; i++) {
		murmur3_x64_128(element.data, element.len, i, h);
		out->bit[i] = floor_mod(r, h[0]);
	}
}

static int
positions_hashcode(
    const struct reducer *r, struct slice element, struct positions *out)
{
	uint64_t seed, number, h[2];
	uint32_t code = 0;
	uint16_t units[2];
	int n;

	while ((n = utf_next(&element, units)) > 0)
		for (int i = 0; i < n; i++)
			code = code * 31 + units[i];
	if (n == -1)
		return -1;
	seed = code;
	if (code > INT32_MAX) /* a negative int of Java, sign-extended */
		seed |= UINT64_C(0xffffffff) << 32;
	for (uint32_t i = 0; i < out->count; i++) {
		number = htole64(i);
		murmur3_x64_128_wide(&number, sizeof(number), seed, h);
		out->bit[i] = floor_mod(r, java_abs(h[0]));
	}
	return 0;
}

static int
positions_poly(struct slice element, struct positions *out)
{
	uint64_t sum[POLY_HASHES] = {0};
	uint16_t units[2];
	int n;

	/* Only the low 28 bits count: it may wrap on the way. */
	while ((n = utf_next(&element, units)) > 0)
		for (int i = 0; i < n; i++)
			for (int j = 0; j < POLY_HASHES; j++)
				sum[j] = sum[j] * poly_seeds[j] + units[i];
	if (n == -1)
		return -1;
	for (int j = 0; j < POLY_HASHES; j++)
		out->bit[j] = sum[j] & (POLY_BITS - 1);
	return 0;
}

/* The shard's own hash: independent of the positions inside it. */
static uint32_t
choose_shard(const struct geometry *g, const struct scheme_key *key,
    struct slice element)
{
	uint64_t h[2];

	if (g->shards == 1)
		return 0;
	if (g->scheme == SCHEME_KEYED) {
		uint64_t lanes[4];

		memcpy(lanes, key->lanes, sizeof(lanes));
		lanes[0] ^= SHARD_SEED;
		highway_128(lanes, element.data, element.len, h);
	} else
		murmur3_x64_128(element.data, element.len, SHARD_SEED, h);
	return (uint32_t)(((h[0] >> 32) * g->shards) >> 32);
}

int
scheme_positions(const struct geometry *g, const struct scheme_key *key,
    struct slice element, struct positions *out)
{
	struct reducer r;
	uint64_t h[2];

	/*
	 * No check(): a generation that this program cannot use has no positions
	 * here, and whoever asks for them all the same gets "maybe".
	 */
	if (element.len > ELEMENT_MAX || g->shards == 0 || g->bits == 0 ||
	    g->bits > LOW_63 / 2 || g->hashes == 0 || g->hashes > HASHES_MAX)
		return -1;
	r.m = g->bits;
	r.inverse = UINT64_MAX / g->bits;
	out->count = g->hashes;
	switch (g->scheme) {
	case SCHEME_GUAVA:
		murmur3_x64_128(element.data, element.len, 0, h);
		positions_double(&r, h, out);
		break;
	case SCHEME_GUAVA_SEEDED:
		positions_seeded(&r, element, out);
		break;
	case SCHEME_GUAVA_HASHCODE:
		if (positions_hashcode(&r, element, out) == -1)
			return -1;
		break;
	case SCHEME_REDISSON:
		positions_redisson(&r, element, out);
		break;
	case SCHEME_POLY:
		if (g->bits != POLY_BITS || g->hashes != POLY_HASHES ||
		    positions_poly(element, out) == -1)
			return -1;
		break;
	case SCHEME_KEYED:
		if (key == NULL)
			return -1;
		highway_128(key->lanes, element.data, element.len, h);
		positions_double(&r, h, out);
		break;
	case SCHEME_COUNT:
	default:
		return -1;
	}
	out->shard = choose_shard(g, key, element);
	return 0;
}
