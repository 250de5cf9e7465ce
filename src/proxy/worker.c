/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker thread: see worker.h. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "proxy/add.h"
#include "proxy/listener.h"
#include "proxy/permission.h"
#include "proxy/session.h"
#include "proxy/sweep.h"
#include "proxy/worker.h"

/* How long after the start requests wait for an upstream that is not up. */
#define PATIENCE_SECONDS 2

static void
on_upstream_up(struct link *l, void *arg)
{
	struct worker *w = arg;

	(void)l;
	commands_load(w);
	permissions_begin(w->permissions);
}

/* Who asks before the upstream's commands are known is made to wait, but not
 * for ever. */
static void
on_patience(evutil_socket_t fd, short what, void *arg)
{
	struct worker *w = arg;

	(void)fd;
	(void)what;
	w->upstream_failed = !w->commands_known;
	worker_pump_all(w);
}

static void
link_changed(struct store *st)
{
	struct worker *w = st->worker;
	size_t i;

	for (i = 0; i < w->settings->filter_count; i++)
		if (w->settings->filters[i].db == st->db)
			adder_link_changed(w->adders[i]);
}

static void
on_store_up(struct link *l, void *arg)
{
	(void)l;
	link_changed(arg);
}

static void
on_store_down(struct link *l, const char *reason, void *arg)
{
	(void)l;
	(void)reason;
	link_changed(arg);
}

/* One link a database that any filter is in. */
static void
make_stores(struct worker *w)
{
	const struct settings *s = w->settings;
	size_t i, k;

	w->stores = mem_zalloc(s->filter_count + 1, sizeof(*w->stores));
	for (i = 0; i < s->filter_count; i++) {
		struct store *st;
		struct link_options o = {.base = w->base,
		    .endpoint = settings_store(s),
		    .db = s->filters[i].db,
		    .connect_timeout_ms = s->connect_timeout_ms,
		    .purpose = "check",
		    .on_up = on_store_up,
		    .on_down = on_store_down};

		for (k = 0; k < w->store_count; k++)
			if (w->stores[k].db == s->filters[i].db)
				break;
		if (k < w->store_count)
			continue;
		st = &w->stores[w->store_count++];
		st->db = s->filters[i].db;
		st->worker = w;
		o.arg = st;
		st->link = link_new(&o);
	}
}

static struct store *
store_of(struct worker *w, size_t index)
{
	size_t k;

	for (k = 0; k < w->store_count; k++)
		if (w->stores[k].db == w->settings->filters[index].db)
			return &w->stores[k];
	check(false);
	return NULL;
}

struct link *
worker_store(struct worker *w, size_t index)
{
	return store_of(w, index)->link;
}

static void
on_doubt(void *arg)
{
	struct store *st = arg;

	if (st->link != NULL) /* else the worker has ended */
		link_drop(st->link, "the filter trusts another run");
}

void
worker_store_doubt(struct worker *w, size_t index)
{
	struct store *st = store_of(w, index);
	uint64_t now_ms = clock_boot_ms();

	if (now_ms - st->dropped_ms < 1000)
		return;
	st->dropped_ms = now_ms;
	/* On a later turn: dropping answers what is out, and the caller is about
	 * to ask more. */
	mailbox_post(w->mailbox, on_doubt, st);
}

struct worker *
worker_new(struct proxy *proxy, size_t index)
{
	struct worker *w = mem_zalloc(1, sizeof(*w));
	const struct proxy_options *o = proxy_options_of(proxy);
	size_t i;
	struct link_options upstream = {.endpoint = &o->settings->upstream,
	    .connect_timeout_ms = o->settings->connect_timeout_ms,
	    .any_role = true,
	    .purpose = "upstream",
	    .on_up = on_upstream_up,
	    .arg = w};

	w->proxy = proxy;
	w->index = index;
	w->settings = o->settings;
	w->filters = o->filters;
	w->metrics = o->metrics;
	w->base = event_base_new();
	check(w->base != NULL);
	w->mailbox = mailbox_new(w->base);
	w->patterns = pattern_set_new(w->settings);
	w->commands = command_table_new();
	w->permissions = permissions_new(w);
	w->sweep = sweep_new(w);
	w->scratch = mem_alloc(SCRATCH_BYTES);
	w->output_pause = w->settings->limit_client_output_bytes / 2;
	if (w->output_pause > OUTPUT_PAUSE)
		w->output_pause = OUTPUT_PAUSE;
	TAILQ_INIT(&w->sessions);
	w->patience = evtimer_new(w->base, on_patience, w);
	check(w->patience != NULL);
	upstream.base = w->base;
	w->upstream = link_new(&upstream);
	make_stores(w);
	w->adders = mem_zalloc(
	    w->settings->filter_count + 1, sizeof(*w->adders));
	for (i = 0; i < w->settings->filter_count; i++)
		w->adders[i] = adder_new(w, i);
	w->listeners = mem_zalloc(
	    w->settings->listen_count + 1, sizeof(*w->listeners));
	return w;
}

static void *
run(void *arg)
{
	struct worker *w = arg;
	const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
	size_t i;

	link_start(w->upstream);
	sweep_start(w->sweep);
	check(evtimer_add(w->patience, &patience) == 0);
	for (i = 0; i < w->store_count; i++)
		link_start(w->stores[i].link);
	for (i = 0; i < w->listener_count; i++)
		listener_start(w->listeners[i]);
	event_base_loop(w->base, EVLOOP_NO_EXIT_ON_EMPTY);
	return NULL;
}

void
worker_start(struct worker *w)
{
	sigset_t all, before;

	/* Signals are the daemon thread's. */
	sigfillset(&all);
	check(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
	check(pthread_create(&w->thread, NULL, run, w) == 0);
	check(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
}

static void
close_all(struct worker *w)
{
	struct session *s, *next;

	for (s = TAILQ_FIRST(&w->sessions); s != NULL; s = next) {
		next = TAILQ_NEXT(s, next);
		session_close(s);
	}
}

static void
stop_accepting(struct worker *w)
{
	size_t i;

	for (i = 0; i < w->listener_count; i++) {
		listener_free(w->listeners[i]);
		w->listeners[i] = NULL;
	}
	w->listener_count = 0;
}

static void
on_stop(void *arg)
{
	struct worker *w = arg;

	stop_accepting(w);
	close_all(w);
	event_base_loopbreak(w->base);
}

void
worker_stop(struct worker *w)
{
	mailbox_post(w->mailbox, on_stop, w);
	check(pthread_join(w->thread, NULL) == 0);
}

void
worker_free(struct worker *w)
{
	size_t i;

	stop_accepting(w);
	/* What sessions still wait for ends with the links and the adders;
	 * then nothing holds a closed session any more. */
	for (i = 0; i < w->store_count; i++) {
		link_free(w->stores[i].link);
		w->stores[i].link = NULL;
	}
	for (i = 0; i < w->settings->filter_count; i++)
		adder_free(w->adders[i]);
	link_free(w->upstream);
	permissions_free(w->permissions);
	sweep_free(w->sweep);
	event_free(w->patience);
	mailbox_free(w->mailbox);
	pattern_set_free(w->patterns);
	command_table_free(w->commands);
	event_base_free(w->base);
	free(w->stores);
	free(w->adders);
	free(w->listeners);
	free(w->scratch);
	free(w->argv);
	free(w);
}

void
worker_refresh(struct worker *w, size_t index, int64_t shard)
{
	const struct proxy_options *o = proxy_options_of(w->proxy);

	if (o->refresh != NULL)
		o->refresh(index, shard, o->arg);
}

void
worker_pump_all(struct worker *w)
{
	struct session *s, *next;

	for (s = TAILQ_FIRST(&w->sessions); s != NULL; s = next) {
		next = TAILQ_NEXT(s, next);
		if (s->held == NULL && buf_len(&s->in) == s->parsed)
			continue;
		session_enter(s);
		session_pump(s);
		session_leave(s);
	}
}

void
worker_drain(struct worker *w)
{
	struct session *s, *next;

	w->draining = true;
	stop_accepting(w);
	for (s = TAILQ_FIRST(&w->sessions); s != NULL; s = next) {
		next = TAILQ_NEXT(s, next);
		session_enter(s);
		if (s->mode.level == MODE_OPAQUE)
			session_end(s);
		session_pump(s);
		session_leave(s);
	}
}
