/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a build says to Redis (redis/script.h has the scripts). Each call waits for
 * its answer; one without an answer is made again, for every script may be. A
 * connection to another run of Redis fails the build (DESIGN.md, model rule 8).
 * Functions return 0, or -1 with the reason noted in the build. Rebuild thread.
 */
#ifndef REBUILD_CALLS_H
#define REBUILD_CALLS_H

#include "rebuild/build.h"

/* The link is up and to the run that the build lives with. */
int calls_ready(struct build *b) __attribute__((warn_unused_result));
/* Reads the meta into *m. */
int calls_meta(struct build *b, struct meta *m)
    __attribute__((warn_unused_result));

enum calls_begun {
	CALLS_FAILED = -1,
	CALLS_BEGUN,
	CALLS_LOCKED,
	CALLS_STALE, /* name: what to retire first; the lock is ours */
	CALLS_FULL,
};
/* Begins base with b's geometry, tag and capacity; fingerprints of the names it
 * may come to, "" for none. */
enum calls_begun calls_begin(struct build *b, const char *base,
    const char *fingerprints, char name[GENERATION_NAME_MAX]);
int calls_make(struct build *b, uint32_t shard)
    __attribute__((warn_unused_result));
/* Opens, or, opened already, only renews the lock. */
int calls_open(struct build *b) __attribute__((warn_unused_result));
int calls_renew(struct build *b) __attribute__((warn_unused_result));
/* len bytes of a shard of b's local bits from offset. *set_out: bits set in the
 * range of Redis afterwards. */
int calls_merge(struct build *b, uint32_t shard, uint64_t offset, size_t len,
    uint64_t *set_out, uint64_t *round_trip_ns)
    __attribute__((warn_unused_result));
int calls_seal(struct build *b, uint32_t first, uint32_t count)
    __attribute__((warn_unused_result));
int calls_commit(struct build *b) __attribute__((warn_unused_result));
/* One step of abort and retire: count shards (at most 4) from first. */
int calls_retire(struct build *b, const char *name, const char *token,
    uint32_t first, uint32_t count, uint32_t shards, bool *gone)
    __attribute__((warn_unused_result));
int calls_release(struct build *b) __attribute__((warn_unused_result));

/*
 * Bytes offset to offset + len of a shard of generation. *reply is freed with
 * link_reply_free and owns *out. Fewer bytes than asked for is a failure.
 */
int calls_read(struct build *b, const char *generation, uint32_t shard,
    uint64_t offset, size_t len, struct redisReply **reply, struct slice *out,
    uint64_t *round_trip_ns) __attribute__((warn_unused_result));
/* A plain command. Returned, freed with link_reply_free; NULL is noted. */
struct redisReply *calls_command(
    struct build *b, const struct slice *argv, size_t argc);

#endif
