/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which bits an element has: the schemes of DESIGN.md ("Data in Redis"). Pure.
 * Any thread. The figures are tested against positions of the original
 * libraries (tests/vectors/positions.tsv).
 */
#ifndef FILTER_SCHEME_H
#define FILTER_SCHEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/slice.h"

#define ELEMENT_MAX    4096 /* bytes; longer captures are maybe */
#define HASHES_MAX     32   /* k */
#define SHARD_SEED     0x62676174U
#define SCHEME_KEY_LEN 32
#define POLY_BITS      (UINT64_C(1) << 28) /* poly's m and k */
#define POLY_HASHES    6

/* Same order as enum setting_scheme of config. */
enum scheme {
	SCHEME_GUAVA,
	SCHEME_GUAVA_SEEDED,
	SCHEME_GUAVA_HASHCODE,
	SCHEME_REDISSON,
	SCHEME_POLY,
	SCHEME_KEYED,
	SCHEME_COUNT,
};

/* The name used in configuration and meta; NULL past the end. */
const char *scheme_name(enum scheme s);
/* 0 and *out, or -1 for a name that this program does not know. */
int scheme_parse(struct slice name, enum scheme *out)
    __attribute__((warn_unused_result));

struct scheme_key {
	uint64_t lanes[4]; /* the 32 bytes as little-endian lanes */
};
/* Reads the 32 raw bytes of a key file. 0, or -1 with the reason. */
int scheme_key_load(struct scheme_key *key, const char *path, struct err *err)
    __attribute__((warn_unused_result));
/* HighwayHash-128 of text under key as 32 lower-case hex digits and NUL. */
void scheme_key_fingerprint(
    const struct scheme_key *key, struct slice text, char out[33]);

/* How one generation is laid out. */
struct geometry {
	enum scheme scheme;
	bool single;     /* layout: one string, sized exactly by the scheme */
	uint32_t shards; /* 1 when single */
	uint64_t bits;   /* the m of the position formulas, per shard */
	uint32_t hashes; /* k */
};

struct positions {
	uint32_t shard;
	uint32_t count; /* = hashes; equal positions may repeat */
	uint64_t bit[HASHES_MAX];
};

/*
 * 0, or -1 where the element has no positions: longer than ELEMENT_MAX, or not
 * UTF-8 under guava-hashcode and poly. key is used by keyed only (may be NULL
 * otherwise).
 */
int scheme_positions(const struct geometry *g, const struct scheme_key *key,
    struct slice element, struct positions *out)
    __attribute__((warn_unused_result));

/* Hash primitives, for tests and for their users in this folder. */
void murmur3_x64_128(
    const void *data, size_t len, uint32_t seed, uint64_t out[2]);
void highway_128(
    const uint64_t key[4], const void *data, size_t len, uint64_t out[2]);

#endif
