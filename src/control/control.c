/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control object: its links (one for each database of the store that a filter
 * uses), its filters, the way in from other threads. What is done for one filter
 * is in tracked.c and heartbeat.c. Runs on the loop given to it; only
 * control_refresh and control_store_up may be called from elsewhere.
 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "control/control.h"
#include "control/tracked.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"

#define CONTROL_MAGIC 0x6374726cU

static struct control_group *
group_of(struct control *c, unsigned db)
{
	for (size_t i = 0; i < c->group_count; i++) {
		if (c->groups[i].db == db)
			return &c->groups[i];
	}
	return NULL;
}

static void
update_upstream_up(struct control *c)
{
	bool up = true;

	for (size_t i = 0; i < c->group_count; i++) {
		if (!atomic_load_explicit(
			&c->groups[i].up, memory_order_relaxed))
			up = false;
	}
	metric_set(c->options.metrics, METRIC_UPSTREAM_UP, 0, 0, up);
}

static void
on_up(struct link *l, void *arg)
{
	struct control_group *g = arg;
	struct control *c = g->control;

	(void)l;
	atomic_store_explicit(&g->up, true, memory_order_relaxed);
	update_upstream_up(c);
	for (size_t i = 0; i < c->count && !c->stopping; i++) {
		if (c->tracked[i].group == g)
			tracked_link_up(&c->tracked[i]);
	}
	if (!c->stopping)
		probe_start(g);
}

static void
on_down(struct link *l, const char *reason, void *arg)
{
	struct control_group *g = arg;
	struct control *c = g->control;

	(void)l;
	(void)reason; /* the link has logged it */
	atomic_store_explicit(&g->up, false, memory_order_relaxed);
	update_upstream_up(c);
	for (size_t i = 0; i < c->count; i++) {
		if (c->tracked[i].group == g)
			tracked_link_down(&c->tracked[i]);
	}
}

static void
group_init(struct control_group *g, struct control *c, unsigned db)
{
	struct settings *s = c->options.settings;

	g->control = c;
	g->db = db;
	g->link = link_new(&(struct link_options){.base = c->options.base,
	    .endpoint = settings_store(s),
	    .db = db,
	    .connect_timeout_ms = s->connect_timeout_ms,
	    .purpose = "control",
	    .on_up = on_up,
	    .on_down = on_down,
	    .arg = g});
}

/*
 * The name of this bloomgate's peer fields: host and listen address. A port that
 * the kernel picks says nothing, so the process id stands beside it.
 */
static void
name_peer(struct control *c)
{
	struct settings *s = c->options.settings;
	const struct address *a = s->listen_count > 0 ? &s->listen[0] : NULL;
	char host[HOST_NAME_MAX + 1];

	if (gethostname(host, sizeof(host)) != 0)
		snprintf(host, sizeof(host), "unknown");
	host[sizeof(host) - 1] = '\0';
	if (a == NULL || (a->kind == ADDRESS_TCP && a->port == 0))
		snprintf(c->peer, sizeof(c->peer), "%s/%s/%ld", host,
		    a != NULL ? a->text : "", (long)getpid());
	else
		snprintf(c->peer, sizeof(c->peer), "%s/%s", host, a->text);
}

struct control *
control_new(const struct control_options *o)
{
	struct control *c = mem_zalloc(1, sizeof(*c));

	c->magic = CONTROL_MAGIC;
	c->options = *o;
	settings_ref(o->settings);
	c->mailbox = mailbox_new(o->base);
	c->count = o->settings->filter_count;
	/* Without filters the link still shows whether Redis is there. */
	c->groups = mem_zalloc(c->count + 1, sizeof(*c->groups));
	if (c->count == 0)
		group_init(&c->groups[c->group_count++], c, 0);
	for (size_t i = 0; i < c->count; i++) {
		unsigned db = o->settings->filters[i].db;

		if (group_of(c, db) == NULL)
			group_init(&c->groups[c->group_count++], c, db);
	}
	name_peer(c);
	c->tracked = mem_zalloc(c->count + 1, sizeof(*c->tracked));
	if (c->count > 0 && o->mirrors)
		follow_link_init(c);
	for (size_t i = 0; i < c->count; i++) {
		c->tracked[i].group = group_of(c, o->settings->filters[i].db);
		tracked_init(&c->tracked[i], c, i);
	}
	return c;
}

void
control_start(struct control *c)
{
	check(c->magic == CONTROL_MAGIC);
	update_upstream_up(c);
	for (size_t i = 0; i < c->group_count; i++)
		link_start(c->groups[i].link);
	if (c->events != NULL)
		link_start(c->events);
	for (size_t i = 0; i < c->count; i++)
		tracked_kick(&c->tracked[i], CONTROL_TICK_MS);
}

static void
on_farewell(struct control *c)
{
	check(c->farewells > 0);
	c->farewells--;
	if (c->farewells == 0)
		event_base_loopbreak(c->options.base);
}

static void
on_farewell_late(evutil_socket_t fd, short what, void *arg)
{
	struct control *c = arg;

	(void)fd;
	(void)what;
	event_base_loopbreak(c->options.base);
}

void
control_stop(struct control *c, uint64_t timeout_ms)
{
	uint64_t until_ms = clock_boot_ms() + timeout_ms;
	struct timeval tv = {.tv_sec = (time_t)(timeout_ms / 1000),
	    .tv_usec = (suseconds_t)(timeout_ms % 1000 * 1000)};
	struct event *late;

	check(c->magic == CONTROL_MAGIC);
	c->stopping = true;
	for (size_t i = 0; i < c->count; i++) {
		struct tracked *t = &c->tracked[i];

		event_del(t->timer);
		atomic_store_explicit(
		    &t->view->lease_until_ns, 0, memory_order_release);
		if (tracked_farewell(t, on_farewell))
			c->farewells++;
		report_metrics(t);
	}
	late = evtimer_new(c->options.base, on_farewell_late, c);
	check(late != NULL);
	event_add(late, &tv);
	while (c->farewells > 0 && clock_boot_ms() < until_ms)
		event_base_loop(c->options.base, EVLOOP_ONCE);
	event_free(late);
}

void
control_free(struct control *c)
{
	if (c == NULL)
		return;
	check(c->magic == CONTROL_MAGIC);
	c->stopping = true;
	for (size_t i = 0; i < c->group_count; i++)
		link_free(c->groups[i].link);
	link_free(c->events);
	mailbox_free(c->mailbox);
	for (size_t i = 0; i < c->count; i++)
		tracked_fini(&c->tracked[i]);
	settings_unref(c->options.settings);
	free(c->tracked);
	free(c->groups);
	c->magic = 0;
	free(c);
}

static void
on_refresh(void *arg)
{
	struct tracked *t = arg;
	uint64_t since_ms;

	if (t->control->stopping)
		return;
	since_ms = (clock_boot_ns() - t->sent_ns) / 1000000;
	tracked_kick(t,
	    since_ms >= CONTROL_REFRESH_MS ? 0 : CONTROL_REFRESH_MS - since_ms);
}

/*
 * A flood costs one message: the mark stays until the look that answers it has
 * been sent, and looks are CONTROL_REFRESH_MS apart.
 */
void
control_refresh(struct control *c, size_t index, int64_t shard)
{
	struct tracked *t;

	check(c->magic == CONTROL_MAGIC);
	check(index < c->count);
	t = &c->tracked[index];
	if (shard >= 0)
		atomic_store_explicit(
		    &t->refresh_shard, shard, memory_order_relaxed);
	if (!atomic_exchange_explicit(&t->refresh, true, memory_order_acq_rel))
		mailbox_post(c->mailbox, on_refresh, t);
}

bool
control_store_up(const struct control *c, size_t index)
{
	check(c->magic == CONTROL_MAGIC);
	check(index < c->count);
	return atomic_load_explicit(
	    &c->tracked[index].group->up, memory_order_relaxed);
}

const char *
control_mirror_word(const struct control *c, size_t index)
{
	check(c->magic == CONTROL_MAGIC);
	check(index < c->count);
	return follow_word(&c->tracked[index]);
}
