/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Lua scripts that change a filter in Redis (lua/NAME.lua, embedded at build)
 * and how they are called: EVALSHA, on NOSCRIPT once EVAL. Their rules:
 * DESIGN.md, Scripts. What each takes and answers stands here and nowhere else.
 *
 * Every answer is an array whose first element is an integer code:
 *
 *	 1 done   0 refused (second element: why, a word)
 *
 * epoch arguments and answers are decimal text. TOKEN, NAME, RUN-ID are text; TAG
 * is 8 raw bytes; numbers are decimal text. LEASE is how long, in ms, the lock
 * is held from now (by Redis TIME). CHANNEL is <redis-key>:events. META is
 * <redis-key>:meta. "epoch changes": epoch = max(epoch + 1, TIME in us), and a
 * message of kind 2 is published. META fields: filter/meta.h.
 *
 * add	      KEYS META, shard...
 *	      ARGV EPOCH ("" when there is no meta), CHANNEL, NSHARDS, then for each
 *	      shard key in order: NAME, TAG, TAG-OFFSET (bytes), then NELEMENTS, and
 *	      for each: ELEMENT, NREFS, and for each ref: SHARD-INDEX (1-based into
 *	      the shard keys), K, position...
 *	      refs of one element: its shard in each live generation (active,
 *	      previous, building, retiring); one call holds at most 700 positions.
 *	      Answers {1, epoch, seq, new...}: new = 1 where any bit was new in
 *	      active (or there is no active), else 0, one per element. epoch is the
 *	      one after the call.
 *	      {0, "epoch", field, value, ...}: EPOCH is not meta's; nothing was
 *	      changed; HGETALL META follows.
 *	      No META: bits are set where tags are right, a meta {layout, epoch} is
 *	      written. META without a live generation: {1, ...} and nothing changed.
 *	      A shard missing, short or with another tag: that generation becomes
 *	      lost (unless retiring) and epoch changes; the others get their bits.
 *	      The tag of a building generation may also be 8 zero bytes.
 *	      seq goes up and kind 1 is published when any bit was new: by one a
 *	      message, where the elements need several.
 * begin      KEYS META
 *	      ARGV CHANNEL, TOKEN, LEASE, RUN-ID, BASE (generation name wished),
 *	      SHARDS, BITS, K, SCHEME, SINGLE, KEY ("", or the fingerprints of
 *	      BASE, BASE.2, BASE.3, ..., 32 hex digits each, one after another),
 *	      TAG, CAPACITY, ERROR-RATE
 *	      Answers {1, NAME, created, newrun}: created 1 when META did not exist,
 *	      newrun 1 when meta's run-id is not RUN-ID. The name is BASE, or BASE.2,
 *	      BASE.3, ...: the first that meta does not list. Takes the lock.
 *	      {0, "locked", until-us, now-us}; {0, "stale", NAME}: a building
 *	      generation is listed (the lock is ours now): retire it first.
 *	      {0, "full"}: META_GENERATIONS_MAX generations are listed.
 *	      {0, "layout"}: META has a layout that is not 1.
 *	      Called again with the same TOKEN and TAG: the same answer.
 * make	      KEYS META, shard   ARGV TOKEN, LEASE, NAME, LENGTH
 *	      {1}; {0, "token"}; {0, "state"}: NAME is not being made; an old key
 *	      of that name is unlinked first.
 * open	      KEYS META          ARGV CHANNEL, TOKEN, LEASE, NAME
 *	      {1, epoch}; {0, "token"}; {0, "state"}
 * merge      KEYS META, shard, t0, t1
 *	      ARGV TOKEN, LEASE, NAME, SHARD, OFFSET, CHUNK, LENGTH (of the shard)
 *	      {1, bits set in the range afterwards}; {0, "token"}; {0, "order"}: not
 *	      the chunk after the last one (the last one again is taken);
 *	      {0, "lost"}: the shard is missing or of another length;
 *	      {0, "state"}: NAME is not open.
 *	      The chunk that reaches the tag offset ends its shard; next is
 *	      "SHARD+1:0".
 * seal	      KEYS META, shard... (at most 64)
 *	      ARGV TOKEN, LEASE, NAME, TAG, TAG-OFFSET, FIRST (index of the first),
 *	      RUN-ID, ELEMENTS, BITS-SET, CARRIED
 *	      {1, sealed so far}; {0, "token"}; {0, "incomplete"}; {0, "lost"};
 *	      {0, "run"}: begun on another run; {0, "state"}: NAME is not open or
 *	      its tag is not TAG. With the last shard the state is
 *	      sealed, ended and elements are written.
 * commit     KEYS META          ARGV CHANNEL, TOKEN, NAME, RUN-ID, KEEP
 *	      {1, epoch}, also when it was done before; {0, "token"}; {0, "state"};
 *	      {0, "run"}. active = NAME, previous = the active before (KEEP 1, and it
 *	      is sealed and meta's run-id is RUN-ID), else it is retiring; an older
 *	      previous is retiring; building, lock and lock-until go; run-id = RUN-ID.
 * retire     KEYS META, shard... (the next up to 4)
 *	      ARGV CHANNEL, TOKEN ("" where no lock is needed), NAME, FIRST, SHARDS
 *	      Abort (NAME is building), retire (NAME is previous) and going on with a
 *	      retiring one. First call: pointer goes, NAME is listed as retiring,
 *	      epoch changes. Each call unlinks the given shards (FIRST is the index
 *	      of the first); when FIRST + given >= SHARDS the generation leaves META.
 *	      {1, epoch, gone}: gone 1 after the last; {0, "token"}: building needs
 *	      the lock's token or an expired lock; {0, "active"}. The epoch changes
 *	      at the last call too.
 *	      The lock goes with the generation where TOKEN holds it.
 * rollback   KEYS META          ARGV CHANNEL, RUN-ID[, NAME]
 *	      {1, epoch}: active and previous change places. {0, "none"};
 *	      {0, "lost"}; {0, "run"}. NAME: the generation that shall serve; with
 *	      it a second call, after a lost answer, changes nothing.
 * heartbeat  KEYS META, peers, shard... (at most 16)
 *	      ARGV CHANNEL, PEER (field name), VALUE ("" writes nothing, "-" removes
 *	      the field), LEASE, EPOCH (tags are judged under it only), then for
 *	      each shard: NAME, TAG, TAG-OFFSET
 *	      {1, epoch ("" without meta), seq, time us, run-id, lost, persisted,
 *	      lock-until ("" when free), master_replid ("" unknown)}:
 *	      lost: generations newly marked lost (epoch then changed); persisted:
 *	      keys whose TTL was taken away. VALUE begins with the decimal us until
 *	      which it holds ("UNTIL EPOCH TAG RUN-ID"); fields past theirs go.
 *	      With VALUE "+", the script itself writes "TIME+LEASE*1000 EPOCH",
 *	      with "+REST" it writes "TIME+LEASE*1000 REST" (EPOCH being one that
 *	      the caller has acknowledged).
 * distrust   KEYS META          ARGV CHANNEL, EPOCH, SEEN
 *	      {1, epoch}: run-id goes, so every bloomgate takes the filter for
 *	      suspect until a commit stores one; the new epoch is above SEEN, the
 *	      largest that the caller has ever read. {0, "epoch"}: it is not EPOCH.
 * release    KEYS META          ARGV TOKEN
 *	      {1}: the lock goes where TOKEN holds it and nothing is building.
 */
#ifndef REDIS_SCRIPT_H
#define REDIS_SCRIPT_H

#include "redis/link.h"

enum script {
	SCRIPT_ADD,
	SCRIPT_BEGIN,
	SCRIPT_MAKE,
	SCRIPT_OPEN,
	SCRIPT_MERGE,
	SCRIPT_SEAL,
	SCRIPT_COMMIT,
	SCRIPT_RETIRE,
	SCRIPT_ROLLBACK,
	SCRIPT_HEARTBEAT,
	SCRIPT_RELEASE,
	SCRIPT_DISTRUST,
	SCRIPT_COUNT,
};

const char *script_name(enum script s); /* the .lua file's stem */
const char *script_sha1(enum script s); /* 40 lower-case hex digits */

/*
 * Like link_command and link_call. argv: the key names, then the arguments
 * (nkeys of argc are keys). On NOSCRIPT it is sent once more with EVAL.
 */
int script_run(struct link *l, enum script s, uint64_t timeout_ms,
    link_reply_fn fn, void *arg, size_t nkeys, const struct slice *argv,
    size_t argc) __attribute__((warn_unused_result));
struct redisReply *script_call(struct link *l, enum script s,
    uint64_t timeout_ms, size_t nkeys, const struct slice *argv, size_t argc,
    const _Atomic bool *cancel);

#endif
