/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sweep: see sweep.h. Every buffer has a cap of its own, so what can come
 * together between two sweeps is bounded by what the sockets bring in that time.
 */
#include "config.h"

#include <stdlib.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "proxy/permission.h"
#include "proxy/session.h"
#include "proxy/sweep.h"

#define SWEEP_MS 100

struct sweep {
	struct worker *worker;
	struct event *timer; /* owned */
	size_t in, out;      /* bytes in the metric, as of the last sweep */
};

/* What the session's buffers hold on to: towards Redis, and towards the client. */
static size_t
held_in(const struct session *s)
{
	return (s->in_lent ? 0 : s->in.capacity) + s->up_out.capacity +
	    s->up_in.capacity + request_memory(&s->request);
}

static size_t
held_out(const struct session *s)
{
	return s->out.capacity + reply_memory(&s->reply);
}

/* A session that waits for Redis to speak, or that nobody looks into, is not
 * idle. */
static bool
is_idle(const struct session *s, uint64_t now_ns)
{
	uint64_t limit_ms = s->worker->settings->client_idle_timeout_ms;

	return limit_ms != 0 && s->slot_count == 0 && buf_len(&s->out) == 0 &&
	    s->mode.level != MODE_OPAQUE &&
	    s->mode.subs[SUBS_CHANNEL] + s->mode.subs[SUBS_PATTERN] +
		s->mode.subs[SUBS_SHARD] ==
	    0 &&
	    now_ns - s->turn_ns > limit_ms * UINT64_C(1000000);
}

static struct session *
largest(struct worker *w)
{
	struct session *s, *found = NULL;
	size_t most = 0;

	TAILQ_FOREACH (s, &w->sessions, next) {
		size_t held = held_in(s) + held_out(s);

		if (held > most) {
			most = held;
			found = s;
		}
	}
	return found;
}

/* Each worker answers for its share of the limit. */
static void
enforce_memory(struct worker *w, size_t held)
{
	size_t limit = w->settings->limit_memory_bytes / w->settings->workers;

	while (held > limit) {
		struct session *s = largest(w);
		size_t mine;

		if (s == NULL)
			return;
		mine = held_in(s) + held_out(s);
		log_warn("memory_limit", LOG_STR("client", s->peer),
		    LOG_INT("held", mine), LOG_INT("all", held),
		    LOG_STR("limit", "limits.memory"));
		metric_add(w->metrics, METRIC_CLIENT_REJECTED_TOTAL,
		    REJECT_MEMORY, 0, 1);
		session_close(s);
		held -= mine;
	}
}

static void
on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct sweep *sweep = arg;
	struct worker *w = sweep->worker;
	uint64_t now_ns = clock_boot_ns();
	size_t in = 0, out = 0;
	struct session *s, *next;

	(void)fd;
	(void)what;
	for (s = TAILQ_FIRST(&w->sessions); s != NULL; s = next) {
		next = TAILQ_NEXT(s, next);
		if (is_idle(s, now_ns)) {
			log_debug("client_idle", LOG_STR("client", s->peer));
			session_close(s);
			continue;
		}
		in += held_in(s);
		out += held_out(s);
	}
	enforce_memory(w, in + out);
	permission_renew_default(w->permissions);
	metric_add(
	    w->metrics, METRIC_BUFFER_BYTES, DIRECTION_IN, 0, in - sweep->in);
	metric_add(w->metrics, METRIC_BUFFER_BYTES, DIRECTION_OUT, 0,
	    out - sweep->out);
	sweep->in = in;
	sweep->out = out;
}

struct sweep *
sweep_new(struct worker *w)
{
	struct sweep *s = mem_zalloc(1, sizeof(*s));

	s->worker = w;
	s->timer = event_new(w->base, -1, EV_PERSIST, on_timer, s);
	check(s->timer != NULL);
	return s;
}

void
sweep_start(struct sweep *s)
{
	const struct timeval tv = {.tv_usec = SWEEP_MS * 1000};

	check(event_add(s->timer, &tv) == 0);
}

void
sweep_free(struct sweep *s)
{
	event_free(s->timer);
	free(s);
}
