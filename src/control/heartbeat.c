/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The heartbeat of one filter: asks Redis for the epoch and for the tags of some
 * shards, and keeps this bloomgate's peer field. It grants nothing itself:
 * tracked.c does, where the epoch is that of the view (DESIGN.md, model rule 2).
 * Control's loop only.
 *
 * The peer field tells builders which epoch we go by and how long we may say
 * absent. So it is written with the view's epoch (never with whatever epoch Redis
 * has by then), and a lease is given only once Redis has confirmed the field.
 * Its end is in Redis TIME: the first heartbeat of a link learns that and leaves
 * the field alone, the second writes it.
 */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/tracked.h"
#include "core/broken.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "redis/script.h"

/* Arguments of one call; the texts that the slices point to live here too. */
struct heartbeat_call {
	char meta[NAME_MAX_BYTES], peers[NAME_MAX_BYTES];
	char channel[NAME_MAX_BYTES];
	char shards[CONTROL_TAGS][NAME_MAX_BYTES];
	char offsets[CONTROL_TAGS][24];
	char value[64 + EPOCH_TEXT_MAX], lease[24];
	struct slice argv[2 + CONTROL_TAGS + 5 + 3 * CONTROL_TAGS];
	size_t argc, nkeys;
};

struct tag_ref {
	const struct generation *generation; /* borrowed from the view */
	uint32_t shard;
};

/* The sealed generations whose tags can be asked for: active, then previous. */
static size_t
sealed_generations(const struct meta *m, const struct generation *out[2])
{
	const int index[] = {m->active, m->previous};
	size_t n = 0;

	for (size_t i = 0; i < 2; i++) {
		const struct generation *g;

		if (index[i] < 0)
			continue;
		g = &m->generations[index[i]];
		if (g->usable && g->state == GENERATION_SEALED)
			out[n++] = g;
	}
	return n;
}

/*
 * Which shards to ask about: the one that somebody complained of, then the next in
 * turn, each at most once a call.
 */
static size_t
choose_tags(struct tracked *t, struct tag_ref out[CONTROL_TAGS])
{
	const struct generation *list[2];
	size_t count = sealed_generations(&t->view->meta, list), n = 0;
	int64_t told = atomic_exchange_explicit(
	    &t->refresh_shard, -1, memory_order_relaxed);
	uint64_t total = 0;

	for (size_t i = 0; i < count; i++)
		total += list[i]->geometry.shards;
	if (total == 0)
		return 0;
	if (told >= 0 && t->view->meta.active >= 0 &&
	    list[0] == &t->view->meta.generations[t->view->meta.active] &&
	    told < (int64_t)list[0]->geometry.shards)
		out[n++] = (struct tag_ref){list[0], (uint32_t)told};
	for (uint64_t i = 0; i < total && n < CONTROL_TAGS; i++) {
		uint64_t at = t->turn++ % total;
		size_t g = 0;

		if (at >= list[0]->geometry.shards) {
			at -= list[0]->geometry.shards;
			g = 1;
		}
		out[n++] = (struct tag_ref){list[g], (uint32_t)at};
	}
	return n;
}

static void
push(struct heartbeat_call *call, struct slice s)
{
	check(call->argc < sizeof(call->argv) / sizeof(call->argv[0]));
	call->argv[call->argc++] = s;
}

static void
push_names(struct heartbeat_call *call, const struct filter *f)
{
	size_t n;

	n = name_other(call->meta, sizeof(call->meta), f->redis_key, "meta");
	push(call, slice_of(call->meta, n));
	n = name_other(call->peers, sizeof(call->peers), f->redis_key, "peers");
	push(call, slice_of(call->peers, n));
	name_other(
	    call->channel, sizeof(call->channel), f->redis_key, "events");
	call->nkeys = 2;
}

/* The field's value, where it is time to write it; else "". */
static void
peer_value(struct tracked *t, char *out, size_t size)
{
	const struct settings *s = t->control->options.settings;
	const char *epoch = t->view->meta.epoch;
	int64_t now_us;

	out[0] = '\0';
	if (t->redis_us == 0)
		return;
	if (t->peer_known && strcmp(t->peer_epoch, epoch) == 0 &&
	    t->sent_ns - t->peer_at_ns < CONTROL_PEER_MS * UINT64_C(1000000))
		return;
	/* At or after the true time: it was read after that sending. */
	now_us = t->redis_us +
	    (int64_t)((t->sent_ns - t->redis_us_at_ns) / 1000);
	snprintf(out, size, "%" PRId64 " %s - -",
	    now_us + (int64_t)(s->lease_ms + CONTROL_PEER_SLACK_MS) * 1000,
	    epoch[0] != '\0' ? epoch : "0");
}

static void
on_peer_count(struct link *l, const struct redisReply *reply, void *arg)
{
	struct tracked *t = arg;

	(void)l;
	if (link_reply_type(reply) != LINK_INTEGER || t->control->stopping)
		return;
	t->peers = link_reply_integer(reply);
	metric_set(t->control->options.metrics, METRIC_FILTER_PEERS,
	    t->filter->index, 0, (double)t->peers);
	follow_peers(t);
}

/* Ended fields are removed by every heartbeat, so the length is the count. */
static void
count_peers(struct tracked *t)
{
	char key[NAME_MAX_BYTES];
	size_t n = name_other(key, sizeof(key), t->filter->redis_key, "peers");
	struct slice argv[] = {slice_str("HLEN"), slice_of(key, n)};

	if (link_command(t->group->link, CONTROL_REPLY_MS, on_peer_count, t,
		argv, 2) != 0)
		log_debug(
		    "peers_not_counted", LOG_STR("filter", t->filter->name));
}

static void
text_copy(char *out, size_t size, struct slice s)
{
	size_t n = s.len < size ? s.len : size - 1;

	if (n > 0)
		memcpy(out, s.data, n);
	out[n] = '\0';
}

static void
log_persisted(struct tracked *t, const struct redisReply *reply)
{
	int64_t n = link_reply_integer(link_reply_at(reply, 6));

	if (n > 0)
		log_warn("filter_ttl_removed",
		    LOG_STR("filter", t->filter->name), LOG_INT("keys", n));
}

/* {1, epoch, seq, time, run-id, lost, persisted, lock-until, history}: true
 * when it is that. */
static bool
heartbeat_valid(const struct redisReply *reply)
{
	return link_reply_type(reply) == LINK_ARRAY &&
	    link_reply_count(reply) >= 9 &&
	    link_reply_integer(link_reply_at(reply, 0)) == 1;
}

static int64_t
reply_number(const struct redisReply *r)
{
	int64_t v;

	if (link_reply_type(r) == LINK_INTEGER)
		return link_reply_integer(r);
	if (slice_to_int64(link_reply_text(r), &v) != 0)
		return 0;
	return v;
}

static void
log_refused(struct tracked *t, const struct redisReply *reply)
{
	log_warn("heartbeat_failed", LOG_STR("filter", t->filter->name),
	    LOG_SLICE("error",
		link_reply_type(reply) == LINK_ARRAY
		    ? link_reply_text(link_reply_at(reply, 1))
		    : link_reply_text(reply)));
}

/* True unless Redis says that its data are no longer those of this connection's
 * INFO. */
static bool
same_history(const struct link *l, struct slice history)
{
	const char *known = strchr(link_run_id(l), ':');

	return history.len == 0 || known == NULL ||
	    slice_is(history, known + 1);
}

static void
on_heartbeat(struct link *l, const struct redisReply *reply, void *arg)
{
	struct tracked *t = arg;
	const struct meta *m = &t->view->meta;
	uint64_t seq;

	check(t->step == STEP_HEARTBEAT);
	t->step = STEP_IDLE;
	if (t->control->stopping)
		return;
	if (reply == NULL) {
		tracked_idle(t);
		return;
	}
	metric_observe(t->control->options.metrics, METRIC_SCRIPT_DURATION,
	    metric_script_index(script_name(SCRIPT_HEARTBEAT)),
	    clock_boot_ns() - t->sent_ns, 1);
	if (!heartbeat_valid(reply)) {
		log_refused(t, reply);
		tracked_refused(t);
		return;
	}
	seq = (uint64_t)reply_number(link_reply_at(reply, 2));
	t->redis_us = reply_number(link_reply_at(reply, 3));
	t->redis_us_at_ns = t->sent_ns;
	t->lock_until_us = reply_number(link_reply_at(reply, 7));
	log_persisted(t, reply);
	if (!same_history(l, link_reply_text(link_reply_at(reply, 8)))) {
		/* The next connection tells whose data these are now. */
		tracked_refused(t);
		link_drop(l, "the data behind are of another history");
		return;
	}
	if (t->wrote_peer) {
		t->peer_known = true;
		t->peer_at_ns = t->sent_ns;
		text_copy(
		    t->peer_epoch, sizeof(t->peer_epoch), slice_str(m->epoch));
		count_peers(t);
	}
	if (BROKEN_LAW(6) && t->view->state == FILTER_SERVING)
		tracked_alive(t, seq);
	else if (!slice_is(
		     link_reply_text(link_reply_at(reply, 1)), m->epoch) ||
	    !slice_is(link_reply_text(link_reply_at(reply, 4)), m->run_id) ||
	    strcmp(link_run_id(l), t->run_id) != 0)
		tracked_reread(t);
	else if (!t->peer_known || strcmp(t->peer_epoch, m->epoch) != 0)
		tracked_heartbeat(t);
	else
		tracked_alive(t, seq);
}

void
tracked_heartbeat(struct tracked *t)
{
	struct control *c = t->control;
	struct tag_ref tags[CONTROL_TAGS];
	struct heartbeat_call *call = mem_zalloc(1, sizeof(*call));
	size_t n = choose_tags(t, tags);

	/* Before anything is sent: the lease counts from here. */
	t->sent_ns = clock_boot_ns();
	/* Who sees something wrong from now on asks again. */
	atomic_store_explicit(&t->refresh, false, memory_order_release);
	push_names(call, t->filter);
	for (size_t i = 0; i < n; i++, call->nkeys++) {
		size_t len = name_shard(call->shards[i],
		    sizeof(call->shards[i]), t->filter->redis_key,
		    tags[i].generation->name, tags[i].shard);

		push(call, slice_of(call->shards[i], len));
	}
	peer_value(t, call->value, sizeof(call->value));
	snprintf(call->lease, sizeof(call->lease), "%" PRIu64,
	    c->options.settings->lease_ms + CONTROL_PEER_SLACK_MS);
	push(call, slice_str(call->channel));
	push(call, slice_str(c->peer));
	push(call, slice_str(call->value));
	push(call, slice_str(call->lease));
	push(call, slice_str(t->view->meta.epoch));
	for (size_t i = 0; i < n; i++) {
		const struct generation *g = tags[i].generation;

		snprintf(call->offsets[i], sizeof(call->offsets[i]), "%" PRIu64,
		    geometry_tag_offset(&g->geometry));
		push(call, slice_str(g->name));
		push(call, slice_of(g->tag, TAG_BYTES));
		push(call, slice_str(call->offsets[i]));
	}
	t->wrote_peer = call->value[0] != '\0';
	if (script_run(t->group->link, SCRIPT_HEARTBEAT, CONTROL_REPLY_MS,
		on_heartbeat, t, call->nkeys, call->argv, call->argc) == 0)
		t->step = STEP_HEARTBEAT;
	free(call);
}

struct farewell {
	struct control *control;
	void (*done)(struct control *c);
};

static void
on_farewell_reply(struct link *l, const struct redisReply *reply, void *arg)
{
	struct farewell *w = arg;

	(void)l;
	(void)reply; /* a field that stays ends by itself */
	w->done(w->control);
	free(w);
}

bool
tracked_farewell(struct tracked *t, void (*done)(struct control *c))
{
	struct heartbeat_call *call = mem_zalloc(1, sizeof(*call));
	struct farewell *w = mem_zalloc(1, sizeof(*w));
	bool sent;

	*w = (struct farewell){.control = t->control, .done = done};
	push_names(call, t->filter);
	push(call, slice_str(call->channel));
	push(call, slice_str(t->control->peer));
	push(call, slice_str("-"));
	push(call, slice_str("0"));
	push(call, slice_str(""));
	sent = script_run(t->group->link, SCRIPT_HEARTBEAT, CONTROL_REPLY_MS,
		   on_farewell_reply, w, call->nkeys, call->argv,
		   call->argc) == 0;
	if (!sent)
		free(w);
	free(call);
	return sent;
}
