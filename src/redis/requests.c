/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Deadlines of a link's requests: see requests.h. A request that passes its
 * deadline is answered with NULL and stays, so that its reply is known when it
 * comes; one that is 5 s over it ends the connection.
 *
 * A loop that was held up may find both a passed deadline and an unread reply.
 * So when the timer is late, deadlines wait 100 ms for what is on its way; when
 * it is in time, 5 ms at most and only while there is something to read.
 */
#include "config.h"

#include <poll.h>
#include <stdlib.h>

#include <event2/event.h>
#include <hiredis/async.h>

#include "core/check.h"
#include "core/clock.h"
#include "core/mem.h"
#include "redis/link_private.h"
#include "redis/requests.h"

#define STALL_NS       UINT64_C(10000000) /* a timer later than this */
#define STALL_GRACE_NS UINT64_C(100000000)
#define GRACE_NS       UINT64_C(5000000)
#define MS_NS          UINT64_C(1000000)

static void on_deadline(evutil_socket_t fd, short what, void *arg);

void
requests_init(struct requests *r, struct link *l)
{
	*r = (struct requests){.count = 0};
	for (unsigned i = 0; i < REQUEST_CLASSES; i++)
		TAILQ_INIT(&r->classes[i].list);
	TAILQ_INIT(&r->late);
	r->timer = event_new(l->o.base, -1, 0, on_deadline, l);
	check(r->timer != NULL);
}

void
requests_fini(struct requests *r)
{
	check(r->outstanding == 0);
	event_free(r->timer);
}

static void
arm(struct requests *r, uint64_t at_ns, uint64_t now_ns)
{
	uint64_t us = at_ns > now_ns ? (at_ns - now_ns) / 1000 + 1 : 0;
	struct timeval tv = {.tv_sec = (time_t)(us / 1000000),
	    .tv_usec = (suseconds_t)(us % 1000000)};

	r->timer_ns = at_ns;
	event_add(r->timer, &tv);
}

/* The list for a timeout. With more different ones than classes, the last
 * takes all others and is kept in order by hand. */
static unsigned
class_of(struct requests *r, uint64_t timeout_ms)
{
	for (unsigned i = 0; i < r->count; i++) {
		if (r->classes[i].timeout_ms == timeout_ms)
			return i;
	}
	if (r->count == REQUEST_CLASSES)
		return REQUEST_CLASSES - 1;
	r->classes[r->count].timeout_ms = timeout_ms;
	return r->count++;
}

static void
insert(struct requests *r, struct request *q)
{
	struct request_list *list = &r->classes[q->class].list;
	struct request *after = TAILQ_LAST(list, request_list);

	while (after != NULL && after->deadline_ns > q->deadline_ns)
		after = TAILQ_PREV(after, request_list, next);
	if (after == NULL)
		TAILQ_INSERT_HEAD(list, q, next);
	else
		TAILQ_INSERT_AFTER(list, after, q, next);
}

struct request *
requests_add(struct requests *r, struct link *l, uint64_t timeout_ms,
    link_reply_fn fn, void *arg)
{
	struct request *q = mem_alloc(sizeof(*q));

	*q = (struct request){.link = l, .fn = fn, .arg = arg};
	r->outstanding++;
	if (timeout_ms > 0) {
		uint64_t now_ns = clock_boot_ns();

		q->deadline_ns = now_ns + timeout_ms * MS_NS;
		q->class = (uint8_t)class_of(r, timeout_ms);
		insert(r, q);
		if (r->timer_ns == 0 || q->deadline_ns < r->timer_ns)
			arm(r, q->deadline_ns, now_ns);
	}
	return q;
}

static void
unlist(struct requests *r, struct request *q)
{
	if (q->late)
		TAILQ_REMOVE(&r->late, q, next);
	else if (q->deadline_ns != 0)
		TAILQ_REMOVE(&r->classes[q->class].list, q, next);
}

void
requests_remove(struct requests *r, struct request *q)
{
	unlist(r, q);
	r->outstanding--;
	free(q);
}

void
requests_answer(
    struct requests *r, struct request *q, const struct redisReply *reply)
{
	struct link *l = q->link;
	link_reply_fn fn = q->late ? NULL : q->fn;
	void *arg = q->arg;

	requests_remove(r, q);
	if (fn != NULL)
		fn(l, reply, arg);
}

void
requests_abandon(struct requests *r, struct request *q)
{
	uint64_t now_ns = clock_boot_ns();

	unlist(r, q);
	q->late = true;
	if (q->deadline_ns == 0 || q->deadline_ns > now_ns)
		q->deadline_ns = now_ns;
	TAILQ_INSERT_TAIL(&r->late, q, next);
	if (r->timer_ns == 0)
		arm(r, now_ns + REQUEST_OVERDUE_NS, now_ns);
}

static struct request *
first_expired(struct requests *r, uint64_t now_ns)
{
	for (unsigned i = 0; i < r->count; i++) {
		struct request *q = TAILQ_FIRST(&r->classes[i].list);

		if (q != NULL && q->deadline_ns <= now_ns)
			return q;
	}
	return NULL;
}

static bool
is_readable(const struct link *l)
{
	struct pollfd p = {.events = POLLIN};

	if (l->ac == NULL)
		return false;
	p.fd = l->ac->c.fd;
	return p.fd >= 0 && poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

/* True while an answer may be on its way from the socket to us: then look
 * again in a millisecond. */
static bool
grace(
    struct requests *r, const struct link *l, uint64_t late_ns, uint64_t now_ns)
{
	if (r->grace_ns == 0) {
		r->stalled = late_ns > STALL_NS;
		r->grace_ns = now_ns + (r->stalled ? STALL_GRACE_NS : GRACE_NS);
	}
	return now_ns < r->grace_ns && (r->stalled || is_readable(l));
}

static void
arm_next(struct requests *r, uint64_t now_ns)
{
	struct request *q = TAILQ_FIRST(&r->late);
	uint64_t at_ns = q != NULL ? q->deadline_ns + REQUEST_OVERDUE_NS : 0;

	for (unsigned i = 0; i < r->count; i++) {
		q = TAILQ_FIRST(&r->classes[i].list);
		if (q != NULL && (at_ns == 0 || q->deadline_ns < at_ns))
			at_ns = q->deadline_ns;
	}
	if (at_ns != 0)
		arm(r, at_ns, now_ns);
}

static void
on_deadline(evutil_socket_t fd, short what, void *arg)
{
	struct link *l = arg;
	struct requests *r = &l->requests;
	uint64_t now_ns = clock_boot_ns();
	uint64_t late_ns = now_ns - r->timer_ns;
	struct request *q;

	(void)fd;
	(void)what;
	r->timer_ns = 0;
	if (first_expired(r, now_ns) != NULL && grace(r, l, late_ns, now_ns)) {
		arm(r, now_ns + MS_NS, now_ns);
		return;
	}
	r->grace_ns = 0;
	while ((q = first_expired(r, now_ns)) != NULL) {
		unlist(r, q);
		q->late = true;
		TAILQ_INSERT_TAIL(&r->late, q, next);
		q->fn(l, NULL, q->arg);
	}
	q = TAILQ_FIRST(&r->late);
	if (q != NULL && q->deadline_ns + REQUEST_OVERDUE_NS <= now_ns) {
		link_fail(l, "no answer within %d s of its time",
		    (int)(REQUEST_OVERDUE_NS / 1000000000));
		return;
	}
	event_del(r->timer);
	arm_next(r, now_ns);
}
