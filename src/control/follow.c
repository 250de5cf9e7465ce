/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps mirrors in step: the events link, the chain of messages, when to load, and
 * until when absent may be said (mirror->until_ns: nothing else sets it). The rules
 * are in follow.h and DESIGN.md ("Mirror", model rules 4 and 5). Bits that arrive
 * are put into the mirror whatever the chain says: they were set in Redis. Control's
 * loop only.
 */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "control/events.h"
#include "control/follow.h"
#include "control/tracked.h"
#include "core/broken.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/random.h"

#define MS_NS UINT64_C(1000000)

static void
doubt(struct tracked *t)
{
	if (t->view->mirror != NULL)
		atomic_store_explicit(
		    &t->view->mirror->until_ns, 0, memory_order_release);
	t->follow.beat_ns = 0;
	t->follow.behind_since_ns = 0;
}

/* Nothing of before counts: a new base, then a new load. */
static void
restart(struct tracked *t, enum follow_chain chain)
{
	struct follow *f = &t->follow;

	doubt(t);
	load_cancel(&f->load);
	f->loaded = false;
	f->chain = chain;
	f->chain_ns = clock_boot_ns();
	f->heard = false;
	f->load_after_ns = 0;
}

static void
gap(struct tracked *t, const char *reason)
{
	log_info("mirror_gap", LOG_STR("filter", t->filter->name),
	    LOG_STR("reason", reason));
	restart(t, CHAIN_SUBSCRIBED);
}

/* The view's epoch as events write it; false where it is no number. */
static bool
view_epoch(const struct tracked *t, uint64_t *out)
{
	int64_t v;

	if (slice_to_int64(slice_str(t->view->meta.epoch), &v) != 0 || v < 0)
		return false;
	*out = (uint64_t)v;
	return true;
}

/* --- in step ---------------------------------------------------------------*/

/* The last heartbeat, once the chain has what it told. */
static void
judge_beat(struct tracked *t)
{
	struct follow *f = &t->follow;
	struct control *c = t->control;
	uint64_t epoch;

	if (f->beat_ns == 0 || t->view->mirror == NULL)
		return;
	if (!BROKEN_LAW(13) &&
	    (f->chain != CHAIN_BASED || !f->loaded || !view_epoch(t, &epoch) ||
		f->epoch != epoch || f->seq < f->beat_seq))
		return;
	f->behind_since_ns = 0;
	f->load_failures = 0;
	f->in_step_ns = f->beat_ns;
	if (t->settings->check == SETTING_MIRROR && !c->stopping)
		atomic_store_explicit(&t->view->mirror->until_ns,
		    f->beat_ns + t->settings->max_staleness_ms * MS_NS,
		    memory_order_release);
	f->beat_ns = 0;
}

/* The load's last word: the heartbeat was sent after its end. */
static void
accept_load(struct tracked *t, uint64_t epoch)
{
	struct follow *f = &t->follow;

	if (epoch != f->load_epoch) {
		/* Which generations exist has changed meanwhile. */
		load_cancel(&f->load);
		f->load_after_ns = 0;
		return;
	}
	f->loaded = true;
	log_info("mirror_loaded", LOG_STR("filter", t->filter->name),
	    LOG_INT("bytes", mirror_bytes(t->view->mirror)));
}

/*
 * The chain begins with what a heartbeat found, or with what messages have told by
 * now where that is newer: they come over another connection, and may be ahead.
 */
static void
base(struct follow *f, uint64_t epoch, uint64_t seq)
{
	bool ahead = f->heard && f->seq >= seq;

	if (ahead && f->heard_from > seq + 1)
		return;
	if (!ahead) {
		f->seq = seq;
		f->epoch = epoch;
	} else if (f->epoch < epoch) {
		f->epoch = epoch;
	}
	f->base_seq = seq;
	f->chain = CHAIN_BASED;
}

static void try_load(struct tracked *t);

void
follow_alive(struct tracked *t, uint64_t seq)
{
	struct follow *f = &t->follow;
	uint64_t epoch;

	if (t->view->mirror == NULL || !view_epoch(t, &epoch))
		return;
	if (f->chain == CHAIN_BASED && seq < f->beat_seq)
		gap(t, "seq has gone back");
	f->beat_ns = t->sent_ns;
	f->beat_seq = seq;
	if (BROKEN_LAW(13)) {
		judge_beat(t);
		return;
	}
	if (f->chain == CHAIN_CUT)
		return;
	if (strcmp(link_run_id(t->control->events), t->run_id) != 0) {
		link_drop(t->control->events,
		    "it reaches another Redis than the filters");
		return;
	}
	if (f->chain == CHAIN_SUBSCRIBED && t->sent_ns > f->chain_ns)
		base(f, epoch, seq);
	if (f->load.state == LOAD_DONE && !f->loaded &&
	    t->sent_ns > f->loaded_ns)
		accept_load(t, epoch);
	if (f->behind_since_ns == 0 && f->loaded)
		f->behind_since_ns = t->sent_ns;
	judge_beat(t);
	if (f->behind_since_ns != 0 &&
	    t->sent_ns - f->behind_since_ns > FOLLOW_BEHIND_MS * MS_NS)
		gap(t, "a message was lost");
	try_load(t);
}

/* --- the chain -------------------------------------------------------------*/

static void
apply(struct tracked *t, struct filter_event e)
{
	struct mirror *m = t->view->mirror;
	const struct scheme_key *key = t->filter->has_key ? &t->filter->key
							  : NULL;
	struct positions p;

	while (m != NULL && e.count > 0) {
		if (scheme_positions(&m->geometry, key, event_next(&e), &p) ==
		    0)
			mirror_add(m, &p);
	}
}

/* Was it published before the chain's base was read? The two come over different
 * connections. */
static bool
is_before_base(const struct follow *f, const struct filter_event *e)
{
	return f->seq == f->base_seq && e->seq <= f->base_seq;
}

/* True, and the chain is one longer, when e follows it. */
static bool
follows(struct follow *f, const struct filter_event *e)
{
	if (e->kind == EVENT_ADDED && e->epoch == f->epoch &&
	    e->seq == f->seq + 1)
		f->seq = e->seq;
	else if (e->kind == EVENT_EPOCH && e->seq == f->seq &&
	    e->epoch >= f->epoch)
		f->epoch = e->epoch;
	else
		return false;
	return true;
}

/* Before there is a base: what was heard without a gap. */
static void
hear(struct follow *f, const struct filter_event *e)
{
	if (f->heard && follows(f, e))
		return;
	f->heard = true;
	f->heard_from = e->seq + (e->kind == EVENT_EPOCH);
	f->seq = e->seq;
	f->epoch = e->epoch;
}

static void
advance(struct tracked *t, const struct filter_event *e)
{
	struct follow *f = &t->follow;

	if (f->chain != CHAIN_BASED)
		hear(f, e);
	else if (!follows(f, e) && !is_before_base(f, e))
		gap(t, "a message does not follow the one before");
}

static void
on_event(struct tracked *t, const struct filter_event *e)
{
	uint64_t epoch;

	apply(t, *e);
	advance(t, e);
	if (e->kind == EVENT_EPOCH &&
	    (!view_epoch(t, &epoch) || e->epoch != epoch)) {
		doubt(t);
		control_refresh(t->control, t->filter->index, -1);
		return;
	}
	judge_beat(t);
}

/* --- loads -----------------------------------------------------------------*/

static void
on_load_end(enum load_end end, uint32_t shard, void *arg)
{
	struct tracked *t = arg;
	struct follow *f = &t->follow;
	uint64_t pause_ms = FOLLOW_RETRY_MS;

	if (t->control->stopping)
		return;
	if (end == LOAD_ENDED_WELL) {
		f->loaded_ns = clock_boot_ns();
		control_refresh(t->control, t->filter->index, -1);
		return;
	}
	for (unsigned i = 0;
	     i < f->load_failures && pause_ms < FOLLOW_RETRY_MAX; i++)
		pause_ms *= 2;
	f->load_failures++;
	f->load_after_ns = clock_boot_ns() +
	    (pause_ms + random_below(pause_ms)) * MS_NS;
	log_info("mirror_load_failed", LOG_STR("filter", t->filter->name),
	    LOG_STR("reason",
		end == LOAD_BAD_SHARD ? "a shard is not in order"
				      : "no answer"),
	    LOG_INT("shard", shard));
	if (end == LOAD_BAD_SHARD)
		control_refresh(t->control, t->filter->index, (int64_t)shard);
}

static void
try_load(struct tracked *t)
{
	struct follow *f = &t->follow;
	uint64_t now = clock_boot_ns();
	const struct generation *g = filter_serving(t->view);

	if (f->chain != CHAIN_BASED || t->view->mirror == NULL || g == NULL ||
	    f->load.state != LOAD_NONE || t->peers == 0)
		return;
	if (f->load_after_ns == 0)
		f->load_after_ns = now +
		    (t->peers > 1 ? random_below(FOLLOW_SPREAD_MS) * MS_NS : 0);
	if (now < f->load_after_ns || !view_epoch(t, &f->load_epoch))
		return;
	load_start(&f->load, t->group->link, t->view->mirror,
	    t->filter->redis_key, g->name, t->settings->rebuild.redis_share);
}

void
follow_peers(struct tracked *t)
{
	try_load(t);
}

void
follow_view(struct tracked *t, struct view *v)
{
	struct follow *f = &t->follow;
	const struct generation *g = filter_serving(v);
	struct mirror *old = t->view->mirror;

	doubt(t);
	if (g != NULL && old != NULL &&
	    mirror_is_of(old, &g->geometry, g->tag)) {
		v->mirror = mirror_ref(old);
		return;
	}
	load_cancel(&f->load);
	f->loaded = false;
	f->load_after_ns = 0;
	f->load_failures = 0;
	f->in_step_ns = 0;
	if (g == NULL || t->control->events == NULL)
		return;
	v->mirror = mirror_new(&g->geometry, g->tag);
	if (v->mirror == NULL)
		log_warn("mirror_no_memory", LOG_STR("filter", t->filter->name),
		    LOG_INT("bytes", geometry_total_bytes(&g->geometry)),
		    LOG_STR("effect", "every check goes to Redis"));
}

/* --- the link --------------------------------------------------------------*/

static void
channel_of(const struct tracked *t, char *out, size_t size)
{
	name_other(out, size, t->filter->redis_key, "events");
}

static void
subscribe(struct tracked *t)
{
	char channel[NAME_MAX_BYTES];

	channel_of(t, channel, sizeof(channel));
	if (link_subscribe(t->control->events, slice_str(channel)) != 0)
		log_debug("not_subscribed", LOG_STR("channel", channel));
}

static void
subscribe_all(struct control *c)
{
	c->events_refused_ns = 0;
	for (size_t i = 0; i < c->count; i++)
		subscribe(&c->tracked[i]);
}

static void
on_up(struct link *l, void *arg)
{
	struct control *c = arg;

	(void)l;
	if (!c->stopping && c->events_refused_ns == 0)
		subscribe_all(c);
}

static void
on_down(struct link *l, const char *reason, void *arg)
{
	struct control *c = arg;

	(void)l;
	for (size_t i = 0; i < c->count; i++)
		restart(&c->tracked[i], CHAIN_CUT);
	if (strncmp(reason, "NOPERM", 6) != 0)
		return;
	log_error("events_refused", LOG_STR("redis", reason),
	    LOG_STR("effect", "every check goes to Redis"),
	    LOG_STR("remedy",
		"give bloomgate's own user +subscribe and the channels of its "
		"filters, &<redis-key>:events"));
	c->events_refused_ns = clock_boot_ns();
}

static void
on_message(
    struct link *l, struct slice channel, struct slice payload, void *arg)
{
	struct control *c = arg;
	struct filter_event e;
	char own[NAME_MAX_BYTES];

	(void)l;
	for (size_t i = 0; i < c->count && !c->stopping; i++) {
		struct tracked *t = &c->tracked[i];

		channel_of(t, own, sizeof(own));
		if (!slice_is(channel, own))
			continue;
		if (payload.data == NULL) {
			restart(t, CHAIN_SUBSCRIBED);
			control_refresh(c, i, -1);
		} else if (event_parse(&e, payload) == 0) {
			on_event(t, &e);
		} else {
			gap(t, "a message cannot be read");
		}
	}
}

void
follow_link_init(struct control *c)
{
	struct settings *s = c->options.settings;

	c->events = link_new(&(struct link_options){.base = c->options.base,
	    .endpoint = settings_store(s),
	    .connect_timeout_ms = s->connect_timeout_ms,
	    .purpose = "events",
	    .on_up = on_up,
	    .on_down = on_down,
	    .on_message = on_message,
	    .arg = c});
}

void
follow_tick(struct tracked *t)
{
	struct control *c = t->control;

	if (c->events_refused_ns != 0 && link_is_up(c->events) &&
	    clock_boot_ns() - c->events_refused_ns > FOLLOW_REFUSED_MS * MS_NS)
		subscribe_all(c);
}

void
follow_init(struct tracked *t)
{
	load_init(&t->follow.load, t->control->options.base, on_load_end, t);
}

void
follow_fini(struct tracked *t)
{
	load_fini(&t->follow.load);
}

/* --- for people ------------------------------------------------------------*/

const char *
follow_word(const struct tracked *t)
{
	const struct follow *f = &t->follow;

	if (t->view->mirror == NULL)
		return "none";
	if (f->chain == CHAIN_CUT)
		return "cut";
	if (f->load.state == LOAD_RUNNING)
		return "loading";
	if (!f->loaded)
		return "waiting";
	return f->behind_since_ns != 0 ? "behind" : "in step";
}

double
follow_staleness(const struct tracked *t, uint64_t now_ns)
{
	uint64_t at = t->follow.in_step_ns;

	return t->view->mirror == NULL || at == 0 ? (double)NAN
						  : (double)(now_ns - at) / 1e9;
}
