/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps of one filter: reading the meta, publishing a view, and what follows
 * from a heartbeat (tracked.h has the table). It gives leases and takes them
 * away; nothing else does. Control's loop only.
 *
 * A lost link publishes nothing: verdicts come from the workers' own links, and
 * the lease, which only a heartbeat renews, ends by itself. The view stays for
 * adds, which carry its epoch and are refused by Redis if that has changed.
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

static void
take_lease(struct tracked *t)
{
	atomic_store_explicit(
	    &t->view->lease_until_ns, 0, memory_order_release);
}

static void
publish(struct tracked *t, const struct meta *m, const char *run_id, bool old)
{
	struct view *v = view_new(t->filter, m, run_id);

	if (old && v->state == FILTER_SERVING)
		v->state = FILTER_SUSPECT;

	/* A verdict under way with the old view must find it out of date. */
	take_lease(t);
	follow_view(t, v);
	filter_publish(t->filter, v);
	view_unref(t->view);
	t->view = v; /* the reference of view_new */
	memcpy(t->run_id, run_id, strlen(run_id) + 1);
	if (m != NULL && m->exists)
		atomic_store_explicit(
		    &t->filter->seen_meta, true, memory_order_relaxed);
	report_state(t);
	report_metrics(t);
}

/* 0 and *m, or -1 where the reply is no meta that may be believed. */
static int
read_meta(struct meta *m, const struct redisReply *reply, struct err *err)
{
	size_t n = link_reply_count(reply);
	struct slice *fields;
	int rc;

	if (link_reply_type(reply) != LINK_ARRAY)
		return err_set(err, "%.*s", (int)link_reply_text(reply).len,
		    (const char *)link_reply_text(reply).data);
	fields = mem_zalloc(n + 1, sizeof(*fields));
	for (size_t i = 0; i < n; i++)
		fields[i] = link_reply_text(link_reply_at(reply, i));
	rc = meta_parse(m, fields, n, err);
	free(fields);
	return rc;
}

/* True when an epoch above this one was seen before. */
static bool
is_old(struct tracked *t, const struct meta *m)
{
	int64_t epoch;

	if (!m->exists || slice_to_int64(slice_str(m->epoch), &epoch) != 0)
		return false;
	if (epoch < t->epoch_seen && !BROKEN_LAW(10))
		return true;
	t->epoch_seen = epoch;
	return false;
}

static void send_meta(struct tracked *t);

static void
on_distrusted(struct link *l, const struct redisReply *reply, void *arg)
{
	struct tracked *t = arg;

	(void)l;
	check(t->step == STEP_DISTRUST);
	t->step = STEP_IDLE;
	t->read_meta = true;
	if (t->control->stopping)
		return;
	if (reply == NULL || link_reply_type(reply) == LINK_ERROR)
		tracked_idle(t); /* the next tick tries again */
	else
		send_meta(t);
}

/* Says in Redis, for every bloomgate, that nothing here is trusted any more. */
static void
send_distrust(struct tracked *t, const char *epoch)
{
	char meta[NAME_MAX_BYTES], channel[NAME_MAX_BYTES], seen[24];
	const char *key = t->filter->redis_key;
	struct slice argv[4];

	log_warn("filter_older", LOG_STR("filter", t->filter->name),
	    LOG_STR("epoch", epoch), LOG_INT("seen", t->epoch_seen),
	    LOG_STR("effect", "suspect until it is rebuilt"));
	argv[0] = slice_of(meta, name_other(meta, sizeof(meta), key, "meta"));
	argv[1] = slice_of(
	    channel, name_other(channel, sizeof(channel), key, "events"));
	argv[2] = slice_str(epoch);
	snprintf(seen, sizeof(seen), "%" PRId64, t->epoch_seen);
	argv[3] = slice_str(seen);
	if (script_run(t->group->link, SCRIPT_DISTRUST, CONTROL_REPLY_MS,
		on_distrusted, t, 1, argv, 4) == 0)
		t->step = STEP_DISTRUST;
	else
		t->read_meta = true;
}

static void
on_meta(struct link *l, const struct redisReply *reply, void *arg)
{
	struct tracked *t = arg;
	struct meta *m;
	struct err err;

	check(t->step == STEP_META);
	t->step = STEP_IDLE;
	if (t->control->stopping)
		return;
	if (reply == NULL) {
		t->read_meta = true;
		tracked_idle(t);
		return;
	}
	m = mem_zalloc(1, sizeof(*m));
	if (read_meta(m, reply, &err) == 0) {
		bool old = is_old(t, m);

		t->read_meta = false;
		publish(t, m, link_run_id(l), old);
		if (old)
			send_distrust(t, m->epoch);
		else
			tracked_heartbeat(t);
		free(m);
		return;
	}
	free(m);
	/* Nothing may be believed; the next tick looks again. */
	if (t->view->state != FILTER_UNKNOWN || !t->logged)
		log_warn("filter_meta_unreadable",
		    LOG_STR("filter", t->filter->name),
		    LOG_STR("error", err.text));
	publish(t, NULL, link_run_id(l), false);
	t->read_meta = true;
	tracked_idle(t);
}

static void
send_meta(struct tracked *t)
{
	char key[NAME_MAX_BYTES];
	size_t len = name_other(key, sizeof(key), t->filter->redis_key, "meta");
	struct slice argv[] = {slice_str("HGETALL"), slice_of(key, len)};

	if (link_command(
		t->group->link, CONTROL_REPLY_MS, on_meta, t, argv, 2) == 0)
		t->step = STEP_META;
}

void
tracked_reread(struct tracked *t)
{
	t->read_meta = true;
	take_lease(t);
	/* Somebody who changes the epoch all the time gets no storm from us. */
	if (++t->rereads > CONTROL_REREADS)
		tracked_kick(t, CONTROL_REREAD_MS);
	else
		send_meta(t);
}

void
tracked_alive(struct tracked *t, uint64_t seq)
{
	struct control *c = t->control;

	t->rereads = 0;
	if (t->view->state == FILTER_SERVING)
		atomic_store_explicit(&t->view->lease_until_ns,
		    t->sent_ns + c->options.settings->lease_ms * 1000000,
		    memory_order_release);
	follow_alive(t, seq);
	report_metrics(t);
	report_wishes(t);
	tracked_idle(t);
}

void
tracked_refused(struct tracked *t)
{
	take_lease(t);
	report_metrics(t);
	tracked_idle(t);
}

/* Nothing is under way: the next look is due at the tick, or now if asked for. */
void
tracked_idle(struct tracked *t)
{
	if (atomic_load_explicit(&t->refresh, memory_order_acquire))
		tracked_kick(t, CONTROL_REFRESH_MS);
}

void
tracked_link_up(struct tracked *t)
{
	/*
	 * Another run of Redis may lack acknowledged adds: nothing is absent
	 * from here on, even before its meta is read.
	 */
	if (strcmp(link_run_id(t->group->link), t->run_id) != 0)
		take_lease(t);
	t->redis_us = 0;
	t->peer_known = false;
	t->rereads = 0;
	t->read_meta = true;
	if (t->step == STEP_IDLE)
		send_meta(t);
}

void
tracked_link_down(struct tracked *t)
{
	t->read_meta = true;
	report_metrics(t);
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct tracked *t = arg;

	(void)fd;
	(void)what;
	tracked_kick(t, t->tick_ms);
	follow_tick(t);
	if (!link_is_up(t->group->link)) {
		report_metrics(t); /* the lease may have ended */
		return;
	}
	if (t->step != STEP_IDLE)
		return; /* tracked_idle sees to a refresh */
	if (t->read_meta)
		send_meta(t);
	else
		tracked_heartbeat(t);
}

void
tracked_kick(struct tracked *t, uint64_t delay_ms)
{
	struct timeval tv = {.tv_sec = (time_t)(delay_ms / 1000),
	    .tv_usec = (suseconds_t)(delay_ms % 1000 * 1000)};

	event_add(t->timer, &tv);
}

void
tracked_init(struct tracked *t, struct control *c, size_t index)
{
	t->control = c;
	t->filter = c->options.filters[index];
	t->settings = &c->options.settings->filters[index];
	t->timer = evtimer_new(c->options.base, on_timer, t);
	check(t->timer != NULL);
	t->tick_ms = t->settings->max_staleness_ms / 2;
	if (t->tick_ms > CONTROL_TICK_MS)
		t->tick_ms = CONTROL_TICK_MS;
	t->view = filter_view(t->filter);
	t->read_meta = true;
	follow_init(t);
	atomic_init(&t->refresh, false);
	atomic_init(&t->refresh_shard, -1);
	metric_set(c->options.metrics, METRIC_FILTER_TARGET_FPR, index, 0,
	    t->settings->error_rate);
}

void
tracked_fini(struct tracked *t)
{
	take_lease(t);
	follow_fini(t);
	event_free(t->timer);
	view_unref(t->view);
}
