/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bloomgate --build FILTER: one rebuild without a proxy, for cron or a job.
 * control runs beside it, because the rebuild reads the published view (which
 * generation serves, which bits to carry over).
 */
#include "config.h"

#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/control.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "daemon/run.h"
#include "rebuild/build.h"
#include "rebuild/rebuild.h"

#define STOP_MS      2000
#define VIEW_POLL_MS 20
#define VIEW_WAIT_MS 10000

#define EXIT_BUILT  0
#define EXIT_FAILED 1
#define EXIT_USAGE  2
#define EXIT_LOCKED 3

struct once {
	struct run *run;
	size_t index;
	struct event *start_timer;
	uint64_t give_up_ms; /* clock_boot_ms: the store is not reachable */
	bool ended;
	enum metric_rebuild result;
};

struct end {
	struct once *build;
	enum metric_rebuild result;
};

static void
on_end(void *arg)
{
	struct end *e = arg;

	e->build->ended = true;
	e->build->result = e->result;
	event_base_loopbreak(e->build->run->base);
	free(e);
}

/* On the rebuild thread. */
static void
on_ended(size_t index, enum metric_rebuild result, void *arg)
{
	struct once *b = arg;
	struct end *e = mem_alloc(sizeof(*e));

	(void)index;
	*e = (struct end){.build = b, .result = result};
	mailbox_post(b->run->mailbox, on_end, e);
}

/* On the rebuild thread. */
static void
on_changed(size_t index, void *arg)
{
	struct once *b = arg;

	control_refresh(b->run->control, index, -1);
}

/* We were called for one filter, once. */
static void
on_want_rebuild(size_t index, const char *reason, void *arg)
{
	(void)index;
	(void)reason;
	(void)arg;
}

static void
on_want_retire(size_t index, void *arg)
{
	(void)index;
	(void)arg;
}

/* The build begins once control has read what is there now. */
static void
on_start(evutil_socket_t fd, short what, void *arg)
{
	struct once *b = arg;
	struct timeval tv = {.tv_usec = VIEW_POLL_MS * 1000};
	struct view *v = filter_view(b->run->filters[b->index]);
	bool known = v->state != FILTER_UNKNOWN;

	(void)fd;
	(void)what;
	view_unref(v);
	if (known) {
		rebuild_request(b->run->rebuild, b->index, false, "--build");
	} else if (clock_boot_ms() >= b->give_up_ms) {
		log_error("build_failed",
		    LOG_STR("error", "the filters' redis is not reachable"));
		event_base_loopbreak(b->run->base);
	} else {
		evtimer_add(b->start_timer, &tv);
	}
}

static void
on_signal(evutil_socket_t number, short what, void *arg)
{
	struct once *b = arg;

	(void)number;
	(void)what;
	/* Nothing queued yet: then there is nothing to end properly. */
	if (rebuild_abort(b->run->rebuild, b->index) != 0)
		event_base_loopbreak(b->run->base);
}

static void
make(struct once *b)
{
	struct run *r = b->run;
	struct rebuild_options ro = {
	    .settings = r->settings,
	    .filters = r->filters,
	    .metrics = r->metrics,
	    .changed = on_changed,
	    .ended = on_ended,
	    .arg = b,
	};
	struct control_options co = {
	    .base = r->base,
	    .settings = r->settings,
	    .filters = r->filters,
	    .metrics = r->metrics,
	    .want_rebuild = on_want_rebuild,
	    .want_retire = on_want_retire,
	    .arg = b,
	};

	r->rebuild = rebuild_new(&ro);
	r->control = control_new(&co);
}

static void
build_and_wait(struct once *b)
{
	struct run *r = b->run;
	struct timeval now = {0};
	static const int numbers[] = {SIGINT, SIGTERM};
	size_t i;

	for (i = 0; i < 2; i++) {
		r->signals[i] = evsignal_new(r->base, numbers[i], on_signal, b);
		evsignal_add(r->signals[i], NULL);
	}
	b->start_timer = evtimer_new(r->base, on_start, b);
	evtimer_add(b->start_timer, &now);
	b->give_up_ms = clock_boot_ms() + VIEW_WAIT_MS;
	control_start(r->control);
	rebuild_start(r->rebuild);
	event_base_dispatch(r->base);
	event_free(b->start_timer);
	for (i = 0; i < 2; i++)
		event_free(r->signals[i]);
	rebuild_stop(r->rebuild, STOP_MS);
	control_stop(r->control, STOP_MS);
}

static int
status_of(struct once *b)
{
	struct filter *f = b->run->filters[b->index];
	int status = EXIT_FAILED;

	if (!b->ended)
		return EXIT_FAILED;
	if (b->result == REBUILD_OK)
		return EXIT_BUILT;
	pthread_mutex_lock(&f->mutex);
	if (strcmp(f->last_error, BUILD_ELSEWHERE) == 0)
		status = EXIT_LOCKED;
	fprintf(stderr, "bloomgate: %s: %s\n", f->name, f->last_error);
	pthread_mutex_unlock(&f->mutex);
	return status;
}

int
build_once(struct run *r, const char *filter)
{
	struct once b = {.run = r};
	int status;

	while (b.index < r->settings->filter_count &&
	    strcmp(r->settings->filters[b.index].name, filter) != 0)
		b.index++;
	if (b.index == r->settings->filter_count) {
		fprintf(
		    stderr, "bloomgate: no filter is called \"%s\"\n", filter);
		return EXIT_USAGE;
	}
	make(&b);
	build_and_wait(&b);
	mailbox_free(r->mailbox);
	r->mailbox = NULL;
	rebuild_free(r->rebuild);
	control_free(r->control);
	status = status_of(&b);
	return status;
}
