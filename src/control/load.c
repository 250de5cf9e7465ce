/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The load of a mirror: see load.h. With the whole of Redis's time four pieces are
 * out at once; with less, one, and after each a pause in proportion to how long it
 * took. What the bits mean, and whether they may be believed yet, is follow.c's.
 */
#include "config.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <event2/event.h>

#include "control/load.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/mem.h"

#define PIECE_BYTES    131000 /* a multiple of 8 */
#define PIECES_OUT_MAX 4
#define PIECE_MS       5000
#define SHARE_MIN      0.001

struct piece {
	struct load *load;
	uint64_t serial;
	uint32_t shard;
	uint64_t offset;
	uint64_t len; /* of bits; the tag may follow */
	bool last;    /* of its shard: the tag does */
	uint64_t sent_ns;
};

static void go_on(struct load *l);

static void
stop(struct load *l, enum load_state state)
{
	l->state = state;
	l->serial++;
	l->out = 0;
	event_del(l->timer);
	mirror_unref(l->mirror);
	l->mirror = NULL;
}

static void
end(struct load *l, enum load_end how, uint32_t shard)
{
	stop(l, how == LOAD_ENDED_WELL ? LOAD_DONE : LOAD_NONE);
	l->on_end(how, shard, l->arg);
}

static void
pause_after(struct load *l, uint64_t took_ns)
{
	double us = (double)took_ns / 1000 * (1 - l->share) / l->share;
	struct timeval tv = {.tv_sec = (time_t)(us / 1000000)};

	tv.tv_usec = (suseconds_t)(us - (double)tv.tv_sec * 1000000);
	event_add(l->timer, &tv);
}

static void
on_piece(struct link *link, const struct redisReply *reply, void *arg)
{
	struct piece *p = arg;
	struct load *l = p->load;
	struct slice bytes = link_reply_text(reply);

	(void)link;
	if (p->serial != l->serial) {
		free(p);
		return;
	}
	l->out--;
	if (link_reply_type(reply) != LINK_STRING) {
		end(l, LOAD_NO_ANSWER, p->shard);
	} else if (bytes.len != p->len + (p->last ? TAG_BYTES : 0) ||
	    (p->last &&
		memcmp(bytes.data + p->len, l->mirror->tag, TAG_BYTES) != 0)) {
		end(l, LOAD_BAD_SHARD, p->shard);
	} else {
		mirror_load(l->mirror, p->shard, (size_t)p->offset, bytes.data,
		    (size_t)p->len);
		atomic_fetch_add_explicit(
		    &l->mirror->loaded_bytes, p->len, memory_order_relaxed);
		if (l->share < 1)
			pause_after(l, clock_boot_ns() - p->sent_ns);
		else
			go_on(l);
	}
	free(p);
}

/* Asks for the next piece. */
static int
ask(struct load *l)
{
	uint64_t size = geometry_tag_offset(&l->mirror->geometry);
	char key[NAME_MAX_BYTES], first[24], last[24];
	struct piece *p = mem_alloc(sizeof(*p));
	struct slice argv[4];

	*p = (struct piece){.load = l,
	    .serial = l->serial,
	    .shard = l->shard,
	    .offset = l->offset,
	    .len = size - l->offset,
	    .last = true,
	    .sent_ns = clock_boot_ns()};
	if (p->len + TAG_BYTES > PIECE_BYTES) {
		p->len = PIECE_BYTES - TAG_BYTES;
		p->last = false;
	}
	name_shard(key, sizeof(key), l->redis_key, l->generation, l->shard);
	snprintf(first, sizeof(first), "%" PRIu64, p->offset);
	snprintf(last, sizeof(last), "%" PRIu64,
	    p->offset + p->len + (p->last ? TAG_BYTES : 0) - 1);
	argv[0] = slice_str("GETRANGE");
	argv[1] = slice_str(key);
	argv[2] = slice_str(first);
	argv[3] = slice_str(last);
	if (link_command(l->link, PIECE_MS, on_piece, p, argv, 4) != 0) {
		free(p);
		return -1;
	}
	l->out++;
	l->offset += p->len;
	if (p->last) {
		l->shard++;
		l->offset = 0;
	}
	return 0;
}

static void
go_on(struct load *l)
{
	unsigned most = l->share < 1 ? 1 : PIECES_OUT_MAX;

	while (l->out < most && l->shard < l->mirror->geometry.shards) {
		if (ask(l) != 0) {
			end(l, LOAD_NO_ANSWER, l->shard);
			return;
		}
	}
	if (l->out == 0)
		end(l, LOAD_ENDED_WELL, 0);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	go_on(arg);
}

void
load_init(struct load *l, struct event_base *base,
    void (*on_end)(enum load_end end, uint32_t shard, void *arg), void *arg)
{
	*l = (struct load){.state = LOAD_NONE, .on_end = on_end, .arg = arg};
	l->timer = evtimer_new(base, on_timer, l);
	check(l->timer != NULL);
}

void
load_fini(struct load *l)
{
	load_cancel(l);
	event_free(l->timer);
}

void
load_start(struct load *l, struct link *link, struct mirror *mirror,
    const char *redis_key, const char *generation, double share)
{
	load_cancel(l);
	l->state = LOAD_RUNNING;
	l->link = link;
	l->mirror = mirror_ref(mirror);
	snprintf(l->redis_key, sizeof(l->redis_key), "%s", redis_key);
	snprintf(l->generation, sizeof(l->generation), "%s", generation);
	l->share = share > SHARE_MIN ? share : SHARE_MIN;
	l->shard = 0;
	l->offset = 0;
	atomic_store_explicit(&mirror->loaded_bytes, 0, memory_order_relaxed);
	event_active(l->timer, EV_TIMEOUT, 0);
}

void
load_cancel(struct load *l)
{
	if (l->state == LOAD_RUNNING)
		stop(l, LOAD_NONE);
	l->state = LOAD_NONE;
}
