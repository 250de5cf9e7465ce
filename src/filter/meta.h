/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hash "<redis-key>:meta" as a struct, and the names of a filter's keys.
 * What meta says rules; this file only reads it (scripts write it). Pure. Any
 * thread.
 *
 * Fields of the hash: layout ("1"), epoch, seq, run-id, lock, lock-until (us of
 * Redis TIME), active, previous, building (names), retiring (names separated by
 * one space), and per generation "g:NAME:" + state, shards, bits (per shard),
 * k, scheme, single ("1" or "0"), key, tag (8 raw bytes), capacity, error-rate,
 * elements, began, ended (us), run-id (the run it is being built on), next (the
 * chunk that merge expects: "shard:offset"), last (the one merged last), sealed
 * (shards sealed so far), carried ("1" or "0"), set (bits set when built).
 */
#ifndef FILTER_META_H
#define FILTER_META_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/slice.h"
#include "filter/geometry.h"

#define META_LAYOUT          1
#define META_GENERATIONS_MAX 16
#define GENERATION_NAME_MAX  64
#define RUN_ID_LEN           81 /* redis/link.h: link_run_id */
#define EPOCH_TEXT_MAX       24

enum generation_state {
	GENERATION_MAKING,   /* begun, shards being made; adds skip it */
	GENERATION_BUILDING, /* open: adds go to it */
	GENERATION_SEALED,
	GENERATION_LOST,    /* still gets adds where its shards are in order */
	GENERATION_UNKNOWN, /* a state this program does not know */
};

struct generation {
	char name[GENERATION_NAME_MAX];
	enum generation_state state;
	bool retiring;
	bool usable; /* scheme and geometry are known to this program */
	struct geometry geometry;
	char key_fingerprint[33]; /* keyed: of its name; else "" */
	uint8_t tag[TAG_BYTES];   /* big-endian, as in the shard */
	uint64_t capacity;
	double error_rate;
	uint64_t elements;
	uint64_t bits_set;
	int64_t began_us, ended_us; /* 0: not yet */
	bool carried;
	uint32_t sealed; /* shards sealed so far */
};

struct meta {
	bool exists; /* false: Redis has no such key; the rest is zero */
	int layout;
	char epoch[EPOCH_TEXT_MAX]; /* compared as a string */
	uint64_t seq;
	char run_id[RUN_ID_LEN + 1];
	char lock[40]; /* token, "" when free */
	int64_t lock_until_us;
	struct generation generations[META_GENERATIONS_MAX];
	size_t generation_count;
	int active, previous, building; /* index, or -1 */
};

/*
 * Reads HGETALL's flat list of field, value, field, ... An unknown field is
 * ignored. 0, or -1 with the reason: then nothing may be believed (everything
 * is maybe). n = 0: a meta that does not exist. More than META_GENERATIONS_MAX
 * generations, a pointer to one that is not described, an epoch that is no
 * number: -1.
 */
int meta_parse(struct meta *m, const struct slice *fields, size_t n,
    struct err *err) __attribute__((warn_unused_result));

/* Index of the generation called name, or -1. */
int meta_find(const struct meta *m, struct slice name);

/* "<redis-key>:<generation>/<shard>", NUL-terminated, into out; its length. */
size_t name_shard(char *out, size_t size, const char *redis_key,
    const char *generation, uint32_t shard);
/* "<redis-key>:<suffix>", suffix one of "meta" "peers" "events" "t0" "t1". */
size_t name_other(
    char *out, size_t size, const char *redis_key, const char *suffix);
#define NAME_MAX_BYTES 512

#endif
