/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a generation's shards from Redis into a mirror: GETRANGE by GETRANGE, at
 * most a shard's largest size each, paced by redis-share. The last piece of a shard
 * is read together with its tag. Control's loop only.
 */
#ifndef CONTROL_LOAD_H
#define CONTROL_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "filter/meta.h"
#include "filter/mirror.h"
#include "redis/link.h"

struct event;
struct event_base;

enum load_state {
	LOAD_NONE,
	LOAD_RUNNING,
	LOAD_DONE, /* every piece is in */
};

enum load_end {
	LOAD_ENDED_WELL,
	LOAD_BAD_SHARD, /* missing, short, or of another tag */
	LOAD_NO_ANSWER, /* the link was lost, or Redis refused */
};

struct load {
	enum load_state state;
	/* set by load_init */
	struct event *timer; /* owned: the pause between pieces */
	void (*on_end)(enum load_end end, uint32_t shard, void *arg);
	void *arg;
	/* the load under way */
	struct link *link;     /* borrowed */
	struct mirror *mirror; /* referenced */
	char redis_key[NAME_MAX_BYTES];
	char generation[GENERATION_NAME_MAX];
	double share;    /* of Redis's time: above 0, to 1 */
	uint32_t shard;  /* of the next piece */
	uint64_t offset; /* of the next piece in its shard */
	unsigned out;    /* pieces asked for and not answered */
	uint64_t serial; /* of this load: answers to others are dropped */
};

/* on_end is called once for each load that was not cancelled, never within
 * load_start; then state is DONE, or NONE after a failure. */
void load_init(struct load *l, struct event_base *base,
    void (*on_end)(enum load_end end, uint32_t shard, void *arg), void *arg);
/* The link's owner answers what is out before this. */
void load_fini(struct load *l);

/* Cancels what runs, and begins. mirror: of generation; a reference is taken. */
void load_start(struct load *l, struct link *link, struct mirror *mirror,
    const char *redis_key, const char *generation, double share);
/* state is NONE then. */
void load_cancel(struct load *l);

#endif
