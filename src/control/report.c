/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What control tells others about a filter: a log line when its state changes,
 * its metrics, and the wishes for a rebuild or for the removal of retiring
 * generations. Control's loop only.
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "control/tracked.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/random.h"

static const struct generation *
active_of(const struct tracked *t)
{
	const struct meta *m = &t->view->meta;

	return m->exists && m->active >= 0 ? &m->generations[m->active] : NULL;
}

static void
log_state(const struct tracked *t, const struct generation *g)
{
	const char *name = t->filter->name;
	const char *generation = g != NULL ? g->name : "";

	switch (t->view->state) {
	case FILTER_SERVING:
		log_info("filter_serving", LOG_STR("filter", name),
		    LOG_STR("generation", generation),
		    LOG_INT("elements", g != NULL ? g->elements : 0),
		    LOG_STR("epoch", t->view->meta.epoch));
		break;
	case FILTER_SUSPECT:
		log_warn("filter_suspect", LOG_STR("filter", name),
		    LOG_STR("generation", generation),
		    LOG_STR("trusted_run", t->view->meta.run_id),
		    LOG_STR("run", t->run_id));
		break;
	case FILTER_LOST:
		log_warn("filter_lost", LOG_STR("filter", name),
		    LOG_STR("generation", generation));
		break;
	case FILTER_MISSING:
		log_warn("filter_missing", LOG_STR("filter", name));
		break;
	case FILTER_FOREIGN:
		log_error("filter_foreign", LOG_STR("filter", name),
		    LOG_STR("generation", generation),
		    LOG_INT("layout", t->view->meta.layout));
		break;
	case FILTER_UNKNOWN:
		break; /* said by who could not read it */
	}
}

void
report_state(struct tracked *t)
{
	const struct generation *g = active_of(t);
	const char *generation = g != NULL ? g->name : "";

	if (t->logged && t->logged_state == t->view->state &&
	    strcmp(t->logged_generation, generation) == 0)
		return;
	log_state(t, g);
	/* Another state: wishes start afresh. */
	if (!t->logged || t->logged_state != t->view->state)
		t->want_after_ns = 0;
	t->logged = true;
	t->logged_state = t->view->state;
	snprintf(t->logged_generation, sizeof(t->logged_generation), "%s",
	    generation);
}

static void
set(struct tracked *t, enum metric_id id, double value)
{
	metric_set(t->control->options.metrics, id, t->filter->index, 0, value);
}

void
report_metrics(struct tracked *t)
{
	const struct generation *g = active_of(t);
	uint64_t bits = g != NULL && g->usable
	    ? geometry_total_bits(&g->geometry)
	    : 0;

	set(t, METRIC_FILTER_READY,
	    filter_ready(t->filter, t->view, filter_version(t->filter),
		clock_boot_ns()));
	set(t, METRIC_FILTER_SUSPECT, t->view->state == FILTER_SUSPECT);
	set(t, METRIC_FILTER_SIZE_BYTES,
	    bits > 0 ? (double)geometry_total_bytes(&g->geometry) : 0);
	set(t, METRIC_FILTER_POSITIONS_SET,
	    g != NULL ? (double)g->bits_set : 0);
	set(t, METRIC_FILTER_FILL_RATIO,
	    bits > 0 ? (double)g->bits_set / (double)bits : 0);
	set(t, METRIC_FILTER_ELEMENTS, g != NULL ? (double)g->elements : 0);
	set(t, METRIC_FILTER_CAPACITY, g != NULL ? (double)g->capacity : 0);
	set(t, METRIC_FILTER_CARRIED, g != NULL && g->carried);
	set(t, METRIC_MIRROR_BYTES,
	    t->view->mirror != NULL ? (double)mirror_bytes(t->view->mirror)
				    : 0);
	set(t, METRIC_MIRROR_STALENESS, follow_staleness(t, clock_boot_ns()));
}

/* Another builder holds the lock. */
static bool
locked(const struct tracked *t)
{
	int64_t now_us = t->redis_us +
	    (int64_t)((clock_boot_ns() - t->redis_us_at_ns) / 1000);

	return t->lock_until_us > now_us;
}

/* MISSING and the like; or a builder died and left its generation open: somebody
 * else takes over. */
static const char *
wish_of(const struct tracked *t)
{
	switch (t->view->state) {
	case FILTER_MISSING:
		return "missing";
	case FILTER_SUSPECT:
		return "suspect";
	case FILTER_LOST:
		return "lost";
	default:
		return t->view->meta.building >= 0 && !locked(t) ? "abandoned"
								 : NULL;
	}
}

/*
 * A rebuild has ended: when the next one may be wished for. After one without
 * success (a source that fails) there is a pause, which doubles up to a minute: it
 * costs the database and Redis each time. And up to a quarter more: many bloomgates
 * that failed in the same moment should not come back in the same moment. An
 * operator who aborts wants peace, not the next attempt.
 */
static void
pause_wishes(struct tracked *t, const char *result, uint64_t now)
{
	uint64_t ms = t->want_pause_ms * 2 + 1000;

	if (strcmp(result, "ok") == 0) {
		t->want_pause_ms = 0;
		return;
	}
	if (ms > CONTROL_WANT_MAX_MS || strcmp(result, "aborted") == 0)
		ms = CONTROL_WANT_MAX_MS;
	t->want_pause_ms = ms;
	ms += random_below(ms / 4 + 1);
	t->want_after_ns = now + ms * 1000000;
	log_info("rebuild_backoff", LOG_STR("filter", t->filter->name),
	    LOG_INT("delay_ms", ms));
}

/* Sees each end, of an operator's rebuild while the filter serves too: what was
 * aborted an hour ago is no reason to wait now. */
static void
note_end(struct tracked *t)
{
	struct filter *f = t->filter;
	char result[sizeof(f->last_result)];
	int64_t ended_us;

	pthread_mutex_lock(&f->mutex);
	ended_us = f->last_ended_us;
	memcpy(result, f->last_result, sizeof(result));
	pthread_mutex_unlock(&f->mutex);
	if (ended_us == t->want_seen_us)
		return;
	t->want_seen_us = ended_us;
	pause_wishes(t, result, clock_boot_ns());
}

/* Each second while one is due and there is no pause. */
static void
wish_rebuild(struct tracked *t, const char *reason)
{
	struct control *c = t->control;
	uint64_t now = clock_boot_ns();

	if (now < t->want_after_ns || locked(t))
		return;
	t->want_after_ns = now + CONTROL_TICK_MS * UINT64_C(1000000);
	if (c->options.want_rebuild != NULL)
		c->options.want_rebuild(
		    t->filter->index, reason, c->options.arg);
}

static void
wish_retire(struct tracked *t)
{
	const struct meta *m = &t->view->meta;
	struct control *c = t->control;
	uint64_t now = clock_boot_ns();
	bool any = false;

	for (size_t i = 0; i < m->generation_count; i++)
		any = any || m->generations[i].retiring;
	if (!any || c->options.want_retire == NULL) {
		t->retire_after_ns = 0;
		return;
	}
	/* At first it is given the time that its builder takes. */
	if (t->retire_after_ns == 0)
		t->retire_after_ns = now +
		    (1000 + random_below(CONTROL_RETIRE_MS)) * 1000000;
	if (now < t->retire_after_ns || locked(t))
		return;
	t->retire_after_ns = now + CONTROL_RETIRE_MS * UINT64_C(1000000);
	c->options.want_retire(t->filter->index, c->options.arg);
}

void
report_wishes(struct tracked *t)
{
	const struct filter_rebuild_settings *r = &t->settings->rebuild;
	const char *reason = wish_of(t);

	if (!r->here)
		return;
	note_end(t);
	if (reason == NULL)
		t->want_pause_ms = 0;
	else if (r->source != SOURCE_NONE)
		wish_rebuild(t, reason);
	wish_retire(t);
}
