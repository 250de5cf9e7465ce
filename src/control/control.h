/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps each filter's view in step with Redis: reads the meta, heartbeats, holds
 * the lease, notices lost shards and a changed run of Redis, and asks for a
 * rebuild when one is due. One thread: the loop given to it. Workers and the
 * rebuild thread reach it by mailbox (control_refresh).
 */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include "config/settings.h"
#include "core/metrics.h"
#include "filter/filter.h"

struct event_base;
struct control;

struct control_options {
	struct event_base *base;
	struct settings *settings; /* referenced */
	struct filter **filters;   /* settings->filter_count; borrowed */
	struct metrics *metrics;   /* borrowed */
	bool mirrors;              /* keep them: this process answers reads */
	/*
	 * A rebuild of filters[index] is due; reason is borrowed and for the log
	 * ("missing", "suspect", "lost"). Called again (at most each second) as
	 * long as it is. Must not block.
	 */
	void (*want_rebuild)(size_t index, const char *reason, void *arg);
	/* A generation is listed as retiring and nobody works on it. */
	void (*want_retire)(size_t index, void *arg);
	void *arg;
};

struct control *control_new(const struct control_options *o);
void control_start(struct control *c);
/* Removes this bloomgate's peer fields (waits up to timeout_ms on the loop),
 * takes the leases away. */
void control_stop(struct control *c, uint64_t timeout_ms);
void control_free(struct control *c);

/*
 * Look at filters[index] now: somebody saw another epoch or a wrong tag in
 * shard (or -1) of its active generation. Any thread.
 */
void control_refresh(struct control *c, size_t index, int64_t shard);

/* How the mirror of filters[index] stands, in a word for people (follow.h). The
 * loop's thread. */
const char *control_mirror_word(const struct control *c, size_t index);

/* 1 while the link for the filters' store is up (of filters[index]). */
bool control_store_up(const struct control *c, size_t index);

#endif
