/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waiting for one answer by running the link's loop: for a thread whose loop
 * serves nothing else. Not from within a callback.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>

#include <event2/event.h>

#include "core/check.h"
#include "core/clock.h"
#include "redis/link_private.h"

#define TICK_US 50000
#define MS_NS   UINT64_C(1000000)

struct call {
	bool done;
	struct redisReply *reply; /* ours */
};

static void
on_tick(evutil_socket_t fd, short what, void *arg)
{
	/* It only ends a turn of the loop. */
	(void)fd;
	(void)what;
	(void)arg;
}

static void
on_called(struct link *l, const struct redisReply *reply, void *arg)
{
	struct call *c = arg;

	(void)l;
	c->done = true;
	c->reply = reply_take(reply);
}

uint64_t
call_until(uint64_t timeout_ms)
{
	return timeout_ms == 0 ? 0 : clock_boot_ns() + timeout_ms * MS_NS;
}

static bool
is_over(uint64_t until_ns, const _Atomic bool *cancel)
{
	if (cancel != NULL &&
	    atomic_load_explicit(cancel, memory_order_acquire))
		return true; /* partner: whoever sets it, release */
	return until_ns != 0 && clock_boot_ns() >= until_ns;
}

/* Runs one turn; it ends after 50 ms at the latest. */
static void
turn(struct link *l)
{
	struct timeval tv = {.tv_usec = TICK_US};

	check(l->in_callback == 0);
	if (l->tick == NULL) {
		l->tick = event_new(l->o.base, -1, 0, on_tick, l);
		check(l->tick != NULL);
	}
	if (!event_pending(l->tick, EV_TIMEOUT, NULL))
		event_add(l->tick, &tv);
	event_base_loop(l->o.base, EVLOOP_ONCE);
}

int
call_wait_up(struct link *l, uint64_t until_ns, const _Atomic bool *cancel)
{
	while (!link_is_up(l)) {
		if (is_over(until_ns, cancel))
			return -1;
		turn(l);
	}
	return is_over(0, cancel) ? -1 : 0;
}

struct redisReply *
call_send(struct link *l, uint64_t until_ns, const _Atomic bool *cancel)
{
	uint64_t now_ns = clock_boot_ns(), timeout_ms = 0;
	struct call c = {.done = false};
	struct request *q;

	if (until_ns != 0) {
		if (now_ns >= until_ns)
			return NULL;
		timeout_ms = (until_ns - now_ns + MS_NS - 1) / MS_NS;
	}
	q = link_send(l, timeout_ms, on_called, &c);
	if (q == NULL)
		return NULL;
	while (!c.done) {
		if (is_over(0, cancel)) {
			requests_abandon(&l->requests, q);
			return NULL;
		}
		turn(l);
	}
	return c.reply;
}

struct redisReply *
link_call(struct link *l, uint64_t timeout_ms, const struct slice *argv,
    size_t argc, const _Atomic bool *cancel)
{
	uint64_t until_ns = call_until(timeout_ms);

	if (call_wait_up(l, until_ns, cancel) != 0)
		return NULL;
	wire_begin(&l->wire, argc);
	for (size_t i = 0; i < argc; i++)
		wire_arg(&l->wire, argv[i]);
	return call_send(l, until_ns, cancel);
}
